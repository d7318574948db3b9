//! Bad input is refused without output: the exit code tells whose fault it is, the error says where, why and
//! what to do.

mod artifacts;
mod binaries;
mod configuration;
mod databases;
mod options;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::{GROUPS, build_of, copy_shards, names};
use tempfile::TempDir;

/// The exit code of a failed run.
pub(crate) const FAILED: i32 = 2;
/// The exit code of wrong usage.
pub(crate) const USAGE: i32 = 64;

/// A copy of the example shards, to be damaged and then refused.
struct Bad {
    folder: TempDir,
}

impl Bad {
    fn new() -> Self {
        let bad = Self { folder: tempfile::tempdir().unwrap() };
        copy_shards(&bad.shards());
        bad
    }

    fn shards(&self) -> PathBuf {
        self.folder.path().join("shards")
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// The blas_lib artifact of the primary shard.
    fn artifact(&self) -> PathBuf {
        GROUPS[0].folder(&self.shards()).join("blas_lib_gfx110X-dgpu")
    }

    /// A file of the primary shard by install path.
    fn file(&self, installed: &str) -> PathBuf {
        GROUPS[0].original(&self.shards(), installed)
    }

    fn build(&self) -> Command {
        build_of(&self.shards(), &self.out())
    }

    /// Fails unless the build ends with `code`, says everything in `expected` with a hint, and leaves nothing
    /// in the output folder.
    fn is_refused(&self, code: i32, expected: &[&str]) {
        refused(&mut self.build(), code, expected);
        assert_eq!(names(&self.out()).len(), 0, "{:?}", names(&self.out()));
    }
}

/// Fails unless `command` ends with `code`, says everything in `expected` and a hint on stderr,
/// and nothing on stdout.
pub(crate) fn refused(command: &mut Command, code: i32, expected: &[&str]) {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{said}");
    for text in expected {
        assert!(said.contains(text), "no `{text}` in\n{said}");
    }
    assert!(said.contains("\n  help: "), "no hint in\n{said}");
    assert!(!said.contains("panicked") && !said.contains("bug in rockpack"), "{said}");
    assert_eq!(output.stdout, b"", "{said}");
}

/// Changes the bytes of a file.
pub(crate) fn patch(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    fs::write(file, bytes).unwrap();
}

/// The offset of the first `part` in `bytes`.
fn find(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).position(|window| window == part).unwrap()
}

fn at(offset: usize) -> String {
    format!("at offset {offset:#x}: ")
}
