//! Search paths as Bazel writes them: thousands of bytes, with a folder for each library that a target needs.
//! Only the string table limits them.

use std::fs;
use std::path::Path;
use std::process::Command;

use rockpack_elf::{ElfFile, FileHeader, Linking};

use super::Case;
use support::tools::{self, need};

const TOOLS: [&str; 6] = ["cc", "dpkg-deb", "eu-elflint", "patchelf", "readelf", "rpm"];

/// Bazel's folders, followed by `last`.
fn long(folder: &str, last: &str) -> String {
    let folders = (0..300).map(|n| format!("{folder}/_solib_k8/_U_S_Stensorflow_Score_C{n}_Ulib:"));
    folders.collect::<String>() + last
}

/// A program of artifact `user` that finds `libz.so.1` of artifact `other` only through the last folder of
/// its search path.
fn case(folder: &str, last: &str, options: &str) -> (Case, String) {
    let case = Case::new();
    let library = case.stage("other").join("lib/private/libz.so.1");
    case.library(&library, "");
    let path = long(folder, last);
    assert!(path.len() > 3 * 4096);
    let options = format!("-Wl,-rpath,{path} {options}");
    case.program(&case.stage("user").join("bin/user"), &library, &options);
    (case, path)
}

/// The search path of `file` according to patchelf.
fn search_path(file: &Path) -> String {
    let printed = tools::succeed(Command::new("patchelf").arg("--print-rpath").arg(file));
    let shown = tools::succeed(Command::new("readelf").arg("-dW").arg(file));
    let line = shown.lines().find(|line| line.contains("RUNPATH") || line.contains("(RPATH)"));
    let text = line.and_then(|line| line.split_once('[')).map(|(_, text)| text);
    assert_eq!(text.unwrap_or_default().trim_end_matches(']'), printed.trim_end());
    printed.trim_end().to_owned()
}

fn linking(file: &Path) -> Linking {
    let content = support::fixtures::content(file);
    let header = FileHeader::read(&content).unwrap().unwrap();
    Linking::read(&ElfFile::with_header(&content, header).unwrap()).unwrap().unwrap()
}

fn verified(case: &Case) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rockpack"));
    tools::told(
        command.arg("verify").arg(case.path("out")).arg("--against").arg(case.path("shard")),
    )
}

#[test]
fn libraries_are_found_by_the_last_folder() {
    need(&TOOLS);
    for options in ["", "-Wl,--disable-new-dtags"] {
        let (case, path) = case("$ORIGIN/..", "$ORIGIN/../lib/private", options);
        let told = case.built("", &["--strict"]);
        assert!(!told.contains("R053") && !told.contains("R073"), "{told}");
        assert!(case.depends("rocm-user").contains("rocm-other (>= 7.1.0-1)"));
        assert!(!case.depends("rocm-user").contains("zlib1g"));
        let program = case.unpacked("rocm-user").join("bin/user");
        assert_eq!(search_path(&program), path);
        let found = linking(&program);
        let (own, none) = if options.is_empty() {
            (found.runpath, found.rpath)
        } else {
            (found.rpath, found.runpath)
        };
        assert_eq!((own, none), (Some(path), None));
        let told = verified(&case);
        assert!(told.contains("exit status: 0"), "{told}");
    }
}

#[test]
fn they_are_rewritten() {
    need(&TOOLS);
    let (case, path) = case("/home/build", "/home/build/stage/lib/private", "");
    let told = case.built("runpath = 'origin'\n", &[]);
    assert!(!told.contains("R053") && told.contains("R072 runpath-rewritten"), "{told}");
    let noted = format!("… ({} bytes) becomes `$ORIGIN/../lib/private`", path.len());
    assert!(told.contains(&noted) && told.len() < 8192, "{told}");
    assert!(case.depends("rocm-user").contains("rocm-other (>= 7.1.0-1)"));
    let (program, original) =
        (case.unpacked("rocm-user").join("bin/user"), case.stage("user").join("bin/user"));
    assert_eq!(search_path(&program), "$ORIGIN/../lib/private");
    assert_eq!(search_path(&original), path);
    assert_eq!(tools::lint(&program), tools::lint(&original));
    assert_eq!(fs::read(&program).unwrap().len(), fs::read(&original).unwrap().len());
    let told = verified(&case);
    assert!(told.contains("exit status: 0"), "{told}");
}
