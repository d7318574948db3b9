//! Matches the wrappers of each build with those of the installed binary.
//!
//! The installed binary is the build of one shard, with the wrapper numbers of that build. All code objects of a
//! wrapper must be under one number: in the installed build the wrapper's own; in others, that of a wrapper of the
//! installed build that shares kernels with it. No row may have other code under a number.
//!
//! Many wrappers may share a bundle, and many bundles a code object: the numbers of each are looked up once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_core::tree::TreePath;

use crate::against::inputs::BinaryBuild;
use crate::problem::{Problem, Problems};
use crate::readers::Sha;
use crate::readers::archive::CodeObjectFacts;
use crate::readers::fat_binary::DeviceEntry;

/// Checks all builds of the binary at `path`, whose code objects are under `keys`. `installed` is the digest of the
/// machine code of the installed host binary.
pub(super) fn check_builds(
    path: &TreePath,
    keys: &WrapperKeys<'_>,
    installed: Option<Sha>,
    builds: &[BinaryBuild],
    problems: &mut Problems,
) {
    let mut numbered = Vec::new();
    for build in builds {
        let numbers = keys.common(&build.by_wrapper);
        for (index, found) in numbers.iter().enumerate() {
            if found.as_ref().is_some_and(|found| found.is_empty()) {
                let reason = "its code objects are under the keys of several wrappers".to_owned();
                problems.add(misplaced(path, build, index, reason));
            }
        }
        numbered.push((build, numbers));
    }
    check_rows(path, keys, &numbered, problems);
    // In the installed build, every wrapper can have its own index.
    let own = numbered.iter().find(|(build, numbers)| {
        let mut numbers = numbers.iter().enumerate();
        installed.is_none_or(|code| build.code == code)
            && numbers.all(|(at, found)| found.as_ref().is_none_or(|found| found.contains(&at)))
    });
    let Some((primary, _)) = own else {
        let place = path.to_string();
        let reason = "the archives have other code for its wrappers than any build".to_owned();
        problems.add(Problem::CodeObjectMisplaced { place, reason });
        return;
    };
    let all = by_bundle(&primary.by_wrapper, |_, entries| Arc::new(kernels(entries)));
    for (build, numbers) in &numbered {
        let strange = by_bundle(&build.by_wrapper, |index, entries| {
            let found = numbers.get(index).and_then(Option::as_ref);
            found.is_some_and(|found| shares_no_kernel(&kernels(entries), found, &all))
        });
        for (index, _) in strange.into_iter().enumerate().filter(|(_, strange)| *strange) {
            let shard = &primary.file.shard;
            let reason =
                format!("its code objects are under a wrapper of {shard} that has other kernels");
            problems.add(misplaced(path, build, index, reason));
        }
    }
}

/// Reports rows with code that no build has under the same number.
fn check_rows(
    path: &TreePath,
    keys: &WrapperKeys<'_>,
    numbered: &[(&BinaryBuild, Vec<Option<Numbers>>)],
    problems: &mut Problems,
) {
    let (mut seen, mut known) = (BTreeSet::new(), BTreeMap::<Sha, BTreeSet<usize>>::new());
    for (build, numbers) in numbered {
        for (entries, own) in build.by_wrapper.iter().zip(numbers) {
            let Some(own) = own else { continue };
            for entry in entries.iter().filter(|it| seen.insert((Arc::as_ptr(own), it.sha256))) {
                known.entry(entry.sha256).or_default().extend(own.iter());
            }
        }
    }
    for ((target, sha256), numbers) in &keys.0 {
        if known.get(*sha256).is_none_or(|known| !numbers.is_subset(known)) {
            let place = path.to_string();
            let reason = format!("a row for {target} has code that no build has for its wrapper");
            problems.add(Problem::CodeObjectMisplaced { place, reason });
        }
    }
}

fn misplaced(path: &TreePath, build: &BinaryBuild, wrapper: usize, reason: String) -> Problem {
    let place = format!("{path} of {}, wrapper {wrapper}", build.file.shard);
    Problem::CodeObjectMisplaced { place, reason }
}

/// Whether `own` shares no kernel with any of the `named` wrappers. `all` has the kernels of each wrapper; empty sets
/// match any.
fn shares_no_kernel(own: &BTreeSet<u64>, named: &Numbers, all: &[Arc<BTreeSet<u64>>]) -> bool {
    // Wrappers of one bundle share one set of kernels, which is compared once.
    let mut asked = BTreeSet::new();
    let agrees = named.iter().filter_map(|number| all.get(*number)).any(|theirs| {
        let disagrees = !own.is_empty() && !theirs.is_empty() && own.is_disjoint(theirs);
        asked.insert(Arc::as_ptr(theirs)) && !disagrees
    });
    !named.is_empty() && !agrees
}

fn kernels(entries: &[DeviceEntry]) -> BTreeSet<u64> {
    entries.iter().flat_map(|entry| entry.kernels.iter().copied()).collect()
}

/// Key → target → code object, from all archives.
pub(super) type InstalledRows<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a CodeObjectFacts>>;

type Numbers = Arc<BTreeSet<usize>>;

/// The wrapper numbers of a binary by target and digest of a code object.
pub(super) struct WrapperKeys<'a>(BTreeMap<(&'a str, &'a Sha), Numbers>);

