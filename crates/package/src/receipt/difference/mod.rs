//! The difference between two package sets.
//!
//! Packages are identified by format and name, and by architecture if a set has several. Files are identified
//! by path. If the sets have different prefixes, paths of the earlier set are compared as if they were below
//! the later prefix, unless that would give two files of a package one path. Relations to the own version of
//! a set are equal, whatever that version is.
//!
//! Contents are compared by digest if both sides know it, else by size if both know that. Files that cannot
//! be compared are counted as neither equal nor changed. Estimated sizes are not compared either.

mod members;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

pub use members::{ChangedAspect, FileChange};

use crate::receipt::RelationRecord;
use crate::receipt::listing::{ListedPackage, Listing, PathOwners, Size};
use crate::{Format, Version};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Name of the earlier set: the path it was read from.
    pub earlier: String,
    /// Name of the later set: the path it was read from.
    pub later: String,
    /// The prefixes, if both are known and they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Changed<String>>,
    pub added: Vec<UnpairedPackage>,
    pub removed: Vec<UnpairedPackage>,
    pub moved: Vec<MovedPath>,
    /// Packages that are in both sets, and differ.
    pub changed: Vec<ChangedPackage>,
    /// Number of files that could not be compared, because one side knows neither digest nor size.
    pub uncompared: u64,
    /// Number of files that were compared by size alone, because one side knows no digest.
    pub by_size: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed<T> {
    pub from: T,
    pub to: T,
}

impl Changed<Size> {
    /// Whether a side is an estimate, so that nothing follows from a difference.
    pub fn is_estimated(&self) -> bool {
        self.from.estimated || self.to.estimated
    }

