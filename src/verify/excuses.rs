//! What the findings of a build account for.

use std::collections::BTreeSet;

use super::digest::Sha;
use crate::content::hex;
use crate::package::Format;
use crate::receipt::{FindingRecord, Receipt};
use crate::report::Code;
use crate::tree::TreePath;

/// Findings that leave a file with device code or an index of it in the host package.
const KEEPING: [Code; 4] =
    [Code::DatabaseShared, Code::DatabaseArchMismatch, Code::DatabaseUnpaired, Code::KeptFat];

/// Findings whose device code stays in the file that it came in.
const KEPT: [Code; 3] = [Code::DatabaseShared, Code::KeptFat, Code::DatabaseHostCode];

/// Findings whose code objects are in no package. Others list code objects that lie elsewhere than
/// one would think, and excuse no absence.
const LEAVING_OUT: [Code; 11] = [
    Code::ArchNotGrouped,
    Code::BundleUnreferenced,
    Code::DuplicateDropped,
    Code::EmptyCodeObject,
    Code::KeptFatDropped,
    Code::KernelsUnclaimed,
    Code::TargetNotSelected,
    Code::ArchExcluded,
    Code::ArchDropped,
    Code::ComponentLeftOut,
    Code::NotListed,
];

/// What is where it is, or not, because of a finding.
#[derive(Debug, Default)]
pub(super) struct Excuses {
    /// Whether there is a receipt at all.
    pub(super) given: bool,
    /// SHA-256, in hex, of device code that is in no package.
    absent: BTreeSet<String>,
    /// SHA-256, in hex, of device code that stays in its file.
    kept: BTreeSet<String>,
    /// `<shard>/<artifact>/<path>` of files that stay in the host package.
    kept_files: BTreeSet<String>,
    /// Install-relative paths of indexes that refer to what no input holds.
    unresolved: BTreeSet<String>,
    /// Install-relative paths of files that are the union of those of the shards.
    merged: BTreeSet<String>,
    /// Install-relative folders whose files are in folders of their archs below.
    moved: BTreeSet<String>,
    /// Install-relative paths of host files that are for one arch as a whole.
    whole: BTreeSet<String>,
    /// Install-relative paths of files whose library search paths were written anew.
    rewritten: BTreeSet<String>,
    /// Absolute paths that are in no package.
    left_out: BTreeSet<String>,
    /// Needed libraries that are nowhere.
    nowhere: BTreeSet<String>,
    /// Needed libraries that are to give a `.deb` no dependency.
    free: BTreeSet<String>,
    /// Install-relative paths of files whose libraries are to give no dependencies.
    unasked: BTreeSet<String>,
}

