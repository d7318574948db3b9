//! Reads one Python wheel whole.
//!
//! Paths are those in `site-packages`: what lies in `{name}.data/purelib` and `platlib` is installed at
//! its root. What installers put elsewhere (scripts, headers, data) lies below `/.data` here, so that the
//! wheels of a set have one name for it.

mod member;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;
use rockpack_base::content::Content;
use rockpack_base::error::{Error, Result, ResultExt};
use rockpack_base::formats::wheel::{
    Metadata, Record, Requirement, Version, WheelFile, WheelName, normalized,
};
use rockpack_base::formats::zip::{ZipMember, ZipReader};
use rockpack_base::run::Budget;
use rockpack_base::tree::TreePath;

use super::digest::Sha;
use super::installed::{Installed, InstalledNode};
use crate::verify::problem::{
    HeaderDifference, ListingFault, MemberFault, PackagePath, PathConflict, Problem, ProblemPlace,
    Problems,
};
use member::{Found, found};
use texts::Texts;

/// How folders with the metadata of a wheel are named.
const DIST_INFO: &str = ".dist-info";

/// How folders of what is installed elsewhere are named.
const DATA: &str = ".data";

/// Signatures of RECORD, which RECORD does not list.
const SIGNATURES: [&str; 2] = ["RECORD.jws", "RECORD.p7s"];

/// A wheel.
#[derive(Debug)]
pub(in crate::verify) struct Wheel {
    /// The files that it installs; the name is the normalized one, the architecture its tags.
    pub(in crate::verify) installed: Installed,
    pub(in crate::verify) name: WheelName,
    pub(in crate::verify) metadata: Metadata,
    pub(in crate::verify) headers: WheelFile,
    /// The device wheels that its extras require, by extra; known once all wheels are read.
    pub(in crate::verify) extras: BTreeMap<String, Vec<Requirement>>,
    /// The files of its metadata by path, each with its digest.
    pub(in crate::verify) texts: BTreeMap<String, Sha>,
    /// Faults that count only if the wheel was split.
    pub(in crate::verify) if_split: Vec<Problem>,
}

impl Wheel {
    /// Takes the files of its metadata out of those that it installs.
    pub(in crate::verify) fn drop_texts(&mut self) {
        let texts = &self.texts;
        self.installed.paths.retain(|path, _| !texts.contains_key(path));
    }

    /// All tags of its file name.
    pub(in crate::verify) fn tags(&self) -> BTreeSet<String> {
        WheelFile::tags_of(&self.name).into_iter().collect()
    }
}

/// The wheel at `path`, and what is wrong with it in itself.
pub(in crate::verify) fn read(path: &Path, budget: &Budget) -> Result<(Wheel, Problems)> {
    let archive = Content::open(path, budget)?;
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name: WheelName = file.parse().map_err(|error: Error| error.file(path))?;
    refuse_windows(&name).file(path)?;
    let zip = ZipReader::open(archive.clone()).file(path)?;
    let texts = Texts::read(&zip).file(path)?;
    let installed = Installed {
        file,
        argument: usize::MAX,
        size: archive.len(),
        sha256: archive.sha256()?,
        name: normalized(&name.distribution),
        version: name.version.clone(),
        arch: WheelFile::tags_of(&name).join(" "),
        ..Installed::default()
    };
    let Texts { folder, record, metadata, headers } = texts;
    let mut reading =
        Reading { folder, record, installed, problems: Problems::default(), if_split: Vec::new() };
    reading.members(&zip, budget)?;
    reading.headers(&name, &metadata, &headers);
    let Reading { folder, installed, problems, if_split, .. } = reading;
    let folder = format!("/{folder}/");
    let texts = installed
        .files()
        .filter(|(path, _)| path.starts_with(&folder))
        .map(|(path, facts)| (path.to_owned(), facts.sha256))
        .collect();
    let extras = BTreeMap::new();
    Ok((Wheel { installed, name, metadata, headers, extras, texts, if_split }, problems))
}

/// Refuses a wheel for Windows alone.
fn refuse_windows(name: &WheelName) -> Result<()> {
    if !name.platforms.iter().all(|platform| platform.starts_with("win")) {
        return Ok(());
    }
    let message = format!("is for Windows ({})", name.platforms.join("."));
    Err(Error::unsupported(message).hint("rockpack reads wheels for Linux; leave this one out"))
}

