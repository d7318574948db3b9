//! A file that links to libraries, and where each of them was found.

use std::collections::BTreeSet;

use super::Needs;
use crate::tree::TreePath;

/// A file of the set that says something of its needs.
pub(in crate::plan) struct LinkedFile<'a> {
    pub portion: usize,
    pub path: &'a TreePath,
    pub needs: Needs,
    /// Whether it is in the host package, and not in a kernel package.
    pub in_host: bool,
}

/// Where a needed library was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plan) enum LibraryPlace {
    /// In these portions of the set: that of the library, and those of links to it.
    InSet { portions: BTreeSet<usize>, is_private: bool },
    /// In the distribution or the configuration; where there is no distribution to ask, not in
    /// the set.
    Outside,
    /// Nowhere.
    Nowhere,
}
