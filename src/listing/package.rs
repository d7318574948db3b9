//! One package file as a list.

use std::io::Read;

use ::rpm::{Dependency, DependencyFlags, PackageMetadata};
use sha2::{Digest as _, Sha256};

use super::{ListedMember, ListedPackage, Size};
use crate::content::{Content, WINDOW, hex};
use crate::error::{Error, Result};
use crate::formats::compression::decoder_fault;
use crate::formats::deb;
use crate::formats::payload::{Entry, EntryKind, Reader};
use crate::receipt::RelationRecord;

/// Control fields of relations and the kinds they are listed as.
const DEB_FIELDS: [(&str, &str); 9] = [
    ("Pre-Depends", "pre-depends"),
    ("Depends", "depends"),
    ("Recommends", "recommends"),
    ("Suggests", "suggests"),
    ("Enhances", "enhances"),
    ("Breaks", "breaks"),
    ("Conflicts", "conflicts"),
    ("Replaces", "replaces"),
    ("Provides", "provides"),
];

/// The comparisons of Debian's control files and what relations write for them everywhere.
const DEB_SIGNS: [(&str, &str); 5] =
    [("<<", "<"), ("<=", "<="), (">>", ">"), (">=", ">="), ("=", "=")];

/// Lists the package file `content`, which is called `file_name`. Every file in it is read.
pub fn listed(content: &Content, file_name: &str) -> Result<ListedPackage> {
    let reader = Reader::open(content.clone())?;
    let mut members = Vec::new();
    reader.visit(&mut |read, bytes| {
        let digest = match read.entry.is_file() {
            true => Some(digest(bytes)?),
            false => None,
        };
        members.push(payload_member(&read.entry, digest));
        Ok(())
    })?;
    members.sort_by(|a, b| a.path.cmp(&b.path));
    let mut package = match &reader {
        Reader::Deb(deb) => of_deb(deb)?,
        Reader::Rpm(rpm) => of_rpm(rpm.metadata())?,
    };
    package.file_name = file_name.to_owned();
    package.download = Size::exact(content.len());
    package.members = members;
    Ok(package)
}

fn digest(bytes: &mut dyn Read) -> Result<String> {
    let mut hasher = Sha256::new();
    let mut window = vec![0; WINDOW];
    loop {
        let len = bytes.read(&mut window).map_err(decoder_fault)?;
        match window.get(..len) {
            Some(read) if len > 0 => hasher.update(read),
            _ => return Ok(hex(&hasher.finalize())),
        }
    }
}

/// An entry of a payload, with the digest of its content in hex if that is known.
pub fn payload_member(entry: &Entry, sha256: Option<String>) -> ListedMember {
    let kind = match entry.kind {
        EntryKind::Directory => "directory",
        EntryKind::File => "file",
        EntryKind::Link { .. } => "link",
    };
    ListedMember {
        path: format!("/{}", entry.path),
        kind: kind.to_owned(),
        mode: entry.mode,
        size: entry.is_file().then(|| Size::exact(entry.size)),
        sha256,
        target: entry.target().map(str::to_owned),
    }
}

fn of_deb(deb: &deb::Reader) -> Result<ListedPackage> {
    let required = |name: &str| {
        let value = deb.control().get(name).cloned();
        value.ok_or_else(|| Error::malformed(format!("has no {name}")).structure("control"))
    };
    let kib: u64 = match deb.control().get("Installed-Size") {
        None => 0,
        Some(text) => text.parse().map_err(|error| {
            let message = format!("Installed-Size `{}` is no number", text.escape_debug());
            Error::malformed(message).structure("control").cause(error)
        })?,
    };
    Ok(ListedPackage {
        format: "deb".to_owned(),
        name: required("Package")?,
        version: required("Version")?,
        architecture: required("Architecture")?,
        file_name: String::new(),
        role: None,
        group: None,
        archs: Vec::new(),
        download: Size::default(),
        installed: Size::exact(kib.saturating_mul(1024)),
        relations: Some(deb_relations(deb)),
        members: Vec::new(),
    })
}

fn deb_relations(deb: &deb::Reader) -> Vec<RelationRecord> {
    let mut relations = Vec::new();
    for (field, kind) in DEB_FIELDS {
        let list = deb.control().get(field).map_or("", String::as_str);
        let texts = list.split(',').map(str::trim).filter(|text| !text.is_empty());
        relations.extend(texts.map(|text| deb_relation(kind, text)));
    }
    relations.sort();
    relations
}

