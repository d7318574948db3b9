//! Packages and code that are there twice under one name, so that one of the two would be looked at
//! and the other installed or loaded.

use std::fs;

use support::tampered::{Archive, Run, Set, verify};
use support::tools;

use crate::receipt::SHARDS;

const KERNELS: &str = "rocm-blas-gfx110x_7.1.0-1_amd64.deb";
const ARCHIVE: &str = "lib/.kpack/blas_lib_gfx1101.kpack";
const KEYS: [&str; 2] = ["lib/libexblas.so.1.2#0", "lib/libexblas.so.1.2#1"];
/// Nothing says why the code for gfx906 is in no package (`V010`), and some stands under another key.
const WITHOUT_RECEIPT_MISPLACED: &[&str] = &["V010", "V012"];

fn says(run: &Run, what: &str) {
    assert!(run.text.contains(what), "{}", run.text);
}

/// `PACKAGE.A.deb`, whose name is before that of the package itself.
fn aside(name: &str) -> String {
    let (stem, ending) = name.rsplit_once('.').unwrap();
    format!("{stem}.A.{ending}")
}

#[test]
fn v065_a_package_lies_twice_in_a_folder() {
    tools::need(&["dpkg-deb", "rpm", "rpm2cpio", "cpio", "rpmbuild"]);
    let set = Set::of_both_formats();
    set.remove_receipt();
    set.fires(&[], &[]);
    for name in [KERNELS, "rocm-blas-gfx110x-7.1.0-1.x86_64.rpm"] {
        let again = aside(name);
        // Nothing covers anything in a copy, or behind a link.
        fs::copy(set.path(name), set.path(&again)).unwrap();
        set.verify(&[]).fired(&[]);
        set.edit(&again, |_| ());
        let run = set.verify(&[]);
        run.fired(&["V065"]);
        says(&run, &format!("and so is {again}"));
        fs::remove_file(set.path(&again)).unwrap();
    }
}

#[test]
fn v065_a_good_package_does_not_cover_a_bad_one() {
    tools::need(&["dpkg-deb"]);
    let set = Set::of_debs();
    set.remove_receipt();
    let good = fs::read(set.path(KERNELS)).unwrap();
    exchange(&set, KERNELS);
    set.fires(SHARDS, WITHOUT_RECEIPT_MISPLACED);
    fs::rename(set.path(KERNELS), set.path(&aside(KERNELS))).unwrap();
    fs::write(set.path(KERNELS), good).unwrap();
    assert!(set.verify(SHARDS).codes().contains(&"V065".to_owned()));
    // Named one by one, they are of one set as well.
    let packages = set.packages();
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    set.verify_paths(&packages, &[]).fired(&["V065"]);
}

#[test]
fn two_versions_and_two_folders_with_one_package_pass() {
    let (set, other) = (Set::of_debs(), Set::of_debs());
    let folders = [&set, &other].map(|set| set.path("").to_str().unwrap().to_owned());
    verify(&[&folders[0], &folders[1]], &[]).fired(&[]);
    tools::need(&["dpkg-deb"]);
    set.remove_receipt();
    let meta = "rocm_7.1.0-1_amd64.deb";
    let kept = fs::read(set.path(meta)).unwrap();
    for (field, value) in [("Version", "7.1.0-2"), ("Architecture", "arm64")] {
        set.edit_control(meta, field, value);
        fs::rename(set.path(meta), set.path(&aside(meta))).unwrap();
        fs::write(set.path(meta), &kept).unwrap();
        set.fires(&[], &[]);
    }
}

/// Exchanges the rows of an archive of the package called `name`.
fn exchange(set: &Set, name: &str) {
    set.edit(name, |root| {
        let archive = root.join("opt/rocm-7.1").join(ARCHIVE);
        Archive::edit(&archive, |archive| archive.exchange(KEYS, "gfx1101"));
    });
}

/// The newer one replaces the other, in whatever order the folder has them; artifacts are those of one.
#[test]
fn two_versions_of_a_kernel_package_may_have_other_code() {
    tools::need(&["dpkg-deb"]);
    let set = Set::of_debs();
    set.remove_receipt();
    let before = set.verify(SHARDS).codes();
    // The one was made with another host, and needs it.
    let expected = [before, vec!["V050".to_owned(), "V092".to_owned()]].concat();
    for (version, is_older) in [("7.0.0-1", true), ("7.0.10-1", true), ("7.10.0-1", false)] {
        let other = format!("rocm-blas-gfx110x_{version}_amd64.deb");
        fs::copy(set.path(KERNELS), set.path(&other)).unwrap();
        set.edit_control(&other, "Version", version);
        exchange(&set, if is_older { &other } else { KERNELS });
        let run = set.verify(SHARDS);
        assert_eq!(run.codes(), expected, "{version}: {}", run.text);
        fs::remove_file(set.path(&other)).unwrap();
    }
}

/// Both packages are checked, so that a good one does not cover a bad one.
#[test]
fn v012_two_architectures_of_a_kernel_package_have_other_code() {
    tools::need(&["dpkg-deb"]);
    let set = Set::of_debs();
    set.remove_receipt();
    let other = "rocm-blas-gfx110x_7.1.0-1_arm64.deb";
    fs::copy(set.path(KERNELS), set.path(other)).unwrap();
    set.edit_control(other, "Architecture", "arm64");
    for bad in [KERNELS, other] {
        exchange(&set, bad);
        let run = set.verify(SHARDS);
        assert!(run.codes().contains(&"V012".to_owned()), "{}", run.text);
        says(&run, "has other code than");
        exchange(&set, bad);
    }
}

#[test]
fn v012_two_archives_have_other_code_under_one_key() {
    tools::need(&["dpkg-deb"]);
    let set = Set::of_debs();
    set.remove_receipt();
    let good = set.file_of(KERNELS, &format!("opt/rocm-7.1/{ARCHIVE}"));
    exchange(&set, KERNELS);
    set.fires(SHARDS, WITHOUT_RECEIPT_MISPLACED);
    // The right rows where no reference leads: in the package itself, and in a further one.
    let whole = fs::read(set.path(KERNELS)).unwrap();
    set.edit(KERNELS, |root| {
        let archive = root.join("opt/rocm-7.1/lib/zz.kpack");
        fs::write(archive, &good).unwrap();
    });
    says(&set.verify(SHARDS), &format!("has other code than {KERNELS}"));
    fs::write(set.path(KERNELS), whole).unwrap();
    let further = "zz-gfx110x_7.1.0-1_amd64.deb";
    fs::copy(set.path(KERNELS), set.path(further)).unwrap();
    set.edit_control(further, "Package", "zz-gfx110x");
    set.edit(further, |root| {
        fs::remove_dir_all(root.join("opt/rocm-7.1")).unwrap();
        fs::remove_dir_all(root.join("usr")).unwrap();
        let archive = root.join("opt/zz").join(ARCHIVE);
        fs::create_dir_all(archive.parent().unwrap()).unwrap();
        fs::write(archive, &good).unwrap();
    });
    let run = set.verify(SHARDS);
    assert!(run.codes().contains(&"V012".to_owned()), "{}", run.text);
    says(&run, &format!("has other code than {KERNELS}"));
    says(&run, "under 2 of its keys");
}
