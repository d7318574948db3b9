//! Artifacts (fat, split by rockpack, split by the existing tool), installed prefixes and single
//! files: they pass as they are made, and each damage is found.

mod alone;
mod gpus;
mod installed;
mod together;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use support::program::rockpack;
use support::tampered::{self, Archive, Run, Set, patch, shard, verify, wrapper_section};
use support::tools;
use tempfile::TempDir;

const SHARD: &str = "gfx110X-build";
const STAGE: &str = "math-libs/BLAS/rocBLAS/stage";
const LIBRARY: &str = "lib/libexblas.so.1.2";
const DATABASE: &str = "lib/rocblas/library";

/// The example shards, split once.
pub(super) fn split() -> &'static Path {
    static SPLIT: OnceLock<TempDir> = OnceLock::new();
    let split = || {
        let folder = tempfile::tempdir().unwrap();
        let mut split = rockpack();
        split.args(["split", "--artifacts"]).arg(tools::repository("examples/shards"));
        tools::run(split.arg("--output-dir").arg(folder.path().join("split")));
        folder
    };
    SPLIT.get_or_init(split).path()
}

/// A folder that may be spoiled.
struct Copy(TempDir);

impl Copy {
    fn of(from: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = Command::new("cp");
        tools::run(copy.arg("-r").arg(from).arg(folder.path().join("copy")));
        Self(folder)
    }

    /// The first shard, split.
    fn split() -> Self {
        Self::of(&split().join("split").join(SHARD))
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("copy")
    }

    /// A path of an artifact below the stage prefix of its library.
    fn at(&self, artifact: &str, path: &str) -> PathBuf {
        self.root().join(artifact).join(STAGE).join(path)
    }

    /// The one file whose path ends with `path`.
    fn find(&self, path: &str) -> PathBuf {
        let mut find = Command::new("find");
        let found = find.arg(self.root()).arg("-path").arg(format!("*/{path}"));
        let found = String::from_utf8(found.output().unwrap().stdout).unwrap();
        let lines: Vec<&str> = found.lines().collect();
        assert_eq!(lines.len(), 1, "{found}");
        PathBuf::from(lines[0])
    }

    fn verify(&self) -> Run {
        verify(&[self.root().to_str().unwrap()], &[])
    }

    /// Takes the manifests away, whose sizes would tell of every change of an archive.
    fn without_manifests(self) -> Self {
        for component in ["lib", "run"] {
            let manifest = format!("lib/.kpack/blas_{component}.kpm");
            fs::remove_file(self.at(&format!("blas_{component}_generic"), &manifest)).unwrap();
        }
        self
    }
}

fn archive(arch: &str) -> String {
    format!("lib/.kpack/blas_lib_{arch}.kpack")
}

fn database(ending: &str) -> String {
    format!("{DATABASE}/TensileLibrary_gfx1100.{ending}")
}

/// The artifacts of all shards, recombined.
fn recombined() -> Copy {
    let folder = tempfile::tempdir().unwrap();
    let mut recombine = rockpack();
    recombine.args(["recombine", "--artifacts"]).arg(split().join("split")).arg("--config");
    recombine.arg(tools::repository("examples/packaging-config.json"));
    tools::run(recombine.arg("--output-dir").arg(folder.path().join("copy")));
    Copy(folder)
}

/// The library of the example with its device code.
fn fat_library() -> PathBuf {
    shard("gfx110X").join(STAGE).join(LIBRARY)
}

/// A prefix with the host files and the kernels of one arch.
fn prefix() -> Copy {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("copy");
    fs::create_dir(&root).unwrap();
    for artifact in ["blas_lib_generic", "blas_lib_gfx1100"] {
        let stage = split().join("split").join(SHARD).join(artifact).join(STAGE);
        tools::run(Command::new("cp").arg("-r").arg(stage.join(".")).arg(&root));
    }
    Copy(folder)
}