impl<'a> WrapperKeys<'a> {
    pub(super) fn of(path: &TreePath, rows: &InstalledRows<'a>) -> Self {
        let prefix = format!("{path}#");
        let own = rows.range(prefix.as_str()..).take_while(|(key, _)| key.starts_with(&prefix));
        let mut keys: BTreeMap<_, BTreeSet<usize>> = BTreeMap::new();
        for (key, targets) in own {
            let Ok(number) = key[prefix.len()..].parse() else { continue };
            for (target, found) in targets {
                keys.entry((*target, &found.sha256)).or_default().insert(number);
            }
        }
        // Code objects of the same wrappers share one set.
        let mut sets: BTreeMap<BTreeSet<usize>, Numbers> = BTreeMap::new();
        let keys = keys.into_iter().map(|(entry, numbers)| {
            let shared = sets.entry(numbers).or_insert_with_key(|all| Arc::new(all.clone()));
            (entry, shared.clone())
        });
        Self(keys.collect())
    }

    /// The wrapper numbers of `entry`; `None` if it is not packed.
    pub(super) fn get<'k>(&'k self, entry: &'k DeviceEntry) -> Option<&'k Numbers> {
        self.0.get(&(entry.target.as_str(), &entry.sha256))
    }

    /// Whether a finding can explain that code of `build` for `target` is dropped: the binary has no code for the arch,
    /// or as many wrappers as in `build` have some and all code of one of the builds is packed.
    pub(super) fn can_be_dropped(
        &self,
        target: &str,
        build: &BinaryBuild,
        all: &[BinaryBuild],
    ) -> bool {
        let arch = target.split(':').next();
        let has_arch = |target: &str| target.split(':').next() == arch;
        let own = self.0.iter().filter(|((target, _), _)| has_arch(target));
        let there: BTreeSet<&usize> = own.flat_map(|(_, numbers)| numbers.iter()).collect();
        let wrappers = build.by_wrapper.iter();
        let wanted = wrappers.filter(|it| it.iter().any(|entry| has_arch(&entry.target))).count();
        let is_whole = |build: &BinaryBuild| {
            let own = build.entries().filter(|entry| has_arch(&entry.target));
            own.map(|entry| self.get(entry).is_some()).min() == Some(true)
        };
        there.is_empty() || there.len() >= wanted && all.iter().any(is_whole)
    }

    /// For each wrapper, the numbers that all its packed code objects share; `None` if none is packed.
    fn common(&self, wrappers: &[Arc<Vec<DeviceEntry>>]) -> Vec<Option<Numbers>> {
        by_bundle(wrappers, |_, entries| {
            let packed = entries.iter().filter_map(|entry| self.get(entry)).cloned();
            packed.reduce(|one, other| match Arc::ptr_eq(&one, &other) {
                true => one,
                false => Arc::new(one.intersection(&other).copied().collect()),
            })
        })
    }
}

/// Calls `of` once for each bundle, with the index of its first wrapper; the results are by wrapper.
fn by_bundle<T: Clone>(
    wrappers: &[Arc<Vec<DeviceEntry>>],
    mut of: impl FnMut(usize, &[DeviceEntry]) -> T,
) -> Vec<T> {
    let mut known = BTreeMap::new();
    let wrappers = wrappers.iter().enumerate();
    let said = wrappers.map(|(index, bundle)| {
        known.entry(Arc::as_ptr(bundle)).or_insert_with(|| of(index, bundle)).clone()
    });
    said.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::archive::CodeKind;

    fn entry(byte: u8) -> DeviceEntry {
        DeviceEntry {
            id: String::new(),
            target: "gfx90a".to_owned(),
            size: 1,
            sha256: [byte; 32],
            kernels: BTreeSet::new(),
        }
    }

    #[test]
    fn code_objects_stand_under_the_numbers_of_their_own_binary() {
        let facts =
            [0, 1].map(|byte| CodeObjectFacts { sha256: [byte; 32], code_kind: CodeKind::NotElf });
        let mut rows = InstalledRows::new();
        for (key, facts) in [
            ("lib/a#0", &facts[0]),
            ("lib/a#2", &facts[0]),
            ("lib/a#x", &facts[1]),
            ("lib/a.b#1", &facts[0]),
            ("lib/b#3", &facts[1]),
        ] {
            rows.entry(key).or_default().insert("gfx90a", facts);
        }
        let keys = WrapperKeys::of(&TreePath::new("lib/a").unwrap(), &rows);
        assert_eq!(**keys.get(&entry(0)).unwrap(), BTreeSet::from([0, 2]));
        assert_eq!(keys.get(&entry(1)), None);
        assert_eq!(keys.get(&DeviceEntry { target: "gfx1100".to_owned(), ..entry(0) }), None);
        let common =
            keys.common(&[vec![entry(1)], vec![entry(1), entry(0), entry(0)]].map(Arc::new));
        let [None, Some(common)] = common.as_slice() else { panic!("{common:?}") };
        assert!(Arc::ptr_eq(common, keys.get(&entry(0)).unwrap()));
    }

    /// Thousands of wrappers may share one bundle.
    #[test]
    fn a_bundle_is_asked_once_for_all_its_wrappers() {
        let (one, other) = (Arc::new(vec![entry(0)]), Arc::new(vec![entry(0), entry(1)]));
        let mut asked = Vec::new();
        let said = by_bundle(&[one.clone(), other.clone(), other, one], |index, entries| {
            asked.push(index);
            entries.len()
        });
        assert_eq!((said, asked), (vec![1, 2, 2, 1], vec![0, 1]));
    }
}
