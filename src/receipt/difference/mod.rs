//! What is different between two package sets.
//!
//! Packages are known by format and name, and by architecture where a set has several. Files are
//! known by path. Where the two sets have different prefixes, paths of the earlier set are compared
//! as if they were below the later prefix, unless that gives two of a package one path. Relations
//! to a set's own version are the same whatever that version is.
//!
//! Contents are compared by digest where both sides know it, else by size where both know that.
//! Files that cannot be compared are counted, and never taken for equal or changed. Sizes that are
//! estimates are shown and not compared.

mod members;
mod pairs;
mod prefix;
mod relations;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::Serialize;

pub use members::{ChangedAspect, FileChange};
use relations::{Relations, Versions};

use crate::package::Format;
use crate::receipt::RelationRecord;
use crate::receipt::listing::{ListedPackage, Listing, Owners, Size};

/// The difference between an earlier and a later set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What the earlier set was read from.
    pub earlier: String,
    /// What the later set was read from.
    pub later: String,
    /// The prefixes, if they are different.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Changed<String>>,
    /// Packages that the earlier set does not have.
    pub added: Vec<UnpairedPackage>,
    /// Packages that the later set does not have.
    pub removed: Vec<UnpairedPackage>,
    /// Paths that are in another package than before.
    pub moved: Vec<Moved>,
    /// Packages that are in both and not the same.
    pub changed: Vec<ChangedPackage>,
    /// Files whose contents could not be compared, because one side knows neither digest nor size.
    pub uncompared: u64,
    /// Files that have the same size, and whose digests are not known on one side.
    pub by_size: u64,
}

/// A value before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed<T> {
    /// Of the earlier set.
    pub from: T,
    /// Of the later set.
    pub to: T,
}

/// A package of one set only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnpairedPackage {
    /// Its format.
    pub format: Format,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its architecture.
    pub architecture: String,
    /// Bytes of the package file.
    pub download: Size,
    /// Bytes it takes installed.
    pub installed: Size,
}

/// A path that went from one package to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Moved {
    /// Its format.
    pub format: Format,
    /// The absolute path, as the later set has it.
    pub path: String,
    /// The package that had it.
    pub from: String,
    /// The package that has it.
    pub to: String,
}

/// A package of both sets. Lists are of what differs only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedPackage {
    /// Its format.
    pub format: Format,
    /// Its name.
    pub name: String,
    /// Its versions, if they are different.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Changed<String>>,
    /// Its architectures, if they are different.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<Changed<String>>,
    /// Bytes of the package file.
    pub download: Changed<Size>,
    /// Bytes it takes installed.
    pub installed: Changed<Size>,
    /// Relations that only the later one has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relations_added: Vec<RelationRecord>,
    /// Relations that only the earlier one has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relations_removed: Vec<RelationRecord>,
    /// Paths that are new, and come from no other package.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files_added: Vec<String>,
    /// Paths that are gone, and are in no other package.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files_removed: Vec<String>,
    /// Paths that are not what they were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files_changed: Vec<FileChange>,
}

/// Compares `earlier` with `later`.
pub fn between(earlier: &Listing, later: &Listing) -> Difference {
    let earlier_packages = prefix::moved_to(earlier, later);
    let pairs = pairs::of(&earlier_packages, &later.packages);
    let owners = |packages| Owners::of(pairs::compared(packages));
    let mut counts = members::Counts::default();
    let moved = members::moved(&owners(&earlier_packages), &owners(&later.packages));
    let told = Told::of(&moved);
    let (old, new) = (Versions::of(&earlier_packages), Versions::of(&later.packages));
    let both = pairs.both.into_iter();
    let changed = both.filter_map(|(before, after)| {
        let relations = relations::compare((before, &old), (after, &new));
        compare((before, after), relations, &told, &mut counts)
    });
    let changed = changed.collect();
    Difference {
        earlier: earlier.name.clone(),
        later: later.name.clone(),
        prefix: different(&earlier.prefix, &later.prefix),
        added: pairs.added.into_iter().map(named).collect(),
        removed: pairs.removed.into_iter().map(named).collect(),
        moved,
        changed,
        uncompared: counts.uncompared,
        by_size: counts.by_size,
    }
}

