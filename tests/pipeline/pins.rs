//! The bytes of packages and indexes, pinned: other bytes mean that users get other packages from the same
//! input. Other tests show that parts, caches, and packed or split artifacts give the same bytes.
//!
//! `tests/pipeline/pins/*.sha256` lists digests of builds of the example shards and of Debian's libraries, as
//! `<variant>/<path>`. `ROCKPACK_BLESS=1` rewrites the digests. Commit that with the reason, and raise
//! `PAYLOADS` in `emit::reuse`: otherwise caches keep giving the old bytes.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use support::example::{configuration, rockpack, shards};
use support::program::repository;
use support::sha256;
use support::tools::run;
use tempfile::TempDir;

/// The artifacts to package, and the configuration with their names.
struct Input {
    artifacts: PathBuf,
    configuration: PathBuf,
    version: &'static str,
}

impl Input {
    /// A folder with the packages of a variant in `out`, and its repository, if it has one, in `repo`.
    fn built(&self, variant: &str) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let key = repository("tests/pipeline/pins/key.asc");
        let repo = folder.path().join("repo");
        let [key, repo] = [&key, &repo].map(|path| path.to_str().unwrap());
        let url = "url=https://packages.example.org/rocm";
        let options = match variant {
            "rocm" => vec![],
            "rocm-versioned" | "amdrocm" => vec!["--scheme", variant],
            "xz" => vec!["--compression", "xz", "--preset", "fast"],
            "signed" => vec!["--sign-key", key, "--repo", repo, "--repo-set", url],
            _ => panic!("{variant} is not a variant"),
        };
        let mut build = rockpack();
        build.env("SOURCE_DATE_EPOCH", "1750000000").args(["build", "--version", self.version]);
        build.arg("--artifacts").arg(&self.artifacts).arg("--config").arg(&self.configuration);
        run(build.arg("--out").arg(folder.path().join("out")).args(options));
        folder
    }

    /// Compares the files that `list` names with those of builds, or rewrites their digests when blessing.
    fn check(&self, list: &str) {
        let list = repository(list);
        let pinned = fs::read_to_string(&list).unwrap();
        let (mut folders, mut found) = (BTreeMap::<&str, TempDir>::new(), String::new());
        for line in pinned.lines() {
            let (_, name) = line.split_once("  ").unwrap();
            let (variant, path) = name.split_once('/').unwrap();
            let folder = folders.entry(variant).or_insert_with(|| self.built(variant));
            let digest = sha256(&fs::read(folder.path().join(path)).unwrap());
            found += &format!("{digest}  {name}\n");
        }
        if env::var("ROCKPACK_BLESS").as_deref() == Ok("1") {
            return fs::write(&list, found).unwrap();
        }
        assert_eq!(found, pinned, "the bytes of {} have changed", list.display());
    }
}

#[test]
fn example_sets_have_the_bytes_that_are_pinned() {
    let (artifacts, configuration) = (shards(), configuration());
    let input = Input { artifacts, configuration, version: "7.1.0" };
    input.check("tests/pipeline/pins/example.sha256");
}

/// Debian's ROCm libraries (2.3 GB), where `examples/debian-rocm/fetch.sh` has put them.
#[test]
#[ignore = "needs ROCKPACK_DEBIAN_ROCM, the folder that examples/debian-rocm/fetch.sh filled"]
fn debian_sets_have_the_bytes_that_are_pinned() {
    let folder = env::var("ROCKPACK_DEBIAN_ROCM").unwrap();
    let input = Input {
        artifacts: Path::new(&folder).join("debian-build"),
        configuration: repository("examples/debian-rocm/packaging.toml"),
        version: "5.7.1",
    };
    input.check("tests/pipeline/pins/debian.sha256");
}
