//! `runpath`: changes of the library search paths in files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::program::rockpack;
use support::tampered::section;
use support::tools;

use crate::dependencies::Case;

const TOOLS: [&str; 5] = ["cc", "dpkg-deb", "readelf", "eu-elflint", "rpm"];

const ORIGIN: &str = "runpath = 'origin'\n";

const RPATH: &str = "runpath = 'rpath'\n";

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
    let finding =
        "R073 runpath-outside: own_lib/bin/own: searches for libraries in /home/build/lib";
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
    let finding = "R073 runpath-outside: own_lib/bin/own: keeps its search path /home/libown.so.1: \
                   its bytes are shared with another name";
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
    let finding = "keeps its search path /stage/lib/private: the new one is longer";
    assert!(told.contains("R073 runpath-outside") && told.contains(finding), "{told}");
}

#[test]
fn other_policies_are_refused() {
    let case = Case::new();
    case.stage("own");
    case.refused("runpath = 'strip'\n", &[], &["line 1, column 11", "`keep`, `origin`, `rpath`"]);
}

/// The tags of the search paths in a file.
fn tags(file: &Path) -> Vec<&'static str> {
    let shown = tools::succeed(Command::new("readelf").arg("-dW").arg(file));
    ["(RPATH)", "(RUNPATH)"].into_iter().filter(|tag| shown.contains(tag)).collect()
}

/// The bytes that differ between two files of one size.
fn changes(one: &Path, other: &Path) -> Vec<(u8, u8)> {
    let (one, other) = (fs::read(one).unwrap(), fs::read(other).unwrap());
    assert_eq!(one.len(), other.len());
    one.into_iter().zip(other).filter(|(one, other)| one != other).collect()
}

#[test]
fn a_runpath_becomes_an_rpath_and_nothing_else_changes() {
    tools::need(&[&TOOLS[..], &["patchelf"]].concat());
    let path = "$ORIGIN/../lib/private";
    let case = with_search_path(path, "-Wl,--enable-new-dtags");
    let original = case.stage("own").join("bin/own");
    // No program of developers runs, but it has a search path, too.
    let developers = case.stage_of("own_dev").join("lib/tool");
    let library = case.stage("own").join("lib/private/libown.so.1");
    case.program(&developers, &library, "-Wl,--enable-new-dtags,-rpath,$ORIGIN/private");
    let told = case.built(RPATH, &[]);
    let finding = "R157 rpath-for-runpath: runpath: 2 files get DT_RPATH instead of DT_RUNPATH \
                   (bin/own, lib/tool)";
    assert!(told.contains(finding), "{told}");
    case.unpacked("rocm-own-dev");
    let prefix = case.unpacked("rocm-own");
    for (program, original) in [("bin/own", &original), ("lib/tool", &developers)] {
        let program = prefix.join(program);
        assert_eq!((tags(original), tags(&program)), (vec!["(RUNPATH)"], vec!["(RPATH)"]));
        assert_eq!(changes(original, &program), [(0x1d, 0x0f)]);
        assert_eq!(search_path(&program), search_path(original));
        assert_eq!(tools::lint(&program), tools::lint(original));
        let printed = tools::succeed(Command::new("patchelf").arg("--print-rpath").arg(&program));
        assert_eq!(printed.trim_end(), search_path(original));
        tools::run(&mut Command::new(&program));
    }
    let mut verify = rockpack();
    verify.arg("verify").arg(case.path("out")).arg("--against").arg(case.path("shard"));
    let told = tools::told(&mut verify);
    assert!(told.contains("exit status: 0"), "{told}");
    // The finding excuses the tag, but no other text.
    case.program(&original, &library, "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib/prevate");
    let told = tools::told(&mut verify);
    assert!(told.contains("bin/own") && told.contains("exit status: 1"), "{told}");
}

/// A file with an `RPATH` is as it has to be, and so is one without a search path.
#[test]
fn other_files_stay_as_they_are() {
    tools::need(&TOOLS);
    let case = with_search_path("$ORIGIN/../lib/private", "-Wl,--disable-new-dtags");
    let told = case.built(RPATH, &[]);
    assert!(!told.contains("R157"), "{told}");
    let prefix = case.unpacked("rocm-own");
    for file in ["bin/own", "lib/private/libown.so.1"] {
        assert!(changes(&case.stage("own").join(file), &prefix.join(file)).is_empty());
    }
}

