//! Groups and primary shard that rockpack proposes if none are configured.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::{Room, shown, stderr};
use support::example::{self, rockpack, shards};
use support::tools;

/// The notes about decisions made without a configuration.
fn notes(output: &Output) -> Vec<String> {
    let said = stderr(output);
    said.lines().filter(|line| line.contains("no configuration")).map(str::to_owned).collect()
}

fn built(room: &Room, name: &str, artifacts: &Path, words: &[&str]) -> (Output, PathBuf) {
    let mut build = rockpack();
    build.args(["build", "--version", "7.1.0", "--artifacts"]).arg(artifacts).args(words);
    let out = room.path(name);
    (tools::run(build.arg("--out").arg(&out)), out)
}

#[test]
fn without_a_configuration_the_proposed_one_is_used_and_named() {
    let room = Room::new();
    let (output, proposed) = built(&room, "proposed", &shards(), &[]);
    let [note] = notes(&output).try_into().unwrap();
    assert!(note.contains("the groups are gfx110X, gfx115X, gfx120X, without gfx906"), "{note}");
    assert!(note.contains("the primary shard is gfx110X-build"), "{note}");

    // The command in the note saves a configuration that gives the same set.
    let command = note.split('`').nth(1).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_rockpack")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    tools::run(
        Command::new("sh").args(["-c", command]).env("PATH", path).current_dir(room.0.path()),
    );
    let saved = room.path("packaging.toml");
    let words = ["--config", saved.to_str().unwrap()];
    let (output, configured) = built(&room, "configured", &shards(), &words);
    assert_eq!(notes(&output), [""; 0]);
    assert!(example::contents(&proposed) == example::contents(&configured));

    let mut plan = rockpack();
    plan.args(["--log-format", "json", "plan", "--artifacts"]).arg(shards());
    let output = tools::run(&mut plan);
    let [event] = notes(&output).try_into().unwrap();
    let event: Value = serde_json::from_str(&event).unwrap();
    assert_eq!((&event["event"], &event["message"]), (&json!("note"), &json!(note)));
    let settings = shown(&[]);
    let origins = ["primary_shard", "architecture_groups"]
        .map(|key| &settings.iter().find(|(known, ..)| known == key).unwrap().2["origin"]);
    assert_eq!(origins, ["proposed", "proposed"]);
}

/// A configuration without groups means one group for each architecture.
#[test]
fn a_configuration_without_groups_keeps_its_meaning() {
    let room = Room::new();
    let file = room.write("c.toml", "release = '2'\n");
    let config = ["--config", file.to_str().unwrap()];
    let (output, out) = built(&room, "out", &shards().join("gfx1151-build"), &config);
    assert_eq!(notes(&output), [""; 0]);
    let names = example::names(&out);
    for arch in ["gfx906", "gfx1151"] {
        assert!(names.contains(&format!("rocm-blas-{arch}_7.1.0-2_amd64.deb")), "{names:?}");
    }
}

#[test]
fn without_device_code_there_is_nothing_to_propose() {
    let room = Room::new();
    let artifact = "gfx1151-build/host-suite-sparse_lib_generic";
    let copy = room.path("shard").join("host-suite-sparse_lib_generic");
    fs::create_dir(room.path("shard")).unwrap();
    tools::run(Command::new("cp").arg("-r").arg(shards().join(artifact)).arg(&copy));
    let (output, out) = built(&room, "out", &room.path("shard"), &[]);
    assert_eq!(notes(&output), [""; 0]);
    let names = example::names(&out);
    assert!(names.contains("rocm-host-suite-sparse_7.1.0-1_amd64.deb"), "{names:?}");
}

/// A list of packages assigns everything itself, and has no groups.
#[test]
fn with_a_list_of_packages_nothing_is_proposed() {
    let room = Room::new();
    let list = r#"[{ "Package": "amdrocm-blas", "Artifactory": [{ "Artifact": "blas",
        "Artifact_Subdir": [{ "Name": "rocBLAS", "Components": ["lib", "run"] }] }] }]"#;
    let file = room.write("package.json", list);
    let words = ["--packages", file.to_str().unwrap(), "--scheme", "amdrocm"];
    let (output, out) = built(&room, "out", &shards().join("gfx1151-build"), &words);
    assert_eq!(notes(&output), [""; 0]);
    let names = example::names(&out);
    assert!(names.contains("amdrocm-blas7.1-gfx906_7.1.0-1_amd64.deb"), "{names:?}");
}
