//! The patches do not rot: each still applies, and each names existing tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::tools;

fn patches() -> Vec<PathBuf> {
    let folder = tools::repository("tests/relapses");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_patch = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "patch");
    let mut patches: Vec<PathBuf> = paths.filter(is_patch).collect();
    patches.sort();
    assert!(patches.len() >= 10, "{patches:?}");
    patches
}

/// The lines above the difference itself.
fn head(patch: &Path) -> Vec<String> {
    let text = fs::read_to_string(patch).unwrap();
    let lines = text.lines().take_while(|line| !line.starts_with("diff "));
    lines.map(str::to_owned).collect()
}

#[test]
fn every_patch_applies() {
    let root = tools::repository("");
    tools::need(&["git"]);
    for patch in patches() {
        let mut git = Command::new("git");
        // `git apply` also works outside of a repository. In a folder of another repository it would skip
        // everything that a patch names.
        git.env("GIT_CEILING_DIRECTORIES", root.parent().unwrap());
        tools::run(git.current_dir(&root).args(["apply", "--check"]).arg(patch));
    }
}

/// The source of a test in the program `program`: `loaded::works` is in `loaded.rs` of its folder, or in
/// `loaded/mod.rs`.
fn source(program: &str, test: &str) -> PathBuf {
    let (modules, _) = test.rsplit_once("::").unwrap_or(("main", test));
    let path = tools::repository("tests").join(program).join(modules.replace("::", "/"));
    let file = path.with_extension("rs");
    if file.is_file() { file } else { path.join("mod.rs") }
}

#[test]
fn every_patch_names_its_failure_and_tests_that_exist() {
    let readme = fs::read_to_string(tools::repository("tests/relapses/README.md")).unwrap();
    for patch in patches() {
        let name = patch.file_name().unwrap().to_str().unwrap();
        let head = head(&patch);
        assert!(!head[0].is_empty() && head[1].is_empty(), "{name} says what fails, then nothing");
        let tests: Vec<_> = head.iter().filter_map(|line| line.strip_prefix("Test: ")).collect();
        assert!(!tests.is_empty(), "{name} names no test");
        for test in tests {
            let words: Vec<&str> = test.split(' ').collect();
            let ["--test", program, path] = words[..] else { panic!("{name}: {test}") };
            let function = path.rsplit("::").next().unwrap();
            let file = source(program, path);
            let text = fs::read_to_string(&file).unwrap_or_default();
            let declared = format!("#[test]\nfn {function}() {{");
            assert!(text.contains(&declared), "{name}: {} has no {function}", file.display());
            assert!(readme.contains(&format!("`{path}`")), "{path} is not in the table");
        }
        assert!(readme.contains(&format!("({name})")), "{name} is not in the table");
    }
}
