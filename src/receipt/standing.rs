//! Packages of earlier sets that are still current. Clients have them, and a set of the same version keeps
//! those that do not change.
//!
//! If several receipts know a package, the last one counts. A receipt also knows the packages that it keeps
//! from earlier ones.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{CodeObjectRecord, PackageRecord, Receipt};
use crate::package::{Format, Version};

/// Packages of earlier builds that a set keeps. Their files are not among the files of this build.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRecord {
    /// The packages, sorted by file name.
    pub packages: Vec<PackageRecord>,
    /// Every code object in those packages, sorted by place.
    pub code_objects: Vec<CodeObjectRecord>,
}

impl KeptRecord {
    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.packages.is_empty()
    }
}

/// The current packages of earlier sets, by format and id.
#[derive(Debug, Default)]
pub struct Standing {
    packages: BTreeMap<(Format, String), PackageRecord>,
    /// Package id → the code objects in the package.
    code_objects: BTreeMap<String, Vec<CodeObjectRecord>>,
}

impl Standing {
    /// Collects from `receipts` the packages in `formats` with `version`, of any release, and install prefix
    /// `prefix`.
    pub fn of<'a>(
        receipts: impl Iterator<Item = &'a Receipt>,
        version: &Version,
        prefix: &str,
        formats: &[Format],
    ) -> Self {
        let mut standing = Self::default();
        for receipt in receipts.filter(|receipt| receipt.prefix == prefix) {
            let wanted_records = receipt.all_packages().filter(|record| {
                formats.contains(&record.format)
                    && version.is_of_release(&record.version, record.format)
            });
            let mut wanted: BTreeSet<&str> = BTreeSet::new();
            for record in wanted_records {
                wanted.insert(&record.id);
                standing.code_objects.insert(record.id.clone(), Vec::new());
                standing.packages.insert((record.format, record.id.clone()), record.clone());
            }
            for record in receipt.all_code_objects() {
                if wanted.contains(record.package.as_str())
                    && let Some(own) = standing.code_objects.get_mut(&record.package)
                {
                    own.push(record.clone());
                }
            }
        }
        standing
    }

    /// Whether there are no packages.
    pub fn is_empty(&self) -> bool {
        self.packages.is_empty()
    }

    /// The package with this id and format, if there is one.
    pub fn get(&self, format: Format, id: &str) -> Option<&PackageRecord> {
        self.packages.get(&(format, id.to_owned()))
    }

    /// All packages.
    pub fn packages(&self) -> impl Iterator<Item = &PackageRecord> {
        self.packages.values()
    }

    /// The code objects of all packages.
    pub fn all_code_objects(&self) -> impl Iterator<Item = &CodeObjectRecord> {
        self.code_objects.values().flatten()
    }

    /// The packages that `is_kept` selects, with their code objects, as a receipt records them.
    pub fn kept(&self, is_kept: impl Fn(&PackageRecord) -> bool) -> KeptRecord {
        let mut packages: Vec<PackageRecord> =
            self.packages.values().filter(|record| is_kept(record)).cloned().collect();
        packages.sort_by(|a, b| a.file_name.cmp(&b.file_name));
        let ids: BTreeSet<&str> = packages.iter().map(|record| record.id.as_str()).collect();
        let mut code_objects: Vec<CodeObjectRecord> =
            ids.into_iter().filter_map(|id| self.code_objects.get(id)).flatten().cloned().collect();
        code_objects.sort_by(|a, b| (&a.place, &a.target).cmp(&(&b.place, &b.target)));
        KeptRecord { packages, code_objects }
    }
}
