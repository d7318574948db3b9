//! Folders that become links or files in an update, and the reverse.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::{PREFIX, names, rockpack};
use support::tools;

use crate::install::rpm;
use crate::install::scenarios::{SPARSE, fails};
use crate::install::sets::Planted::{self, File, Link, SparseFile, SparseLink};
use crate::install::sets::Recipe;
use crate::install::system::{System, assert_same};

/// A single package has everything. The link's target has a file with the same name as one in the folder.
const BEFORE: &[Planted] = &[
    File("share/it's one/a.txt", "old"),
    File("share/it's one/sub/b.txt", "old"),
    File("share/other/a.txt", "old"),
    Link("share/link", "other"),
    File("share/folder/in/it", "old"),
    File("share/file", "old"),
];
const AFTER: &[Planted] = &[
    Link("share/it's one", "other"),
    File("share/other/a.txt", "new"),
    File("share/link/c.txt", "new"),
    File("share/folder", "new"),
    File("share/file/in/it", "new"),
];

/// Two packages have files in the folder, and both names also exist below the link's target.
const SHARED_BEFORE: &[Planted] = &[
    File("share/both/a.txt", "old"),
    SparseFile("share/both/b.txt", "old"),
    SparseFile("share/both/sub/b.txt", "old"),
];
const SHARED_AFTER: &[Planted] = &[
    Link("share/both", "other"),
    File("share/other/b.txt", "new"),
    SparseFile("share/other/a.txt", "new"),
    SparseFile("share/other/sub/b.txt", "new"),
];

/// One package's link becomes another package's folder.
const OTHERS_BEFORE: &[Planted] =
    &[SparseLink("share/link", "other"), SparseFile("share/other/a.txt", "old")];
const OTHERS_AFTER: &[Planted] =
    &[File("share/link/a.txt", "new"), SparseFile("share/other/a.txt", "new")];

fn recipe(version: &'static str, planted: &'static [Planted]) -> Recipe {
    Recipe::new(version).planted(planted)
}

fn share(system: &dyn System, path: &str) -> PathBuf {
    system.root().join(PREFIX).join("share").join(path)
}

fn text(system: &dyn System, path: &str) -> String {
    fs::read_to_string(share(system, path)).unwrap()
}

fn target(system: &dyn System, path: &str) -> PathBuf {
    fs::read_link(share(system, path)).unwrap()
}

fn listed(system: &dyn System, path: &str) -> Vec<String> {
    names(&share(system, path)).into_iter().collect()
}

