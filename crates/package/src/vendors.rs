//! Changes of the vendor between two versions of an `.rpm`.
//!
//! libzypp updates a package only to one of the same vendor, unless it is told otherwise; it compares vendors
//! without regard to upper and lower case, and takes a package without a vendor for one of another vendor.
//! dnf and apt know no such rule.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_report::Finding;

/// Names of packages by the former and the new vendor. An empty text stands for no vendor.
#[derive(Debug, Default)]
pub struct VendorChanges(BTreeMap<[String; 2], BTreeSet<String>>);

impl VendorChanges {
    /// Adds the package `name` if its vendor changes.
    pub fn add(&mut self, name: &str, from: &str, to: &str) {
        if !from.eq_ignore_ascii_case(to) {
            let vendors = [from, to].map(str::to_owned);
            self.0.entry(vendors).or_default().insert(name.to_owned());
        }
    }

    /// One finding for each pair of vendors.
    pub fn into_findings(self) -> impl Iterator<Item = Finding> {
        self.0.into_iter().map(|([from, to], names)| {
            let packages = names.into_iter().collect();
            Finding::VendorChanged { from, to, packages }
        })
    }
}
