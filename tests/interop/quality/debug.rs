//! gdb finds the debug files of a transformed library by its build ID.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::device::compile;
use support::example::{Entry, rockpack, tree};
use support::queries::{deb_field, rpm_list};
use support::tools;
use tempfile::TempDir;

use crate::quality::alternatives::are_clean;

/// A shard with a fat library whose debug information was split off as in builds, and a set made from it.
struct Built {
    folder: TempDir,
    id: String,
}

const LIBRARY: &str = "lib/libsample.so.1";

impl Built {
    fn new() -> Self {
        let mut built = Self { folder: tempfile::tempdir().unwrap(), id: String::new() };
        let work = built.path("work");
        fs::create_dir(&work).unwrap();
        compile(&work, "sample", &["gfx1100"], &["-g"]);
        let whole = work.join("whole.so");
        tools::run(Command::new("gcc").current_dir(&work).args(["-shared", "sample.o"]).args([
            "-Wl,--build-id=sha1,--unresolved-symbols=ignore-all,-soname,libsample.so.1",
            "-o",
            "whole.so",
        ]));
        built.id = build_id(&whole);
        let library = built.stage("lib").join(LIBRARY);
        fs::create_dir_all(library.parent().unwrap()).unwrap();
        tools::run(Command::new("objcopy").arg("--strip-debug").arg(&whole).arg(&library));
        let debug = built.stage("dbg").join(".build-id").join(built.debug_name());
        fs::create_dir_all(debug.parent().unwrap()).unwrap();
        tools::run(Command::new("objcopy").arg("--only-keep-debug").arg(&whole).arg(&debug));
        built
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn debug_name(&self) -> String {
        format!("{}/{}.debug", &self.id[..2], &self.id[2..])
    }

    /// The stage folder of a component's artifact.
    fn stage(&self, component: &str) -> PathBuf {
        let artifact = self.path("shards/one").join(format!("sample_{component}_gfx1100"));
        fs::create_dir_all(artifact.join("sample/stage")).unwrap();
        fs::write(artifact.join("artifact_manifest.txt"), "sample/stage\n").unwrap();
        artifact.join("sample/stage")
    }

    fn command(&self) -> Command {
        let mut command = rockpack();
        command.arg("build").arg("--artifacts").arg(self.path("shards"));
        command.args(["--version", "7.1.0"]).arg("--out").arg(self.path("out"));
        command
    }

    fn deb(&self, package: &str) -> PathBuf {
        let found = fs::read_dir(self.path("out")).unwrap().map(|entry| entry.unwrap().path());
        let start = format!("{package}_");
        let mut of_it = found.filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with(&start) && name.ends_with(".deb")
        });
        of_it.next().unwrap()
    }

    fn unpack(&self, package: &str) -> PathBuf {
        let root = self.path("root");
        tools::run(Command::new("dpkg-deb").arg("-x").arg(self.deb(package)).arg(&root));
        root
    }
}

fn build_id(file: &Path) -> String {
    let notes = tools::succeed(Command::new("readelf").arg("-n").arg(file));
    let line = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
    line.unwrap().to_owned()
}

/// gdb's report on the function `run_sample` of an unpacked library, with the debug folder of its package.
/// (An installed system links to these files; tests/interop/install tests that.)
fn gdb(root: &Path) -> String {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex"]);
    gdb.arg(format!(
        "set debug-file-directory {}",
        root.join("usr/lib/debug/rocm-sample-dbgsym").display()
    ));
    gdb.arg(root.join("opt/rocm-7.1").join(LIBRARY)).args(["-ex", "info line run_sample"]);
    tools::succeed(&mut gdb)
}

const TOOLS: [&str; 9] = [
    "clang++-19",
    "ld.lld-19",
    "gcc",
    "objcopy",
    "readelf",
    "gdb",
    "dpkg-deb",
    "rpm",
    "clang-offload-bundler-19",
];

