//! A failing run shows the findings that it has collected until then.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use support::example::{GROUPS, build_of, configuration, copy_shards, rockpack};
use tempfile::TempDir;

const PASSED_OVER: &str = "warning: R008 artifact-packing-unknown: \
    gfx110X-build/hello_lib_generic.tar.gz: is named like an artifact";

/// The example shards, with an artifact packed in an unknown format.
struct Shards(TempDir);

impl Shards {
    fn new() -> Self {
        let shards = Self(tempfile::tempdir().unwrap());
        copy_shards(&shards.path("shards"));
        let shard = GROUPS[0].folder(&shards.path("shards"));
        fs::write(shard.join("hello_lib_generic.tar.gz"), "gzip").unwrap();
        shards
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Removes the manifest of an artifact.
    fn spoil(&self) {
        let artifact = GROUPS[0].folder(&self.path("shards")).join("blas_lib_gfx110X-dgpu");
        fs::remove_file(artifact.join("artifact_manifest.txt")).unwrap();
    }

    /// The example configuration with one more key.
    fn config(&self, key: &str, value: Value) -> PathBuf {
        self.config_of([(key, value)])
    }

    /// The example configuration with more keys.
    fn config_of<const N: usize>(&self, keys: [(&str, Value); N]) -> PathBuf {
        let text = fs::read_to_string(configuration()).unwrap();
        let mut config: Value = serde_json::from_str(&text).unwrap();
        keys.into_iter().for_each(|(key, value)| config[key] = value);
        let file = self.path("config.json");
        fs::write(&file, config.to_string()).unwrap();
        file
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = rockpack();
        command.args(words).arg(self.path("shards")).current_dir(self.0.path());
        command
    }
}

/// The stdout and stderr of a command that fails.
#[track_caller]
fn failed(command: &mut Command) -> [String; 2] {
    let output = command.output().unwrap();
    assert!(!output.status.success());
    [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap())
}

#[track_caller]
fn assert_before(text: &str, first: &str, second: &str) {
    assert!(position(text, first) < position(text, second), "{text}");
    assert_eq!(text.matches(first).count(), 1, "{text}");
}

fn position(text: &str, part: &str) -> usize {
    text.find(part).unwrap_or_else(|| panic!("no `{part}` in\n{text}"))
}

#[test]
fn an_artifact_that_was_passed_over_explains_a_missing_package() {
    let shards = Shards::new();
    let config = shards.config("packages", json!({ "rocm-hello": { "summary": "A greeting" } }));
    let missing = "packages.rocm-hello: there is no such package in the set";
    for words in [&["build", "--out", "out"][..], &["plan"], &["plan", "--matrix", "2"]] {
        let mut command = shards.command(&[words, &["--artifacts"]].concat());
        command.args(["--version", "7.1.0", "--config"]).arg(&config);
        let [stdout, stderr] = failed(&mut command);
        assert_before(&stderr, PASSED_OVER, missing);
        assert_eq!(stdout, "");
        let [_, events] = failed(command.args(["--log-format", "json"]));
        let events: Vec<Value> =
            events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let finding = events.iter().position(|event| event["code"] == "R008").unwrap();
        assert_eq!(events[finding]["event"], "warning");
        assert_eq!(events[finding]["entry"], "hello_lib_generic.tar.gz");
        let error = events.iter().position(|event| event["event"] == "error").unwrap();
        assert!(finding < error);
    }
}

/// Each command's error names something else.
#[test]
fn every_command_that_notices_something_tells_it_when_it_fails() {
    let shards = Shards::new();
    shards.spoil();
    let config = configuration();
    let commands: [&[&str]; 6] = [
        &["build", "--version", "7.1.0", "--out", "out", "--artifacts"],
        &["plan", "--version", "7.1.0", "--artifacts"],
        &["discover"],
        &["split", "--output-dir", "split", "--artifacts"],
        &["recombine", "--output-dir", "joined", "--artifacts"],
        &["verify", "shards", "--against"],
    ];
    for words in commands {
        let mut command = shards.command(words);
        if ["build", "plan", "recombine"].contains(&words[0]) {
            command.arg("--config").arg(&config);
        }
        let [stdout, stderr] = failed(&mut command);
        let said = stdout + &stderr;
        assert!(said.contains("the artifact has no manifest"), "{words:?}: {said}");
        assert_before(&said, PASSED_OVER, "the artifact has no manifest");
    }
}

/// A failing stage shows its own findings along with those of earlier stages.
#[test]
fn a_stage_that_fails_tells_its_own_findings() {
    let shards = Shards::new();
    let config = shards.config("primary_shard", "gfx110x-build".into());
    let mut plan = shards.command(&["plan", "--version", "7.1.0", "--artifacts"]);
    let [_, stderr] = failed(plan.arg("--config").arg(&config));
    assert_before(&stderr, PASSED_OVER, "there is no shard `gfx110x-build`");
    assert_before(&stderr, "note: R021 database-shared: gfx1151-build/", "there is no shard");
    let config = shards.config("moved", json!({ "rocm-bals": ["rocm-blas < 7"] }));
    let mut plan = shards.command(&["plan", "--version", "7.1.0", "--artifacts"]);
    let [_, stderr] = failed(plan.arg("--config").arg(&config));
    assert_before(&stderr, "warning: R070 library-unresolved: rocm-blas", "moved.rocm-bals: there");
    assert!(stderr.contains("did you mean `rocm-blas`?"), "{stderr}");
}

/// Accepted findings are shown as accepted, in whichever stage the run fails.
#[test]
fn accepted_findings_are_told_as_accepted_by_a_run_that_fails() {
    let shards = Shards::new();
    let accept = json!([
        { "code": "R008", "subject": "*", "reason": "a backup" },
        { "code": "R070", "subject": "rocm-blas", "reason": "installed by hand" },
    ]);
    let config = shards
        .config_of([("accept", accept), ("moved", json!({ "rocm-bals": ["rocm-blas < 7"] }))]);
    let [_, stderr] = failed_by(&shards, &config, &["plan", "--version", "7.1.0", "--artifacts"]);
    let accepted = PASSED_OVER.replacen("warning", "accepted", 1);
    assert_before(&stderr, &accepted, "moved.rocm-bals: there");
    assert_before(
        &stderr,
        "accepted: R070 library-unresolved: rocm-blas",
        "moved.rocm-bals: there",
    );
    assert!(stderr.contains("; reason: installed by hand\n"), "{stderr}");
    assert!(!stderr.contains("warning: R070") && !stderr.contains("warning: R008"), "{stderr}");
    shards.spoil();
    let recombine = ["recombine", "--output-dir", "joined", "--artifacts"];
    for words in [&["plan", "--version", "7.1.0", "--artifacts"][..], &recombine] {
        let [_, stderr] = failed_by(&shards, &config, words);
        assert_before(&stderr, &accepted, "the artifact has no manifest");
        assert!(stderr.contains("; reason: a backup\n"), "{stderr}");
    }
}

fn failed_by(shards: &Shards, config: &Path, words: &[&str]) -> [String; 2] {
    let mut command = shards.command(words);
    failed(command.arg("--config").arg(config))
}

#[test]
fn an_original_that_verify_cannot_read_is_told_behind_the_findings() {
    let shards = Shards::new();
    let build = build_of(&shards.path("shards"), &shards.path("out")).output().unwrap();
    assert!(build.status.success());
    let binary = GROUPS[1].original(&shards.path("shards"), "bin/exblas-bench");
    fs::write(&binary, &fs::read(&binary).unwrap()[..6000]).unwrap();
    let [_, stderr] = failed(&mut shards.command(&["verify", "out", "--against"]));
    assert_before(&stderr, PASSED_OVER, "bin/exblas-bench");
}

#[test]
fn a_component_that_fails_to_split_tells_its_findings() {
    let shards = Shards::new();
    let binary = GROUPS[1].original(&shards.path("shards"), "bin/exblas-bench");
    fs::write(&binary, &fs::read(&binary).unwrap()[..6000]).unwrap();
    let words = ["split", "--json", "--output-dir", "split", "--artifacts"];
    let [stdout, stderr] = failed(&mut shards.command(&words));
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["failures"][0]["component"], "gfx1151-build/blas_run", "{stderr}");
    assert!(report["findings"].as_array().unwrap().iter().any(|it| it["code"] == "R008"));
}

