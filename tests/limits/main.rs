//! Hostile input: rockpack reads or refuses it, and writes nothing except its output.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests fail by panics")]

#[macro_use]
extern crate support;

mod bombs;
mod capabilities;
mod fuzz_smoke;
mod hostile_packages;
mod hostile_rpms;
mod indexes;
mod large_indexes;
mod larger;
mod left;
mod memory;
mod names;
mod outside;
mod pipes;
mod properties;
mod shared;
#[path = "../../fuzz/src/lib.rs"]
mod targets;
mod terminal;
mod two_readings;

support::main!();

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::archives::{Handmade, Packing};
use support::example::rockpack;
use support::tools;

/// The stage prefix of every artifact here.
const STAGE: &str = "libs/A/stage";

/// A folder with one artifact, `a_lib_generic` of `shard`.
struct Input {
    folder: tempfile::TempDir,
}

impl Input {
    /// A folder with an empty stage prefix.
    fn folder() -> Self {
        let input = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(input.stage().join("lib")).unwrap();
        let manifest = input.shard().join("a_lib_generic/artifact_manifest.txt");
        fs::write(manifest, format!("{STAGE}\n")).unwrap();
        input
    }

    /// A folder with a packed artifact of these bytes.
    fn packed(packing: Packing, bytes: &[u8]) -> Self {
        let input = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(input.shard()).unwrap();
        let name = format!("a_lib_generic.{}", packing.ending());
        fs::write(input.shard().join(name), bytes).unwrap();
        input
    }

    /// A folder with a packed artifact whose members `add` adds.
    fn handmade(add: impl FnOnce(&mut Handmade)) -> Self {
        let mut archive = Handmade::with_manifest();
        add(&mut archive);
        Self::packed(Packing::Zstd, &zstd::encode_all(&archive.finish()[..], 1).unwrap())
    }

    fn shard(&self) -> PathBuf {
        self.folder.path().join("shard")
    }

    fn stage(&self) -> PathBuf {
        self.shard().join("a_lib_generic").join(STAGE)
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn build(&self) -> Command {
        let mut build = rockpack();
        build.args(["build", "--version", "1.0", "--artifacts"]).arg(self.shard());
        build.arg("--out").arg(self.out());
        build
    }

    /// Fails unless the build is refused with all of `expected`, and leaves nothing. Returns its messages.
    fn refused(&self, expected: &[&str]) -> String {
        let said = refusal(&mut self.build());
        for text in expected {
            assert!(said.contains(text), "{text}: {said}");
        }
        assert!(!self.out().exists(), "{said}");
        said
    }

    /// The install prefixes of a build's packages, unpacked by dpkg-deb and by rpm2cpio.
    fn installed(&self) -> [PathBuf; 2] {
        tools::run(&mut self.build());
        let [deb, rpm] = ["deb", "rpm"].map(|name| self.folder.path().join(name));
        let package = self.out().join("rocm-a_1.0-1_amd64.deb");
        let package =
            if package.exists() { package } else { self.out().join("rocm-a_1.0-1_all.deb") };
        tools::unpack(&package, &deb);
        let package = self.out().join("rocm-a-1.0-1.x86_64.rpm");
        let package =
            if package.exists() { package } else { self.out().join("rocm-a-1.0-1.noarch.rpm") };
        tools::unpack(&package, &rpm);
        [deb, rpm].map(|root| root.join("opt/rocm-1.0"))
    }
}

fn text(output: &Output) -> String {
    let bytes = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The error of a command that fails.
fn refusal(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{command:?}: {said}");
    assert!(output.stdout.is_empty() && !said.contains("a bug in rockpack"), "{said}");
    said
}

/// Limits `command` to this many MiB of writable memory.
fn limited(command: &Command, mib: u32) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -d $0 && exec \"$@\"", &(mib << 10).to_string()]);
    shell.arg(command.get_program()).args(command.get_args());
    shell
}

fn inspect(file: &Path) -> Command {
    let mut inspect = rockpack();
    inspect.arg("inspect").arg(file);
    inspect
}
