//! Split artifacts of the existing Python tool, laid out by `tests/support/existing_split.py`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use support::example::{
    Entry, GROUPS, configuration, deb_name, names, plant, rockpack, shards, tree,
};
use support::runtime::TOOLS;
use support::{kpack, python, tools};

use crate::directories::loaded::{flatten, works};
use crate::directories::{Work, assert_same_packages, ends_with};

/// All shards in the existing tool's layout, of which each scheme is laid out once in a run.
fn existing(work: &Work, scheme: &'static str) -> PathBuf {
    static MADE: Mutex<BTreeMap<&str, BTreeMap<String, Entry>>> = Mutex::new(BTreeMap::new());
    kpack::need_python();
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let entries = made.entry(scheme).or_insert_with(|| laid_out(scheme));
    plant(entries, &work.path("existing"), false);
    work.path("existing")
}

fn laid_out(scheme: &str) -> BTreeMap<String, Entry> {
    let work = Work::new();
    let (split, out) = (work.split_shards(), work.path("existing"));
    for group in &GROUPS {
        let folders = [&shards(), &split, &out].map(|root| group.folder(root));
        let [fat, split, out] = folders.each_ref().map(|folder| folder.to_str().unwrap());
        let script = include_str!("../../support/existing_split.py");
        python::run(script, &[fat, split, out, scheme], "").unwrap();
    }
    tree(&out)
}

#[test]
fn kernel_packages_are_those_of_fat_artifacts() {
    let work = Work::new();
    let existing = existing(&work, "zstd-per-kernel");
    let direct = work.direct("direct");
    let built = work.build(&existing, "built");
    // Host binaries differ: the tool's changes to them cannot be undone.
    assert_same_packages(&direct, &built, |name| {
        !name.starts_with("rocm-blas_") && !name.starts_with("rocm-blas-7")
    });
    tools::need(&["dpkg-deb"]);
    tools::need(TOOLS);
    let root = work.path("root");
    for package in ["rocm-blas", "rocm-blas-gfx110x", "rocm-blas-gfx120x"] {
        let package = built.join(deb_name(package));
        tools::run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&root));
    }
    for device in ["gfx1102", "gfx1200"] {
        works(&root.join("opt/rocm-7.1"), &work.path(device), device);
    }
}

#[test]
fn uncompressed_archives_are_read() {
    let work = Work::new();
    let existing = existing(&work, "none");
    let direct = work.direct("direct");
    let built = work.build(&existing, "built");
    assert_same_packages(&direct, &built, |name| name.contains("-gfx"));
}

#[test]
fn the_layout_itself_works_and_moved_program_headers_are_reported() {
    let work = Work::new();
    let existing = existing(&work, "zstd-per-kernel");
    if tools::have(TOOLS) {
        let root = work.path("root");
        fs::create_dir(&root).unwrap();
        let shard = GROUPS[0].folder(&existing);
        flatten(&shard.join("blas_lib_generic"), &root);
        flatten(&shard.join("blas_lib_gfx1100"), &root);
        works(&root, &work.path("stub"), "gfx1100");
    }
    let mut command = support::example::build_of(&existing, &work.path("out"));
    let (_, said) = ends_with(&mut command, 0);
    let moved = said.lines().filter(|line| line.contains("R041") && line.contains("libexblas.so"));
    assert_eq!(moved.count(), 3, "{said}");
}

#[test]
fn splitting_it_changes_nothing() {
    let work = Work::new();
    let existing = existing(&work, "none");
    // A manifest may list absent prefixes, and in any order.
    let manifest = GROUPS[0].folder(&existing).join("blas_lib_generic/artifact_manifest.txt");
    let lines = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("z/absent/stage\n{lines}a/absent/stage\n")).unwrap();
    let again = work.split(&existing, "again");
    assert!(tree(&existing) == tree(&again));
}

#[test]
fn rows_that_no_binary_claims_are_accounted_for() {
    let work = Work::new();
    let existing = existing(&work, "zstd-per-kernel");
    let generic = GROUPS[2].folder(&existing).join("blas_lib_generic");
    fs::remove_file(generic.join("math-libs/BLAS/rocBLAS/stage/libexec/exblas/exblas-tune"))
        .unwrap();
    let out = work.path("recombined");
    let mut command = rockpack();
    command.args(["recombine", "--json", "--config"]).arg(configuration());
    command.arg("--input-shards-dir").arg(&existing).arg("--output-dir").arg(&out);
    let (json, _) = ends_with(&mut command, 0);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let unclaimed: Vec<_> = findings.iter().filter(|finding| finding["code"] == "R040").collect();
    assert_eq!(unclaimed.len(), 2, "one archive per arch: {unclaimed:?}");
    for finding in unclaimed {
        assert_eq!(finding["code_objects"].as_array().unwrap().len(), 1);
        assert!(finding["message"].as_str().unwrap().contains("exblas-tune"), "{finding}");
    }
    // Split artifacts are kept unchanged, even those whose archives have such rows.
    let mut command = crate::directories::split_of(&existing);
    let (_, said) = ends_with(command.arg("--output-dir").arg(work.path("again")), 0);
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("R040")).collect();
    let expected = "refers to 1 code object, so no kernel package has it";
    assert!(lines.len() == 2 && lines.iter().all(|line| line.contains(expected)), "{said}");
    assert!(tree(&existing) == tree(&work.path("again")));
}

#[test]
fn damaged_archives_are_refused() {
    let work = Work::new();
    let existing = existing(&work, "none");
    let artifact = GROUPS[1].folder(&existing).join("blas_lib_gfx1151");
    let archive = artifact.join("math-libs/BLAS/rocBLAS/stage/.kpack/blas_lib_gfx1151.kpack");
    let bytes = fs::read(&archive).unwrap();
    fs::write(&archive, &bytes[..bytes.len() - 1]).unwrap();
    let mut command = support::example::build_of(&existing, &work.path("out"));
    let (_, said) = ends_with(&mut command, 2);
    assert!(said.contains("blas_lib_gfx1151.kpack") && said.contains("help"), "{said}");
    assert_eq!(names(&work.path("out")).len(), 0);
}
