//! The problems that verification reports.
//!
//! The [table](table) declares each check with its stable code, its typed fields and the text that is
//! made of them, as that of findings does. A fault is an enum if something depends on its kind, and otherwise a
//! `reason` in words.

#![allow(missing_docs, reason = "fields of faults are called what they hold")]

mod table;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use rockpack_core::error::Error;
use rockpack_hardware::{Gpu, Skipped};
use rockpack_package::receipt::Receipt;
use rockpack_report::Findings;

pub use table::*;

/// Most problems of one check that are reported for a repository. More do not help to begin the repair, and
/// every few bytes of an index may be a problem.
pub(super) const MOST_TOLD: usize = 1000;

/// Problems while they are collected.
#[derive(Debug, Default)]
pub(super) struct Problems {
    list: Vec<Problem>,
    /// How many of each check are in the list; counted only where they are bounded.
    told: Option<BTreeMap<Check, usize>>,
    /// How many more there are of a check.
    more: BTreeMap<Check, usize>,
}

impl Problems {
    /// Holds [`MOST_TOLD`] of each check, and counts the others.
    pub(super) fn bounded() -> Self {
        Self { told: Some(BTreeMap::new()), ..Self::default() }
    }

    pub(super) fn add(&mut self, problem: Problem) {
        if let Some(told) = &mut self.told {
            let told = told.entry(problem.code()).or_default();
            if *told >= MOST_TOLD {
                return self.add_more(problem.code(), 1);
            }
            *told += 1;
        }
        self.list.push(problem);
    }

    pub(super) fn have_any(&self, checks: RangeInclusive<Check>) -> bool {
        self.list.iter().any(|problem| checks.contains(&problem.code()))
    }

    pub(super) fn add_unread(&mut self, place: ProblemPlace, error: &Error) {
        self.add(Problem::Unreadable { place, reason: error.to_string() });
    }

    pub(super) fn names(&self, file: &str) -> bool {
        self.list.iter().any(|problem| problem.subject() == file)
    }

    /// Counts further ones of a check, which nobody holds.
    pub(super) fn add_more(&mut self, check: Check, count: usize) {
        if count > 0 {
            *self.more.entry(check).or_default() += count;
        }
    }

    pub(super) fn extend(&mut self, other: Problems) {
        other.list.into_iter().for_each(|problem| self.add(problem));
        other.more.into_iter().for_each(|(check, count)| self.add_more(check, count));
    }

    /// How many more there are of a check than are told.
    pub(super) fn more(&self) -> Vec<CheckCount> {
        self.more.iter().map(|(check, count)| CheckCount::new(*check, *count)).collect()
    }

    /// Each once, in the order of check, subject and message.
    pub(super) fn finish(self) -> Vec<Problem> {
        let mut list = self.list;
        // Problems with one text may differ in what the text leaves out.
        list.sort();
        list.dedup();
        list.sort_by_cached_key(|problem| (problem.code(), problem.subject(), problem.message()));
        list
    }
}

/// The problem of a package that has `file` as an `earlier` and a `later` kind of node.
pub(super) fn twice_in_package(file: &PackagePath, earlier: &str, later: &str) -> Problem {
    let reason = format!(
        "stands in the package twice, as a {earlier} and as a {later}: what is installed is the last, and \
         the digests are of one"
    );
    Problem::PathOwnedTwice { path: file.to_string(), reason }
}

