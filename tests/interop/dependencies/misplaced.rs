//! Libraries of a set in folders that no loader searches.

use std::fs;
use std::os::unix::fs::symlink;

use support::tools;

use crate::dependencies::Case;

const TOOLS: [&str; 3] = ["cc", "dpkg-deb", "rpm"];

const FOUND_BY_NONE: &str = "R083 library-misplaced: rocm-hello: programs do not find";

/// A library `libhello.so.3` of artifact `hello` in `folder` of its stage prefix.
fn library_in(folder: &str) -> Case {
    let case = Case::new();
    case.library(&case.stage("hello").join(folder).join("libhello.so.3"), "");
    case
}

fn told(case: &Case) -> String {
    case.built("", &["--format", "rpm"]);
    case.built("", &["--format", "deb"])
}

#[test]
fn each_library_that_nothing_leads_to_is_named_with_the_likely_cause() {
    tools::need(&TOOLS);
    for (folder, remedy) in [
        ("", "names the folder `lib` of a stage prefix, and should name the one above it"),
        ("usr/lib", "names the root of an installed tree, and should name its folder usr"),
        (
            "opt/rocm/lib/x86_64-linux-gnu",
            "the root of an installed tree, and should name its folder opt/rocm",
        ),
        ("lib64", "set `libdir` to lib64 if the artifacts were built for it"),
        ("lib/x86_64-linux-gnu", "set `libdir` to lib/x86_64-linux-gnu if the artifacts"),
        ("share/hello", "give the files that need them a search path to share/hello"),
        ("rocm-7.1.0/lib", "of an installed tree, and should name its folder rocm-7.1.0"),
    ] {
        let case = library_in(folder);
        // One library in the right place does not excuse the others.
        case.library(&case.stage("hello").join("lib/libright.so.1"), "");
        let told = told(&case);
        let path = format!("{folder}/libhello.so.3").trim_start_matches('/').to_owned();
        assert!(
            told.contains(&format!("{FOUND_BY_NONE} {path} by name: the loader searches lib,")),
            "{told}"
        );
        assert!(told.contains(remedy), "{told}");
        assert_eq!(told.matches("R083").count(), 1, "{told}");
    }
}

/// A private library, for example of a plugin that programs open by name: a search path names its folder,
/// possibly through a link.
#[test]
fn a_folder_that_programs_search_is_meant_for_its_libraries() {
    tools::need(&TOOLS);
    for search in ["$ORIGIN/../llvm/lib", "$ORIGIN/../lib/llvm/lib"] {
        let case = library_in("lib/llvm/lib");
        let stage = case.stage("hello");
        case.library(&stage.join("lib/libright.so.1"), "");
        symlink("lib/llvm", stage.join("llvm")).unwrap();
        let options = format!("-Wl,--disable-new-dtags,-rpath,{search}");
        case.program(&stage.join("bin/hello"), &stage.join("lib/libright.so.1"), &options);
        let told = case.built("", &["--format", "deb"]);
        assert!(!told.contains("R083"), "{search}: {told}");
    }
}

/// A library that its program finds is in the right place, even if `libdir` is empty.
#[test]
fn a_library_that_its_only_user_finds_is_none() {
    tools::need(&TOOLS);
    let case = library_in("lib64");
    let (stage, search) = (case.stage("hello"), "-Wl,-rpath,$ORIGIN/../lib64");
    case.program(&stage.join("bin/hello"), &stage.join("lib64/libhello.so.3"), search);
    let told = told(&case);
    assert!(!told.contains("R083"), "{told}");
}

/// An `.rpm` needs a system library by its soname, even if the set has a private copy.
#[test]
fn a_private_copy_of_a_library_of_the_system_does_not_settle_the_need_of_others() {
    tools::need(&TOOLS);
    let case = Case::new();
    let stage = case.stage("user");
    case.library(&stage.join("lib/private/libz.so.1"), "");
    case.library(&stage.join("lib/private/libown.so.1"), "");
    for name in ["libz.so.1", "libown.so.1"] {
        let program = stage.join("bin").join(name);
        case.program(&program, &stage.join("lib/private").join(name), "");
    }
    for options in [&["--format", "rpm"][..], &[]] {
        let told = case.built("", options);
        assert!(!told.contains("needs libz.so.1, which rocm-user has"), "{told}");
        assert!(told.contains("R095 library-out-of-reach: rocm-user: needs libown.so.1"), "{told}");
        assert!(case.rpm("rocm-user", "--requires").contains("libz.so.1()(64bit)"));
    }
}

/// A search path to the folder only helps the library that its file needs. The remedy for a wrong line in a
/// manifest is another line, whatever needs the library.
#[test]
fn other_libraries_of_the_folder_and_those_that_are_needed_in_vain_are_named() {
    tools::need(&TOOLS);
    let case = library_in("lib64");
    let (stage, search) = (case.stage("hello"), "-Wl,-rpath,$ORIGIN/../lib64");
    case.library(&stage.join("lib64/libother.so.1"), "");
    case.program(&stage.join("bin/hello"), &stage.join("lib64/libhello.so.3"), search);
    case.library(&stage.join("lib/libright.so.1"), "");
    let told = case.built("", &["--format", "deb"]);
    assert!(told.contains(&format!("{FOUND_BY_NONE} lib64/libother.so.1 by name")), "{told}");
    assert_eq!(told.matches("R083").count(), 1, "{told}");

    let case = library_in("usr/lib");
    let stage = case.stage("hello");
    case.program(&stage.join("usr/bin/hello"), &stage.join("usr/lib/libhello.so.3"), "");
    let told = case.built("", &["--format", "deb"]);
    assert!(told.contains("R095") && told.contains("should name its folder usr"), "{told}");
    let accepted = "[[accept]]\ncode = 'R083'\nsubject = 'libhello.so*'\nreason = 'a test'\n\
                    [[accept]]\ncode = 'R095'\nsubject = 'libhello.so*'\nreason = 'a test'\n";
    let told = case.built(accepted, &["--format", "deb"]);
    assert_eq!(told.matches("accepted: R0").count(), 2, "{told}");
}

#[test]
fn libraries_that_something_leads_to_and_modules_are_none() {
    tools::need(&TOOLS);
    assert_silent(&library_in("lib"));

    // The loader is also told of a folder whose libraries have no version in their names.
    let case = Case::new();
    case.library(&case.stage("hello").join("lib/libplain.so"), "");
    assert_silent(&case);
    assert!(case.path("out/rocm-common_7.1.0-1_all.deb").exists());

    let case = library_in("lib/private");
    let library = case.stage("hello").join("lib/private/libhello.so.3");
    let program = case.stage("hello").join("bin/hello");
    case.program(&program, &library, "-Wl,-rpath,$ORIGIN/../lib/private");
    assert_silent(&case);

    let case = library_in("lib/private");
    let link = case.stage("hello").join("lib/libhello.so.3");
    symlink("private/libhello.so.3", link).unwrap();
    assert_silent(&case);
    case.built("", &["--format", "rpm"]);
    assert!(case.rpm("rocm-hello", "--provides").contains("libhello.so.3()(64bit)"));

    let case = Case::new();
    case.library(&case.stage("hello").join("lib/tool/plugins/module.so"), "");
    assert_silent(&case);
}

fn assert_silent(case: &Case) {
    let told = told(case);
    assert!(!told.contains("R083"), "{told}");
    fs::remove_file(case.path("out/packages.json")).unwrap();
    assert_eq!(case.verified(), (Some(0), Vec::new()));
}
