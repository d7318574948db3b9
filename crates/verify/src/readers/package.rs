//! Reads one package.

use std::io::Read;
use std::path::Path;

use ::rpm::{IndexData, IndexTag, PackageMetadata};
use md5::{Digest as _, Md5};
use rockpack_archive::package_file::PackageReader;
use rockpack_archive::payload::{Digest, PayloadEntryKind, ReadEntry, SpecialKind, Treatment};
use rockpack_archive::{deb, rpm};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result, ResultExt};
use rockpack_package::indexed::ARCH_FIELD;
use rockpack_package::requirement::{Relations, Requirement};
use rockpack_package::{Comparison, Format, RelationKind};

use crate::problem::{PackagePath, Problem, Problems, twice_in_package};
use crate::readers::HashingReader;
use crate::readers::facts::{Class, Examiner};
use crate::readers::installed::{InstalledNode, PackageContents};

const SET_ID: u32 = 0o6000;

/// The package at `path` and its problems; `argument` is the position of the argument that names it.
pub(crate) fn read(
    path: &Path,
    argument: usize,
    examiner: &Examiner,
) -> Result<(PackageContents, Problems)> {
    let package = Content::open(path, &examiner.budget)?;
    let reader = PackageReader::open(package.clone()).file(path)?;
    let metadata = match &reader {
        PackageReader::Deb(deb) => deb_metadata(deb)?,
        PackageReader::Rpm(rpm) => rpm_metadata(rpm)?,
    };
    let mut installed = PackageContents {
        file: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        argument,
        size: package.len(),
        sha256: package.sha256()?,
        ..metadata
    };
    let mut problems = Problems::default();
    let mut visitor = |entry: &ReadEntry, content: &mut dyn Read| {
        let path = format!("/{}", entry.entry.path);
        check_entry(entry, &installed.at(&path), &mut problems);
        let (node, fault) = node(&path, entry, content, examiner)?;
        if let Some(reason) = fault {
            problems.add(Problem::DigestMismatch { file: installed.at(&path), reason });
        }
        // Some packers repeat a folder; equal ones are fine.
        if let Some(earlier) = installed.paths.get(&path)
            && !(matches!(node, InstalledNode::Directory { .. }) && earlier.is_same(&node))
        {
            let file = installed.at(&path);
            problems.add(twice_in_package(&file, earlier.kind(), node.kind()));
        }
        installed.paths.insert(path, node);
        Ok(())
    };
    reader.visit(&mut visitor).file(path)?;
    match &reader {
        PackageReader::Deb(deb) => {
            let listed = deb.md5sums().map(|path| format!("/{path}"));
            for path in listed.filter(|path| !installed.paths.contains_key(path)) {
                let (file, reason) = (installed.at(&path), "md5sums lists it, but it is missing");
                problems.add(Problem::DigestMismatch { file, reason });
            }
        }
        PackageReader::Rpm(rpm) => {
            let header = RpmHeader(&rpm.metadata);
            for reason in header.faults().into_iter().chain(header.left_out(rpm, &installed)) {
                problems.add(Problem::BadHeader { package: installed.file.clone(), reason });
            }
        }
    }
    Ok((installed, problems))
}

/// Reports entries that give rights to other users: an owner other than root, setuid and setgid bits, devices and
/// pipes.
fn check_entry(read: &ReadEntry, file: &PackagePath, problems: &mut Problems) {
    let ReadEntry { entry, user, group, .. } = read;
    let file = || file.clone();
    if ![user, group].iter().all(|name| ["root", "0"].contains(&name.as_str())) {
        problems.add(Problem::ForeignOwner { file: file(), owner: format!("{user}:{group}") });
    }
    match &entry.kind {
        PayloadEntryKind::Special(special) if !matches!(special, SpecialKind::HardLink { .. }) => {
            problems.add(Problem::FileForeign { file: file(), kind: special.as_str().to_owned() });
        }
        PayloadEntryKind::File | PayloadEntryKind::Directory if entry.mode & SET_ID != 0 => {
            problems.add(Problem::SetId { file: file(), mode: entry.mode });
        }
        _ => {}
    }
}

