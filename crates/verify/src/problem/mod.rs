//! The problems that verification reports.
//!
//! The [table](table) declares each check with its stable code, its typed fields and the message made from them, like
//! the table of findings. A fault is an enum if code depends on its kind, and otherwise a `reason` as text.

mod table;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use rockpack_core::error::Error;
use rockpack_hardware::{Gpu, Skipped};
use rockpack_package::receipt::Receipt;
use rockpack_report::Findings;

pub use table::*;

/// Problems of one check that are listed for a repository; further ones are only counted. Every few bytes of a damaged
/// index may be a problem.
pub(super) const REPORTED_MAX: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Problems {
    list: Vec<Problem>,
    /// Problems in `list` by check; `None` if the number is unlimited.
    reported: Option<BTreeMap<Check, usize>>,
    /// Problems by check that are not in `list`.
    more: BTreeMap<Check, usize>,
}

impl Problems {
    /// Lists at most [`REPORTED_MAX`] of each check, and counts the others.
    pub(super) fn bounded() -> Self {
        Self { reported: Some(BTreeMap::new()), ..Self::default() }
    }

    pub(super) fn add(&mut self, problem: Problem) {
        if let Some(reported) = &mut self.reported {
            let reported = reported.entry(problem.code()).or_default();
            if *reported >= REPORTED_MAX {
                return self.add_more(problem.code(), 1);
            }
            *reported += 1;
        }
        self.list.push(problem);
    }

    pub(super) fn have_any(&self, checks: RangeInclusive<Check>) -> bool {
        self.list.iter().any(|problem| checks.contains(&problem.code()))
    }

    pub(super) fn add_unreadable(&mut self, place: ProblemPlace, error: &Error) {
        self.add(Problem::Unreadable { place, reason: error.to_string() });
    }

    pub(super) fn names(&self, file: &str) -> bool {
        self.list.iter().any(|problem| problem.subject() == file)
    }

    pub(super) fn add_more(&mut self, check: Check, count: usize) {
        if count > 0 {
            *self.more.entry(check).or_default() += count;
        }
    }

    pub(super) fn extend(&mut self, other: Problems) {
        other.list.into_iter().for_each(|problem| self.add(problem));
        other.more.into_iter().for_each(|(check, count)| self.add_more(check, count));
    }

    pub(super) fn more(&self) -> Vec<CheckCount> {
        self.more.iter().map(|(check, count)| CheckCount::new(*check, *count)).collect()
    }

    /// Deduplicated, in the order of check, subject and message.
    pub(super) fn finish(self) -> Vec<Problem> {
        let mut list = self.list;
        // Problems with the same text may differ in fields that it does not contain.
        list.sort();
        list.dedup();
        list.sort_by_cached_key(|problem| (problem.code(), problem.subject(), problem.message()));
        list
    }
}

