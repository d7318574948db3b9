//! Each command refuses everything that needs no input before it opens any, all faults together.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::{rockpack, shards};
use support::gpg_keys::key;
use support::tools;

use super::refused::{USAGE, refused_ahead};
use super::{Room, stderr};

/// A shard and an artifact in it.
const SHARD: &str = "gfx110X-build";
const ARTIFACT: &str = "blas_lib_gfx110X-dgpu";

/// An artifact of the example. Commands may look at its shard's name and its neighbours.
fn artifact() -> PathBuf {
    shards().join(SHARD).join(ARTIFACT)
}

fn command(words: &[&str]) -> Command {
    let mut command = rockpack();
    command.args(words);
    command
}

fn build(out: &Path) -> Command {
    let mut build = command(&["build", "--version", "7.1", "--artifacts"]);
    build.arg(shards()).arg("--out").arg(out);
    build
}

#[test]
fn verify_looks_at_its_options_before_artifacts_and_packages() {
    let room = Room::new();
    let broken = room.write("broken.asc", "no key");
    let endless = room.write("endless.asc", "");
    fs::File::options().write(true).open(&endless).unwrap().set_len((16 << 20) + 1).unwrap();
    let mut verify = command(&["verify", "no-packages", "--against"]);
    verify.arg(shards()).args(["--key", "no-key", "--key"]).arg(broken);
    verify.arg("--key").arg(endless);
    verify.arg("--join").arg(room.path("")).env("SOURCE_DATE_EPOCH", "today");
    let expected = [
        "SOURCE_DATE_EPOCH is today",
        "no-key",
        "broken.asc: is not an OpenPGP public key",
        "endless.asc: OpenPGP key: has more than 16777216 bytes",
        "already exists, and is not a file",
        "no-packages",
    ];
    refused_ahead(&mut verify, &shards(), USAGE, &expected);
    let packages = room.path("packages");
    tools::run(&mut build(&packages));
    let mut verify = command(&["verify", "--key", "no-key", "--join", "no/packages.json"]);
    verify.arg(&packages);
    refused_ahead(&mut verify, &packages, USAGE, &["no-key", "no/packages.json"]);
}

#[test]
fn verify_takes_no_secret_key_for_one_that_it_trusts() {
    tools::need(&["gpg", "gpgconf"]);
    let room = Room::new();
    let own = key(&room.path(""), "own", "ed25519");
    let mut verify = command(&["verify", "--key"]);
    verify.arg(&own.secret).arg(shards());
    refused_ahead(&mut verify, &shards(), USAGE, &["own.secret: contains the secret key"]);
}

#[test]
fn split_tells_wrong_targets_and_a_wrong_folder_at_once() {
    let out = shards().join(SHARD).join("out");
    let mut split = command(&["split", "--gpu-targets", "gfx110X", "x", "--output-dir"]);
    split.arg(&out).arg("--artifacts").arg(shards());
    let expected = ["--gpu-targets: ", "--gpu-targets: ", "the output folder lies inside of"];
    refused_ahead(&mut split, &artifact(), USAGE, &expected);
    assert!(!out.exists());
    let room = Room::new();
    let file = room.write("file", "");
    let mut split = command(&["split", "--artifact-prefix", "x", "--artifact-dir"]);
    split.arg(artifact()).args(["--gpu-targets", "x", "--output-dir"]).arg(&file);
    let expected = ["--gpu-targets", "file: is a file, but artifacts are written into a folder"];
    refused_ahead(&mut split, &artifact(), USAGE, &expected);
}

#[test]
fn recombine_tells_a_wrong_configuration_and_a_wrong_folder_at_once() {
    let room = Room::new();
    let file = room.write("file", "");
    let config = room.write("c.toml", "prefiks = '/opt/rocm'");
    let mut recombine = command(&["recombine", "--artifacts"]);
    recombine.arg(shards()).arg("--config").arg(config).arg("--output-dir").arg(file.join("out"));
    let expected =
        ["file: is a file, but artifacts are written into a folder", "c.toml: line 1, column 1"];
    refused_ahead(&mut recombine, &shards(), USAGE, &expected);
}

#[test]
fn discover_tells_where_no_proposal_can_be_written() {
    let room = Room::new();
    let mut discover = command(&["discover", "--artifacts"]);
    discover.arg(shards()).arg("--propose").arg(room.path("no/config.yaml"));
    let expected = ["neither a .json nor a .toml", "no/config.yaml: cannot create: No such file"];
    refused_ahead(&mut discover, &shards(), USAGE, &expected);
    let mut discover = command(&["discover", "--artifacts"]);
    fs::create_dir(room.path("config.json")).unwrap();
    discover.arg(shards()).arg("--propose").arg(room.path("config.json"));
    refused_ahead(&mut discover, &shards(), USAGE, &["already exists, and is not a file"]);
}