fn deb_metadata(deb: &deb::DebReader) -> Result<PackageContents> {
    let declared = Relations::of_control(|name| field(deb, name).unwrap_or_default());
    let archs = field(deb, ARCH_FIELD);
    Ok(PackageContents {
        format: Some(Format::Deb),
        name: required_field(deb, "Package")?,
        version: required_field(deb, "Version")?,
        arch: field(deb, "Architecture").unwrap_or_default().to_owned(),
        declared: declared.into_owned(),
        stated_archs: archs.map(|archs| archs.split_whitespace().map(str::to_owned).collect()),
        ..PackageContents::default()
    })
}

fn field<'a>(deb: &'a deb::DebReader, name: &str) -> Option<&'a str> {
    deb.fields.get(name).map(String::as_str)
}

fn required_field(deb: &deb::DebReader, name: &str) -> Result<String> {
    let value = field(deb, name).map(str::to_owned);
    value.ok_or_else(|| Error::malformed(format!("control has no {name}")))
}

fn rpm_metadata(rpm: &rpm::RpmReader) -> Result<PackageContents> {
    let metadata = &rpm.metadata;
    let version = metadata.get_version().map_err(missing_tag)?;
    let release = metadata.get_release().map_err(missing_tag)?;
    let epoch = metadata.get_epoch().map(|epoch| format!("{epoch}:")).unwrap_or_default();
    let is_source = metadata.is_source_package();
    let arch = if is_source { "src" } else { metadata.get_arch().unwrap_or_default() };
    let mut declared = Vec::new();
    for (kind, list) in [
        (RelationKind::Depends, metadata.get_requires()),
        (RelationKind::Provides, metadata.get_provides()),
        (RelationKind::Conflicts, metadata.get_conflicts()),
        (RelationKind::Obsoletes, metadata.get_obsoletes()),
    ] {
        let list = list.map_err(missing_tag)?;
        declared.extend(list.iter().map(|dependency| (kind, rpm_requirement(dependency))));
    }
    Ok(PackageContents {
        format: Some(Format::Rpm),
        name: metadata.get_name().map_err(missing_tag)?.to_owned(),
        version: format!("{epoch}{version}-{release}"),
        arch: arch.to_owned(),
        declared: Relations::of(declared),
        ..PackageContents::default()
    })
}

fn missing_tag(error: ::rpm::Error) -> Error {
    Error::malformed("the header lacks a tag").cause(error)
}

/// The requirement of a dependency; for any version if its flags are not a comparison.
fn rpm_requirement(dependency: &::rpm::Dependency) -> Requirement<'static> {
    let sign = rpm::sign(dependency.flags);
    let comparison = Comparison::split(&sign, Format::Rpm).filter(|(_, rest)| rest.is_empty());
    let version = comparison.map(|(comparison, _)| (comparison, (&*dependency.version).into()));
    Requirement::of(Format::Rpm, &dependency.name, version).into_owned()
}

/// The node that an entry installs at `path`, and the fault of its digest, if any.
fn node(
    path: &str,
    entry: &ReadEntry,
    content: &mut dyn Read,
    examiner: &Examiner,
) -> Result<(InstalledNode, Option<&'static str>)> {
    let mode = entry.entry.mode;
    let node = match &entry.entry.kind {
        PayloadEntryKind::Directory => InstalledNode::Directory { mode },
        PayloadEntryKind::Link { target } => InstalledNode::Link { target: target.clone() },
        PayloadEntryKind::Special(special) => InstalledNode::Special { what: special.as_str() },
        PayloadEntryKind::File => {
            let states_md5 = matches!(entry.declared, Some(Digest::Md5(_)));
            let mut md5 = Md5::new();
            let update: &mut dyn FnMut(&[u8]) = &mut |block: &[u8]| md5.update(block);
            let mut hashing = HashingReader::new(content, states_md5.then_some(update));
            let facts = examiner.examine(path, &mut hashing, entry.entry.size)?;
            let md5: [u8; 16] = md5.finalize().into();
            let fault = match entry.declared {
                Some(Digest::Md5(sum)) if sum != md5 => Some("its MD5 differs from md5sums"),
                Some(Digest::Sha256(sum)) if sum != facts.sha256 => {
                    Some("its SHA-256 differs from the header")
                }
                Some(_) => None,
                // dpkg records the MD5 of configuration files itself.
                None if entry.entry.treatment == Treatment::Config => None,
                None => Some("the package states no digest of it"),
            };
            return Ok((InstalledNode::File { mode, facts }, fault));
        }
    };
    Ok((node, None))
}

