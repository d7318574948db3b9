//! Package files as lists.

use std::io::{self, Read};

use ::rpm::{Dependency, DependencyFlags, PackageMetadata};
use rockpack_archive::deb;
use rockpack_archive::package_file::PackageReader;
use rockpack_archive::payload::{PayloadEntry, PayloadEntryKind};
use rockpack_archive::rpm;
use rockpack_core::compression::decoder_fault;
use rockpack_core::content::{Content, DigestingReader, hex};
use rockpack_core::error::{Error, Result};
use sha2::{Digest as _, Sha256};

use super::{ListedMember, ListedPackage, Size};
use crate::receipt::RelationRecord;
use crate::{Comparison, DEB_FIELDS, Format, MemberKind, Relation, RelationKind, deb_relation};

/// Lists the package file `content`, called `file_name`. Reads every file in it.
pub fn listed(content: &Content, file_name: &str) -> Result<ListedPackage> {
    let reader = PackageReader::open(content.clone())?;
    let mut members = Vec::new();
    reader.visit(&mut |read, bytes| {
        let digest = if read.entry.is_file() { Some(digest(bytes)?) } else { None };
        members.push(payload_member(&read.entry, digest));
        Ok(())
    })?;
    members.sort_by(|a, b| a.path.cmp(&b.path));
    let (format, stated) = match &reader {
        PackageReader::Deb(deb) => (Format::Deb, of_deb(deb)?),
        PackageReader::Rpm(rpm) => (Format::Rpm, of_rpm(&rpm.metadata)?),
    };
    let ([name, version, architecture], installed, relations, vendor) = stated;
    Ok(ListedPackage {
        format,
        name,
        version,
        architecture,
        file_name: file_name.to_owned(),
        role: None,
        group: None,
        archs: Vec::new(),
        vendor,
        download: Size::exact(content.len()),
        installed: Size::exact(installed),
        relations,
        members,
    })
}

fn digest(bytes: &mut dyn Read) -> Result<String> {
    let mut source = DigestingReader::<_, Sha256>::new(bytes);
    io::copy(&mut source, &mut io::sink()).map_err(decoder_fault)?;
    Ok(hex(&source.digest.finalize()))
}

/// Lists an entry of a payload. `sha256` is the digest of its content in hex, if known.
pub fn payload_member(entry: &PayloadEntry, sha256: Option<String>) -> ListedMember {
    let kind = match entry.kind {
        PayloadEntryKind::Directory => MemberKind::Directory,
        PayloadEntryKind::File => MemberKind::File,
        PayloadEntryKind::Link { .. } => MemberKind::Link,
        // Only packages of other tools have these. dpkg calls everything but directories and links a file.
        PayloadEntryKind::Special(_) => MemberKind::File,
    };
    ListedMember {
        path: format!("/{}", entry.path),
        kind,
        mode: entry.mode,
        size: entry.is_file().then(|| Size::exact(entry.size)),
        sha256,
        code_sha256: None,
        target: entry.target().map(str::to_owned),
    }
}

/// Name, version and architecture, installed size in bytes, relations, and the vendor of an `.rpm`.
type PackageFields = ([String; 3], u64, Vec<RelationRecord>, Option<String>);

fn of_deb(deb: &deb::DebReader) -> Result<PackageFields> {
    let kib: u64 = match deb.fields.get("Installed-Size") {
        None => 0,
        Some(text) => text.parse().map_err(|error| {
            let message = format!("Installed-Size `{}` is not a number", text.escape_debug());
            Error::malformed(message).structure("control").cause(error)
        })?,
    };
    let of_package = [
        required_field(deb, "Package")?,
        required_field(deb, "Version")?,
        required_field(deb, "Architecture")?,
    ];
    Ok((of_package, kib.saturating_mul(1024), deb_relations(deb), None))
}

