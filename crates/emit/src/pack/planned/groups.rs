//! The download of a GPU's owner: the kernel packages of its group and everything in the set that they need,
//! deduplicated.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use rockpack_package::receipt::listing::{ListedPackage, Size};
use rockpack_package::{Format, RelationKind, RoleKind};
use rockpack_plan::recombine::Group;

/// The packages that a group needs, in one format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupSum {
    /// The group's name in the configuration, e.g. `gfx110X`, or a target in schemes with a package for each
    /// target.
    pub group: String,
    /// The format of the packages.
    pub format: Format,
    /// The names of the installed packages of the set: the group's kernel packages, without those of tests,
    /// and their dependencies, by name. Packages of the distribution do not count.
    pub packages: Vec<String>,
    /// The bytes of the package files.
    pub download: Size,
    /// The installed bytes of the packages.
    pub installed: Size,
}

/// The sums of all groups with kernel packages, for every format, in the order of `groups`. In schemes with a
/// package for each target, targets take the place of their group.
pub(super) fn sums(groups: &[Group], packages: &[ListedPackage]) -> Vec<GroupSum> {
    let distinct: BTreeSet<&str> =
        packages.iter().filter_map(|package| package.group.as_deref()).collect();
    let mut names: Vec<&str> = distinct.into_iter().collect();
    names.sort_by_key(|name| (place_of(name, groups), name.len(), *name));
    let sets = Format::ALL.map(|format| (format, FormatPackages::new(packages, format)));
    let mut sums = Vec::new();
    for group in names {
        for (format, set) in &sets {
            let members = set.closure(set.kernels(group));
            if !members.is_empty() {
                sums.push(sum(group, *format, &members));
            }
        }
    }
    sums
}

/// The place of the group with this name or this target; the number of groups if there is none.
fn place_of(name: &str, groups: &[Group]) -> usize {
    let place = groups.iter().position(|group| {
        group.name == name || group.archs.iter().any(|arch| arch.as_str() == name)
    });
    place.unwrap_or(groups.len())
}

fn sum(group: &str, format: Format, members: &BTreeMap<&str, &ListedPackage>) -> GroupSum {
    GroupSum {
        group: group.to_owned(),
        format,
        packages: members.keys().map(|name| (*name).to_owned()).collect(),
        download: members.values().map(|package| package.download).sum(),
        installed: members.values().map(|package| package.installed).sum(),
    }
}

/// The packages of one format by all names that a dependency may use.
struct FormatPackages<'a> {
    packages: Vec<&'a ListedPackage>,
    by_name: BTreeMap<&'a str, &'a ListedPackage>,
    /// Provided names; a package with the name itself precedes.
    provided: BTreeMap<&'a str, &'a ListedPackage>,
}

impl<'a> FormatPackages<'a> {
    fn new(packages: &'a [ListedPackage], format: Format) -> Self {
        let packages: Vec<_> = packages.iter().filter(|p| p.format == format).collect();
        let by_name = packages.iter().map(|package| (package.name.as_str(), *package)).collect();
        let mut provided = BTreeMap::new();
        for package in &packages {
            for relation in package.relations_of(RelationKind::Provides) {
                provided.entry(relation.name.as_str()).or_insert(*package);
            }
        }
        Self { packages, by_name, provided }
    }

    /// The kernel packages of a group, without those whose host belongs to tests.
    fn kernels(&self, group: &str) -> Vec<&'a ListedPackage> {
        let packages = self.packages.iter().copied();
        let kernels = packages.filter(|package| package.group.as_deref() == Some(group));
        kernels.filter(|package| !self.is_of_tests(package)).collect()
    }

    fn is_of_tests(&self, package: &ListedPackage) -> bool {
        let mut hosts = package.relations_of(RelationKind::Enhances);
        hosts.any(|host| {
            let host = self.by_name.get(host.name.as_str());
            host.is_some_and(|host| host.role == Some(RoleKind::Support))
        })
    }

    /// `roots` and all their dependencies.
    fn closure(&self, roots: Vec<&'a ListedPackage>) -> BTreeMap<&'a str, &'a ListedPackage> {
        let mut found: BTreeMap<&str, &ListedPackage> = BTreeMap::new();
        let mut waiting = roots;
        while let Some(package) = waiting.pop() {
            if found.insert(&package.name, package).is_some() {
                continue;
            }
            let needed: BTreeSet<&str> = package
                .relations_of(RelationKind::Depends)
                .map(|relation| relation.name.as_str())
                .collect();
            waiting.extend(needed.into_iter().filter_map(|name| self.find(name)));
        }
        found
    }

    /// The package that an installer takes for `name`; the first alternative in the set.
    fn find(&self, name: &str) -> Option<&'a ListedPackage> {
        let alternatives = name.split('|').map(|part| {
            // Alternatives are complete relations, with their bounds.
            part.split('(').next().unwrap_or_default().trim()
        });
        let names = alternatives.chain([name]);
        let mut found = names
            .filter_map(|name| self.by_name.get(name).or_else(|| self.provided.get(name)).copied());
        found.next()
    }
}
