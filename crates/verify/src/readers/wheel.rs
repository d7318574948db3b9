//! Reads one Python wheel.
//!
//! Paths are relative to `site-packages`: files of `{name}.data/purelib` and `platlib` are installed at its root. Files
//! that are installed elsewhere (scripts, headers, data) are below `/.data`, so all wheels of a set use the same path.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use rayon::prelude::*;
use rockpack_archive::wheel::{
    InfoFault, ListingFault, Metadata, Place, Requirement, WheelArchive, WheelFile, WheelName,
    installed_mode, normalized, place,
};
use rockpack_archive::zip::ZipMember;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result, ResultExt};
use rockpack_core::hold::fault;
use rockpack_core::run::Budget;

use crate::problem::{PackagePath, Problem, ProblemPlace, Problems, twice_in_package};
use crate::readers::facts::Examiner;
use crate::readers::installed::{InstalledNode, PackageContents};
use crate::readers::{HashingReader, Sha};

/// The folder of files that are installed outside site-packages.
pub(crate) const DATA: &str = ".data";

#[derive(Debug)]
pub(crate) struct Wheel {
    /// The installed files; `name` is normalized, `arch` has the tags.
    pub(crate) installed: PackageContents,
    pub(crate) name: WheelName,
    pub(crate) metadata: Metadata,
    pub(crate) headers: WheelFile,
    /// Extra → device wheels that it requires; set after all wheels are read.
    pub(crate) extras: BTreeMap<String, Vec<Requirement>>,
    /// Metadata file → digest.
    pub(crate) texts: BTreeMap<String, Sha>,
    /// Problems that are reported only if the wheel was split.
    pub(crate) if_split: Vec<Problem>,
    /// Whether a receipt says that it is an unchanged input wheel.
    pub(crate) is_copy: bool,
}

impl Wheel {
    pub(crate) fn tags(&self) -> BTreeSet<String> {
        WheelFile::tags_of(&self.name).into_iter().collect()
    }
}

/// The wheel at `path` and its problems; `copies` has the file names of copied wheels of receipts.
pub(crate) fn read(
    path: &Path,
    copies: &BTreeSet<&str>,
    budget: &Budget,
) -> Result<(Wheel, Problems)> {
    let content = Content::open(path, budget)?;
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_copy = copies.contains(file.as_str());
    let name: WheelName = file.parse().map_err(|error: Error| error.file(path))?;
    if name.platforms.iter().all(|platform| platform.starts_with("win")) {
        let message = format!("is for Windows ({})", name.platforms.join("."));
        let hint = "rockpack reads wheels for Linux; leave this one out";
        return Err(Error::unsupported(message).hint(hint).file(path));
    }
    let archive = WheelArchive::open(content.clone()).file(path)?;
    let installed = PackageContents {
        file,
        size: content.len(),
        sha256: content.sha256()?,
        name: normalized(&name.distribution),
        version: name.version.clone(),
        arch: WheelFile::tags_of(&name).join(" "),
        ..PackageContents::default()
    };
    let (problems, if_split) = (Problems::default(), Vec::new());
    let mut reading = Reading { archive: &archive, installed, problems, if_split, is_copy };
    reading.members(budget)?;
    reading.headers(&name);
    let Reading { installed, problems, if_split, .. } = reading;
    let folder = format!("/{}/", archive.dist_info);
    let texts = installed.files().filter(|(path, _)| path.starts_with(&folder));
    let texts = texts.map(|(path, facts)| (path.to_owned(), facts.sha256)).collect();
    let extras = BTreeMap::new();
    let WheelArchive { metadata, wheel_file: headers, .. } = archive;
    Ok((Wheel { installed, name, metadata, headers, extras, texts, if_split, is_copy }, problems))
}

struct Reading<'a> {
    archive: &'a WheelArchive,
    installed: PackageContents,
    problems: Problems,
    if_split: Vec<Problem>,
    is_copy: bool,
}

