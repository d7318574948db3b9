//! The compile matrix, and small shapes of gcc's assembler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::tools;

/// The folder of sources and committed binaries.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// The committed fat binaries.
pub fn committed() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder().join("binaries")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 5);
    paths
}

/// The folder of the stub runtime and the loader program, or `None` without gcc.
pub fn runtime() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        if !tools::have(&["gcc"]) {
            return None;
        }
        let out = scratch("runtime");
        let support = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support");
        let library = out.join("libamdhip64.so.5");
        let mut stub = Command::new("gcc");
        stub.args(["-shared", "-fPIC", "-O1", "-Wl,-soname,libamdhip64.so.5", "-o"]);
        tools::succeed(stub.arg(library).arg(support.join("stub_hip.c")).arg("-ldl"));
        let mut load = Command::new("gcc");
        load.args(["-O1", "-o"]).arg(out.join("load"));
        tools::succeed(load.arg(support.join("load.c")).arg("-ldl"));
        Some(out)
    };
    BUILT.get_or_init(build).as_deref()
}

/// The compile matrix, built once per test program; `None` without the compilers.
pub fn matrix() -> Option<&'static [PathBuf]> {
    static BUILT: OnceLock<Option<Vec<PathBuf>>> = OnceLock::new();
    let build = || {
        if !tools::have(&["clang++-19", "ld.lld-19", "g++", "sh"]) {
            return None;
        }
        let out = scratch("matrix");
        tools::succeed(Command::new(folder().join("build.sh")).arg(&out));
        let entries = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
        let case = |path: &PathBuf| path.is_file() && !is_helper(path);
        let mut cases: Vec<_> = entries.filter(case).collect();
        cases.sort();
        assert!(cases.len() > 50, "only {} cases were built", cases.len());
        Some(cases)
    };
    BUILT.get_or_init(build).as_deref()
}

fn is_helper(path: &Path) -> bool {
    matches!(name(path).as_str(), "load" | "libamdhip64.so.5")
}

/// A library made from `cases.S` with `flags`, or `None` without gcc.
pub fn assembled(case: &str, flags: &[&str]) -> Option<PathBuf> {
    let runtime = runtime()?;
    let out = scratch(case).join("library.so");
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-o"]).arg(&out).args(flags);
    gcc.arg(folder().join("src/cases.S"));
    tools::succeed(gcc.arg("-L").arg(runtime).arg("-l:libamdhip64.so.5"));
    Some(out)
}

/// A new, empty folder of this test program for `purpose`.
pub fn scratch(purpose: &str) -> PathBuf {
    let name = format!("{}-{purpose}", env!("CARGO_CRATE_NAME"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The last component of a path.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Loads or runs a fixture with the stub runtime and returns what it prints.
pub fn load(file: &Path) -> String {
    let runtime = runtime().expect("gcc was there to build the fixture");
    let mut command = match name(file).contains("pie") {
        true => Command::new(file),
        false => Command::new(runtime.join("load")),
    };
    if !name(file).contains("pie") {
        command.arg(file);
    }
    if name(file).contains("asan") {
        let library = tools::succeed(Command::new("gcc").arg("-print-file-name=libasan.so"));
        command.env("LD_PRELOAD", library.trim());
        command.env("ASAN_OPTIONS", "detect_leaks=0");
    }
    tools::told(command.env("LD_LIBRARY_PATH", runtime))
}
