//! Packages of earlier sets that are still current. A set of the same version keeps the unchanged ones.
//!
//! If several receipts know a package, the last one counts. A receipt also knows the packages that it keeps
//! from earlier ones. A set keeps no packages of a receipt whose signature is by a key that is not trusted.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::folders::{read_packages, write_packages};
use super::listing::Listing;
use super::{CodeObjectRecord, PackageRecord};
use crate::{Format, Version};
use rockpack_report::{Finding, ReceiptDoubt, found};

/// Packages of earlier builds that a set keeps. Their files are not among the files of this build.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRecord {
    /// The packages, sorted by file name.
    #[serde(serialize_with = "write_packages", deserialize_with = "read_packages")]
    pub packages: Vec<PackageRecord>,
    /// Every code object in those packages, sorted by place.
    pub code_objects: Vec<CodeObjectRecord>,
}

impl KeptRecord {
    pub fn is_empty(&self) -> bool {
        self.packages.is_empty()
    }
}

/// The current packages of earlier sets, by format and id.
#[derive(Debug, Default)]
pub struct CurrentPackages {
    packages: BTreeMap<(Format, String), PackageRecord>,
    /// Package id → the code objects in the package.
    code_objects: BTreeMap<String, Vec<CodeObjectRecord>>,
    /// Receipts without a good signature, by the packages that they list: release and doubt.
    unproved: BTreeMap<(Format, String), (String, ReceiptDoubt)>,
}

impl CurrentPackages {
    /// Collects the packages of `earlier` receipts with this version (any release), prefix and formats.
    pub fn of(earlier: &[Listing], version: &Version, prefix: &str, formats: &[Format]) -> Self {
        let mut current_packages = Self::default();
        for listing in earlier {
            let receipt = listing.receipt.as_deref().filter(|receipt| receipt.prefix == prefix);
            let Some(receipt) = receipt else { continue };
            let doubt = listing.doubt.clone().map(|doubt| (receipt.release(), doubt));
            let wanted_records = receipt.all_packages().filter(|record| {
                formats.contains(&record.format)
                    && version.is_of_release(&record.version, record.format)
            });
            let mut wanted: BTreeSet<&str> = BTreeSet::new();
            for record in wanted_records {
                wanted.insert(&record.id);
                current_packages.code_objects.insert(record.id.clone(), Vec::new());
                let key = (record.format, record.id.clone());
                current_packages.unproved.remove(&key);
                current_packages.unproved.extend(doubt.clone().map(|doubt| (key.clone(), doubt)));
                current_packages.packages.insert(key, record.clone());
            }
            for record in receipt.all_code_objects() {
                if wanted.contains(record.package.as_str())
                    && let Some(own) = current_packages.code_objects.get_mut(&record.package)
                {
                    own.push(record.clone());
                }
            }
        }
        current_packages
    }

    pub fn is_empty(&self) -> bool {
        self.packages.is_empty()
    }

    /// The package with this id and format, if there is one.
    pub fn get(&self, format: Format, id: &str) -> Option<&PackageRecord> {
        self.packages.get(&(format, id.to_owned()))
    }

    /// The package with this id and format, if there is one that a set may keep.
    pub fn keepable(&self, format: Format, id: &str) -> Option<&PackageRecord> {
        self.get(format, id).filter(|record| self.may_keep(record))
    }

    fn may_keep(&self, record: &PackageRecord) -> bool {
        let doubt = self.unproved.get(&(record.format, record.id.clone()));
        doubt.is_none_or(is_of_unsigned)
    }

    /// The findings about unproved receipts whose packages are among `kept`, or would be with a signature.
    pub fn doubts(&self, kept: &KeptRecord) -> impl Iterator<Item = Finding> {
        let told = self.unproved.iter().filter(|((format, id), doubt)| {
            let mut kept = kept.packages.iter();
            !is_of_unsigned(doubt) || kept.any(|it| it.format == *format && it.id == *id)
        });
        let told: BTreeSet<(String, ReceiptDoubt)> = told.map(|(_, doubt)| doubt.clone()).collect();
        told.into_iter()
            .map(|(release, doubt)| Finding::from(found::ReceiptUnproved { release, doubt }))
    }

    pub fn packages(&self) -> impl Iterator<Item = &PackageRecord> {
        self.packages.values()
    }

    pub fn all_code_objects(&self) -> impl Iterator<Item = &CodeObjectRecord> {
        self.code_objects.values().flatten()
    }

    /// The packages that `is_kept` selects, with their code objects, as a receipt records them.
    pub fn kept(&self, is_kept: impl Fn(&PackageRecord) -> bool) -> KeptRecord {
        let mut packages: Vec<PackageRecord> =
            self.packages.values().filter(|it| self.may_keep(it) && is_kept(it)).cloned().collect();
        packages.sort_by(|a, b| a.file_name.cmp(&b.file_name));
        let ids: BTreeSet<&str> = packages.iter().map(|record| record.id.as_str()).collect();
        let mut code_objects: Vec<CodeObjectRecord> =
            ids.into_iter().filter_map(|id| self.code_objects.get(id)).flatten().cloned().collect();
        code_objects.sort_by(|a, b| (&a.place, &a.target).cmp(&(&b.place, &b.target)));
        KeptRecord { packages, code_objects }
    }
}

fn is_of_unsigned((_, doubt): &(String, ReceiptDoubt)) -> bool {
    matches!(doubt, ReceiptDoubt::Unsigned)
}