#[test]
fn extract_refuses_a_file_for_its_folder() {
    let room = Room::new();
    let file = room.write("file", "");
    let library = artifact().join("math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2");
    assert!(library.is_file());
    for out in [file.clone(), file.join("out")] {
        let mut extract = command(&["extract", "--out"]);
        extract.arg(out).arg(&library);
        let expected = ["file: is a file, but code objects are written into a folder"];
        refused_ahead(&mut extract, &library, USAGE, &expected);
    }
}

#[test]
fn a_build_refuses_an_output_folder_that_it_cannot_use() {
    let room = Room::new();
    let file = room.write("file", "");
    let said = ["file: is a file, but packages are written into a folder"];
    refused_ahead(&mut build(&file), &shards(), USAGE, &said);
    let together = [said[0], "--release: `1-2`", "no-key"];
    let wrong = ["--release", "1-2", "--sign-key", "no-key"];
    refused_ahead(build(&file).args(wrong), &shards(), USAGE, &together);
    refused_ahead(&mut build(&file.join("out")), &shards(), USAGE, &said);

    let out = room.path("out");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("packages.json"), "{}").unwrap();
    refused_ahead(&mut build(&out), &artifact(), USAGE, &["packages.json"]);
    fs::remove_file(out.join("packages.json")).unwrap();
    fs::write(out.join("packages.spdx.json"), "{}").unwrap();
    let said = ["packages.spdx.json: is not an SPDX document of rockpack"];
    refused_ahead(build(&out).arg("--sbom"), &artifact(), USAGE, &said);
    fs::remove_file(out.join("packages.spdx.json")).unwrap();
    tools::run(&mut build(&out));
    let said = ["is the receipt of a whole set, but this run writes one of 2 parts"];
    refused_ahead(build(&out).args(["--partition", "1/2"]), &artifact(), USAGE, &said);
}

/// An output folder and a repository that are both unusable are reported together.
#[test]
fn a_build_refuses_folders_that_are_in_each_other() {
    let room = Room::new();
    let repo = room.path("repo");
    let said = ["packages: the output folder is inside the repository"];
    let mut inside = build(&repo.join("packages"));
    refused_ahead(inside.arg("--repo").arg(&repo), &shards(), USAGE, &said);
    assert!(!repo.exists());
    let repo = shards().join(SHARD).join("repo");
    let mut inside = build(&room.write("file", ""));
    let said = ["repo: the repository lies inside of"];
    refused_ahead(inside.arg("--repo").arg(&repo), &artifact(), USAGE, &said);
    let file = room.write("repo", "");
    let mut both = build(&room.path("file"));
    both.arg("--repo").arg(file.join("repo"));
    let said = ["but packages are written into a folder", "repo: is a file"];
    refused_ahead(&mut both, &artifact(), USAGE, &said);
}

/// Set, signature and publication all need the time; a wrong one is still reported once.
#[test]
fn a_time_that_is_none_is_told_once() {
    let room = Room::new();
    let mut build = build(&room.path("out"));
    build.arg("--repo").arg(room.path("repo")).env("SOURCE_DATE_EPOCH", "today");
    let said = stderr(&build.output().unwrap());
    assert_eq!(said.matches("SOURCE_DATE_EPOCH is today").count(), 1, "{said}");
}

/// The next run cleans up what an interrupted one left, so it is not refused beforehand.
#[test]
fn what_a_dead_run_left_keeps_no_build_from_beginning() {
    let room = Room::new();
    let out = room.path("out");
    tools::run(build(&out).arg("--sbom"));
    // The state after a kill between moving the receipt away and moving the document.
    let scratch = out.join(".rockpack-staging-1");
    fs::create_dir_all(scratch.join("replaced")).unwrap();
    let owner = fs::metadata(&out).unwrap().uid();
    let record = format!("packages.spdx.json\npackages.json\nreplaces/\nf{owner} packages.json");
    fs::write(scratch.join("committing"), record).unwrap();
    fs::write(scratch.join("packages.json"), "{}").unwrap();
    fs::rename(out.join("packages.json"), scratch.join("replaced/packages.json")).unwrap();
    let output = build(&out).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}
