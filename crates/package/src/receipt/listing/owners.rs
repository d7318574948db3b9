//! The packages that have each path of a set.

use std::collections::BTreeMap;

use super::{ListedMember, ListedPackage};
use crate::Format;

/// A package of a set and its entry at one path.
#[derive(Debug, Clone, Copy)]
pub struct OwnedMember<'a> {
    /// The package.
    pub package: &'a ListedPackage,
    /// The entry at the path.
    pub member: &'a ListedMember,
}

/// The paths of a set by format, path and package name. Several packages of a set may have one path, and each
/// of them is updated.
#[derive(Debug, Default)]
pub struct Owners<'a>(BTreeMap<(Format, &'a str, &'a str), OwnedMember<'a>>);

impl<'a> Owners<'a> {
    /// Indexes the paths of `packages`, which are sorted. If several versions of a package have a path, the
    /// newest counts.
    pub fn of(packages: impl IntoIterator<Item = &'a ListedPackage>) -> Self {
        let mut owners = BTreeMap::new();
        for package in packages {
            for member in &package.members {
                let key = (package.format, &*member.path, &*package.name);
                owners.insert(key, OwnedMember { package, member });
            }
        }
        Self(owners)
    }

    /// All entries at `path` in `format`, directories included, sorted by package name.
    pub fn at<'s>(
        &'s self,
        format: Format,
        path: &'s str,
    ) -> impl Iterator<Item = OwnedMember<'a>> + 's {
        let from = self.0.range((format, path, "")..);
        let there = from.take_while(move |((of, at, _), _)| (*of, *at) == (format, path));
        there.map(|(_, owned)| *owned)
    }

    /// The packages that have `path` as something other than a directory.
    pub fn owners<'s>(
        &'s self,
        format: Format,
        path: &'s str,
    ) -> impl Iterator<Item = &'a ListedPackage> + 's {
        let files = self.at(format, path).filter(|owned| !owned.member.is_directory());
        files.map(|owned| owned.package)
    }

    /// Whether a package has `path` as something other than a directory.
    pub fn has(&self, format: Format, path: &str) -> bool {
        self.owners(format, path).next().is_some()
    }

    /// Every path that is not a directory, once for each package that has it.
    pub fn files(&self) -> impl Iterator<Item = OwnedMember<'a>> {
        self.0.values().copied().filter(|owned| !owned.member.is_directory())
    }
}