    /// Whether both sides are exact, and differ.
    pub fn is_resized(&self) -> bool {
        !self.is_estimated() && self.from != self.to
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnpairedPackage {
    pub format: Format,
    pub name: String,
    pub version: String,
    pub architecture: String,
    /// Size of the package file in bytes.
    pub download: Size,
    pub installed: Size,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MovedPath {
    pub format: Format,
    /// The absolute path, as the later set has it.
    pub path: String,
    pub from: String,
    pub to: String,
}

/// A package that is in both sets and differs. Its lists have only differences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedPackage {
    pub format: Format,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Changed<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<Changed<String>>,
    /// Size of the package file in bytes.
    pub download: Changed<Size>,
    pub installed: Changed<Size>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relations_added: Vec<RelationRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relations_removed: Vec<RelationRecord>,
    /// Paths that are new, and did not move here from another package.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files_added: Vec<String>,
    /// Paths that are gone, and did not move to another package.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files_removed: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files_changed: Vec<FileChange>,
}

pub fn between(earlier: &Listing, later: &Listing) -> Difference {
    let earlier_packages = members::moved_to(earlier, later);
    let pairs = paired(&earlier_packages, &later.packages);
    // The indexes of owners are needed for this alone.
    let moved = {
        let owners = |packages| {
            PathOwners::of(by_name(packages).into_values().flat_map(ByArchitecture::into_values))
        };
        members::moved(&owners(&earlier_packages), &owners(&later.packages))
    };
    let mut counts = members::Counts::default();
    // What is reported as moved is neither a loss of one package nor new in the other.
    let moved_from = moved.iter().map(|moved| (moved.format, &*moved.path, &*moved.from)).collect();
    let moved_to = moved.iter().map(|moved| (moved.format, &*moved.path, &*moved.to)).collect();
    let (old, new) = (SetVersions::of(&earlier_packages), SetVersions::of(&later.packages));
    let prefixes = earlier.prefix.as_deref().zip(later.prefix.as_deref());
    let prefix = prefixes.and_then(|(from, to)| changed_text(from, to));
    let both = pairs.both.into_iter();
    let changed = both
        .filter_map(|(before, after)| {
            let (old, new) = (old.named(before), new.named(after));
            let relations =
                [new.difference(&old), old.difference(&new)].map(|only| only.cloned().collect());
            compare((before, after), relations, [&moved_from, &moved_to], &mut counts)
        })
        .collect();
    Difference {
        earlier: earlier.name.clone(),
        later: later.name.clone(),
        prefix,
        added: pairs.added.into_iter().map(named).collect(),
        removed: pairs.removed.into_iter().map(named).collect(),
        moved,
        changed,
        uncompared: counts.uncompared,
        by_size: counts.by_size,
    }
}

impl Difference {
    /// Whether no difference is known. Files that could not be compared may still differ.
    pub fn is_empty(&self) -> bool {
        self.prefix.is_none()
            && self.added.is_empty()
            && self.removed.is_empty()
            && self.moved.is_empty()
            && self.changed.is_empty()
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

/// Paths, each with the format and name of a package.
type PathsInPackages<'a> = BTreeSet<(Format, &'a str, &'a str)>;

/// The differences between two versions of a package; `None` if nothing differs.
fn compare(
    (before, after): (&ListedPackage, &ListedPackage),
    [relations_added, relations_removed]: [Vec<RelationRecord>; 2],
    [moved_from, moved_to]: [&PathsInPackages<'_>; 2],
    counts: &mut members::Counts,
) -> Option<ChangedPackage> {
    let (paths_before, paths_after) = (paths_of(before), paths_of(after));
    let format = after.format;
    let gone = paths_before.difference(&paths_after);
    let gone = gone.filter(|path| !moved_from.contains(&(format, path, &after.name)));
    let come = paths_after.difference(&paths_before);
    let come = come.filter(|path| !moved_to.contains(&(format, path, &after.name)));
    let changed = ChangedPackage {
        format: after.format,
        name: after.name.clone(),
        version: changed_text(&before.version, &after.version),
        architecture: changed_text(&before.architecture, &after.architecture),
        download: Changed { from: before.download, to: after.download },
        installed: Changed { from: before.installed, to: after.installed },
        relations_added,
        relations_removed,
        files_added: come.cloned().collect(),
        files_removed: gone.cloned().collect(),
        files_changed: members::compare(before, after, counts),
    };
    // The size of a package file also depends on its compression, so that alone is no difference.
    let same = changed.version.is_none()
        && changed.architecture.is_none()
        && changed.relations_added.is_empty()
        && changed.relations_removed.is_empty()
        && changed.files_changed.is_empty()
        && paths_before == paths_after
        && !changed.installed.is_resized();
    (!same).then_some(changed)
}

fn paths_of(package: &ListedPackage) -> BTreeSet<String> {
    package.members.iter().map(|member| member.path.clone()).collect()
}

/// The packages of two sets, paired.
#[derive(Default)]
struct PairedPackages<'a> {
    /// Packages of both sets: the earlier and the later version.
    both: Vec<(&'a ListedPackage, &'a ListedPackage)>,
    added: Vec<&'a ListedPackage>,
    removed: Vec<&'a ListedPackage>,
}

/// The packages of one format and name by architecture.
type ByArchitecture<'a> = BTreeMap<&'a str, &'a ListedPackage>;

/// Architectures of packages for every machine.
const ALL_ARCHITECTURES: [&str; 2] = ["all", "noarch"];

/// Pairs packages by format, name and architecture. If that leaves one package of a name on each side, the
/// package changed its architecture.
fn paired<'a>(old: &'a [ListedPackage], new: &'a [ListedPackage]) -> PairedPackages<'a> {
    let (mut old, mut new) = (by_name(old), by_name(new));
    let names: BTreeSet<_> = old.keys().chain(new.keys()).copied().collect();
    let mut pairs = PairedPackages::default();
    for name in names {
        let mut old = old.remove(&name).unwrap_or_default();
        let mut new = new.remove(&name).unwrap_or_default();
        let both: Vec<&str> = old.keys().filter(|arch| new.contains_key(*arch)).copied().collect();
        pairs.both.extend(both.iter().filter_map(|arch| old.remove(arch).zip(new.remove(arch))));
        if old.len() == 1 && new.len() == 1 {
            pairs.both.extend(old.into_values().zip(new.into_values()));
        } else {
            pairs.removed.extend(old.into_values());
            pairs.added.extend(new.into_values());
        }
    }
    pairs
}

/// Groups the packages by format and name, and keeps the newest version of each architecture; `packages` are
/// sorted. A package for every machine and one for some replace each other, unless their versions are equal.
fn by_name(packages: &[ListedPackage]) -> BTreeMap<(Format, &str), ByArchitecture<'_>> {
    let mut found: BTreeMap<(Format, &str), ByArchitecture<'_>> = BTreeMap::new();
    for package in packages {
        let named = found.entry(package.key()).or_default();
        if ALL_ARCHITECTURES.contains(&&*package.architecture) {
            named.retain(|arch, earlier| {
                ALL_ARCHITECTURES.contains(arch) || earlier.is_of_version_of(package)
            });
        } else {
            for arch in ALL_ARCHITECTURES {
                if named.get(arch).is_some_and(|earlier| !earlier.is_of_version_of(package)) {
                    named.remove(arch);
                }
            }
        }
        named.insert(&package.architecture, package);
    }
    found
}

/// Replaces the version of a package of the set.
const OWN_VERSION: &str = "the set's version";

/// Replaces the next patch version after that of a package.
const NEXT_PATCH: &str = "the next patch version";

/// The versions of a set's packages, by format and name.
struct SetVersions<'a>(BTreeMap<(Format, &'a str), &'a str>);

impl<'a> SetVersions<'a> {
    /// Indexes the versions of `packages`. The newest version of each name comes last, and counts.
    fn of(packages: &'a [ListedPackage]) -> Self {
        Self(packages.iter().map(|package| (package.key(), package.version.as_str())).collect())
    }

    /// The relations of `package`, with versions of the set replaced by placeholders: `rocm-blas = 7.1.0-1`
    /// in 7.1.0-1 equals `rocm-blas = 7.1.1-1` in 7.1.1-1.
    fn named(&self, package: &ListedPackage) -> BTreeSet<RelationRecord> {
        let next = next_patch(&package.version);
        let named = package.relations.iter().cloned().map(|mut relation| {
            let known = self.0.get(&(package.format, relation.name.as_str())).copied();
            let bound = relation.version.as_deref();
            if bound == Some(&package.version) || (bound.is_some() && bound == known) {
                relation.version = Some(OWN_VERSION.to_owned());
            } else if bound.is_some() && bound == next.as_deref() {
                relation.version = Some(NEXT_PATCH.to_owned());
            }
            relation
        });
        named.collect()
    }
}

/// The next patch version after `version`, which has a release; `None` if it cannot be parsed.
fn next_patch(version: &str) -> Option<String> {
    let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
    let (upstream, _) = rest.rsplit_once('-')?;
    let version = Version::new(upstream, "1").ok()?;
    version.with_epoch(epoch.parse().ok()).next_patch()
}
