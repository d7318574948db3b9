//! Several builds of one component in one shard, as runs for several archs leave them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::{GROUPS, names, rockpack, shards};
use support::tools;

use crate::directories::{Work, assert_same_packages, ends_with};

/// All archs of the groups. Every family has code of the compilers' fallback, and it differs.
const TARGETS: &str = "gfx1100,gfx1101,gfx1102,gfx1151,gfx1200,gfx1201";

fn copy(from: &Path, to: &Path) {
    tools::run(Command::new("cp").arg("-r").arg(from).arg(to));
}

/// The artifacts of all families in one shard; those of the first family are from `first`.
fn flat(work: &Work, first: &Path) -> PathBuf {
    let root = work.path("flat");
    let shard = GROUPS[0].folder(&root);
    fs::create_dir_all(&shard).unwrap();
    for (number, group) in GROUPS.iter().enumerate() {
        let shards = if number == 0 { first.to_path_buf() } else { shards() };
        for artifact in names(&group.folder(&shards)) {
            if !shard.join(&artifact).exists() {
                copy(&group.folder(&shards).join(&artifact), &shard);
            }
        }
    }
    root
}

fn split(artifacts: &Path, out: &Path) -> Command {
    let mut command = rockpack();
    command.args(["split", "--artifacts"]).arg(artifacts).arg("--output-dir").arg(out);
    command
}

#[test]
fn several_builds_of_a_binary_are_joined() {
    let work = Work::new();
    let flat = flat(&work, &shards());
    let out = work.path("joined");
    let (_, said) = ends_with(split(&flat, &out).args(["--gpu-targets", TARGETS]), 0);
    assert!(!said.contains("warning"), "{said}");
    let shard = names(&GROUPS[0].folder(&out));
    for component in ["blas_lib", "blas_run"] {
        let own: Vec<&str> = shard
            .iter()
            .filter(|name| name.starts_with(component))
            .map(|name| &name[component.len() + 1..])
            .collect();
        assert_eq!(
            own,
            ["generic", "gfx1100", "gfx1101", "gfx1102", "gfx1151", "gfx1200", "gfx1201"]
        );
    }
    tools::run(rockpack().arg("verify").arg(&out));
    let direct = work.build(&flat, "direct");
    assert_same_packages(&direct, &work.build(&out, "from-joined"), |_| true);
}

#[test]
fn split_and_fat_builds_of_one_component_are_joined() {
    let work = Work::new();
    let flat = flat(&work, &work.split_shards());
    let out = work.path("joined");
    ends_with(split(&flat, &out).args(["--gpu-targets", TARGETS]), 0);
    let direct = work.build(&flat, "direct");
    assert_same_packages(&direct, &work.build(&out, "from-joined"), |_| true);
    assert_same_packages(&work.direct("shards"), &direct, |_| true);
}

#[test]
fn builds_that_contradict_each_other_are_refused() {
    let work = Work::new();
    let out = work.path("joined");
    let flat = flat(&work, &shards());
    let (_, said) = ends_with(&mut split(&flat, &out), 2);
    assert!(said.contains("code object of gfx906 differs between"), "{said}");
    assert!(said.contains("--gpu-targets without it"), "{said}");
    assert!(said.contains("1 component failed; 8 artifacts written to"), "{said}");
    assert!(said.lines().all(|line| line.trim() != "Error:"), "{said}");
    let only = names(&GROUPS[0].folder(&out)).into_iter().collect::<Vec<_>>();
    assert!(!only.iter().any(|name| name.starts_with("blas_lib")), "{only:?}");
    let json = ends_with(split(&flat, &out).arg("--json"), 2).0;
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let failure = &report["failures"][0];
    assert_eq!(failure["component"], "gfx110X-build/blas_lib");
    let others = failure["others"].as_array().unwrap();
    let error = failure["error"].as_str().unwrap();
    assert!(error.contains("blas_lib_gfx1151") && others.len() == 1, "{failure}");
    assert!(others[0].as_str().unwrap().contains("blas_lib_gfx120X-all"), "{failure}");
}