impl Excuses {
    /// The findings of all receipts.
    pub(super) fn of<'a>(receipts: impl IntoIterator<Item = &'a Receipt>) -> Self {
        let mut excuses = Self::default();
        for receipt in receipts {
            excuses.given = true;
            receipt.findings.iter().for_each(|finding| excuses.add(finding));
            excuses.left_out.extend(receipt.left_out.iter().cloned());
        }
        excuses
    }

    fn add(&mut self, finding: &FindingRecord) {
        let digests = finding.code_objects.iter().cloned();
        let is_of = |codes: &[Code]| codes.iter().any(|code| code.id() == finding.code);
        if is_of(&LEAVING_OUT) {
            self.absent.extend(digests);
        } else if is_of(&KEPT) {
            self.kept.extend(digests);
        }
        // What a subject names behind its first components.
        let below = |names| finding.subject.splitn(names + 1, '/').nth(names).map(str::to_owned);
        if is_of(&[Code::DatabaseMerged]) {
            self.merged.extend(below(1));
        } else if is_of(&[Code::DatabaseUnresolved]) {
            self.unresolved.extend(below(2));
        } else if is_of(&[Code::DatabaseMoved]) {
            self.moved.extend(below(1));
        } else if is_of(&[Code::RunpathRewritten]) {
            self.rewritten.extend(below(1));
        } else if is_of(&[Code::DatabaseHostCode]) {
            self.whole.extend(below(2));
        }
        let needed = || {
            let rest = finding.message.strip_prefix("needs ");
            rest.and_then(|rest| Some(rest.split_once(',')?.0)).map(str::to_owned)
        };
        if is_of(&[Code::LibraryUnresolved]) {
            self.nowhere.extend(needed());
        } else if is_of(&[Code::LibraryWithoutDependency]) {
            self.free.extend(needed());
        } else if is_of(&[Code::LibrariesNotAsked]) {
            self.unasked.extend(below(1));
        }
        if is_of(&KEEPING) {
            self.kept_files.insert(finding.subject.clone());
        }
    }

    /// Whether device code of this digest is in no package because of a finding.
    pub(super) fn absence(&self, sha256: &Sha) -> bool {
        self.absent.contains(&hex(sha256))
    }

    /// Whether the file at this install-relative path is the union of those of the shards.
    pub(super) fn merges(&self, path: &TreePath) -> bool {
        self.merged.contains(path.as_str())
    }

    /// Whether the library search path of the file at this install-relative path was written anew.
    pub(super) fn rewrites(&self, path: &TreePath) -> bool {
        self.rewritten.contains(path.as_str())
    }

    /// Whether the files of this install-relative folder are in folders of their archs below it.
    pub(super) fn moves(&self, folder: &TreePath) -> bool {
        self.moved.contains(folder.as_str())
    }

    /// Whether the host file at this absolute path is for one arch as a whole.
    pub(super) fn is_whole(&self, path: &str) -> bool {
        is_one_of(&self.whole, path)
    }

    /// Whether the index at this absolute path refers to what no input holds.
    pub(super) fn leaves_unresolved(&self, path: &str) -> bool {
        is_one_of(&self.unresolved, path)
    }

    /// Whether what the input has at this absolute path is in no package on purpose.
    pub(super) fn leaves_out(&self, path: &str) -> bool {
        self.left_out.contains(path)
    }

    /// Whether the same is true of something below this directory, which ends in a slash.
    pub(super) fn leaves_out_below(&self, directory: &str) -> bool {
        let next = self.left_out.range(directory.to_owned()..).next();
        next.is_some_and(|path| path.starts_with(directory))
    }

    /// Whether a package of that format need not depend on what has the library `name`: the build
    /// found it nowhere, or the configuration says so.
    pub(super) fn leaves_open(&self, name: &str, format: Option<Format>) -> bool {
        self.nowhere.contains(name) || (format == Some(Format::Deb) && self.free.contains(name))
    }

    /// Whether nothing is said of the libraries that the file at this absolute path needs.
    pub(super) fn asks_nothing_of(&self, path: &str) -> bool {
        is_one_of(&self.unasked, path)
    }

    /// Whether findings account for absent device code at all.
    pub(super) fn any_absence(&self) -> bool {
        !self.absent.is_empty()
    }

    /// Whether device code of this digest may be where it is: in a file as it is.
    pub(super) fn keeps(&self, sha256: &Sha) -> bool {
        self.kept.contains(&hex(sha256))
    }

    /// Whether the file installed at `path` may be in a host package.
    pub(super) fn keeps_file(&self, path: &str) -> bool {
        // A subject has two components before the path below the prefix.
        let below = |subject: &String| subject.splitn(3, '/').nth(2).map(|path| format!("/{path}"));
        self.kept_files.iter().filter_map(below).any(|below| path.ends_with(&below))
    }
}

/// Whether the absolute `path` ends with one of these install-relative paths.
fn is_one_of(paths: &BTreeSet<String>, path: &str) -> bool {
    paths.iter().any(|own| path.strip_suffix(own).is_some_and(|rest| rest.ends_with('/')))
}
