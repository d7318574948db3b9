//! The matching of wrappers between two builds of a binary.
//!
//! The order of wrappers follows the link order of one build and means nothing in another. A wrapper is
//! identified by the kernels that its code objects define, or by the symbol `__hip_fatbin_<id>` that some
//! compilers give its bundle. Matching uses the surest evidence first, and never falls back to the position:
//!
//! 1. a symbol that occurs once in each build;
//! 2. the same set of kernels, if it occurs once in each build;
//! 3. the same set of kernels, as often in one build as in the other, if all its wrappers within each build
//!    load the same code for every target: they are interchangeable, so any assignment is right (librocblas
//!    has 17 such wrappers among 65);
//! 4. sets that share kernels, if neither has another candidate: matched, and reported;
//! 5. the last wrapper left in each build, if neither has kernels.
//!
//! Wrappers without code objects are ignored. All others of both builds must match.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::Result;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WrapperIdentity {
    pub symbol: Option<String>,
    pub kernels: BTreeSet<String>,
    pub has_code: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Matching {
    /// The matched pairs: index in the other build → index in the primary build.
    pub pairs: BTreeMap<usize, usize>,
    /// The pairs whose kernels differ.
    pub overlaps: Vec<(usize, usize)>,
    /// Wrappers of the primary build that match none of the other, or several.
    pub primary_left: Vec<usize>,
    /// Wrappers of the other build that match none of the primary, or several.
    pub other_left: Vec<usize>,
}

/// Whether the wrappers of a build at these indices load the same code for the same targets. Called only if names do
/// not decide, because it reads whole code objects.
pub(super) type Interchangeable<'a> = &'a dyn Fn(&[usize]) -> Result<bool>;

/// Matches the wrappers of another build of a binary to those of the primary one. `interchangeable` has the check for
/// the primary build, then for the other one.
pub(super) fn match_wrappers(
    primary: &[WrapperIdentity],
    other: &[WrapperIdentity],
    interchangeable: [Interchangeable<'_>; 2],
) -> Result<Matching> {
    let mut matcher = WrapperMatcher {
        primary,
        other,
        matching: Matching {
            primary_left: with_code(primary),
            other_left: with_code(other),
            ..Matching::default()
        },
    };
    matcher.pair_by_key(|identity| identity.symbol.as_deref());
    matcher.pair_by_key(|identity| Some(&identity.kernels).filter(|set| !set.is_empty()));
    matcher.pair_by_code(interchangeable)?;
    matcher.pair_by_overlap();
    matcher.pair_last();
    Ok(matcher.matching)
}

fn with_code(wrappers: &[WrapperIdentity]) -> Vec<usize> {
    let indices = 0..wrappers.len();
    indices.filter(|&index| wrappers[index].has_code).collect()
}

struct WrapperMatcher<'a> {
    primary: &'a [WrapperIdentity],
    other: &'a [WrapperIdentity],
    matching: Matching,
}

impl<'a> WrapperMatcher<'a> {
    fn pair(&mut self, other: usize, primary: usize) {
        self.matching.pairs.insert(other, primary);
        self.matching.primary_left.retain(|left| *left != primary);
        self.matching.other_left.retain(|left| *left != other);
        let (ours, theirs) = (&self.primary[primary].kernels, &self.other[other].kernels);
        if ours != theirs {
            self.matching.overlaps.push((other, primary));
        }
    }

