//! Artifact directories from outside: `rockpack split`, `rockpack recombine`, and `rockpack build` on their
//! output or on another tool's.

mod again;
mod commands;
mod equal;
mod families;
mod loaded;
mod moved;
mod other_tool;
mod shipped;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use support::example::{
    Entry, build_of, configuration, contents, copy_set, plant, rockpack, shards, tree,
};
use support::tools;
use tempfile::TempDir;

/// A folder for the steps of a workflow.
struct Work(TempDir);

impl Work {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Splits all shards below `artifacts`.
    fn split(&self, artifacts: &Path, name: &str) -> PathBuf {
        let out = self.path(name);
        tools::run(split_of(artifacts).arg("--output-dir").arg(&out));
        out
    }

    /// The example shards, split once in a run.
    fn split_shards(&self) -> PathBuf {
        static SPLIT: OnceLock<BTreeMap<String, Entry>> = OnceLock::new();
        let split = SPLIT.get_or_init(|| tree(&Self::new().split(&shards(), "split")));
        plant(split, &self.path("split"), false);
        self.path("split")
    }

    fn recombine(&self, artifacts: &Path, name: &str) -> PathBuf {
        let out = self.path(name);
        let mut command = rockpack();
        command.args(["recombine", "--config"]).arg(configuration());
        tools::run(command.arg("--input-shards-dir").arg(artifacts).arg("--output-dir").arg(&out));
        out
    }

    /// The packages of the example shards as they are.
    fn direct(&self, name: &str) -> PathBuf {
        let out = self.path(name);
        copy_set(&out);
        out
    }

    fn build(&self, artifacts: &Path, name: &str) -> PathBuf {
        let out = self.path(name);
        tools::run(&mut build_of(artifacts, &out));
        out
    }
}

fn split_of(artifacts: &Path) -> Command {
    let mut command = rockpack();
    command.args(["split", "--artifacts"]).arg(artifacts);
    command
}

/// Runs a command that must end with `code`, and returns its stdout and stderr.
fn ends_with(command: &mut Command, code: i32) -> (String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(status.code(), Some(code), "{command:?}\n{stdout}{stderr}");
    (stdout, stderr)
}

/// Fails unless two folders have the same packages among those `wanted`, byte for byte.
fn assert_same_packages(one: &Path, other: &Path, wanted: impl Fn(&str) -> bool) {
    let (one, other) = (contents(one), contents(other));
    let [names, others] = [&one, &other].map(|files| {
        let packages = files.keys().filter(|name| *name != "packages.json" && wanted(name));
        packages.collect::<Vec<&String>>()
    });
    assert_eq!(names, others);
    assert!(names.len() > 5, "{names:?}");
    for name in names {
        assert!(one[name] == other[name], "{name} differs");
    }
}