/// A wheel that is being read.
struct Reading {
    /// The folder with its metadata.
    folder: String,
    record: Record,
    installed: Installed,
    problems: Problems,
    if_split: Vec<Problem>,
}

impl Reading {
    /// Reads all members, and compares them with RECORD.
    fn members(&mut self, zip: &ZipReader, budget: &Budget) -> Result<()> {
        let files: Vec<&ZipMember> =
            zip.members().iter().filter(|member| !member.name.ends_with('/')).collect();
        let read: Vec<Result<Found>> = files
            .par_iter()
            .map(|member| {
                let row = self.record.rows.get(&member.name);
                let hash = row.and_then(|row| row.digest.as_ref()).map(|digest| digest.hash);
                found(zip, member, &self.path(&member.name), hash, budget)
            })
            .collect();
        let mut left: BTreeSet<String> = self.record.rows.keys().cloned().collect();
        for (member, found) in files.iter().zip(read) {
            left.remove(&member.name);
            self.member(member, found)?;
        }
        for name in left {
            self.listing(&name, ListingFault::WithoutMember);
        }
        Ok(())
    }

    /// The path of a member where it is installed.
    fn path(&self, name: &str) -> String {
        let data = self.folder.strip_suffix(DIST_INFO).unwrap_or_default();
        let rest = name.strip_prefix(data).filter(|rest| rest.starts_with(".data/"));
        match rest.and_then(|rest| rest.split_once('/')?.1.split_once('/')) {
            Some(("purelib" | "platlib", inside)) => format!("/{inside}"),
            _ => format!("/{}", rest.unwrap_or(name)),
        }
    }

    fn at(&self, name: &str) -> PackagePath {
        self.installed.at(&self.path(name))
    }

    fn listing(&mut self, name: &str, fault: ListingFault) {
        let file = self.at(name);
        self.problems.add(Problem::WheelRecord { file, fault });
    }

    fn listing_if_split(&mut self, name: &str, fault: ListingFault) {
        let file = self.at(name);
        self.if_split.push(Problem::WheelRecord { file, fault });
    }

    fn bad_member(&mut self, name: &str, fault: MemberFault) {
        let file = self.at(name);
        self.problems.add(Problem::WheelMember { file, fault });
    }

    fn member(&mut self, member: &ZipMember, found: Result<Found>) -> Result<()> {
        let name = member.name.as_str();
        if let Err(error) = TreePath::new(name) {
            self.bad_member(name, MemberFault::Name { reason: error.to_string() });
            return Ok(());
        }
        let found = match found {
            Ok(found) => found,
            // The disk fails, or the run ends.
            Err(error) if error.is_of_reading() => return Err(error),
            Err(error) => {
                self.problems.add_unread(ProblemPlace::File(self.at(name)), &error);
                return Ok(());
            }
        };
        if found.is_windows {
            let (file, fault) = (self.at(name), MemberFault::Windows);
            self.if_split.push(Problem::WheelMember { file, fault });
        }
        if matches!(found.node, InstalledNode::Special { .. }) {
            self.bad_member(name, MemberFault::Link);
        }
        self.row(member, &found);
        let path = self.path(name);
        let kind = found.node.kind().to_owned();
        if let Some(earlier) = self.installed.paths.insert(path.clone(), found.node) {
            let package = self.installed.file.clone();
            let earlier = earlier.kind().to_owned();
            let conflict = PathConflict::InPackage { package, earlier, later: kind };
            self.problems.add(Problem::PathOwnedTwice { path, conflict });
        }
        Ok(())
    }

