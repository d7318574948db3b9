//! Output folders that are not empty, and artifacts that are split again by other targets.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use serde_json::Value;
use support::example::{GROUPS, configuration, names, rockpack, shards, tree};
use support::tools;

use crate::directories::{Work, ends_with, split_of};

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_component_takes_the_place_of_all_its_earlier_artifacts() {
    let work = Work::new();
    let out = work.split_shards();
    let shard = GROUPS[0].folder(&out);
    // Another component, a file with such a name, and a link all stay.
    fs::create_dir(shard.join("blas_lib_notes")).unwrap();
    fs::create_dir_all(shard.join("fft_lib_gfx1101")).unwrap();
    fs::write(shard.join("fft_lib_gfx1101/artifact_manifest.txt"), "x/stage\n").unwrap();
    symlink("fft_lib_gfx1101", shard.join("blas_lib_link")).unwrap();
    let mut command = split_of(&GROUPS[0].folder(&shards()));
    command.arg("--output-dir").arg(&out).args(["--gpu-targets", "gfx1100"]);
    let (said, _) = ends_with(&mut command, 0);
    let gone: Vec<&str> = said.lines().filter(|line| line.starts_with("removed ")).collect();
    let expected = [
        "blas_lib_gfx1101",
        "blas_lib_gfx1102",
        "blas_lib_gfx906",
        "blas_run_gfx1101",
        "blas_run_gfx1102",
    ];
    assert_eq!(
        gone,
        expected.map(|name| format!("removed gfx110X-build/{name} of an earlier run"))
    );
    let left = [
        "blas_lib_generic",
        "blas_lib_gfx1100",
        "blas_lib_link",
        "blas_lib_notes",
        "blas_run_generic",
        "blas_run_gfx1100",
        "fft_lib_gfx1101",
        "host-suite-sparse_lib_generic",
    ];
    assert_eq!(names(&shard), set(&left));
    // Nothing is left to remove, and no message claims otherwise.
    let (said, _) = ends_with(command.arg("--json"), 0);
    assert!(json(&said).get("removed").is_none(), "{said}");
    assert_eq!(names(&shard), set(&left));
}

/// The folder is as a run killed in the middle of its commit leaves it.
#[test]
fn a_commit_that_was_killed_is_taken_back_by_the_next_run() {
    let work = Work::new();
    let out = work.path("out");
    let scratch = out.join(".rockpack-artifacts-1");
    write_artifact(&out.join("fft_lib_gfx1100"));
    write_artifact(&scratch.join("fft_lib_generic"));
    write_artifact(&scratch.join("replaced/fft_lib_gfx1101"));
    write_artifact(&scratch.join("replaced/fft_lib_generic"));
    let owner = fs::metadata(&out).unwrap().uid();
    let record = format!(
        "fft_lib_gfx1100\nfft_lib_generic\nreplaces/\n\
         d{owner} fft_lib_generic\nd{owner} fft_lib_gfx1101"
    );
    fs::write(scratch.join("committing"), record).unwrap();
    let mut command = rockpack();
    command.arg("split").arg("--artifact-dir").arg(shards().join("gfx1151-build/blas_lib_gfx1151"));
    ends_with(command.arg("--output-dir").arg(&out), 0);
    let mut left = names(&out);
    left.retain(|name| !name.starts_with("blas_lib_"));
    assert_eq!(left, set(&["fft_lib_generic", "fft_lib_gfx1101"]));
}

fn write_artifact(path: &Path) {
    fs::create_dir_all(path).unwrap();
    fs::write(path.join("artifact_manifest.txt"), "x/stage\n").unwrap();
}

