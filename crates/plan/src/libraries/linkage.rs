//! The needs of portions, from each other and from outside.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::tree::TreePath;

use super::discovered::Discovered;
use super::symbols::SetSymbols;
use rockpack_package::dependencies::script::FirstLine;

/// The needs of a set's portions, as their host files state them, by index of the portion.
#[derive(Debug, Default)]
pub(crate) struct Linkage {
    /// Portion → portions whose libraries it links to, without itself.
    pub needs: BTreeMap<usize, BTreeSet<usize>>,
    /// Portions with files for one processor.
    pub native: BTreeSet<usize>,
    /// Paths of files whose search paths are written anew.
    pub rewritten: BTreeSet<TreePath>,
    /// Paths of scripts that get another first line, with that line.
    pub first_lines: BTreeMap<TreePath, FirstLine>,
    /// Portion → its needs from outside, and its offers.
    pub discovered: BTreeMap<usize, Discovered>,
    /// The libraries and symbols that packages of this set and of earlier ones import.
    pub symbols: SetSymbols,
}

impl Linkage {
    /// The nearest portions that `index` needs, directly or through others, and for which `wanted` holds.
    /// Portions behind these are left to their own dependencies.
    pub fn nearest(&self, index: usize, wanted: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::from([index]);
        let mut open = vec![index];
        while let Some(at) = open.pop() {
            for &next in self.needs.get(&at).into_iter().flatten() {
                if !seen.insert(next) {
                    continue;
                }
                if wanted(next) {
                    found.insert(next);
                } else {
                    open.push(next);
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_behind_hosts_without_any() {
        let needs = [(0, vec![1, 4]), (1, vec![2, 0]), (2, vec![3]), (4, vec![])]
            .map(|(from, to)| (from, to.into_iter().collect()))
            .into();
        let linkage = Linkage { needs, ..Linkage::default() };
        assert_eq!(linkage.nearest(0, |at| at == 2 || at == 3), BTreeSet::from([2]));
        assert_eq!(linkage.nearest(0, |_| true), BTreeSet::from([1, 4]));
        assert!(linkage.nearest(4, |_| true).is_empty());
    }
}
