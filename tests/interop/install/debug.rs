//! Debug files that several packages have: gdb finds them as long as one of the packages is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use support::example::Group;
use support::program::scratch;
use support::tools;

use crate::install::sets::{Built, Recipe};
use crate::install::system::{System, assert_same};

const SOURCE: &str = "int sample(int x)\n{\n    return x + 1;\n}\n";

/// The artifacts that get the library and its debug file: component, stage prefix, and path of the library.
const PLACES: [(&str, &str, &str); 2] = [
    ("blas", "math-libs/BLAS/rocBLAS/stage", "lib/libsample.so.1"),
    ("host-suite-sparse", "third-party/SuiteSparse/stage", "lib/libother.so.1"),
];

/// The libraries of two families in two series.
const FIRST: &str = "rocm-7.1/lib/libsample.so.1";
const NEXT: &str = "rocm-7.2/lib/libother.so.1";

/// A library without debug information, and its debug file under its build ID; compiled once.
fn sample() -> &'static (PathBuf, PathBuf) {
    static MADE: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    MADE.get_or_init(|| compile(&scratch("debug-sample")))
}

fn compile(folder: &Path) -> (PathBuf, PathBuf) {
    let [whole, library] = ["whole", "library"].map(|name| folder.join(name));
    fs::write(folder.join("sample.c"), SOURCE).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.current_dir(folder).args(["-g", "-shared", "-fPIC", "-Wl,--build-id=sha1"]);
    tools::run(gcc.args(["sample.c", "-nostdlib", "-o", "whole"]));
    let notes = tools::succeed(Command::new("readelf").arg("-n").arg(&whole));
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).unwrap();
    let debug = folder.join(".build-id").join(&id[..2]).join(format!("{}.debug", &id[2..]));
    fs::create_dir_all(debug.parent().unwrap()).unwrap();
    for (how, to) in [("--strip-debug", &library), ("--only-keep-debug", &debug)] {
        tools::run(Command::new("objcopy").arg(how).arg(&whole).arg(to));
    }
    (library, debug)
}

/// Puts library and debug file into a shard, for two families.
pub fn add((library, debug): &(PathBuf, PathBuf), group: &Group, artifacts: &Path) {
    let start = debug.ancestors().nth(3).unwrap();
    for (artifact, stage, name) in PLACES {
        let family = if artifact == "blas" { group.family } else { "generic" };
        for component in ["lib", "dbg"] {
            let folder = format!("{artifact}_{component}_{family}");
            let folder = group.folder(artifacts).join(folder);
            let (from, to) = match component {
                "lib" => (library.as_path(), name.to_owned()),
                _ => (debug.as_path(), debug.strip_prefix(start).unwrap().display().to_string()),
            };
            let file = folder.join(stage).join(to);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::copy(from, file).unwrap();
            fs::write(folder.join("artifact_manifest.txt"), format!("{stage}\n")).unwrap();
        }
    }
}

/// Tells for each library whether gdb finds its lines, by its build ID alone.
fn finds_lines<const N: usize>(root: &Path, libraries: [&str; N]) -> [bool; N] {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex"]);
    gdb.arg(format!("set debug-file-directory {}", root.join("usr/lib/debug").display()));
    for library in libraries {
        let file = format!("file {}", root.join("opt").join(library).display());
        gdb.args(["-ex", &file, "-ex", "info line sample", "-ex", "echo end of a library\\n"]);
    }
    let told = tools::succeed(&mut gdb);
    let each: Vec<&str> = told.split("end of a library\n").collect();
    std::array::from_fn(|at| {
        let found = each[at].contains("of \"sample.c\"");
        assert!(found || each[at].contains("No line number information"), "{told}");
        found
    })
}

/// Two families in two versions have the same library: any of the four packages is enough, all can be
/// installed together, and an update keeps the debug files available.
pub fn versions_and_families_share_debug_files(system: &dyn System) {
    tools::need(&["gcc", "objcopy", "readelf", "gdb"]);
    let [first, next] = ["7.1.0", "7.2.0"].map(|version| recipe(version).build());
    let update = recipe("7.1.1").option("--since", &first.receipt()).build();
    [&first, &next].into_iter().for_each(|set| verifies(set));
    let before = system.snapshot();
    system.offer(&[&first.out(), &next.out()]);
    let suffix = if system.format() == "deb" { "dbgsym" } else { "debuginfo" };
    let name = |family: &str, series: &str| format!("rocm-{family}-{suffix}{series}");
    let all = ["7.1", "7.2"]
        .map(|series| ["blas", "host-suite-sparse"].map(|family| name(family, series)));
    let all: Vec<&str> = all.iter().flatten().map(String::as_str).collect();
    tools::run(&mut system.install(&["rocm-blas7.1", "rocm-host-suite-sparse7.2"]));
    assert_eq!(finds_lines(system.root(), [FIRST]), [false]);
    tools::run(&mut system.install(&all));
    assert_found(system);
    system.assert_whole();

    // The last remaining package, whichever it is.
    for last in [3, 0] {
        for (index, package) in all.iter().enumerate().filter(|(index, _)| *index != last) {
            assert_found(system);
            tools::run(&mut system.purge(&[package]));
            assert!(!system.names().contains(all[index]));
        }
        assert_found(system);
        tools::run(&mut system.install(&all));
    }
    system.offer(&[&first.out(), &next.out(), &update.out()]);
    tools::run(&mut system.update());
    assert_eq!(system.installed()[all[0]], "7.1.1-1");
    assert_found(system);
    system.assert_whole();
    tools::run(&mut system.remove(&all));
    assert_eq!(finds_lines(system.root(), [FIRST]), [false]);
    system.purge_all();
    assert_same(&before, &system.snapshot());
}

fn recipe(version: &'static str) -> Recipe {
    let (library, debug) = sample();
    Recipe::new(version).scheme("rocm-versioned").sample(library, debug)
}

fn assert_found(system: &dyn System) {
    assert_eq!(finds_lines(system.root(), [FIRST, NEXT]), [true, true]);
}

fn verifies(set: &Built) {
    let told = tools::told(support::example::rockpack().arg("verify").arg(set.out()));
    assert!(told.contains("all checks passed"), "{told}");
}
