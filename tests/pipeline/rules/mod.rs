//! Rules of the packaging configuration, from outside: `rockpack build` on changed copies of the example
//! shards, and `rockpack verify` on its output.

mod architectures;
mod common;
mod duplicates;
mod host_files;
mod kept;
mod machines;
mod modules;
mod runtimes;
mod unusable;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use support::example::{self, GROUPS, copy_shards, names};
use support::program::build_here;
use support::queries::deb_field;
use support::tampered::passes;
use tempfile::TempDir;

/// The groups of the example configuration.
const TOML: &str = r#"primary_shard = "gfx110X-build"
[architecture_groups.gfx110X]
architectures = ["gfx1100", "gfx1101", "gfx1102"]
[architecture_groups.gfx115X]
architectures = ["gfx1151"]
[architecture_groups.gfx120X]
architectures = ["gfx1200", "gfx1201"]
"#;

/// A copy of the example shards, and the packages made from it.
struct Case {
    folder: TempDir,
    receipt: Value,
}

impl Case {
    fn new() -> Self {
        let case = Self { folder: tempfile::tempdir().unwrap(), receipt: Value::Null };
        copy_shards(&case.shards());
        case
    }

    fn shards(&self) -> PathBuf {
        self.folder.path().join("shards")
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// The path of a file in a group's shard, by install path.
    fn file(&self, group: usize, installed: &str) -> PathBuf {
        GROUPS[group].original(&self.shards(), installed)
    }

    /// A build with the groups and `more` configuration: tables, or top-level keys.
    fn build(&self, more: &str) -> Command {
        let config = self.folder.path().join("packaging.toml");
        let text = match more.starts_with('[') {
            true => format!("{TOML}{more}"),
            false => format!("{more}{TOML}"),
        };
        fs::write(&config, text).unwrap();
        let mut command = example::rockpack();
        command.args(["build", "--version", "7.1.0", "--format", "deb", "--artifacts"]);
        command.arg(self.shards()).arg("--config").arg(config).arg("--out").arg(self.out());
        command
    }

    fn run(&self, more: &str, options: &[&str]) -> Output {
        self.build(more).args(options).output().unwrap()
    }

    /// Builds the packages, which `verify` must accept.
    fn built(mut self, more: &str) -> Self {
        build_here(&self.build(more));
        let receipt = fs::read(self.out().join("packages.json")).unwrap();
        self.receipt = serde_json::from_slice(&receipt).unwrap();
        passes(&self.out(), &self.shards());
        self
    }

    /// Fails unless the build refuses its input, says everything in `expected` and leaves no packages.
    fn is_refused(&self, more: &str, expected: &[&str]) {
        self.ends_with(2, more, expected);
    }

    /// Fails unless the build refuses its configuration, says everything in `expected` and leaves no
    /// packages.
    fn is_no_configuration(&self, more: &str, expected: &[&str]) {
        self.ends_with(64, more, expected);
    }

    fn ends_with(&self, code: i32, more: &str, expected: &[&str]) {
        let output = self.run(more, &[]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        for text in expected {
            assert!(said.contains(text), "no `{text}` in\n{said}");
        }
        assert_eq!(names(&self.out()).len(), 0);
    }

    fn packages(&self) -> BTreeSet<&str> {
        let packages = self.receipt["packages"].as_array().unwrap().iter();
        packages.map(|package| package["id"].as_str().unwrap()).collect()
    }

    /// The files and links of a package below the prefix.
    fn members(&self, id: &str) -> BTreeSet<String> {
        let packages = &self.receipt["packages"];
        let mut all = packages.as_array().unwrap().iter();
        let package = all.find(|package| package["id"] == id).unwrap();
        let entries = example::entries(packages, package).into_iter();
        let paths = entries.filter(|(_, entry)| entry["kind"] != "directory");
        let below = |(path, _): (String, _)| Some(path.strip_prefix("/opt/rocm-7.1/")?.to_owned());
        paths.filter_map(below).collect()
    }

    /// The code objects of an installed binary, as (package, archive, key, target).
    fn code_objects(&self, binary: &str) -> Vec<[&str; 4]> {
        let all = self.receipt["code_objects"].as_array().unwrap().iter();
        let own = all.filter(|code| code["binary"] == binary);
        own.map(|code| {
            ["package", "archive", "key", "target"].map(|key| code[key].as_str().unwrap())
        })
        .collect()
    }

    /// The findings with a code.
    fn findings(&self, code: &str) -> Vec<&Value> {
        let all = self.receipt["findings"].as_array().unwrap().iter();
        all.filter(|finding| finding["code"] == code).collect()
    }

    /// A package's dependencies.
    fn depends(&self, id: &str) -> String {
        deb_field(&self.out().join(example::deb_name(id)), "Depends")
    }
}

/// The number of code objects that a finding accounts for.
fn accounted(finding: &Value) -> usize {
    finding["code_objects"].as_array().map_or(0, Vec::len)
}

/// Changes the bytes of a file.
fn patch(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    fs::write(file, bytes).unwrap();
}

/// The offset of the first `part` in `bytes`.
fn find(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).position(|window| window == part).unwrap()
}

/// A static archive of members by name and content. A name that begins with `#1/` is stored in its member.
fn library(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, member) in members {
        bytes.extend(format!("{name:<48}{:<10}`\n", member.len()).as_bytes());
        bytes.extend(member);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    bytes
}

/// Writes a file, and the folders above it.
fn write(file: &Path, bytes: &[u8]) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, bytes).unwrap();
}