/// The problem of a package with two entries at the path `file`; `earlier` and `later` are their kinds.
pub(super) fn twice_in_package(file: &PackagePath, earlier: &str, later: &str) -> Problem {
    let reason = format!(
        "is in the package twice, as a {earlier} and as a {later}: the last one is installed, and the \
         digests are of one of them"
    );
    Problem::PathOwnedTwice { path: file.to_string(), reason }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    pub packages: usize,
    /// The parts of a set that were verified together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined: Option<Joined>,
    #[serde(skip_serializing_if = "is_zero")]
    pub artifacts: usize,
    /// Installed prefixes.
    #[serde(skip_serializing_if = "is_zero")]
    pub prefixes: usize,
    /// The GPUs of this machine, for each installed prefix with libraries whose code is in kernel archives. They do not
    /// fail a check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuCoverage>,
    /// GPUs of this machine with an unknown target, and environment variables that name no known target.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped_gpus: Vec<Skipped>,
    #[serde(skip_serializing_if = "is_zero")]
    pub wheels: usize,
    /// Wheels that were not split and whose RECORD lacks the digest of a file.
    #[serde(skip_serializing_if = "is_zero")]
    pub wheels_without_digests: usize,
    #[serde(skip_serializing_if = "is_zero")]
    pub repositories: usize,
    /// Packages in the indexes of repositories.
    #[serde(skip_serializing_if = "is_zero")]
    pub indexed: usize,
    /// Dependencies of indexed packages on packages outside the repository.
    #[serde(skip_serializing_if = "is_zero")]
    pub external_dependencies: usize,
    /// Repository indexes.
    #[serde(skip_serializing_if = "is_zero")]
    pub indexes: usize,
    /// Fingerprints of keys that were not given but that an index signed by a given key names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_keys: Vec<String>,
    /// Packages of repositories whose data archive was not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data_unread: Vec<UnreadData>,
    /// Signatures that verified against a given key.
    #[serde(skip_serializing_if = "is_zero")]
    pub signatures: usize,
    /// Files that were verified by themselves.
    #[serde(skip_serializing_if = "is_zero")]
    pub single_files: usize,
    /// Files, counted per package, artifact or prefix, including single files.
    pub files: u64,
    /// Rows in all kernel archives.
    pub archive_rows: u64,
    /// Distinct code objects in all kernel archives.
    pub code_objects: u64,
    /// Code objects of the artifacts that were compared; `None` without `--against`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_code_objects: Option<u64>,
    /// Paths of the artifacts that the receipts leave out of all packages.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// Warnings in the receipts that are not accepted. They do not fail a check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Findings,
    /// Packages of earlier builds that a receipt keeps and that were not given.
    #[serde(skip_serializing_if = "is_zero")]
    pub kept_absent: usize,
    /// Packages of earlier builds that were given, are no longer in the set, and were not read.
    #[serde(skip_serializing_if = "is_zero")]
    pub superseded: usize,
    /// Properties that are not proved because a key or a receipt was not given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unproved: Vec<Unproved>,
    /// Checks that cannot be decided for a part of a set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<CheckCount>,
    /// Whether checks failed that missing packages may explain, and no folder with a receipt was given.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_be_part: bool,
    /// Failed checks, in the order of check and subject.
    pub problems: Vec<Problem>,
    /// Failed checks that fail only with `--strict`, such as in mirrors of old packages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerated: Vec<Problem>,
    /// Failures beyond the limit for each check of a repository, which `problems` does not list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<CheckCount>,
}

impl Report {
    /// Includes the checks that `more` only counts.
    pub fn failed(&self) -> usize {
        self.problems.len() + self.more.iter().map(|more| more.count).sum::<usize>()
    }
}

/// A property that only a signed receipt proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unproved {
    /// Who made the packages, the receipt or the repository: no signature was checked.
    Origin,
    /// The maintainer scripts of packages.
    Scripts,
    /// Relations between packages beyond those that the files need.
    Relations,
    /// Whether all packages of the set are present.
    Completeness,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CheckCount {
    /// Stable code, e.g. `V013`.
    pub code: &'static str,
    /// Stable name, e.g. `file-lost`.
    pub name: &'static str,
    /// Number of failures.
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
    pub reason: String,
}

/// The libraries of an installed prefix that have code for a GPU of this machine.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct GpuCoverage {
    pub prefix: String,
    #[serde(flatten)]
    pub gpu: Gpu,
    /// Number of libraries with code for the GPU.
    pub served: usize,
    /// The libraries without code for the GPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<UnservedLibrary>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct UnservedLibrary {
    /// The path in the prefix.
    pub library: String,
    /// The packages to install, or the wheel with the extra; empty if unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Joined {
    /// Number of parts.
    pub parts: usize,
    /// SHA-256 of the joined receipt in hex. One build of the whole set writes the same receipt.
    pub receipt_sha256: String,
    /// Whether the joined receipt was signed; `None` if it was not written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<bool>,
    #[serde(skip)]
    pub receipt: Receipt,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests;
