//! The match between the wrappers of a build and those of the installed binary.
//!
//! The installed binary is one shard's build with that build's numbers. All code objects of a
//! wrapper must have one number. In the build that is installed, it is the wrapper's own;
//! in others, that of a wrapper of the installed build that has kernels in common with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use rockpack_base::tree::TreePath;

use super::split_inputs::BinaryBuild;
use super::wrapper_keys::{Numbers, WrapperKeys, by_bundle};
use crate::verify::own::digest::Sha;
use crate::verify::own::originals::DeviceEntry;
use crate::verify::problem::{Misplacement, Problem, Problems};

/// A binary and where its code objects stand.
pub(in crate::verify) struct Wrappers<'a> {
    pub(in crate::verify) path: &'a TreePath,
    pub(in crate::verify) keys: &'a WrapperKeys<'a>,
    /// Machine code of the host binary that is installed.
    pub(in crate::verify) installed: Option<Sha>,
}

/// Checks all builds of one binary.
pub(in crate::verify) fn check_builds(
    binary: &Wrappers<'_>,
    builds: &[BinaryBuild],
    problems: &mut Problems,
) {
    let mut numbered = Vec::new();
    for build in builds {
        let numbers = binary.keys.common(&build.device.by_wrapper);
        for (index, found) in numbers.iter().enumerate() {
            if found.as_ref().is_some_and(|found| found.is_empty()) {
                let (path, shard) = (binary.path.clone(), build.shard.clone());
                let misplacement = Misplacement::Scattered { path, shard, wrapper: index };
                problems.add(Problem::CodeObjectMisplaced { misplacement });
            }
        }
        numbered.push((build, numbers));
    }
    let own = numbered.iter().find(|(build, numbers)| {
        binary.installed.is_none_or(|code| build.code == code) && is_own(numbers)
    });
    let Some((primary, _)) = own else {
        let misplacement = Misplacement::NoOwnBuild { path: binary.path.clone() };
        problems.add(Problem::CodeObjectMisplaced { misplacement });
        return;
    };
    for (build, numbers) in &numbered {
        for index in strangers(build, numbers, primary) {
            let misplacement = Misplacement::OtherKernels {
                path: binary.path.clone(),
                shard: build.shard.clone(),
                wrapper: index,
                primary: primary.shard.clone(),
            };
            problems.add(Problem::CodeObjectMisplaced { misplacement });
        }
    }
}

/// Whether every wrapper may stand under its own index.
fn is_own(numbers: &[Option<Numbers>]) -> bool {
    let mut numbers = numbers.iter().enumerate();
    numbers.all(|(index, found)| found.as_ref().is_none_or(|found| found.contains(&index)))
}

/// The wrappers of `build` that stand under no wrapper of `primary` with the same kernels.
fn strangers(
    build: &BinaryBuild,
    numbers: &[Option<Numbers>],
    primary: &BinaryBuild,
) -> Vec<usize> {
    let all = by_bundle(&primary.device.by_wrapper, |_, entries| Arc::new(kernels(entries)));
    let strange = by_bundle(&build.device.by_wrapper, |index, entries| {
        let found = numbers.get(index).and_then(Option::as_ref);
        found.is_some_and(|found| is_stranger(&kernels(entries), found, &all))
    });
    let numbered = strange.into_iter().enumerate();
    numbered.filter_map(|(index, strange)| strange.then_some(index)).collect()
}

/// Tells whether every named wrapper has kernels, and none of `own`. `all` has the kernels of each wrapper; an empty
/// `own` agrees with any.
fn is_stranger(own: &BTreeSet<u64>, named: &Numbers, all: &[Arc<BTreeSet<u64>>]) -> bool {
    // Wrappers of one bundle have one set of kernels.
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