impl Reading<'_> {
    /// Reads all members and compares them with RECORD.
    fn members(&mut self, budget: &Budget) -> Result<()> {
        let archive = self.archive;
        let mut files = Vec::new();
        for member in archive.zip.members() {
            match archive.check_member(member) {
                Ok(_) if member.name.ends_with('/') => {}
                Ok(_) => files.push(member),
                Err(error) => {
                    let reason = format!("cannot be installed: {error}");
                    let file = self.at(&member.name);
                    self.problems.add(Problem::WheelMember { file, reason });
                }
            }
        }
        let read = files.par_iter().map(|it| found(archive, it, &self.path(&it.name), budget));
        let read: Vec<Result<Found>> = read.collect();
        for (member, found) in files.iter().zip(read) {
            let name = member.name.as_str();
            let (node, digest) = match found {
                Ok(found) => found,
                // An I/O error, or the run was cancelled.
                Err(error) if error.is_read_failure() => return Err(error),
                Err(error) => {
                    self.problems.add_unreadable(ProblemPlace::File(self.at(name)), &error);
                    continue;
                }
            };
            if let Some(fault) = archive.listing_fault(member, Some(&digest)) {
                self.listing(name, fault);
            }
            self.installed.paths.insert(self.path(name), node);
        }
        for name in archive.rows_without_member() {
            self.listing(name, ListingFault::WithoutMember);
        }
        for [name, other] in archive.conflicts() {
            let later = if self.path(other) == self.path(name) { "file" } else { "folder" };
            let problem = twice_in_package(&self.at(name), "file", later);
            self.problems.add(problem);
        }
        Ok(())
    }

    /// The install path of a member.
    fn path(&self, name: &str) -> String {
        match place(name, &self.archive.dist_info) {
            Place::DistInfo => format!("/{name}"),
            Place::Site(path) => format!("/{path}"),
            Place::Other(path) => format!("/{DATA}/{path}"),
        }
    }

    fn at(&self, name: &str) -> PackagePath {
        self.installed.at(&self.path(name))
    }

    fn listing(&mut self, name: &str, fault: ListingFault) {
        // The build refuses input wheels with wrong digests, and warns about other faults.
        let is_of_split = self.is_copy || fault.is_of_split();
        let problem = Problem::WheelRecord { file: self.at(name), fault };
        if is_of_split { self.if_split.push(problem) } else { self.problems.add(problem) }
    }

    /// Compares METADATA and WHEEL with the file name.
    fn headers(&mut self, name: &WheelName) {
        let wheel = &self.installed.file;
        let problem = |fault: InfoFault| {
            let (wheel, reason) = (wheel.clone(), fault.to_string());
            Problem::WheelHeaders { wheel, reason }
        };
        let faults = self.archive.header_faults(name).into_iter();
        faults.for_each(|fault| self.problems.add(problem(fault)));
        let headers = &self.archive.wheel_file;
        // Installers use the file name.
        let mut differs = |field, named, stated| {
            let fault = InfoFault::Name { field, file: "WHEEL", named, stated };
            self.if_split.push(problem(fault));
        };
        let named: BTreeSet<String> = WheelFile::tags_of(name).into_iter().collect();
        let stated: BTreeSet<String> = headers.tags().into_iter().collect();
        if named != stated {
            differs("tags", spaced(&named), spaced(&stated));
        }
        let (own, stated) = (name.build.as_deref(), headers.build());
        if own != stated {
            let [named, stated] = [own, stated].map(|build| build.unwrap_or("(none)").to_owned());
            differs("build", named, stated);
        }
    }
}

pub(crate) fn spaced(tags: &BTreeSet<String>) -> String {
    tags.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// A member and its digest by the hash function of RECORD.
type Found = (InstalledNode, Vec<u8>);

/// Reads a member that is installed at `path`.
fn found(wheel: &WheelArchive, member: &ZipMember, path: &str, budget: &Budget) -> Result<Found> {
    let hasher = wheel.hasher(&member.name);
    let mut hasher = hasher.filter(|it| it.output_size() != 32);
    let has_hasher = hasher.is_some();
    let update: &mut dyn FnMut(&[u8]) =
        &mut |bytes: &[u8]| hasher.iter_mut().for_each(|hasher| hasher.update(bytes));
    let mut reader = wheel.zip.reader(member)?;
    let mut hashing = HashingReader::new(&mut reader, has_hasher.then_some(update));
    let facts = Examiner::within(budget).examine(path, &mut hashing, member.size)?;
    // Reading to the end compares the size and CRC with the header.
    io::copy(&mut hashing, &mut io::sink()).map_err(fault)?;
    let digest = match hasher {
        Some(hasher) => hasher.finalize().into_vec(),
        None => facts.sha256.to_vec(),
    };
    Ok((InstalledNode::File { mode: installed_mode(member), facts }, digest))
}