    /// Pairs wrappers whose key occurs once on either side.
    fn pair_by_key<K: Ord>(&mut self, key: impl Fn(&'a WrapperIdentity) -> Option<K>) {
        let primary = grouped(&self.matching.primary_left, self.primary, &key);
        let other = grouped(&self.matching.other_left, self.other, &key);
        for (key, others) in &other {
            if let ([other], Some([primary])) =
                (others.as_slice(), primary.get(key).map(Vec::as_slice))
                && agree(&self.primary[*primary], &self.other[*other])
            {
                self.pair(*other, *primary);
            }
        }
    }

    /// Pairs wrappers within sets of interchangeable ones.
    fn pair_by_code(&mut self, [of_primary, of_other]: [Interchangeable<'_>; 2]) -> Result<()> {
        let left = &self.matching;
        let primary = grouped(&left.primary_left, self.primary, |identity| Some(&identity.kernels));
        let other = grouped(&left.other_left, self.other, |identity| Some(&identity.kernels));
        for (kernels, others) in &other {
            let Some(primaries) = primary.get(kernels) else { continue };
            if others.len() == primaries.len()
                && others.len() > 1
                && of_primary(primaries)?
                && of_other(others)?
            {
                for (other, primary) in others.iter().zip(primaries) {
                    self.pair(*other, *primary);
                }
            }
        }
        Ok(())
    }

    fn pair_by_overlap(&mut self) {
        let all = self.matching.other_left.iter().flat_map(|&other| {
            let primary = self.matching.primary_left.iter();
            primary.map(move |&primary| (other, primary))
        });
        let sharing = all.filter(|&(other, primary)| {
            let theirs = &self.other[other].kernels;
            !self.primary[primary].kernels.is_disjoint(theirs)
        });
        let candidates: Vec<(usize, usize)> = sharing.collect();
        let only = candidates.iter().filter(|&&(other, primary)| {
            let others = candidates.iter().filter(|(o, _)| *o == other).count();
            let primaries = candidates.iter().filter(|(_, p)| *p == primary).count();
            others == 1 && primaries == 1
        });
        let pairs: Vec<(usize, usize)> = only.copied().collect();
        for (other, primary) in pairs {
            self.pair(other, primary);
        }
    }

    /// Pairs the last wrapper on either side if neither has kernels: such units have no names to match.
    fn pair_last(&mut self) {
        let left = (&self.matching.other_left[..], &self.matching.primary_left[..]);
        if let (&[other], &[primary]) = left
            && self.other[other].kernels.is_empty()
            && self.primary[primary].kernels.is_empty()
        {
            self.pair(other, primary);
        }
    }
}

fn grouped<'a, K: Ord>(
    left: &[usize],
    wrappers: &'a [WrapperIdentity],
    key: impl Fn(&'a WrapperIdentity) -> Option<K>,
) -> BTreeMap<K, Vec<usize>> {
    let mut found: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for &index in left {
        if let Some(key) = key(&wrappers[index]) {
            found.entry(key).or_default().push(index);
        }
    }
    found
}

/// Whether a match by symbol is plausible: not if both have kernels and share none.
fn agree(primary: &WrapperIdentity, other: &WrapperIdentity) -> bool {
    let either_empty = primary.kernels.is_empty() || other.kernels.is_empty();
    either_empty || !primary.kernels.is_disjoint(&other.kernels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Matches wrappers that all load different code.
    fn match_wrappers(primary: &[WrapperIdentity], other: &[WrapperIdentity]) -> Matching {
        super::match_wrappers(primary, other, [&|_| Ok(false); 2]).unwrap()
    }

    fn unit(kernels: &[&str]) -> WrapperIdentity {
        WrapperIdentity {
            symbol: None,
            kernels: kernels.iter().map(|k| (*k).to_owned()).collect(),
            has_code: true,
        }
    }

    fn with_symbol(symbol: &str, identity: WrapperIdentity) -> WrapperIdentity {
        WrapperIdentity { symbol: Some(symbol.to_owned()), ..identity }
    }

    fn identities(sets: Vec<BTreeSet<String>>) -> Vec<WrapperIdentity> {
        sets.into_iter()
            .map(|kernels| WrapperIdentity { symbol: None, kernels, has_code: true })
            .collect()
    }

    fn pairs(matching: &Matching) -> Vec<(usize, usize)> {
        matching.pairs.iter().map(|(a, b)| (*a, *b)).collect()
    }

    #[test]
    fn equal_sets_match_in_any_order() {
        let primary = [unit(&["a"]), unit(&["b", "c"]), unit(&["d"])];
        let other = [unit(&["d"]), unit(&["a"]), unit(&["b", "c"])];
        let matching = match_wrappers(&primary, &other);
        assert_eq!(pairs(&matching), [(0, 2), (1, 0), (2, 1)]);
        assert!(matching.overlaps.is_empty() && matching.other_left.is_empty());
    }

    #[test]
    fn one_shared_kernel_is_an_overlap() {
        let primary = [unit(&["a", "b"]), unit(&["x"])];
        let other = [unit(&["x"]), unit(&["b", "c"])];
        let matching = match_wrappers(&primary, &other);
        assert_eq!(pairs(&matching), [(0, 1), (1, 0)]);
        assert_eq!(matching.overlaps, [(1, 0)]);
    }

    #[test]
    fn an_overlap_with_two_candidates_is_left() {
        let primary = [unit(&["a", "b"]), unit(&["b", "d"])];
        let other = [unit(&["b"])];
        let matching = match_wrappers(&primary, &other);
        assert!(matching.pairs.is_empty());
        assert_eq!((matching.primary_left, matching.other_left), (vec![0, 1], vec![0]));
    }

    #[test]
    fn equal_sets_that_occur_twice_are_ambiguous() {
        let both = [unit(&["a"]), unit(&["a"])];
        let matching = match_wrappers(&both, &both);
        assert!(matching.pairs.is_empty());
        assert_eq!(matching.other_left, [0, 1]);
    }

    #[test]
    fn equal_sets_with_the_same_code_are_interchangeable() {
        let primary = [unit(&["a"]), unit(&["b"]), unit(&["a"])];
        let other = [unit(&["a"]), unit(&["a"]), unit(&["b"])];
        for (of_primary, of_other, expected) in [
            (true, true, vec![(0, 0), (1, 2), (2, 1)]),
            (true, false, vec![(2, 1)]),
            (false, true, vec![(2, 1)]),
        ] {
            let same: [Interchangeable<'_>; 2] = [&|_| Ok(of_primary), &|_| Ok(of_other)];
            let found = super::match_wrappers(&primary, &other, same);
            assert_eq!(pairs(&found.unwrap()), expected);
        }
        let fewer = super::match_wrappers(&primary, &other[1..], [&|_| Ok(true); 2]).unwrap();
        assert_eq!((pairs(&fewer), fewer.primary_left), (vec![(1, 1)], vec![0, 2]));
    }

    #[test]
    fn symbols_tell_apart_what_kernels_do_not() {
        let primary = [with_symbol("f_1", unit(&["a"])), with_symbol("f_2", unit(&["a"]))];
        let other = [with_symbol("f_2", unit(&["a"])), with_symbol("f_1", unit(&["a"]))];
        assert_eq!(pairs(&match_wrappers(&primary, &other)), [(0, 1), (1, 0)]);
    }

    #[test]
    fn a_symbol_does_not_join_kernels_that_have_nothing_in_common() {
        let primary = [with_symbol("f_1", unit(&["a"]))];
        let other = [with_symbol("f_1", unit(&["z"]))];
        assert_eq!(match_wrappers(&primary, &other).other_left, [0]);
    }

    #[test]
    fn wrappers_without_code_are_left_alone() {
        let primary = [WrapperIdentity::default(), unit(&["a"])];
        let other = [unit(&["a"]), WrapperIdentity::default()];
        let matching = match_wrappers(&primary, &other);
        assert_eq!(pairs(&matching), [(0, 1)]);
        assert!(matching.primary_left.is_empty());
    }

    #[test]
    fn one_unit_without_kernels_matches_the_other() {
        let primary = [unit(&[]), unit(&["a"])];
        let other = [unit(&["a"]), unit(&[])];
        assert_eq!(pairs(&match_wrappers(&primary, &other)), [(0, 1), (1, 0)]);
        let two = [unit(&[]), unit(&[])];
        assert_eq!(match_wrappers(&two, &two).other_left, [0, 1]);
    }

    proptest! {
        /// For every order of a build, each wrapper finds itself.
        #[test]
        fn any_permutation_is_undone(order in Just((0..9_usize).collect::<Vec<_>>()).prop_shuffle()) {
            let primary: Vec<WrapperIdentity> =
                (0..9).map(|index| unit(&[&format!("kernel_{index}"), "shared"])).collect();
            let other: Vec<WrapperIdentity> = order.iter().map(|&index| primary[index].clone()).collect();
            let matching = match_wrappers(&primary, &other);
            for (there, here) in order.iter().enumerate() {
                prop_assert_eq!(matching.pairs.get(&there), Some(here));
            }
        }

        /// No wrapper is matched twice, and none is lost.
        #[test]
        fn every_wrapper_is_paired_or_left(
            primary in proptest::collection::vec(proptest::collection::btree_set("[a-d]", 0..3), 0..6),
            other in proptest::collection::vec(proptest::collection::btree_set("[a-d]", 0..3), 0..6),
        ) {
            let (primary, other) = (identities(primary), identities(other));
            let matching = match_wrappers(&primary, &other);
            let taken: BTreeSet<usize> = matching.pairs.values().copied().collect();
            prop_assert_eq!(taken.len(), matching.pairs.len());
            prop_assert_eq!(taken.len() + matching.primary_left.len(), primary.len());
            prop_assert_eq!(matching.pairs.len() + matching.other_left.len(), other.len());
        }
    }
}