/// Installs the packages of the first set, updates to the second one, lets `check` look at the result, and
/// updates to a third one without changes; then removes everything.
fn update(
    system: &dyn System,
    packages: &[&str],
    [before, after]: [&'static [Planted]; 2],
    check: fn(&dyn System),
) {
    let old = recipe("7.1.0", before).build();
    let new = recipe("7.1.1", after).option("--since", &old.receipt()).build();
    let next = recipe("7.1.2", after)
        .option("--since", &old.receipt())
        .option("--since", &new.receipt())
        .build();
    let root = system.snapshot();
    for later in [&[&new, &next][..], &[&next]] {
        system.offer(&[&old.out()]);
        tools::run(&mut system.install(packages));
        for set in later {
            system.offer(&[&set.out()]);
            tools::run(&mut system.update());
            check(system);
            system.assert_whole();
        }
        system.purge_all();
        assert_same(&root, &system.snapshot());
    }
}

pub fn folders_and_links_change_places(system: &dyn System) {
    update(system, &["rocm-blas"], [BEFORE, AFTER], |system| {
        assert_eq!(target(system, "it's one"), Path::new("other"));
        assert_eq!(listed(system, "other"), ["a.txt"]);
        assert_eq!(text(system, "other/a.txt"), "new");
        assert!(share(system, "link").symlink_metadata().unwrap().is_dir());
        assert_eq!(listed(system, "link"), ["c.txt"]);
        assert_eq!(
            (text(system, "folder"), text(system, "file/in/it")),
            ("new".into(), "new".into())
        );
        assert_eq!(listed(system, ""), ["file", "folder", "it's one", "link", "other"]);
    });
}

pub fn a_link_takes_the_place_of_a_folder_that_packages_share(system: &dyn System) {
    update(system, &["rocm-blas", SPARSE], [SHARED_BEFORE, SHARED_AFTER], |system| {
        assert_eq!(target(system, "both"), Path::new("other"));
        assert_eq!(listed(system, ""), ["both", "other"]);
        for name in ["a.txt", "b.txt", "sub/b.txt"] {
            assert_eq!(text(system, &format!("both/{name}")), "new");
        }
    });
}

pub fn a_folder_takes_the_place_of_a_link_of_another_package(system: &dyn System) {
    update(system, &["rocm-blas", SPARSE], [OTHERS_BEFORE, OTHERS_AFTER], |system| {
        assert!(share(system, "link").symlink_metadata().unwrap().is_dir());
        assert_eq!(listed(system, ""), ["link", "other"]);
        assert_eq!(
            (text(system, "link/a.txt"), text(system, "other/a.txt")),
            ("new".into(), "new".into())
        );
    });
}

/// dpkg's helper stops the update before it changes anything. If packages share the folder, and in rpm, files
/// that belong to no package are moved beside the link.
pub fn files_of_nobody_in_a_folder_that_becomes_a_link_are_kept(system: &dyn System) {
    let is_deb = system.format() == "deb";
    for ([before, after], folder, kept) in [
        ([BEFORE, AFTER], "it's one", (!is_deb).then_some("it's one.rpmmoved")),
        (
            [SHARED_BEFORE, SHARED_AFTER],
            "both",
            Some(if is_deb { "both.dpkg-old" } else { "both.rpmmoved" }),
        ),
    ] {
        let old = recipe("7.1.0", before).build();
        let new = recipe("7.1.1", after).option("--since", &old.receipt()).build();
        system.offer(&[&old.out()]);
        tools::run(&mut system.install(&["rocm-blas", SPARSE]));
        fs::write(share(system, folder).join("mine"), "somebody's").unwrap();
        system.offer(&[&new.out()]);
        let Some(kept) = kept else {
            let told = fails(&mut system.update());
            assert!(told.contains("contains files not owned by package rocm-blas"), "{told}");
            assert_eq!(listed(system, folder), ["a.txt", "mine", "sub"]);
            fs::remove_file(share(system, folder).join("mine")).unwrap();
            tools::run(&mut system.repair());
            tools::run(&mut system.update());
            assert_eq!(target(system, folder), Path::new("other"));
            system.assert_whole();
            system.purge_all();
            continue;
        };
        tools::run(&mut system.update());
        assert_eq!(target(system, folder), Path::new("other"));
        assert_eq!(listed(system, kept), ["mine"]);
        system.assert_whole();
        system.purge_all();
        fs::remove_dir_all(system.root().join(PREFIX)).unwrap();
    }
}

/// This shows what the scripts are for.
pub fn folders_stay_where_the_earlier_set_is_not_named(system: &dyn System) {
    let [old, new] = [recipe("7.1.0", BEFORE).build(), recipe("7.1.1", AFTER).build()];
    system.offer(&[&old.out()]);
    tools::run(&mut system.install(&["rocm-blas"]));
    system.offer(&[&new.out()]);
    if system.format() == "rpm" {
        let told = fails(&mut system.update());
        assert!(told.contains("share/it's one from install of rocm-blas-7.1.1-1"), "{told}");
    } else {
        tools::run(&mut system.update());
    }
    assert!(share(system, "it's one").symlink_metadata().unwrap().is_dir());
    assert!(share(system, "link").is_symlink());
}

/// rpm does not tell `%pretrans` the packages' new prefix.
#[test]
fn a_folder_of_a_moved_prefix_becomes_a_link() {
    rpm::with_root(|system| {
        let old = recipe("7.1.0", BEFORE).build();
        let new = recipe("7.1.1", AFTER).option("--since", &old.receipt()).build();
        install_moved(system.root(), &old.out(), "7.1.0");
        let share = system.root().join("srv/gpu/rocm/share");
        assert!(share.join("it's one/sub").is_dir());
        install_moved(system.root(), &new.out(), "7.1.1");
        assert_eq!(fs::read_link(share.join("it's one")).unwrap(), Path::new("other"));
        assert_eq!(fs::read_to_string(share.join("other/a.txt")).unwrap(), "new");
        assert!(share.join("link/c.txt").is_file() && !share.join("link").is_symlink());
        assert_eq!(names(&share).len(), 5, "{:?}", names(&share));
    });
}

fn install_moved(root: &Path, out: &Path, version: &str) {
    let mut command = Command::new("rpm");
    command.arg(format!("--root={}", root.display()));
    command.args(["-U", "--prefix=/srv/gpu/rocm"]);
    let files = [
        format!("rocm-common-{version}-1.noarch.rpm"),
        format!("rocm-blas-{version}-1.x86_64.rpm"),
    ];
    tools::run(command.args(files.map(|file| out.join(file))));
}

/// The scripts contain names with a quote, which shell and Lua escape differently.
#[test]
fn verify_knows_the_scripts_of_these_updates() {
    let pairs = [[BEFORE, AFTER], [SHARED_BEFORE, SHARED_AFTER], [OTHERS_BEFORE, OTHERS_AFTER]];
    for [before, after] in pairs {
        let old = recipe("7.1.0", before).build();
        let new = recipe("7.1.1", after).option("--since", &old.receipt()).build();
        let said = tools::told(rockpack().arg("verify").arg(new.out()));
        assert!(said.contains("all checks passed"), "{said}");
    }
}
