//! Partial sets: which failed checks cannot be decided without the missing packages.
//!
//! Most checks compare packages with each other. If some packages are missing, an absent path may be in one of those.
//! Content that is present and wrong fails in any case.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::gfx::{BaseArch, Target};

use super::problem::{Check, CheckCount, CodeLoss, FileLoss, Problem, Problems, ReceiptGap};
use super::readers::installed::PackageContents;

/// How much of a package set was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Whole,
    Part,
}

/// Counts failed checks that missing packages may solve, and removes them for a partial set.
pub(super) struct PartialSetFilter {
    extent: Extent,
    open: BTreeMap<Check, usize>,
}

impl PartialSetFilter {
    pub(super) fn new(extent: Extent) -> Self {
        Self { extent, open: BTreeMap::new() }
    }

    /// Returns the `problems` to report; for a partial set without those that missing packages may solve.
    pub(super) fn filter<'a>(
        &mut self,
        problems: Problems,
        packages: impl Iterator<Item = &'a PackageContents>,
    ) -> Problems {
        let code_in_packages = code_in_packages(packages);
        let mut decided = Problems::default();
        for problem in problems.finish() {
            let is_open = is_undecidable(&problem, &code_in_packages);
            if is_open {
                *self.open.entry(problem.code()).or_default() += 1;
            }
            if !is_open || self.extent == Extent::Whole {
                decided.add(problem);
            }
        }
        decided
    }

    /// Counts `packages` as undecided for a check that was skipped.
    pub(super) fn count_undecided(&mut self, check: Check, packages: usize) {
        if self.extent == Extent::Part {
            *self.open.entry(check).or_default() += packages;
        }
    }

    /// Whether checks of a whole set failed that would not fail for a partial set.
    pub(super) fn has_undecidable(&self) -> bool {
        !self.open.is_empty() && self.extent == Extent::Whole
    }

    /// The checks that could not be decided; empty for a whole set.
    pub(super) fn undecided(self) -> Vec<CheckCount> {
        let open = if self.extent == Extent::Part { self.open } else { BTreeMap::new() };
        open.into_iter().map(|(check, count)| CheckCount::new(check, count)).collect()
    }
}

/// The binaries, by install-relative path, and archs with code in archives of `packages`. All code of a binary for an
/// arch is in one package.
fn code_in_packages<'a>(
    packages: impl Iterator<Item = &'a PackageContents>,
) -> BTreeSet<(String, BaseArch)> {
    let archives =
        packages.flat_map(PackageContents::files).filter_map(|(_, facts)| facts.archive());
    let rows = archives.flat_map(|archive| &archive.rows).flat_map(|(key, targets)| {
        let binary = key.rsplit_once('#').map_or(key.as_str(), |(binary, _)| binary);
        targets.keys().filter_map(move |target| Some((binary.to_owned(), base_of(target)?)))
    });
    rows.collect()
}

pub(super) fn base_of(target: &str) -> Option<BaseArch> {
    target.parse::<Target>().ok().map(|target| target.base().clone())
}

/// Whether a missing package may solve the problem.
fn is_undecidable(problem: &Problem, code_in_packages: &BTreeSet<(String, BaseArch)>) -> bool {
    match problem {
        Problem::MarkerUnresolved { .. }
        | Problem::HostMissing { .. }
        | Problem::WheelHostMissing { .. }
        | Problem::LibraryMissing { .. }
        | Problem::PartMissing { .. } => true,
        Problem::CodeObjectLost { path, target, loss, .. } => match loss {
            CodeLoss::NotAtPlace { .. } => false,
            CodeLoss::NotInArchive { .. } => !base_of(target)
                .is_some_and(|arch| code_in_packages.contains(&(path.clone(), arch))),
            _ => true,
        },
        Problem::ReceiptIncomplete { missing, .. } => *missing == ReceiptGap::Package,
        Problem::FileLost { loss, .. } => {
            matches!(loss, FileLoss::Absent | FileLoss::BinaryAbsent)
        }
        Problem::DatabaseUnpaired { fault, .. }
        | Problem::RowMissing { fault, .. }
        | Problem::BadManifest { fault, .. }
        | Problem::WheelExtra { fault, .. } => fault.may_be_elsewhere,
        _ => false,
    }
}
