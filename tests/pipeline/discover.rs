//! `rockpack discover`, from outside: what it finds, which archs it calls fallbacks, and that
//! `build` takes what it proposes.

use std::fs;
use std::path::Path;
use std::process::Output;

use rockpack_core::error::Faults;
use rockpack_plan::config::{Config, Syntax};
use serde_json::{Value, json};
use support::example::{self, GROUPS, Set, contents, copy_shards, rockpack, shards};
use support::tools;

fn discover(arguments: &[&str]) -> Output {
    let folder = tools::repository("");
    rockpack().arg("discover").args(arguments).current_dir(folder).output().unwrap()
}

#[track_caller]
fn text(arguments: &[&str]) -> String {
    let output = discover(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn found(arguments: &[&str]) -> Value {
    let arguments = [&["--json"], arguments].concat();
    serde_json::from_str(&text(&arguments)).unwrap()
}

#[track_caller]
fn refused(arguments: &[&str], message: &str) {
    let output = discover(arguments);
    let errors = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    assert!(!output.status.success() && errors.contains(message), "{errors}");
}

#[test]
fn the_table_names_every_artifact_and_the_fallback() {
    let text = text(&["examples/shards"]);
    for line in [
        "gfx110X-build  blas_lib_gfx110X-dgpu          gfx906 (fallback)             1   4.49 kB               -         -",
        "gfx110X-build  blas_lib_gfx110X-dgpu          gfx1102                       3  12.59 kB               5  11.48 kB",
        "gfx120X-build  host-suite-sparse_lib_generic  none                          -         -               -         -",
        "gfx1151  RDNA 3.5    gfx1151-build                                           4               5",
        "gfx906 is only a fallback of the compiler:",
        "  gfx1151-build: not covered by gfx1151, no database files, in 1 of 4 wrappers",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let noted = String::from_utf8(discover(&["-v", "examples/shards"]).stderr).unwrap();
    assert!(noted.contains("note: R001 manifest-prefix-absent: "), "{noted}");
    assert!(!text.contains("R001"), "{text}");
}

/// The expected numbers are from the example's own description and from `clang-offload-bundler`.
#[test]
fn the_numbers_are_those_of_the_files() {
    let found = found(&["--artifacts", "examples/shards"]);
    for (shard, group) in found["shards"].as_array().unwrap().iter().zip(&GROUPS) {
        assert_eq!(shard["name"], json!(format!("{}-build", group.shard)));
        let fallbacks = shard["fallbacks"].as_object().unwrap();
        assert_eq!(fallbacks.keys().collect::<Vec<_>>(), ["gfx906"]);
        let artifacts = shard["artifacts"].as_array().unwrap();
        assert_eq!(artifacts.len(), 3);
        assert_eq!(artifacts[0]["family"], json!(group.family));
        let targets = artifacts[0]["code_objects"].as_object().unwrap();
        for arch in group.archs {
            assert_eq!(targets[*arch]["count"], 3, "{arch}");
            let library = group.stage(&shards(), "lib").join("lib/rocblas/library");
            let files = fs::read_dir(library).unwrap().map(|entry| entry.unwrap());
            let own = files.filter(|file| file.file_name().to_str().unwrap().contains(arch));
            let sizes: Vec<u64> = own.map(|file| file.metadata().unwrap().len()).collect();
            let amount = json!({"count": sizes.len(), "bytes": sizes.iter().sum::<u64>()});
            assert_eq!(artifacts[0]["databases"][*arch], amount);
        }
        assert_eq!(targets["gfx906"]["count"], 1);
        assert_eq!(targets.len(), group.archs.len() + 1);
        assert_eq!(artifacts[2]["code_objects"], json!({}));
        assert_eq!(artifacts[2]["host_files"]["count"], 1);
    }
    let archs = found["architectures"].as_array().unwrap();
    let fallbacks: Vec<&Value> = archs.iter().filter(|arch| arch["fallback"] == true).collect();
    assert_eq!(fallbacks.len(), 1);
    assert_eq!(
        (&fallbacks[0]["arch"], &fallbacks[0]["code_objects"]["count"]),
        (&json!("gfx906"), &json!(3))
    );
    assert!(found.get("proposal").is_none());
}

/// The meaning of a configuration, independent of its syntax.
fn meaning(config: &Config) -> (Option<String>, String, String) {
    let groups = format!("{:?}", config.grouping.groups);
    (config.grouping.primary_shard.clone(), groups, format!("{:?}", config.keys.validation))
}

fn meaning_of_file(path: &Path) -> (Option<String>, String, String) {
    let mut faults = Faults::default();
    let config = Config::of(Some(path), &mut faults);
    meaning(&faults.settle(config).unwrap())
}

#[test]
fn the_proposal_is_the_example_configuration() {
    let expected = meaning_of_file(&example::configuration());
    let printed = text(&["examples/shards", "--propose"]);
    assert_eq!(meaning(&Config::parse(&printed, Syntax::Toml).unwrap()), expected);
    assert!(printed.contains("# primary_shard is gfx110X-build: of the 3 shards with the most"));
    assert!(printed.contains("# gfx906 is in no group: only a fallback of the compiler in "));

    let scratch = tempfile::tempdir().unwrap();
    for name in ["config.json", "config.toml"] {
        let file = scratch.path().join(name);
        let arguments = ["examples/shards", "--propose", file.to_str().unwrap()];
        let told = text(&arguments);
        assert!(told.contains(&format!("wrote {}\n", file.display())), "{told}");
        assert_eq!(meaning_of_file(&file), expected);
        // Writing the same again succeeds; overwriting another file fails.
        text(&arguments);
        fs::write(&file, "{}").unwrap();
        refused(&arguments, "already exists with other content");
        assert_eq!(fs::read(&file).unwrap(), b"{}");
    }
    let found = found(&["examples/shards", "--propose"]);
    assert_eq!(found["proposal"]["primary_shard"]["name"], "gfx110X-build");
    assert_eq!(found["proposal"]["left_out"][0]["arch"], "gfx906");
}

#[test]
fn a_build_with_the_proposal_is_the_build_with_the_example_configuration() {
    let scratch = tempfile::tempdir().unwrap();
    let (file, out) = (scratch.path().join("config.json"), scratch.path().join("out"));
    text(&["examples/shards", "--propose", file.to_str().unwrap()]);
    let mut build = rockpack();
    build.args(["build", "--version", example::VERSION, "--artifacts"]).arg(shards());
    tools::run(build.arg("--config").arg(&file).arg("--out").arg(&out));
    let expected = contents(&Set::build().out());
    assert!(expected.len() > 10);
    assert!(contents(&out) == expected, "the packages differ");
}

/// Renames the artifacts of a shard to another family label.
fn relabel(root: &Path, shard: &str, from: &str, to: &str) {
    for name in example::names(&root.join(shard)) {
        if let Some(start) = name.strip_suffix(from) {
            let folder = root.join(shard);
            fs::rename(folder.join(&name), folder.join(format!("{start}{to}"))).unwrap();
        }
    }
}

/// An arch is no fallback if the label of its shard covers it, or names no arch.
#[test]
fn a_label_that_covers_an_arch_makes_it_meant() {
    let scratch = tempfile::tempdir().unwrap();
    copy_shards(scratch.path());
    relabel(scratch.path(), "gfx1151-build", "gfx1151", "all");
    let found = found(&[scratch.path().to_str().unwrap(), "--propose"]);
    assert_eq!(found["shards"][1]["fallbacks"], json!({}));
    assert!(found["shards"][0]["fallbacks"]["gfx906"].is_string());
    let gfx906 = &found["architectures"][0];
    assert_eq!((&gfx906["arch"], &gfx906["fallback"]), (&json!("gfx906"), &json!(false)));
    let group = json!({
        "name": "gfx90X", "display_name": "ROCm gfx90X (GCN5)", "architectures": ["gfx906"],
    });
    assert_eq!(found["proposal"]["groups"][0], group);
    assert_eq!(found["proposal"]["left_out"], json!([]));
}

/// Artifacts that are split already hold the same code, each in the artifact of its arch.
#[test]
fn split_artifacts_hold_what_the_fat_ones_did() {
    let scratch = tempfile::tempdir().unwrap();
    let mut split = rockpack();
    tools::run(
        split.arg("split").arg("--artifacts").arg(shards()).arg("--output-dir").arg(scratch.path()),
    );
    let (fat, split) = (found(&["examples/shards"]), found(&[scratch.path().to_str().unwrap()]));
    assert_eq!(code_of_architectures(&split), code_of_architectures(&fat));
    let artifacts = split["shards"][0]["artifacts"].as_array().unwrap();
    let one = artifacts.iter().find(|artifact| artifact["name"] == "blas_lib_gfx1101").unwrap();
    assert_eq!(one["code_objects"].as_object().unwrap().keys().collect::<Vec<_>>(), ["gfx1101"]);
}

fn code_of_architectures(found: &Value) -> Vec<(String, Value, Value)> {
    let archs = found["architectures"].as_array().unwrap().iter();
    archs
        .map(|arch| {
            (arch["arch"].to_string(), arch["code_objects"].clone(), arch["databases"].clone())
        })
        .collect()
}

/// The name of the shard plays no part in the choice.
#[test]
fn the_shard_with_the_most_host_files_is_proposed_as_the_primary_one() {
    let scratch = tempfile::tempdir().unwrap();
    copy_shards(scratch.path());
    let stage = GROUPS[2].stage(scratch.path(), "lib");
    fs::write(stage.join("lib/extra.txt"), "only here").unwrap();
    let found = found(&[scratch.path().to_str().unwrap(), "--propose"]);
    let expected = json!({"name": "gfx120X-build", "reason": "it has the most host files (7)"});
    assert_eq!(found["proposal"]["primary_shard"], expected);
}

#[test]
fn what_cannot_be_proposed_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let yaml = file_in(scratch.path(), "config.yaml");
    refused(&["examples/shards", "--propose", &yaml], "neither a .json nor a .toml");
    refused(&["--propose", "examples/shards"], "required arguments");
    refused(&["missing"], "No such file");
    let lost = file_in(scratch.path(), "no/config.json");
    refused(&["examples/shards", "--propose", &lost], "No such file");
    let shard = GROUPS[0].folder(scratch.path());
    copy_shards(scratch.path());
    for name in example::names(&shard) {
        if name.starts_with("blas") {
            fs::remove_dir_all(shard.join(name)).unwrap();
        }
    }
    refused(&[shard.to_str().unwrap(), "--propose"], "the input has no device code to group");
    assert!(text(&[shard.to_str().unwrap()]).contains("none"));
}

fn file_in(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}
