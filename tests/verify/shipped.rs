//! Kernel archives that a component ships itself: nothing leads to them, and all checks of device code
//! hold for them.

use std::fs;
use std::path::Path;

use support::kpack::{self, code_object, mach};
use support::program::rockpack;
use support::tampered::Set;
use support::tools;
use tempfile::TempDir;

use crate::databases::{build, shards};

const ONE: &str = "lib/foo/one.kpack";
const GROUP: &str = "rocm-blas-gfx110x_7.1.0-1_amd64.deb";
const OTHER: &str = "rocm-blas-gfx115x_7.1.0-1_amd64.deb";
const HOST: &str = "rocm-blas_7.1.0-1_amd64.deb";

/// An archive of one arch with two rows.
fn archive() -> Vec<u8> {
    kpack::shipped(
        &["first", "second"].map(|key| (key, "gfx1101", code_object(mach::GFX1101, key))),
    )
}

/// A set with the archive, and the shards that it was made of.
fn set() -> (Set, TempDir) {
    tools::need(&["dpkg-deb"]);
    kpack::need_python();
    let artifacts = shards(&[("gfx110X", ONE, &archive())]);
    (build(artifacts.path()), artifacts)
}

fn installed(root: &Path) -> std::path::PathBuf {
    root.join("opt/rocm-7.1").join(ONE)
}

#[test]
fn nothing_is_wrong_with_them() {
    let (set, artifacts) = set();
    set.fires(&[], &[]);
    set.fires(&["--against", artifacts.path().to_str().unwrap()], &[]);
}

#[test]
fn one_that_is_gone_is_lost() {
    let (set, artifacts) = set();
    set.edit(GROUP, |root| fs::remove_file(installed(root)).unwrap());
    set.fires(&["--against", artifacts.path().to_str().unwrap()], &["V010", "V013"]);
}

#[test]
fn a_changed_byte_is_seen() {
    let (set, artifacts) = set();
    set.edit(GROUP, |root| {
        let file = installed(root);
        let mut bytes = fs::read(&file).unwrap();
        // In the first frame, behind the header, the count and the size.
        bytes[64 + 4 + 4 + 12] ^= 0x40;
        fs::write(file, bytes).unwrap();
    });
    set.fires(
        &["--against", artifacts.path().to_str().unwrap()],
        &["V010", "V011", "V013", "V023"],
    );
}

#[test]
fn it_belongs_into_the_package_of_its_arch() {
    for (package, code) in [(OTHER, "V022"), (HOST, "V020")] {
        let (set, _artifacts) = set();
        set.edit(GROUP, |root| fs::remove_file(installed(root)).unwrap());
        set.edit(package, |root| {
            let file = installed(root);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, archive()).unwrap();
        });
        set.fires(&[], &[code]);
    }
}

#[test]
fn one_that_no_artifact_has_is_of_unknown_origin() {
    let (set, artifacts) = set();
    set.edit(GROUP, |root| {
        fs::write(root.join("opt/rocm-7.1/lib/foo/two.kpack"), archive()).unwrap();
    });
    set.fires(&["--against", artifacts.path().to_str().unwrap()], &["V101"]);
}

#[test]
fn an_installed_prefix_and_artifacts_may_have_them() {
    let (set, artifacts) = set();
    let root = tempfile::tempdir().unwrap();
    for package in [HOST, GROUP, OTHER] {
        let mut unpack = std::process::Command::new("dpkg-deb");
        tools::run(unpack.arg("-x").arg(set.path(package)).arg(root.path()));
    }
    let prefix = root.path().join("opt/rocm-7.1");
    tools::run(rockpack().args(["verify", "--installed"]).arg(&prefix));
    // Fat artifacts are not split because of them.
    tools::run(rockpack().arg("verify").arg(artifacts.path()));
    // An archive of a folder for archives needs its library.
    let moved = prefix.join("lib/.kpack/foo_lib_gfx1101.kpack");
    fs::rename(prefix.join(ONE), moved).unwrap();
    let run = rockpack().args(["verify", "--installed"]).arg(&prefix).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(!run.status.success() && said.contains("foo_lib_gfx1101.kpack"), "{said}");
}