fn required_field(deb: &deb::DebReader, name: &str) -> Result<String> {
    let value = deb.fields.get(name).cloned();
    value.ok_or_else(|| Error::malformed(format!("has no {name}")).structure("control"))
}

fn deb_relations(deb: &deb::DebReader) -> Vec<RelationRecord> {
    let mut relations = Vec::new();
    for (kind, field) in DEB_FIELDS {
        let list = deb.fields.get(field).map_or("", String::as_str);
        let texts = list.split(',').map(str::trim).filter(|text| !text.is_empty());
        relations.extend(texts.map(|text| RelationRecord::from(&deb_relation(kind, text))));
    }
    relations.sort();
    relations
}

type RpmResult<T> = std::result::Result<T, ::rpm::Error>;

fn of_rpm(metadata: &PackageMetadata) -> Result<PackageFields> {
    let name = header_text("NAME", metadata.get_name())?;
    let version = header_text("VERSION", metadata.get_version())?;
    let release = header_text("RELEASE", metadata.get_release())?;
    let epoch = metadata.get_epoch().map(|epoch| format!("{epoch}:")).unwrap_or_default();
    let version = format!("{epoch}{version}-{release}");
    let installed = metadata.get_installed_size().unwrap_or_default();
    let relations = rpm_relations(metadata, &name);
    let architecture = header_text("ARCH", metadata.get_arch())?;
    let vendor = Some(metadata.get_vendor().unwrap_or_default().to_owned());
    Ok(([name, version, architecture], installed, relations, vendor))
}

fn header_text(name: &str, value: RpmResult<&str>) -> Result<String> {
    value
        .map(str::to_owned)
        .map_err(|error| Error::malformed(format!("the header has no {name}")).cause(error))
}

fn rpm_relations(metadata: &PackageMetadata, name: &str) -> Vec<RelationRecord> {
    let lists = [
        (RelationKind::Depends, metadata.get_requires()),
        (RelationKind::Recommends, metadata.get_recommends()),
        (RelationKind::Suggests, metadata.get_suggests()),
        (RelationKind::Enhances, metadata.get_enhances()),
        (RelationKind::Supplements, metadata.get_supplements()),
        (RelationKind::Conflicts, metadata.get_conflicts()),
        (RelationKind::Obsoletes, metadata.get_obsoletes()),
        (RelationKind::Provides, metadata.get_provides()),
    ];
    let mut relations = Vec::new();
    for (kind, list) in lists {
        // A header may lack the tag.
        let list = list.unwrap_or_default();
        let stated = list.iter().filter(|dependency| !is_automatic(kind, dependency, name));
        relations.extend(stated.map(|dependency| rpm_relation(kind, dependency)));
    }
    relations.sort();
    relations
}

/// Whether a dependency follows from the package itself; see `rockpack_archive::rpm::dependencies`.
fn is_automatic(kind: RelationKind, dependency: &Dependency, name: &str) -> bool {
    let automatic = DependencyFlags::RPMLIB | DependencyFlags::INTERP | DependencyFlags::CONFIG;
    let rest = dependency.name.strip_prefix(name);
    let is_own = rest.is_some_and(|rest| ["", "(x86-64)", "(aarch-64)"].contains(&rest));
    dependency.flags.intersects(automatic) || (kind == RelationKind::Provides && is_own)
}

/// Converts one dependency. One with an unknown comparison, which rpm's own tools cannot write, stays whole.
fn rpm_relation(kind: RelationKind, dependency: &Dependency) -> RelationRecord {
    let Dependency { name, flags, version } = dependency;
    let sign = rpm::sign(*flags);
    let (name, version) = match Comparison::split(&sign, Format::Rpm) {
        Some((comparison, "")) => (name.clone(), Some((comparison, version.clone()))),
        _ if sign.is_empty() => (name.clone(), None),
        _ => (format!("{name} {sign} {version}"), None),
    };
    RelationRecord::from(&Relation { kind, name, version })
}