/// The outcome of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Packages read.
    pub packages: usize,
    /// The parts of a set that were verified together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined: Option<Joined>,
    /// Artifacts read.
    #[serde(skip_serializing_if = "is_zero")]
    pub artifacts: usize,
    /// Installed prefixes read.
    #[serde(skip_serializing_if = "is_zero")]
    pub prefixes: usize,
    /// The GPUs of this machine, for each installed prefix with libraries whose code is in kernel archives. They are
    /// no checks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuCoverage>,
    /// The GPUs of this machine whose target is not known, and variables that name none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped_gpus: Vec<Skipped>,
    /// Python wheels read.
    #[serde(skip_serializing_if = "is_zero")]
    pub wheels: usize,
    /// Wheels that nobody split and whose RECORD states no digest of some file.
    #[serde(skip_serializing_if = "is_zero")]
    pub wheels_without_digests: usize,
    /// Repositories read.
    #[serde(skip_serializing_if = "is_zero")]
    pub repositories: usize,
    /// Packages that are in the indexes of repositories.
    #[serde(skip_serializing_if = "is_zero")]
    pub indexed: usize,
    /// Dependencies of those on packages that are elsewhere.
    #[serde(skip_serializing_if = "is_zero")]
    pub elsewhere: usize,
    /// Indexes of repositories that were read.
    #[serde(skip_serializing_if = "is_zero")]
    pub indexes: usize,
    /// Fingerprints of keys that an index signed by a given key names, and that were not given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys_beside: Vec<String>,
    /// Packages of repositories whose data was not looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data_unread: Vec<UnreadData>,
    /// Signatures that verified against a given key.
    #[serde(skip_serializing_if = "is_zero")]
    pub signatures: usize,
    /// Files read by themselves.
    #[serde(skip_serializing_if = "is_zero")]
    pub single_files: usize,
    /// Files read, counted per package, artifact or prefix; single files are among them.
    pub files: u64,
    /// Number of rows in the kernel archives that were read.
    pub archive_rows: u64,
    /// Number of distinct code objects in the kernel archives that were read.
    pub code_objects: u64,
    /// Code objects of the artifacts that were looked for; none without `--against`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_code_objects: Option<u64>,
    /// Paths of the artifacts that are in no package on purpose, as the receipts say.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// Warnings of the builds, as the receipts have them and without those that are accepted: what they
    /// say is no failed check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Findings,
    /// Packages of earlier builds that a receipt keeps, and that were not named.
    #[serde(skip_serializing_if = "is_zero")]
    pub kept_absent: usize,
    /// Packages of earlier builds that were named and are in the set no more, which were not looked at.
    #[serde(skip_serializing_if = "is_zero")]
    pub superseded: usize,
    /// The properties that nothing proves, because a key or a receipt was not given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unproved: Vec<Unproved>,
    /// Checks that cannot be decided of a part of a set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<CheckCount>,
    /// Whether checks failed that other packages may settle, and no folder with a receipt was named.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_be_part: bool,
    /// Failed checks, in the order of check and subject.
    pub problems: Vec<Problem>,
    /// Failed checks that fail a strict run only: what some clients refuse, as in mirrors of old packages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerated: Vec<Problem>,
    /// Counts of further failures that `problems` does not list, because a repository has very many of
    /// one check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<CheckCount>,
}

impl Report {
    /// The number of failed checks, including those that are only counted in `more`.
    pub fn failed(&self) -> usize {
        self.problems.len() + self.more.iter().map(|more| more.count).sum::<usize>()
    }
}

/// A property that a signed receipt proves, and that verification cannot find out by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unproved {
    /// The maker of the packages, the receipt or the repository: no signature was checked.
    Origin,
    /// The scripts of packages.
    Scripts,
    /// The packages that are required, excluded or replaced, beyond what the files need.
    Relations,
    /// Whether all packages of the set are there.
    Completeness,
}

/// How often something is to be said of a check.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CheckCount {
    /// Stable code, e.g. `V013`.
    pub code: &'static str,
    /// Stable name, e.g. `file-lost`.
    pub name: &'static str,
    /// The number of failures of the check.
    pub count: usize,
}

impl CheckCount {
    pub(super) fn new(check: Check, count: usize) -> Self {
        Self { code: check.id(), name: check.name(), count }
    }
}

/// A package of a repository whose data `verify` cannot decompress.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct UnreadData {
    /// The path in the repository.
    pub file: String,
    /// The reason why it was not read.
    pub reason: String,
}

/// A GPU of this machine and the libraries of an installed prefix.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct GpuCoverage {
    /// The path of the prefix.
    pub prefix: String,
    #[serde(flatten)]
    pub gpu: Gpu,
    /// The number of libraries with code that the GPU runs.
    pub served: usize,
    /// The libraries that have code for other GPUs alone, or none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<UnservedLibrary>,
}

/// A library without code for a GPU.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct UnservedLibrary {
    /// The path in the prefix.
    pub library: String,
    /// The packages to install, or the wheel with the extra; none if none are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
}

/// Parts of a set that were joined.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Joined {
    /// The number of parts.
    pub parts: usize,
    /// SHA-256 of the receipt that one build of the whole set writes, in hex.
    pub receipt_sha256: String,
    /// Whether that receipt was written with a signature; absent if it was not written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<bool>,
    /// The joined receipt.
    #[serde(skip)]
    pub receipt: Receipt,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests;
