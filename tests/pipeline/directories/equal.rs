//! Packages are the same whether their artifacts were split, recombined or neither.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use support::example::{GROUPS, shards, tree};

use crate::directories::{Work, assert_same_packages};

#[test]
fn packages_of_split_artifacts_are_those_of_fat_ones() {
    let work = Work::new();
    let direct = work.direct("direct");
    let split = work.split_shards();
    assert_same_packages(&direct, &work.build(&split, "from-split"), |_| true);
    let recombined = work.recombine(&split, "recombined");
    assert_same_packages(&direct, &work.build(&recombined, "from-recombined"), |_| true);
}

#[test]
fn recombining_fat_shards_gives_what_recombining_split_ones_gives() {
    let work = Work::new();
    let from_split = work.recombine(&work.split_shards(), "from-split");
    let from_fat = work.recombine(&shards(), "from-fat");
    assert!(tree(&from_split) == tree(&from_fat));
}

#[test]
fn splitting_what_is_split_changes_nothing() {
    let work = Work::new();
    let once = work.split_shards();
    let twice = work.split(&once, "twice");
    let (once, twice) = (tree(&once), tree(&twice));
    assert!(once.keys().eq(twice.keys()));
    for (path, entry) in &once {
        assert!(*entry == twice[path], "{path} differs");
    }
    assert!(once.keys().any(|path| path.ends_with(".kpack")));
}

/// Links shards into `folder`: split ones where `is_split` says so, fat ones otherwise.
fn mixed(folder: &Path, split: &Path, is_split: impl Fn(usize) -> bool) {
    fs::create_dir(folder).unwrap();
    for (index, group) in GROUPS.iter().enumerate() {
        let from = if is_split(index) { split.to_path_buf() } else { shards() };
        symlink(group.folder(&from), group.folder(folder)).unwrap();
    }
}

#[test]
fn split_and_fat_shards_are_joined() {
    let work = Work::new();
    let direct = work.direct("direct");
    let split = work.split_shards();
    let (primary, others) = (work.path("primary"), work.path("others"));
    mixed(&primary, &split, |index| index == 0);
    mixed(&others, &split, |index| index != 0);
    assert_same_packages(&direct, &work.build(&primary, "primary-split"), |_| true);
    assert_same_packages(&direct, &work.build(&others, "others-split"), |_| true);
}

#[test]
fn artifacts_have_host_code_or_device_code_and_never_nothing() {
    let work = Work::new();
    let split = work.split_shards();
    let recombined = work.recombine(&split, "recombined");
    for folder in [GROUPS[0].folder(&split), recombined] {
        let tree = tree(&folder);
        for path in tree.keys().filter(|path| path.contains(".so")) {
            let device = path.ends_with(".hsaco");
            assert_eq!(artifact_of(path).ends_with("_generic"), !device, "{path}");
        }
        for path in
            tree.keys().filter(|path| path.ends_with(".kpack") && !path.ends_with("/.kpack"))
        {
            assert!(!artifact_of(path).ends_with("_generic"), "{path}");
        }
        let names: Vec<String> = support::example::names(&folder).into_iter().collect();
        assert!(names.contains(&"host-suite-sparse_lib_generic".to_owned()), "{names:?}");
        let other = |name: &&String| name.starts_with("host-") && !name.ends_with("_generic");
        assert_eq!(names.iter().filter(other).count(), 0, "{names:?}");
    }
}

fn artifact_of(path: &str) -> &str {
    path.split('/').next().unwrap()
}
