//! Reads one package whole.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use md5::Md5;
use sha2::Digest as _;

use super::facts;
use super::installed::{Installed, InstalledNode};
use super::problem::{Check, Problem};
use crate::content::Content;
use crate::error::{Error, Result, ResultExt};
use crate::formats::payload::{Digest, EntryKind, ReadEntry, Reader};
use crate::formats::{deb, rpm};
use crate::plan::package::Format;

/// The control field of a kernel `.deb` that names its archs.
const ARCHS_FIELD: &str = "X-ROCm-GPU-Architecture";

/// The package at `path` and what is wrong with it in itself.
pub(super) fn read(path: &Path) -> Result<(Installed, Vec<Problem>)> {
    let package = Content::open(path)?;
    let reader = Reader::open(package.clone()).file(path)?;
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut installed = match &reader {
        Reader::Deb(deb) => describe_deb(deb, file)?,
        Reader::Rpm(rpm) => describe_rpm(rpm, file)?,
    };
    (installed.size, installed.sha256) = (package.len(), package.sha256()?);
    let mut problems = Vec::new();
    let name = installed.file.clone();
    reader
        .visit(&mut |entry, content| {
            let (node, fault) = node(entry, content)?;
            let subject = format!("{name}:/{}", entry.entry.path);
            problems.extend(fault.map(|text| Problem::new(Check::DigestMismatch, &subject, text)));
            installed.paths.insert(format!("/{}", entry.entry.path), node);
            Ok(())
        })
        .file(path)?;
    if let Reader::Deb(deb) = &reader {
        let unlisted =
            deb.md5sums().keys().filter(|p| !installed.paths.contains_key(&format!("/{p}")));
        problems.extend(unlisted.map(|path| {
            Problem::new(
                Check::DigestMismatch,
                &name,
                format!("md5sums lists {path}, which is not there"),
            )
        }));
    }
    Ok((installed, problems))
}

fn describe_deb(deb: &deb::Reader, file: String) -> Result<Installed> {
    let field = |name: &str| deb.control().get(name).map(String::as_str);
    let required = |name: &str| {
        let missing = || Error::malformed(format!("control has no {name}"));
        field(name).map(str::to_owned).ok_or_else(missing)
    };
    let depends = field("Depends").unwrap_or_default().split(',');
    Ok(Installed {
        file,
        size: 0,
        sha256: [0; 32],
        format: Format::Deb,
        name: required("Package")?,
        version: required("Version")?,
        requires: depends.filter_map(exact_deb_dependency).collect(),
        kernel_archs: field(ARCHS_FIELD).map(|a| a.split_whitespace().map(str::to_owned).collect()),
        paths: BTreeMap::new(),
    })
}

/// `name (= version)`, the only form that ties a package to one version.
fn exact_deb_dependency(text: &str) -> Option<(String, String)> {
    let (name, bound) = text.trim().split_once(" (= ")?;
    Some((name.to_owned(), bound.strip_suffix(')')?.to_owned()))
}

fn describe_rpm(rpm: &rpm::Reader, file: String) -> Result<Installed> {
    let metadata = rpm.metadata();
    let fault = |error: ::rpm::Error| Error::malformed("the header lacks a tag").cause(error);
    let version = metadata.get_version().map_err(fault)?;
    let release = metadata.get_release().map_err(fault)?;
    let epoch = metadata.get_epoch().map(|epoch| format!("{epoch}:")).unwrap_or_default();
    let requires = metadata.get_requires().map_err(fault)?.into_iter();
    let exact = requires.filter(|d| d.flags.contains(::rpm::DependencyFlags::EQUAL));
    Ok(Installed {
        file,
        size: 0,
        sha256: [0; 32],
        format: Format::Rpm,
        name: metadata.get_name().map_err(fault)?.to_owned(),
        version: format!("{epoch}{version}-{release}"),
        requires: exact.map(|d| (d.name, d.version)).collect(),
        kernel_archs: None,
        paths: BTreeMap::new(),
    })
}

/// The node of an entry, and what is wrong with its digest.
fn node(entry: &ReadEntry, content: &mut dyn Read) -> Result<(InstalledNode, Option<String>)> {
    let mode = entry.entry.mode;
    match &entry.entry.kind {
        EntryKind::Directory => Ok((InstalledNode::Directory { mode }, None)),
        EntryKind::Link { target } => Ok((InstalledNode::Link { target: target.clone() }, None)),
        EntryKind::File => {
            let mut digesting = Md5Reader { inner: content, md5: Md5::default() };
            let facts = facts::examine(&mut digesting, entry.entry.size)?;
            let fault = match entry.declared {
                Some(Digest::Md5(sum)) if sum != <[u8; 16]>::from(digesting.md5.finalize()) => {
                    Some("its MD5 is not the one of md5sums".to_owned())
                }
                Some(Digest::Sha256(sum)) if sum != facts.sha256 => {
                    Some("its SHA-256 is not the one of the header".to_owned())
                }
                Some(_) => None,
                None => Some("the package states no digest of it".to_owned()),
            };
            Ok((InstalledNode::File { mode, facts }, fault))
        }
    }
}

struct Md5Reader<'a> {
    inner: &'a mut dyn Read,
    md5: Md5,
}

impl Read for Md5Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = self.inner.read(buffer)?;
        self.md5.update(&buffer[..len]);
        Ok(len)
    }
}