impl Difference {
    /// Whether nothing is known to be different. What could not be compared may be.
    pub fn is_empty(&self) -> bool {
        self.prefix.is_none()
            && self.added.is_empty()
            && self.removed.is_empty()
            && self.moved.is_empty()
            && self.changed.is_empty()
    }
}

fn different(from: &Option<String>, to: &Option<String>) -> Option<Changed<String>> {
    match (from, to) {
        (Some(from), Some(to)) if from != to => {
            Some(Changed { from: from.clone(), to: to.clone() })
        }
        _ => None,
    }
}

fn named(package: &ListedPackage) -> UnpairedPackage {
    UnpairedPackage {
        format: package.format,
        name: package.name.clone(),
        version: package.version.clone(),
        architecture: package.architecture.clone(),
        download: package.download,
        installed: package.installed,
    }
}

fn changed_text(from: &str, to: &str) -> Option<Changed<String>> {
    (from != to).then(|| Changed { from: from.to_owned(), to: to.to_owned() })
}

/// Format, path and name of a package.
type PathInPackage<'a> = (Format, &'a str, &'a str);

/// What is told as moved, and is no loss of one package and nothing new in another.
struct Told<'a> {
    from: BTreeSet<PathInPackage<'a>>,
    to: BTreeSet<PathInPackage<'a>>,
}

impl<'a> Told<'a> {
    fn of(moved: &'a [Moved]) -> Self {
        let from = moved.iter().map(|moved| (moved.format, &*moved.path, &*moved.from));
        let to = moved.iter().map(|moved| (moved.format, &*moved.path, &*moved.to));
        Self { from: from.collect(), to: to.collect() }
    }
}

/// What is different between two versions of a package, if anything is.
fn compare(
    (before, after): (&ListedPackage, &ListedPackage),
    relations: Relations,
    told: &Told<'_>,
    counts: &mut members::Counts,
) -> Option<ChangedPackage> {
    let paths = |package: &ListedPackage| -> BTreeSet<String> {
        package.members.iter().map(|member| member.path.clone()).collect()
    };
    let (paths_before, paths_after) = (paths(before), paths(after));
    let format = after.format;
    let gone = paths_before.difference(&paths_after);
    let gone = gone.filter(|path| !told.from.contains(&(format, path, &after.name)));
    let come = paths_after.difference(&paths_before);
    let come = come.filter(|path| !told.to.contains(&(format, path, &after.name)));
    let changed = ChangedPackage {
        format: after.format,
        name: after.name.clone(),
        version: changed_text(&before.version, &after.version),
        architecture: changed_text(&before.architecture, &after.architecture),
        download: Changed { from: before.download, to: after.download },
        installed: Changed { from: before.installed, to: after.installed },
        relations_added: relations.added,
        relations_removed: relations.removed,
        files_added: come.cloned().collect(),
        files_removed: gone.cloned().collect(),
        files_changed: members::compare(before, after, counts),
    };
    let same = changed.version.is_none()
        && changed.architecture.is_none()
        && changed.relations_added.is_empty()
        && changed.relations_removed.is_empty()
        && changed.files_changed.is_empty()
        && paths_before == paths_after
        && !sizes_differ(&changed);
    (!same).then_some(changed)
}

/// Whether sizes that both sides know exactly are different. A package file's size also depends on
/// how it is compressed, so it alone makes no difference.
fn sizes_differ(changed: &ChangedPackage) -> bool {
    let Changed { from, to } = &changed.installed;
    !from.estimated && !to.estimated && from.bytes != to.bytes
}
