//! Under which wrapper numbers of a binary its code objects stand in the archives.
//!
//! Many wrappers may share a bundle, and many bundles a code object: what is found for one of them is
//! found once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::against::Rows;
use super::digest::Sha;
use super::originals::DeviceEntry;
use crate::tree::TreePath;

/// Numbers of wrappers.
pub(super) type Numbers = Arc<BTreeSet<usize>>;

/// The numbers of a binary's wrappers, by the target and digest of what stands under them.
pub(super) struct Keys<'a>(BTreeMap<(&'a str, &'a Sha), Numbers>);

impl<'a> Keys<'a> {
    /// Those of the binary at `path`.
    pub(super) fn of(path: &TreePath, rows: &Rows<'a>) -> Self {
        let prefix = format!("{path}#");
        let own = rows.range(prefix.as_str()..).take_while(|(key, _)| key.starts_with(&prefix));
        let mut keys: BTreeMap<_, BTreeSet<usize>> = BTreeMap::new();
        for (key, targets) in own {
            let Ok(number) = key[prefix.len()..].parse() else { continue };
            for (target, found) in targets {
                keys.entry((*target, &found.sha256)).or_default().insert(number);
            }
        }
        Self(keys.into_iter().map(|(entry, numbers)| (entry, Arc::new(numbers))).collect())
    }

    /// Those under which `entry` stands, if it is packed.
    pub(super) fn get<'k>(&'k self, entry: &'k DeviceEntry) -> Option<&'k Numbers> {
        self.0.get(&(entry.target.as_str(), &entry.sha256))
    }

    /// Those under which all of `entries` stand that are packed; `None` if none is.
    pub(super) fn common(&self, entries: &[DeviceEntry]) -> Option<Numbers> {
        let packed = entries.iter().filter_map(|entry| self.get(entry)).cloned();
        packed.reduce(|one, other| match Arc::ptr_eq(&one, &other) {
            true => one,
            false => Arc::new(one.intersection(&other).copied().collect()),
        })
    }
}

/// What `of` says of the bundle of each wrapper, asked once for each bundle, with the index of the
/// first wrapper that has it.
pub(super) fn by_bundle<T: Clone>(
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
    use super::super::archive::{CodeObjectFacts, Nature};
    use super::*;

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
        let facts = [0, 1].map(|byte| CodeObjectFacts {
            size: 1,
            sha256: [byte; 32],
            nature: Nature::Neutral,
        });
        let mut rows = Rows::new();
        for (key, facts) in [
            ("lib/a#0", &facts[0]),
            ("lib/a#2", &facts[0]),
            ("lib/a#x", &facts[1]),
            ("lib/a.b#1", &facts[0]),
            ("lib/b#3", &facts[1]),
        ] {
            rows.entry(key).or_default().insert("gfx90a", facts);
        }
        let keys = Keys::of(&TreePath::new("lib/a").unwrap(), &rows);
        assert_eq!(**keys.get(&entry(0)).unwrap(), BTreeSet::from([0, 2]));
        assert_eq!(keys.get(&entry(1)), None);
        assert_eq!(keys.get(&DeviceEntry { target: "gfx1100".to_owned(), ..entry(0) }), None);
        assert_eq!(keys.common(&[entry(1)]), None);
        let common = keys.common(&[entry(1), entry(0), entry(0)]).unwrap();
        assert!(Arc::ptr_eq(&common, keys.get(&entry(0)).unwrap()));
    }

    /// As many wrappers as a file has room for may have one bundle.
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