#[test]
fn a_folder_of_nothing_but_other_archives_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let shard = folder.path().join("shard");
    fs::create_dir(&shard).unwrap();
    fs::write(shard.join("hello_lib_generic.tar.gz"), "gzip").unwrap();
    fs::write(shard.join("README.md"), "words").unwrap();
    let out = folder.path().join("out");
    let [_, stderr] = failed(&mut build_of(&shard, &out));
    let expected = "warning: R008 artifact-packing-unknown: shard/hello_lib_generic.tar.gz: ";
    assert_before(&stderr, expected, "is not a shard, a folder of shards or an install tree");
    assert!(!stderr.contains("README.md"), "{stderr}");
}

/// A successful run prints findings beside its result, and includes them as JSON; under `--strict`, they come
/// before the error.
#[test]
fn findings_are_told_once() {
    let shards = Shards::new();
    let output = output_of_build(&shards, &[]);
    assert!(output.status.success());
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!((stdout.matches("R008").count(), stderr.matches("R008").count()), (0, 1));
    let strict = output_of_build(&shards, &["--strict"]);
    let stderr = String::from_utf8(strict.stderr).unwrap();
    assert_eq!(stderr.matches("R008").count(), 1, "{stderr}");
    for told in [PASSED_OVER, "note: R021 database-shared: gfx1151-build/"] {
        assert_before(&stderr, told, "  × 4 warnings with --strict\n");
    }
}

fn output_of_build(shards: &Shards, more: &[&str]) -> Output {
    let mut command = build_of(&shards.path("shards"), Path::new("out"));
    command.current_dir(shards.0.path()).args(more).output().unwrap()
}