/// File flags with which rpm may skip files: `--noconfigs`, `--excludedocs`, `--excludeartifacts`.
const FLAGS: [(u32, &str); 3] = [
    (1, "configuration (%config)"),
    (1 << 1, "a document (%doc)"),
    (1 << 12, "an artifact of the build (%artifact)"),
];

/// File colours that every rpm of x86-64 installs: none, and 64-bit files.
const COLORS: [u32; 2] = [0, 2];

/// Features of rpm in all supported distributions.
const FEATURES: &str = "BuiltinLuaScripts CaretInVersions CompressedFileNames ConcurrentAccess \
    ExplicitPackageProvide FileCaps FileDigests HeaderLoadSortsTags LargeFiles \
    PartialHardlinkSets PayloadFilesHavePrefix PayloadIsBzip2 PayloadIsLzma PayloadIsXz \
    PayloadIsZstd RichDependencies ScriptletInterpreterArgs TildeInVersions";

/// The header of a package, checked for properties by which rpm refuses it or may skip files with code.
struct RpmHeader<'a>(&'a PackageMetadata);

impl RpmHeader<'_> {
    fn texts(&self, tag: IndexTag) -> Vec<String> {
        match self.0.header.entry(tag) {
            Ok(IndexData::StringArray(texts)) => texts,
            Ok(IndexData::StringTag(text)) => vec![text],
            _ => Vec::new(),
        }
    }

    fn faults(&self) -> Vec<String> {
        let missing = rpm::missing_digest(self.0).into_iter();
        let without = |digest: rpm::MissingDigest| {
            format!("states no SHA-256 of the {digest}, so rpm 6 refuses it")
        };
        let mut faults: Vec<_> = missing.map(without).collect();
        let tags = [IndexTag::RPMTAG_OS, IndexTag::RPMTAG_ARCH, IndexTag::RPMTAG_PAYLOADFORMAT];
        let [os, arch, format] = tags.map(|tag| self.texts(tag).pop().unwrap_or_default());
        if !os.eq_ignore_ascii_case("linux") {
            faults.push(format!("its header is for the system `{os}`, so rpm of Linux refuses it"));
        }
        if !["x86_64", "noarch"].contains(&arch.as_str()) {
            faults.push(format!("its header is for `{arch}`, so rpm of x86-64 refuses it"));
        }
        if format != "cpio" {
            faults.push(format!("its payload is `{format}`, which rpm does not read"));
        }
        let unknown = self.texts(IndexTag::RPMTAG_REQUIRENAME).into_iter().filter(|name| {
            let feature = name.strip_prefix("rpmlib(").and_then(|name| name.strip_suffix(')'));
            feature.is_some_and(|feature| !FEATURES.split(' ').any(|known| known == feature))
        });
        faults.extend(unknown.map(|feature| format!("needs {feature}, which no known rpm has")));
        faults
    }

    fn left_out(&self, rpm: &rpm::RpmReader, installed: &PackageContents) -> Vec<String> {
        let tags = [IndexTag::RPMTAG_FILEFLAGS, IndexTag::RPMTAG_FILECOLORS];
        let [flags, colors] =
            tags.map(|tag| self.0.header.get_entry_data_as_u32_array(tag).unwrap_or_default());
        let langs = self.texts(IndexTag::RPMTAG_FILELANGS);
        let mut faults = Vec::new();
        for (index, read) in rpm.entries.iter().enumerate() {
            let path = format!("/{}", read.entry.path);
            if !has_code(installed, &path) {
                continue;
            }
            let flags = flags.get(index).copied().unwrap_or_default();
            let marks = FLAGS.into_iter().filter(|(flag, _)| flags & flag != 0).map(|(_, how)| how);
            let lang = langs.get(index).is_some_and(|lang| !lang.is_empty());
            let color = colors.get(index).is_some_and(|color| !COLORS.contains(color));
            let all = marks
                .chain(lang.then_some("for one language (%lang)"))
                .chain(color.then_some("of another word size (its colour)"));
            faults.extend(
                all.map(|how| format!("its header marks {path} as {how}, so rpm may leave it out")),
            );
        }
        faults
    }
}

/// Whether the file at `path` has host or device code, or refers to device code.
fn has_code(installed: &PackageContents, path: &str) -> bool {
    let facts = installed.paths.get(path).and_then(InstalledNode::facts);
    facts.is_some_and(|facts| {
        !matches!(facts.class, Class::Other | Class::Script(_) | Class::LoaderFolders(_))
    })
}
