//! `runpath`: changes of the library search paths in files.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::program::rockpack;
use support::tools;

use crate::dependencies::Case;

const TOOLS: [&str; 5] = ["cc", "dpkg-deb", "readelf", "eu-elflint", "rpm"];

const ORIGIN: &str = "runpath = 'origin'\n";

/// The `RUNPATH` or `RPATH` of a file as readelf shows it.
fn search_path(file: &Path) -> String {
    let shown = tools::succeed(Command::new("readelf").arg("-dW").arg(file));
    let line = shown.lines().find(|line| line.contains("RUNPATH") || line.contains("(RPATH)"));
    let text = line.and_then(|line| line.split_once('[')).map(|(_, text)| text);
    text.unwrap_or_default().trim_end_matches(']').to_owned()
}

/// A program with `search_path`, and with its own library in a private folder.
fn with_search_path(search_path: &str, options: &str) -> Case {
    let case = Case::new();
    let library = case.stage("own").join("lib/private/libown.so.1");
    case.library(&library, "");
    let options = format!("-Wl,-rpath,{search_path} {options}");
    case.program(&case.stage("own").join("bin/own"), &library, &options);
    case
}

#[test]
fn foreign_folders_are_reported_and_kept() {
    tools::need(&TOOLS);
    let case = with_search_path("$ORIGIN/../lib/private:/home/build/lib", "");
    let told = case.built("", &[]);
    let finding = "R073 runpath-outside: own_lib/bin/own: looks for libraries in /home/build/lib";
    assert!(told.contains(finding), "{told}");
    let program = case.unpacked("rocm-own").join("bin/own");
    assert_eq!(search_path(&program), "$ORIGIN/../lib/private:/home/build/lib");
}

#[test]
fn absolute_folders_become_relative_to_the_file() {
    tools::need(&TOOLS);
    let before = "/home/build/math/part/stage/lib/private:/opt/rocm-7.1/lib:/usr/local/lib";
    for options in ["", "-Wl,--disable-new-dtags"] {
        let case = with_search_path(before, options);
        let told = case.built(ORIGIN, &[]);
        assert!(told.contains("R072 runpath-rewritten: own_lib/bin/own"), "{told}");
        assert!(!told.contains("R073") && !told.contains("R070"), "{told}");
        let program = case.unpacked("rocm-own").join("bin/own");
        assert_eq!(search_path(&program), "$ORIGIN/../lib/private:$ORIGIN/../lib");
        // In the unpacked package, only the new path leads to the private library.
        tools::run(&mut Command::new(&program));
        let original = case.stage("own").join("bin/own");
        assert_eq!(search_path(&original), before);
        assert_eq!(tools::lint(&program), tools::lint(&original));
        let (old, new) = (fs::read(&original).unwrap(), fs::read(&program).unwrap());
        assert_eq!(old.len(), new.len());
        let changed = old.iter().zip(&new).filter(|(one, other)| one != other).count();
        assert!(changed <= before.len(), "{changed} bytes changed");
    }
}

#[test]
fn what_was_rewritten_passes_verification() {
    tools::need(&TOOLS);
    let case = with_search_path("/home/build/stage/lib/private:/usr/local/lib", "");
    case.built(ORIGIN, &[]);
    let mut verify = rockpack();
    verify.arg("verify").arg(case.path("out")).arg("--against").arg(case.path("shard"));
    let told = tools::told(&mut verify);
    assert!(told.contains("exit status: 0"), "{told}");
    // The finding excuses another search path, but no other program.
    let original = case.stage("own").join("bin/own");
    case.compile(&original, "int main(void) { return 7; }", "");
    let told = tools::told(&mut verify);
    assert!(told.contains("bin/own") && told.contains("exit status: 1"), "{told}");
}

#[test]
fn a_library_is_needed_by_a_path_from_the_folder_of_the_file() {
    tools::need(&TOOLS);
    let case = Case::new();
    let library = case.stage("own").join("lib/private/libown.so.1");
    let options = "-shared -fPIC -Wl,-soname,$ORIGIN/../lib/private/libown.so.1";
    case.compile(&library, "int answer(void) { return 42; }", options);
    case.program(&case.stage("own").join("bin/own"), &library, "");
    let told = case.built("", &[]);
    assert!(!told.contains("R070") && !told.contains("R095"), "{told}");
    tools::run(&mut Command::new(case.unpacked("rocm-own").join("bin/own")));
}

#[test]
fn a_search_path_that_shares_its_bytes_stays() {
    tools::need(&TOOLS);
    // The linker may store the library's name as the end of the search path.
    let case = with_search_path("/home/libown.so.1", "");
    let told = case.built(ORIGIN, &[]);
    let finding = "R073 runpath-outside: own_lib/bin/own: its search path /home/libown.so.1 stays: \
                   its bytes are part of another name";
    assert!(told.contains(finding), "{told}");
    let program = case.unpacked("rocm-own").join("bin/own");
    assert_eq!(fs::read(&program).unwrap(), fs::read(case.stage("own").join("bin/own")).unwrap());
}

#[test]
fn a_search_path_that_would_grow_stays() {
    tools::need(&TOOLS);
    let case = Case::new();
    let library = case.stage("own").join("lib/private/libown.so.1");
    case.library(&library, "");
    let deep = case.stage("own").join("libexec/a/b/c/d/own");
    case.program(&deep, &library, "-Wl,-rpath,/stage/lib/private");
    let told = case.built(ORIGIN, &[]);
    let finding = "its search path /stage/lib/private stays: the new one is longer";
    assert!(told.contains("R073 runpath-outside") && told.contains(finding), "{told}");
}

#[test]
fn other_policies_are_refused() {
    let case = Case::new();
    case.stage("own");
    case.refused("runpath = 'strip'\n", &[], &["line 1, column 11", "`keep` or `origin`"]);
}
