//! The wrapper numbers under which the archives have the code objects of a binary.
//!
//! Many wrappers may share a bundle, and many bundles a code object: the numbers of each are looked
//! up once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_base::tree::TreePath;

use crate::verify::own::archive::CodeObjectFacts;
use crate::verify::own::digest::Sha;
use crate::verify::own::originals::DeviceEntry;

/// Key → target → code object, over all archives.
pub(in crate::verify) type InstalledRows<'a> =
    BTreeMap<&'a str, BTreeMap<&'a str, &'a CodeObjectFacts>>;

/// Numbers of wrappers.
pub(in crate::verify) type Numbers = Arc<BTreeSet<usize>>;

/// The numbers of a binary's wrappers, by the target and digest of what stands under them.
pub(in crate::verify) struct WrapperKeys<'a>(BTreeMap<(&'a str, &'a Sha), Numbers>);

impl<'a> WrapperKeys<'a> {
    /// The numbers of the binary at `path`.
    pub(in crate::verify) fn of(path: &TreePath, rows: &InstalledRows<'a>) -> Self {
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

    /// The numbers of `entry`; `None` if it is not packed.
    pub(in crate::verify) fn get<'k>(&'k self, entry: &'k DeviceEntry) -> Option<&'k Numbers> {
        self.0.get(&(entry.target.as_str(), &entry.sha256))
    }

    /// For each wrapper, those under which all of its code objects stand that are packed; `None` if
    /// none is.
    pub(in crate::verify) fn common(
        &self,
        wrappers: &[Arc<Vec<DeviceEntry>>],
    ) -> Vec<Option<Numbers>> {
        by_bundle(wrappers, |_, entries| {
            let packed = entries.iter().filter_map(|entry| self.get(entry)).cloned();
            packed.reduce(|one, other| match Arc::ptr_eq(&one, &other) {
                true => one,
                false => Arc::new(one.intersection(&other).copied().collect()),
            })
        })
    }
}

/// Calls `of` once for each bundle, with the index of its first wrapper, and returns the results by
/// wrapper.
pub(in crate::verify) fn by_bundle<T: Clone>(
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
    use crate::verify::own::archive::{CodeObjectFacts, Nature};

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
            [0, 1].map(|byte| CodeObjectFacts { sha256: [byte; 32], nature: Nature::Neutral });
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

    /// A file full of wrappers may have one bundle for all of them.
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