/// `name`, `name (>= version)`; alternatives stay whole.
fn deb_relation(kind: &str, text: &str) -> RelationRecord {
    let plain = RelationRecord {
        kind: kind.to_owned(),
        name: text.to_owned(),
        comparison: None,
        version: None,
    };
    if text.contains('|') {
        return plain;
    }
    let Some((name, bound)) = text.split_once('(') else {
        return plain;
    };
    let bound = bound.trim().trim_end_matches(')').trim();
    let sign = DEB_SIGNS.iter().find(|(sign, _)| bound.starts_with(sign));
    let Some((version, sign)) =
        sign.and_then(|(sign, meaning)| Some((bound.strip_prefix(sign)?, meaning)))
    else {
        return plain;
    };
    RelationRecord {
        kind: kind.to_owned(),
        name: name.trim().to_owned(),
        comparison: Some((*sign).to_owned()),
        version: Some(version.trim().to_owned()),
    }
}

type RpmResult<T> = std::result::Result<T, ::rpm::Error>;

fn of_rpm(metadata: &PackageMetadata) -> Result<ListedPackage> {
    let text = |name: &str, value: RpmResult<&str>| {
        let lacking = || Error::malformed(format!("the header has no {name}"));
        value.map(str::to_owned).map_err(|error| lacking().cause(error))
    };
    let name = text("NAME", metadata.get_name())?;
    let version = text("VERSION", metadata.get_version())?;
    let release = text("RELEASE", metadata.get_release())?;
    let epoch = metadata.get_epoch().map(|epoch| format!("{epoch}:")).unwrap_or_default();
    let version = format!("{epoch}{version}-{release}");
    let installed = metadata.get_installed_size().unwrap_or_default();
    let relations = rpm_relations(metadata, &name);
    Ok(ListedPackage {
        format: "rpm".to_owned(),
        architecture: text("ARCH", metadata.get_arch())?,
        name,
        version,
        file_name: String::new(),
        role: None,
        group: None,
        archs: Vec::new(),
        download: Size::default(),
        installed: Size::exact(installed),
        relations: Some(relations),
        members: Vec::new(),
    })
}

fn rpm_relations(metadata: &PackageMetadata, name: &str) -> Vec<RelationRecord> {
    let lists = [
        ("depends", metadata.get_requires()),
        ("recommends", metadata.get_recommends()),
        ("suggests", metadata.get_suggests()),
        ("enhances", metadata.get_enhances()),
        ("supplements", metadata.get_supplements()),
        ("conflicts", metadata.get_conflicts()),
        ("obsoletes", metadata.get_obsoletes()),
        ("provides", metadata.get_provides()),
    ];
    let mut relations = Vec::new();
    for (kind, list) in lists {
        // A header without the tag has none.
        let list = list.unwrap_or_default();
        let stated = list.iter().filter(|dependency| !follows(kind, dependency, name));
        relations.extend(stated.map(|dependency| rpm_relation(kind, dependency)));
    }
    relations.sort();
    relations
}

/// Whether a dependency follows from the package itself; see `formats::rpm::dependencies`.
fn follows(kind: &str, dependency: &Dependency, name: &str) -> bool {
    let automatic = DependencyFlags::RPMLIB | DependencyFlags::INTERP | DependencyFlags::CONFIG;
    let own = |rest: &str| rest.is_empty() || rest == "(x86-64)" || rest == "(aarch-64)";
    let is_own = dependency.name.strip_prefix(name).is_some_and(own);
    dependency.flags.intersects(automatic) || (kind == "provides" && is_own)
}

fn rpm_relation(kind: &str, dependency: &Dependency) -> RelationRecord {
    let has = |flag| dependency.flags.contains(flag);
    let signs = [
        (DependencyFlags::LESS, '<'),
        (DependencyFlags::GREATER, '>'),
        (DependencyFlags::EQUAL, '='),
    ];
    let sign: String = signs.iter().filter(|(flag, _)| has(*flag)).map(|(_, sign)| *sign).collect();
    let bounded = !sign.is_empty();
    RelationRecord {
        kind: kind.to_owned(),
        name: dependency.name.clone(),
        comparison: bounded.then_some(sign),
        version: bounded.then(|| dependency.version.clone()),
    }
}
