//! Install trees, and the same content as artifacts made by hand.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::example::{Entry, GROUPS, VERSION, contents, plant, rockpack, shards};
use crate::program::build_here;
use crate::tools;

/// Packages by file name.
pub type Packages = BTreeMap<String, Vec<u8>>;

/// A text file.
pub fn text(text: &str) -> Entry {
    Entry::File { mode: 0o644, bytes: text.as_bytes().to_vec() }
}

/// A library with device code of the first group.
pub fn library() -> Entry {
    of_shard("lib/libexblas.so.1.2", 0)
}

/// A library without device code.
pub fn native() -> Entry {
    let file =
        "host-suite-sparse_lib_generic/third-party/SuiteSparse/stage/lib/libexsuitesparse.so.7.8";
    Entry::File { mode: 0o755, bytes: fs::read(GROUPS[0].folder(&shards()).join(file)).unwrap() }
}

fn of_shard(installed: &str, group: usize) -> Entry {
    let file = GROUPS[group].original(&shards(), installed);
    Entry::File { mode: 0o755, bytes: fs::read(file).unwrap() }
}

/// The content of the tree with the device code of a group: component, path and entry.
fn content(group: usize) -> Vec<(&'static str, String, Entry)> {
    let arch = GROUPS[group].archs.last().unwrap();
    let kernels = format!("lib/rocblas/library/TensileLibrary_{arch}");
    let [code, index] = ["co", "dat"].map(|ending| format!("{kernels}.{ending}"));
    let fat = || of_shard("lib/libexblas.so.1.2", group);
    let odd = Entry::File { mode: 0o640, bytes: b"MIT\n".to_vec() };
    let folder = || Entry::Folder { mode: 0o750 };
    let rows = [
        ("base_lib", ".info/version", text("7.1.0\n")),
        ("blas_lib", "lib/librocblas.so", Entry::Link { target: "librocblas.so.5".to_owned() }),
        ("blas_lib", "lib/librocblas.so.5", fat()),
        ("blas_lib", "lib/rocblas", folder()),
        ("blas_lib", code.as_str(), of_shard(&code, group)),
        ("blas_lib", index.as_str(), of_shard(&index, group)),
        ("blas_lib", "share/licenses/rocblas/LICENSE", odd),
        ("blas_lib", "share/rocblas/empty", folder()),
        ("blas_dev", "include/rocblas/rocblas.h", text("#pragma once\n")),
        ("blas_dev", "lib/cmake/rocblas/rocblas-config.cmake", text("set(x)\n")),
        ("blas_doc", "share/doc/rocblas/README.md", text("text\n")),
        ("blas_test", "bin/rocblas-bench", of_shard("bin/exblas-bench", group)),
        ("blas_dbg", "lib/librocblas.so.5.debug", text("symbols\n")),
        ("core-hip_lib", "lib/libhiprtc.so.7", native()),
        ("misc_lib", "lib/mine/data.txt", text("data\n")),
        ("misc_lib", "share/mine", folder()),
        ("sparse_lib", "lib/librocsparse.so.1", fat()),
        ("sparse_dev", "include/rocsparse/rocsparse.h", text("#pragma once\n")),
    ];
    rows.into_iter().map(|(component, path, entry)| (component, path.to_owned(), entry)).collect()
}

/// A folder for inputs and packages.
pub struct Trees(TempDir);

impl Default for Trees {
    fn default() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Trees {
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes one entry.
    pub fn put(&self, name: &str, entry: Entry) -> PathBuf {
        plant(&[(name.to_owned(), entry)].into(), self.0.path(), false);
        self.path(name)
    }

    /// Writes the tree of a group at `name`.
    pub fn tree(&self, name: &str, group: usize) -> PathBuf {
        for (_, path, entry) in content(group) {
            self.put(&format!("{name}/{path}"), entry);
        }
        self.path(name)
    }

    /// Writes the same content as artifacts of the shard at `name`.
    pub fn by_hand(&self, name: &str, group: usize) -> PathBuf {
        for (component, path, entry) in content(group) {
            let artifact = format!("{name}/{component}_generic");
            self.put(&format!("{artifact}/artifact_manifest.txt"), text("stage\n"));
            self.put(&format!("{artifact}/stage/{path}"), entry);
        }
        self.path(name)
    }

    /// Writes `members` of `folder` into the tarball `name`, whose ending says how it is compressed.
    pub fn tarball(&self, name: &str, folder: &str, members: &[&str]) -> PathBuf {
        tools::need(&["tar", "gzip", "xz", "zstd"]);
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(self.path(folder)).arg("-caf").arg(self.path(name)).args(members);
        tools::run(&mut tar);
        self.path(name)
    }

    pub fn out(&self) -> PathBuf {
        self.path("out")
    }

    /// A build into an output folder that does not exist yet.
    pub fn build(&self, inputs: &[impl AsRef<OsStr>], more: &[&str]) -> Command {
        let _ = fs::remove_dir_all(self.out());
        let mut command = rockpack();
        command.arg("build").args(inputs).args(["--version", VERSION, "--out"]).arg(self.out());
        command.args(more);
        command
    }

    /// The packages that a build makes.
    #[track_caller]
    pub fn packages(&self, inputs: &[impl AsRef<OsStr>], more: &[&str]) -> Packages {
        build_here(&self.build(inputs, more));
        let mut files = contents(&self.out());
        files.remove("packages.json").unwrap();
        files
    }

    /// The findings of the last build with this code.
    pub fn findings(&self, code: &str) -> Vec<Value> {
        let receipt = fs::read(self.out().join("packages.json")).unwrap();
        let receipt: Value = serde_json::from_slice(&receipt).unwrap();
        let findings = receipt["findings"].as_array().unwrap().iter();
        findings.filter(|finding| finding["code"] == code).cloned().collect()
    }
}

/// Fails unless both have the same packages, byte for byte.
#[track_caller]
pub fn assert_same(one: &Packages, other: &Packages, about: &str) {
    assert!(one.keys().eq(other.keys()), "{about}: {:?}, {:?}", one.keys(), other.keys());
    for (name, bytes) in one {
        assert!(*bytes == other[name], "{about}: {name} differs");
    }
}

/// `NAME=PATH`.
pub fn named(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}