    /// Compares a member with its row.
    fn row(&mut self, member: &ZipMember, found: &Found) {
        let name = member.name.as_str();
        let own = name.strip_prefix(&self.folder).and_then(|name| name.strip_prefix('/'));
        let row = self.record.rows.get(name).cloned();
        if own == Some("RECORD") {
            return match row {
                None => self.listing(name, ListingFault::WithoutItself),
                Some(row) if row.digest.is_some() || row.size.is_some() => {
                    self.listing(name, ListingFault::OfItself);
                }
                Some(_) => {}
            };
        }
        if own.is_some_and(|own| SIGNATURES.contains(&own)) {
            return self.listing_if_split(name, ListingFault::Signature);
        }
        let Some(row) = row else {
            return self.listing(name, ListingFault::Unlisted);
        };
        if let Some(stated) = row.size.filter(|stated| *stated != member.size) {
            self.listing(name, ListingFault::Size { size: member.size, stated });
        }
        match row.digest {
            None => self.listing_if_split(name, ListingFault::WithoutDigest),
            Some(digest) if found.digest.as_ref().is_some_and(|own| *own != digest.bytes) => {
                self.listing(name, ListingFault::Digest { hash: digest.hash.to_string() });
            }
            Some(_) => {}
        }
    }

    /// Compares METADATA and WHEEL with the file name.
    fn headers(&mut self, name: &WheelName, metadata: &Metadata, headers: &WheelFile) {
        if !is_folder_of(&self.folder, name) {
            self.bad_header(HeaderDifference::Folder { folder: self.folder.clone() });
        }
        if normalized(metadata.name()) != normalized(&name.distribution) {
            let (named, stated) = (name.distribution.clone(), metadata.name().to_owned());
            let (field, file) = ("name", "METADATA");
            self.bad_header(HeaderDifference::Name { field, file, named, stated });
        }
        if !is_version(metadata.version(), name) {
            let (named, stated) = (name.version.clone(), metadata.version().to_owned());
            let (field, file) = ("version", "METADATA");
            self.bad_header(HeaderDifference::Name { field, file, named, stated });
        }
        for line in metadata.all("Requires-Dist") {
            if let Err(error) = Requirement::parse(line) {
                self.bad_header(HeaderDifference::Requirement { reason: error.to_string() });
            }
        }
        if name.parsed_version().is_none() {
            let version = name.version.clone();
            self.bad_header(HeaderDifference::NoVersion { file: "file name", version });
        } else if metadata.version().parse::<Version>().is_err() {
            let version = metadata.version().to_owned();
            self.bad_header(HeaderDifference::NoVersion { file: "METADATA", version });
        }
        let named: BTreeSet<String> = WheelFile::tags_of(name).into_iter().collect();
        let stated: BTreeSet<String> = headers.tags().into_iter().collect();
        if named != stated {
            let [named, stated] = [named, stated].map(|tags| spaced(&tags));
            let (field, file) = ("tags", "WHEEL");
            self.bad_header(HeaderDifference::Name { field, file, named, stated });
        }
        let (own, stated) = (name.build.as_deref(), headers.build());
        if own != stated {
            let [named, stated] = [own, stated].map(|build| build.unwrap_or("(none)").to_owned());
            let (field, file) = ("build", "WHEEL");
            self.bad_header(HeaderDifference::Name { field, file, named, stated });
        }
    }

    fn bad_header(&mut self, difference: HeaderDifference) {
        let wheel = self.installed.file.clone();
        self.problems.add(Problem::WheelHeaders { wheel, difference });
    }
}

/// Tags with blanks between them.
pub(in crate::verify) fn spaced(tags: &BTreeSet<String>) -> String {
    tags.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// The path of a member that is installed elsewhere than in site-packages: below `.data`, whatever the wheel
/// is called.
pub(in crate::verify) fn elsewhere(name: &str) -> Option<&str> {
    let (top, _) = name.split_once('/')?;
    top.ends_with(DATA).then(|| name.get(top.len() - DATA.len()..))?
}

/// Whether installers take the folder for the one of the metadata of this wheel.
fn is_folder_of(folder: &str, name: &WheelName) -> bool {
    let own = folder.strip_suffix(DIST_INFO).and_then(|stem| stem.rsplit_once('-'));
    own.is_some_and(|(distribution, version)| {
        normalized(distribution) == normalized(&name.distribution) && is_version(version, name)
    })
}

/// Whether `version` is that of the file name.
fn is_version(version: &str, name: &WheelName) -> bool {
    let parsed = WheelName { version: version.replace('-', "_"), ..name.clone() }.parsed_version();
    version == name.version || parsed.is_some() && parsed == name.parsed_version()
}
