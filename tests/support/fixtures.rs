//! The compile matrix, and small ELF shapes from gcc's assembler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::run::Budget;
use rockpack_split::input::artifact::{self, Scan, ScanOptions};
use rockpack_split::input::tree::InputPath;
use sha2::{Digest, Sha256};

use crate::kpack::{code, code_object, mach};
use crate::program::kept;
pub use crate::program::scratch;
use crate::tools;

/// The folder of sources and committed binaries.
pub fn folder() -> PathBuf {
    tools::repository("tests/fixtures")
}

/// The content of the file at `path`, read without limits.
pub fn content(path: impl AsRef<Path>) -> Content {
    Content::open(path, &Budget::unlimited()).unwrap()
}

/// Scans the shards, or folders of shards, `roots` without limits.
pub fn scan(roots: &[PathBuf]) -> Result<Scan> {
    let roots: Vec<InputPath> = roots.iter().cloned().map(InputPath::from).collect();
    artifact::scan(&roots, &ScanOptions::within(&Budget::unlimited()))
}

/// The committed fat binaries.
pub fn committed() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder().join("binaries")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 5);
    paths
}

/// The folder of the stub runtime and the loader program.
pub fn runtime() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        tools::need(&["gcc"]);
        let out = scratch("runtime");
        let support = tools::repository("tests/support");
        for (name, source) in
            [("libamdhip64.so.7", "stub_hip.c"), ("librocm_kpack_shim.so.0", "stub_shim.c")]
        {
            let mut stub = Command::new("gcc");
            stub.args(["-shared", "-fPIC", "-O1", "-o"]).arg(out.join(name));
            stub.arg(format!("-Wl,-soname,{name}"));
            tools::succeed(stub.arg(support.join(source)).arg("-ldl"));
        }
        let mut load = Command::new("gcc");
        load.args(["-O1", "-o"]).arg(out.join("load"));
        tools::succeed(load.arg(support.join("load.c")).arg("-ldl"));
        out
    };
    BUILT.get_or_init(build)
}

/// The compile matrix, kept between runs while compilers and sources stay the same.
pub fn matrix() -> &'static [PathBuf] {
    static BUILT: OnceLock<Vec<PathBuf>> = OnceLock::new();
    let build = || {
        tools::need(&[
            "clang++-19",
            "ld.lld-19",
            "clang-offload-bundler-19",
            "gcc",
            "g++",
            "ld",
            "sh",
        ]);
        let name = format!("matrix-{}", what_makes(&MATRIX.0, &MATRIX.1));
        let out = kept(&name, |out| {
            tools::succeed(Command::new(folder().join("build.sh")).arg(out));
        });
        let entries = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
        let case = |path: &PathBuf| path.is_file() && !is_helper(path);
        let mut cases: Vec<_> = entries.filter(case).collect();
        cases.sort();
        assert!(cases.len() > 50, "only {} cases were built", cases.len());
        cases
    };
    BUILT.get_or_init(build)
}

/// The tools that make the matrix, and its sources.
const MATRIX: ([&str; 4], [&str; 5]) = (
    ["clang++-19", "ld.lld-19", "g++", "ld"],
    [
        "tests/fixtures/build.sh",
        "tests/support/stub_hip.c",
        "tests/support/load.c",
        "tests/fixtures/src",
        "examples/shards/source",
    ],
);

/// A digest of tools' versions, and of files and folders of the repository.
pub fn what_makes(tools: &[&str], paths: &[&str]) -> String {
    let mut all = Sha256::new();
    for tool in tools {
        all.update(tools::succeed(Command::new(tool).arg("--version")));
    }
    for path in paths.iter().map(|path| tools::repository(path)) {
        let mut files = vec![path.clone()];
        if path.is_dir() {
            let entries = std::fs::read_dir(path).unwrap();
            files = entries.map(|entry| entry.unwrap().path()).collect();
            files.sort();
        }
        files.iter().for_each(|file| all.update(std::fs::read(file).unwrap()));
    }
    crate::hex(&all.finalize()[..8])
}

fn is_helper(path: &Path) -> bool {
    matches!(name(path).as_str(), "load" | "libamdhip64.so.7")
}

/// A library made from `cases.S` with `flags`.
pub fn assembled(case: &str, flags: &[&str]) -> PathBuf {
    let runtime = runtime();
    let out = scratch(case).join("library.so");
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-o"]).arg(&out).args(flags);
    gcc.arg(folder().join("src/cases.S"));
    tools::succeed(gcc.arg("-L").arg(runtime).arg("-l:libamdhip64.so.7"));
    out
}

/// A library like that of [`assembled`]. clang-offload-bundler wrote its first bundle with `options`, with more than a
/// page of code for each of gfx906, gfx1100, gfx90a and gfx942; the second one is for gfx1100.
pub fn bundled(case: &str, options: &[&str], flags: &[&str]) -> PathBuf {
    let folder = scratch(case);
    let mut bundler = Command::new("clang-offload-bundler-19");
    bundler.args(["--type=o", "--bundle-align=4096", "--output=bundle", "--input=/dev/null"]);
    let mut targets = "--targets=host-x86_64-unknown-linux".to_owned();
    let all = [
        ("gfx906", mach::GFX906),
        ("gfx1100", mach::GFX1100),
        ("gfx90a", mach::GFX90A),
        ("gfx942", mach::GFX942),
    ];
    for (seed, (target, mach)) in (1..).zip(all) {
        let text = String::from_utf8(code(seed, 20_000)).unwrap();
        std::fs::write(folder.join(target), code_object(mach, &text)).unwrap();
        bundler.arg(format!("--input={target}"));
        targets += &format!(",hipv4-amdgcn-amd-amdhsa--{target}");
    }
    tools::run(bundler.args(options).arg(targets).current_dir(&folder));
    let first = format!("-DFIRST=\"{}\"", folder.join("bundle").display());
    assembled(case, &[flags, &[first.as_str()]].concat())
}

/// The last component of a path.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Loads or runs a fixture with the stub runtime and returns what it prints.
pub fn load(file: &Path) -> String {
    let runtime = runtime();
    let mut command = if name(file).contains("pie") {
        Command::new(file)
    } else {
        Command::new(runtime.join("load"))
    };
    if !name(file).contains("pie") {
        command.arg(file);
    }
    if name(file).contains("asan") {
        static LIBRARY: OnceLock<String> = OnceLock::new();
        let find = || tools::succeed(Command::new("gcc").arg("-print-file-name=libasan.so"));
        command.env("LD_PRELOAD", LIBRARY.get_or_init(find).trim());
        command.env("ASAN_OPTIONS", "detect_leaks=0");
    }
    tools::told(command.env("LD_LIBRARY_PATH", runtime))
}
