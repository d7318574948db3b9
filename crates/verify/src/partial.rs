//! A part of a set: which failed checks say something about it, and which could only be decided with
//! the packages that are not there.
//!
//! Most checks compare packages with each other. If some are missing, an absent path may
//! be in one of those. Content that exists and is wrong is wrong in any case.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::gfx::{BaseArch, Target};

use super::own::installed::Installed;
use super::problem::{Check, CheckCount, CodeLoss, FileLoss, Problem, Problems, ReceiptLack};

/// How much of a package set is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All packages.
    Whole,
    /// Some of them.
    Part,
}

/// Counts failed checks that cannot be decided, and of a part of a set takes them out of the others.
pub(super) struct Sieve {
    extent: Extent,
    open: BTreeMap<Check, usize>,
}

impl Sieve {
    pub(super) fn new(extent: Extent) -> Self {
        Self { extent, open: BTreeMap::new() }
    }

    /// Keeps the `problems` that do not depend on the rest of the set that `packages` are part of.
    pub(super) fn sift<'a>(
        &mut self,
        problems: Problems,
        packages: impl Iterator<Item = &'a Installed>,
    ) -> Problems {
        let held = held(packages);
        let mut decided = Problems::default();
        for problem in problems.finish() {
            let is_open = is_open(&problem, &held);
            if is_open {
                *self.open.entry(problem.code()).or_default() += 1;
            }
            if !is_open || self.extent == Extent::Whole {
                decided.add(problem);
            }
        }
        decided
    }

    /// Counts the packages for which a check was left out, since a part of the set is unknown.
    pub(super) fn leave_open(&mut self, check: Check, packages: usize) {
        if self.extent == Extent::Part {
            *self.open.entry(check).or_default() += packages;
        }
    }

    /// Whether checks failed that would not fail of a part of a set.
    pub(super) fn has_open(&self) -> bool {
        !self.open.is_empty() && self.extent == Extent::Whole
    }

    /// The checks that could not be decided; of a whole set, none.
    pub(super) fn undecided(self) -> Vec<CheckCount> {
        let open = if self.extent == Extent::Part { self.open } else { BTreeMap::new() };
        open.into_iter().map(|(check, count)| CheckCount::new(check, count)).collect()
    }
}

/// The binaries, by install-relative path, and archs whose code is in archives of `packages`. All code
/// of a binary for an arch is in one package.
fn held<'a>(packages: impl Iterator<Item = &'a Installed>) -> BTreeSet<(String, BaseArch)> {
    let archives = packages.flat_map(Installed::files).filter_map(|(_, facts)| facts.archive());
    let rows = archives.flat_map(|archive| &archive.rows).flat_map(|(key, targets)| {
        let binary = key.rsplit_once('#').map_or(key.as_str(), |(binary, _)| binary);
        targets.keys().filter_map(move |target| Some((binary.to_owned(), base_of(target)?)))
    });
    rows.collect()
}

pub(super) fn base_of(target: &str) -> Option<BaseArch> {
    target.parse::<Target>().ok().map(|target| target.base().clone())
}

/// Whether a package that is not there may settle the problem.
fn is_open(problem: &Problem, held: &BTreeSet<(String, BaseArch)>) -> bool {
    match problem {
        Problem::MarkerUnresolved { .. }
        | Problem::HostMissing { .. }
        | Problem::WheelHostMissing { .. }
        | Problem::LibraryMissing { .. }
        | Problem::PartMissing { .. } => true,
        Problem::CodeObjectLost { path, target, loss, .. } => match loss {
            CodeLoss::NotAtPlace { .. } => false,
            CodeLoss::OfWrapper { .. } => {
                !base_of(target).is_some_and(|arch| held.contains(&(path.clone(), arch)))
            }
            _ => true,
        },
        Problem::ReceiptIncomplete { lack, .. } => *lack == ReceiptLack::Package,
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