/// The loader ignores an `RPATH` beside a `RUNPATH`, so the text of the latter counts on.
#[test]
fn the_runpath_wins_over_an_rpath_beside_it() {
    tools::need(&TOOLS);
    let case = with_search_path("$ORIGIN/../lib/private", "-Wl,--enable-new-dtags");
    let original = case.stage("own").join("bin/own");
    let mut bytes = fs::read(&original).unwrap();
    // DT_DEBUG becomes a DT_RPATH with the text of another name.
    let (start, size) = section(&bytes, ".dynamic");
    let mut entries = (start..start + size).step_by(16);
    let debug = entries.find(|at| bytes[*at..at + 8] == 0x15_u64.to_le_bytes()).unwrap();
    bytes[debug..debug + 8].copy_from_slice(&0x0f_u64.to_le_bytes());
    bytes[debug + 8..debug + 16].copy_from_slice(&1_u64.to_le_bytes());
    fs::write(&original, bytes).unwrap();
    assert_eq!(tags(&original).len(), 2);
    tools::run(&mut Command::new(&original));
    case.built(RPATH, &["--format", "deb"]);
    let program = case.unpacked("rocm-own").join("bin/own");
    assert_eq!(tags(&program), ["(RPATH)"]);
    tools::run(&mut Command::new(&program));
    let mut verify = rockpack();
    verify.arg("verify").arg(case.path("out")).arg("--against").arg(case.path("shard"));
    tools::run(&mut verify);
}

/// What users link with the options of `rocm.cfg`, as the compiler takes them.
fn linked_with(case: &Case, options: &Path) -> Vec<&'static str> {
    let program = case.path("linked");
    case.compile(&program, "int main(void) { return 0; }", &format!("@{}", options.display()));
    tags(&program)
}

/// The scheme's packages below `root`, which have the prefix of a series.
fn installed(case: &Case, config: &str, format: &str) -> (String, PathBuf) {
    let told = case.built(config, &["--scheme", "amdrocm", "--format", format]);
    let name = match format {
        "deb" => "amdrocm-own7.1_7.1.0-1_amd64.deb",
        _ => "amdrocm-own7.1-7.1.0-1.x86_64.rpm",
    };
    let root = case.path(&format!("root-{format}-{}", config.len()));
    tools::unpack(&case.path("out").join(name), &root);
    (told, root.join("opt/rocm/core-7.1"))
}

#[test]
fn programs_that_users_link_get_an_rpath_in_the_scheme_of_amd() {
    tools::need(&[&TOOLS[..], &["rpm2cpio", "cpio"]].concat());
    let case = with_search_path("$ORIGIN/../lib/private", "-Wl,--enable-new-dtags");
    let options = "-Wl,--enable-new-dtags\n-Wl,-rpath,/opt/rocm/lib\n";
    let file = "lib/llvm/bin/rocm.cfg";
    let original = case.stage("own").join(file);
    fs::create_dir_all(original.parent().unwrap()).unwrap();
    fs::write(&original, options).unwrap();
    assert_eq!(linked_with(&case, &original), ["(RUNPATH)"]);
    for format in ["deb", "rpm"] {
        let (told, prefix) = installed(&case, "", format);
        assert!(told.contains("R157") && told.contains("2 files get DT_RPATH"), "{told}");
        let expected = options.replace("enable", "disable");
        assert_eq!(fs::read_to_string(prefix.join(file)).unwrap(), expected);
        assert_eq!(linked_with(&case, &prefix.join(file)), ["(RPATH)"]);
        assert_eq!(tags(&prefix.join("bin/own")), ["(RPATH)"]);
        let mut verify = rockpack();
        verify.arg("verify").arg(case.path("out")).arg("--against").arg(case.path("shard"));
        tools::run(&mut verify);
        fs::write(&original, options.replace("/opt", "/srv")).unwrap();
        let told = tools::told(&mut verify);
        assert!(told.contains("rocm.cfg") && told.contains("exit status: 1"), "{told}");
        fs::write(&original, options).unwrap();
        let (told, prefix) = installed(&case, "runpath = 'keep'\n", format);
        assert!(!told.contains("R157"), "{told}");
        for file in [file, "bin/own"] {
            assert!(changes(&case.stage("own").join(file), &prefix.join(file)).is_empty());
        }
    }
}

/// Nothing reads options that are no text, so nothing can change them, and a finding says so.
#[test]
fn options_that_are_no_text_stay_with_a_finding() {
    let case = Case::new();
    let original = case.stage("own").join("bin/rocm.cfg");
    fs::create_dir_all(original.parent().unwrap()).unwrap();
    fs::write(&original, b"\xff-Wl,--enable-new-dtags\n").unwrap();
    let told = case.built(RPATH, &[]);
    let finding = "R053 libraries-unreadable: own_lib/bin/rocm.cfg: its search path cannot be read";
    assert!(told.contains(finding) && !told.contains("R157"), "{told}");
}