#[test]
fn artifacts_of_a_renamed_group_are_removed() {
    let work = Work::new();
    let out = work.recombine(&shards(), "out");
    let config = work.path("renamed.json");
    let text = fs::read_to_string(configuration()).unwrap();
    fs::write(&config, text.replace("\"gfx115X\"", "\"strix\"")).unwrap();
    let mut command = rockpack();
    command.args(["recombine", "--json", "--config"]).arg(&config);
    command.arg("--artifacts").arg(shards()).arg("--output-dir").arg(&out);
    let (said, _) = ends_with(&mut command, 0);
    let removed = serde_json::json!(["blas_lib_gfx115X", "blas_run_gfx115X"]);
    assert_eq!(json(&said)["removed"], removed);
    let listed: BTreeSet<String> = json(&said)["artifacts"]
        .as_array()
        .unwrap()
        .clone()
        .iter()
        .map(|a| a["artifact"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names(&out), listed);
    assert!(listed.contains("blas_lib_strix"));
}

#[test]
fn input_beside_the_output_is_never_removed() {
    let work = Work::new();
    let folder = work.path("shard");
    tools::run(
        std::process::Command::new("cp").arg("-r").arg(GROUPS[0].folder(&shards())).arg(&folder),
    );
    let input = folder.join("blas_lib_gfx110X-dgpu");
    let before = tree(&input);
    let mut command = rockpack();
    command.arg("split").arg("--artifact-dir").arg(&input).arg("--output-dir").arg(&folder);
    let (said, _) = ends_with(&mut command, 0);
    assert!(!said.contains("removed"), "{said}");
    assert!(tree(&input) == before);
    assert!(names(&folder).contains("blas_lib_gfx1100"));
}

/// The fat artifact and its device half are both named `blas_lib_gfx1151`.
#[test]
fn an_artifact_that_is_read_is_not_replaced() {
    let work = Work::new();
    let folder = work.path("gfx1151-build");
    let shard = shards().join("gfx1151-build");
    tools::run(std::process::Command::new("cp").arg("-r").arg(shard).arg(&folder));
    let input = folder.join("blas_lib_gfx1151");
    symlink(&input, work.path("link_lib_gfx1151")).unwrap();
    symlink(&folder, work.path("linked")).unwrap();
    fs::create_dir(work.path("roots")).unwrap();
    symlink(&folder, work.path("roots/shard")).unwrap();
    let before = tree(work.0.path());
    let mut renamed = split_artifact(&work.path("link_lib_gfx1151"), &folder);
    renamed.args(["--artifact-prefix", "blas_lib"]);
    let mut shards = split_of(&folder);
    shards.arg("--output-dir").arg(work.0.path());
    let mut joined = rockpack();
    joined.args(["recombine", "--artifacts"]).arg(work.path("roots")).arg("--output-dir");
    joined.arg(&folder);
    let direct = split_artifact(&input, &folder);
    let linked = split_artifact(&input, &work.path("linked"));
    for mut command in [direct, linked, renamed, shards, joined] {
        let (_, said) = ends_with(&mut command, 64);
        assert!(
            said.contains("output folder lies inside of")
                || said.contains("is an input artifact, which the output would replace"),
            "{said}"
        );
        assert!(tree(work.0.path()) == before, "{command:?}");
    }
}

fn split_artifact(input: &Path, out: &Path) -> std::process::Command {
    let mut command = rockpack();
    command.arg("split").arg("--artifact-dir").arg(input).arg("--output-dir").arg(out);
    command
}

/// Splits by `targets` the output of `work.split_shards` for the first shard.
fn again(work: &Work, shard: &Path, targets: &[&str]) -> std::process::Command {
    let mut command = rockpack();
    command.arg("split").arg("--batch-artifact-parent-dir").arg(shard);
    command.arg("--output-dir").arg(work.path("again")).arg("--gpu-targets").args(targets);
    command
}

#[test]
fn targets_mean_the_same_for_split_artifacts_as_for_fat_ones() {
    let work = Work::new();
    let split = GROUPS[0].folder(&work.split_shards());
    let (_, said) = ends_with(&mut again(&work, &split, &["gfx942"]), 2);
    for binary in ["lib/libexblas.so.1.2", "bin/exblas-bench", "libexec/exblas/exblas-tune"] {
        let named = said.lines().any(|line| {
            line.contains(binary) && line.contains("--gpu-targets selects none of the archs")
        });
        assert!(named, "{binary}: {said}");
    }
    assert_eq!(names(&work.path("again")), set(&["host-suite-sparse_lib_generic"]));

    ends_with(&mut again(&work, &split, &["gfx1100", "gfx1102"]), 0);
    let direct = work.path("direct");
    let mut command = rockpack();
    command.arg("split").arg("--batch-artifact-parent-dir").arg(GROUPS[0].folder(&shards()));
    command.arg("--output-dir").arg(&direct).args(["--gpu-targets", "gfx1100,gfx1102"]);
    ends_with(&mut command, 0);
    assert!(tree(&work.path("again")) == tree(&direct));
    tools::run(rockpack().arg("verify").arg(&direct));
}

#[test]
fn a_target_without_any_code_is_told() {
    let work = Work::new();
    let shard = GROUPS[0].folder(&shards());
    let (_, said) = ends_with(&mut again(&work, &shard, &["gfx1100,gfx90a"]), 0);
    let warnings: Vec<&str> =
        said.lines().filter(|line| line.starts_with("warning: R044")).collect();
    let expected = "warning: R044 target-absent: gfx90a: no artifact has device code of this arch, \
                    which is among the requested targets";
    assert_eq!(warnings, [expected]);
}
