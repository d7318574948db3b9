//! Who has which path of a set.

use std::collections::BTreeMap;

use super::{ListedMember, ListedPackage};

/// A path and the package that has it.
#[derive(Debug, Clone, Copy)]
pub struct Owned<'a> {
    /// The package; of a directory, one of those that have it.
    pub package: &'a ListedPackage,
    /// What stands there.
    pub member: &'a ListedMember,
}

/// The paths of a set by format.
#[derive(Debug, Default)]
pub struct Owners<'a>(BTreeMap<(&'a str, &'a str), Owned<'a>>);

impl<'a> Owners<'a> {
    /// The paths of `packages`; of several versions of a package the last counts.
    pub fn of(packages: impl IntoIterator<Item = &'a ListedPackage>) -> Self {
        let mut owners = BTreeMap::new();
        for package in packages {
            for member in &package.members {
                let key = (package.format.as_str(), member.path.as_str());
                owners.insert(key, Owned { package, member });
            }
        }
        Self(owners)
    }

    /// What stands at `path` in `format`, whatever it is.
    pub fn at(&self, format: &str, path: &str) -> Option<Owned<'a>> {
        self.0.get(&(format, path)).copied()
    }

    /// The package that alone has `path`, which is no directory.
    pub fn owner(&self, format: &str, path: &str) -> Option<&'a ListedPackage> {
        let owned = self.at(format, path).filter(|owned| !owned.member.is_directory());
        owned.map(|owned| owned.package)
    }

    /// Every path that is no directory.
    pub fn files(&self) -> impl Iterator<Item = Owned<'a>> {
        self.0.values().copied().filter(|owned| !owned.member.is_directory())
    }
}
