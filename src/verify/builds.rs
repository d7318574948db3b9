//! Which wrapper of a build is which wrapper of the installed binary.
//!
//! The installed binary is one shard's build with that build's numbers. All code objects of a
//! wrapper must stand under one number; in the build that is installed, under the wrapper's own;
//! in others, under that of a wrapper of the installed build that has kernels in common with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::against::{Wrappers, keys_of};
use super::inputs::Build;
use super::originals::DeviceEntry;
use super::problem::{Check, Problems};

/// Where the wrappers of a build stand: by its own index, all numbers that would do, or `None`
/// where no code object of it is packed.
type Numbers = Vec<Option<BTreeSet<usize>>>;

/// Checks all builds of one binary.
pub(super) fn check_builds(binary: &Wrappers<'_>, builds: &[Build], problems: &mut Problems) {
    let mut numbered = Vec::new();
    for build in builds {
        let numbers = numbers(binary, build);
        for (index, found) in numbers.iter().enumerate() {
            if found.as_ref().is_some_and(BTreeSet::is_empty) {
                let message = "its code objects are scattered over several wrappers' keys";
                problems.add(Check::CodeObjectMisplaced, subject(binary, build, index), message);
            }
        }
        numbered.push((build, numbers));
    }
    let installed = binary.comparison.installed_code(binary.path).map(|(code, _)| code);
    let of_installed = |build: &Build| installed.is_none_or(|code| build.code == code);
    let own = numbered.iter().find(|(build, numbers)| of_installed(build) && is_own(numbers));
    let Some((primary, _)) = own else {
        let message = "no build's code objects stand under the numbers of its own wrappers";
        problems.add(Check::CodeObjectMisplaced, binary.path.to_string(), message);
        return;
    };
    for (build, numbers) in &numbered {
        for index in strangers(build, numbers, primary) {
            let message = format!(
                "its code objects stand under a wrapper of {} that has other kernels",
                primary.shard
            );
            problems.add(Check::CodeObjectMisplaced, subject(binary, build, index), message);
        }
    }
}

fn subject(binary: &Wrappers<'_>, build: &Build, index: usize) -> String {
    format!("{} of {}, wrapper {index}", binary.path, build.shard)
}

fn numbers(binary: &Wrappers<'_>, build: &Build) -> Numbers {
    let number = |entries: &Arc<Vec<DeviceEntry>>| {
        let packed = entries.iter().map(|entry| keys_of(binary.path, entry, binary.rows));
        let packed = packed.filter(|keys| !keys.is_empty());
        packed.reduce(|one, other| one.intersection(&other).copied().collect())
    };
    build.device.by_wrapper.iter().map(number).collect()
}

/// Whether every wrapper may stand under its own index.
fn is_own(numbers: &Numbers) -> bool {
    let mut numbers = numbers.iter().enumerate();
    numbers.all(|(index, found)| found.as_ref().is_none_or(|found| found.contains(&index)))
}

/// The wrappers of `build` that stand under no wrapper of `primary` with the same kernels.
fn strangers(build: &Build, numbers: &Numbers, primary: &Build) -> Vec<usize> {
    let wrappers = build.device.by_wrapper.iter().zip(numbers).enumerate();
    let stranger = |entries: &[DeviceEntry], found: &BTreeSet<usize>| {
        let own = kernels(entries);
        let agrees = |number: &usize| {
            let theirs = primary.device.by_wrapper.get(*number).map(|entries| kernels(entries));
            theirs.is_some_and(|theirs| {
                own.is_empty() || theirs.is_empty() || !own.is_disjoint(&theirs)
            })
        };
        !found.is_empty() && !found.iter().any(agrees)
    };
    let found =
        wrappers.filter_map(|(index, (entries, found))| Some((index, entries, found.as_ref()?)));
    found.filter(|(_, entries, found)| stranger(entries, found)).map(|(index, ..)| index).collect()
}

fn kernels(entries: &[DeviceEntry]) -> BTreeSet<u64> {
    entries.iter().flat_map(|entry| entry.kernels.iter().copied()).collect()
}
