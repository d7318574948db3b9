//! The compile matrix, and small shapes of gcc's assembler.

use std::collections::BTreeMap;
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

/// Loads a real library with the stub runtime in `stub`, and with the C library of `root`, the
/// root of another distribution, where the machine's own is too old.
pub fn load_real(file: &Path, stub: &Path, root: Option<&Path>) -> String {
    let program = runtime().expect("gcc").join("load");
    let Some(root) = root else {
        return tools::told(Command::new(program).arg(file).env("LD_LIBRARY_PATH", stub));
    };
    let libraries = root.join("usr/lib/x86_64-linux-gnu");
    let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
    let path = format!("{}:{}", stub.display(), libraries.display());
    tools::told(command.arg("--library-path").arg(path).arg(program).arg(file))
}

/// A stub runtime in `out` with all the versioned symbols that `library` needs of it.
pub fn versioned_runtime(library: &Path, out: &Path) {
    let symbols = tools::succeed(Command::new("readelf").args(["--dyn-syms", "-W"]).arg(library));
    let stub = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/stub_hip.c");
    let defined = std::fs::read_to_string(&stub).unwrap();
    let mut versions = BTreeMap::<&str, Vec<&str>>::new();
    for word in symbols.lines().filter_map(|line| line.split_whitespace().nth(7)) {
        if let Some((symbol, version)) = word.split_once("@hip_") {
            versions.entry(version).or_default().push(symbol);
        }
    }
    let mut script = String::new();
    let mut source = defined.clone();
    for (version, symbols) in versions {
        script.push_str(&format!("hip_{version} {{ {}; }};\n", symbols.join("; ")));
        for symbol in symbols.iter().filter(|symbol| !defined.contains(&format!("{symbol}("))) {
            source.push_str(&format!("int {symbol}() {{ return 0; }}\n"));
        }
    }
    std::fs::write(out.join("versions"), script).unwrap();
    std::fs::write(out.join("stub.c"), source).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.current_dir(out).args(["-shared", "-fPIC", "-Wl,-soname,libamdhip64.so.5"]);
    gcc.args(["-Wl,--version-script=versions", "-o", "libamdhip64.so.5", "stub.c", "-ldl"]);
    tools::succeed(&mut gcc);
}