#[test]
fn gdb_finds_the_lines_of_a_transformed_library() {
    tools::need(&TOOLS);
    let built = Built::new();
    tools::run(&mut built.command());
    let root = built.unpack("rocm-sample");
    assert_eq!(build_id(&root.join("opt/rocm-7.1").join(LIBRARY)), built.id);
    let transformed = fs::read(root.join("opt/rocm-7.1").join(LIBRARY)).unwrap();
    assert!(transformed.windows(4).any(|bytes| bytes == b"HIPK"), "the library is transformed");
    assert!(gdb(&root).contains("No line number information"), "without the debug file");

    built.unpack("rocm-sample-dbgsym");
    let told = gdb(&root);
    assert!(told.contains("Line 3 of \"sample.hip\""), "{told}");
    let mut verify = rockpack();
    verify.arg("verify").arg(built.path("out")).arg("--against").arg(built.path("shards"));
    tools::run(&mut verify);
}

#[test]
fn debug_packages_say_what_they_are_for() {
    tools::need(&TOOLS);
    let built = Built::new();
    tools::run(&mut built.command());
    let deb = built.deb("rocm-sample-dbgsym");
    let fields = ["Section", "Build-Ids", "Auto-Built-Package"].map(|name| deb_field(&deb, name));
    assert_eq!(fields, ["debug", &built.id, "debug-symbols"]);
    if tools::have(&["dash", "shellcheck"]) {
        are_clean(&built.path("out"));
    }
    let rpm = built.path("out/rocm-sample-debuginfo-7.1.0-1.x86_64.rpm");
    let provides = rpm_list(&rpm, "--provides");
    assert!(provides.contains(&format!("debuginfo(build-id) = {}\n", built.id)), "{provides}");
    let files = rpm_list(&rpm, "--list");
    let name = built.debug_name();
    let folder = name.split('/').next().unwrap();
    let expected = format!(
        "/usr/lib/debug\n/usr/lib/debug/.build-id\n/usr/lib/debug/.build-id/{folder}\n\
         /usr/lib/debug/.build-id/{name}\n"
    );
    assert_eq!(files, expected);
}

#[test]
fn debug_files_in_other_forms_are_found_or_named() {
    tools::need(&TOOLS);
    let built = Built::new();
    let stage = built.stage("dbg");
    // rpm's layout of debug files: the file is named like the library, with a link by build ID.
    let link = stage.join(".build-id").join(built.debug_name());
    let file = stage.join("lib/debug/libsample.so.1.debug");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::rename(&link, &file).unwrap();
    symlink("../../lib/debug/libsample.so.1.debug", &link).unwrap();
    fs::write(stage.join("lib/debug/notes.txt"), "no debug file\n").unwrap();
    let told = tools::told(&mut built.command());
    let finding = "R080 debug-file-without-build-id: sample_dbg/lib/debug/notes.txt";
    assert!(told.contains(finding), "{told}");
    let root = built.unpack("rocm-sample-dbgsym");
    let files = tree(&root);
    let place = format!("usr/lib/debug/rocm-sample-dbgsym/.build-id/{}", built.debug_name());
    assert!(matches!(files.get(&place), Some(Entry::File { .. })));
    assert!(files.contains_key("opt/rocm-7.1/lib/debug/notes.txt"));
    assert!(!files.contains_key("opt/rocm-7.1/.build-id"));
    let mut verify = rockpack();
    verify.arg("verify").arg(built.path("out")).arg("--against").arg(built.path("shards"));
    tools::run(&mut verify);

    // If they are left out, a finding names them by their paths in the artifact.
    tools::run(built.command().args(["--only", "sample_lib"]));
    let receipt = fs::read_to_string(built.path("out/packages.json")).unwrap();
    assert!(receipt.contains("/lib/debug/libsample.so.1.debug\""), "{receipt}");
    tools::run(&mut verify);
    fs::remove_dir_all(built.path("out")).unwrap();

    // Another file with the same build ID is no match.
    let bytes = fs::read(&file).unwrap();
    fs::write(stage.join("lib/debug/other.debug"), [bytes, vec![0]].concat()).unwrap();
    let told = tools::told(&mut built.command());
    assert!(told.contains("has the build-id") && !told.contains("status: 0"), "{told}");
}
