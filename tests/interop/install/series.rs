//! The link to the newest of several installed series.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use support::tools;

use crate::install::sets::Recipe;
use crate::install::system::{System, assert_same};

const LINK: &str = "opt/rocm/core";

/// The file by which an administrator chooses a series, and its folder.
const CHOICE: &str = "etc/opt/rocm/core-series";
const CHOICE_FOLDER: &str = "etc/opt/rocm";

/// The packages of a series: the one with libraries brings the common package, which makes the link.
const LIBRARY: [&str; 2] = ["amdrocm-host-suite-sparse7.9", "amdrocm-host-suite-sparse7.14"];
const COMMON: [&str; 2] = ["amdrocm-common7.9", "amdrocm-common7.14"];

/// The target of the link; `None` if no link is there.
fn target(system: &dyn System) -> Option<PathBuf> {
    fs::read_link(system.root().join(LINK)).ok()
}

#[track_caller]
fn assert_target(system: &dyn System, expected: &str) {
    assert_eq!(target(system), Some(PathBuf::from(expected)));
}

/// 7.14 is newer than 7.9. Only links that packages made move; those of administrators, and folders, stay.
pub fn a_link_leads_to_the_newest_series(system: &dyn System) {
    let [nine, old, new] =
        ["7.9.0", "7.14.0", "7.14.1"].map(|version| Recipe::new(version).scheme("amdrocm").build());
    fs::create_dir_all(system.root().join(CHOICE_FOLDER)).unwrap();
    let before = system.snapshot();
    system.offer(&[&nine.out(), &old.out()]);
    let [install_9, install_14] =
        LIBRARY.map(|library| move || tools::told(&mut system.install(&[library])));
    let purge = |index: usize| tools::run(&mut system.purge(&[LIBRARY[index], COMMON[index]]));
    install_9();
    assert_target(system, "core-7.9");
    install_14();
    assert_target(system, "core-7.14");
    system.offer(&[&nine.out(), &old.out(), &new.out()]);
    tools::run(&mut system.update());
    assert_eq!(system.installed()[COMMON[1]], "7.14.1-1");
    assert_target(system, "core-7.14");
    assert!(system.root().join(LINK).join("lib/libexsuitesparse.so.7").exists());
    system.assert_whole();
    purge(0);
    assert_target(system, "core-7.14");
    install_9();
    purge(1);
    assert_target(system, "core-7.9");

    // An installed series that the administrator chose wins.
    let choice = system.root().join(CHOICE);
    fs::write(&choice, "7.9\n").unwrap();
    install_14();
    assert_target(system, "core-7.9");
    purge(0);
    assert_target(system, "core-7.14");
    fs::remove_file(choice).unwrap();

    let link = system.root().join(LINK);
    for foreign in ["/srv/own", "core-asan-7.14", "core-7.14/lib", "core-7.14-own", "core-7.14.1"] {
        fs::remove_file(&link).unwrap();
        symlink(foreign, &link).unwrap();
        let told = install_9();
        assert!(
            system.format() == "rpm" || told.contains("/opt/rocm/core is left unchanged"),
            "{told}"
        );
        assert_target(system, foreign);
        purge(0);
        assert_target(system, foreign);
    }
    fs::remove_file(&link).unwrap();
    fs::create_dir(&link).unwrap();
    install_9();
    assert!(link.is_dir() && target(system).is_none());
    purge(0);
    fs::remove_dir(&link).unwrap();

    // An absolute target is one of ours, too.
    symlink("/opt/rocm/core-7.9", &link).unwrap();
    install_9();
    assert_target(system, "core-7.14");
    system.purge_all();
    assert_same(&before, &system.snapshot());
}
