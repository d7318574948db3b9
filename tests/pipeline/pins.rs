//! The bytes of whole sets, pinned: other bytes mean that users get other packages from the same input.
//!
//! `tests/pipeline/pins/*.sha256` lists the SHA-256 of every file that a build of the example shards, or of
//! Debian's libraries, writes, except receipts and SPDX documents. `ROCKPACK_BLESS=1` rewrites the lists.
//! Commit that with the reason, and raise `PAYLOADS` in `emit::reuse`: otherwise caches keep giving the old
//! bytes.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use support::archives::{self, Packing};
use support::example::{self, GROUPS, configuration, files, names, rockpack, shards};
use support::program::repository;
use support::sha256;
use support::tools::{need, run};

/// The timestamp of all sets.
const STAMP: &str = "1750000000";

/// SHA-256 in hex by `<variant>/<path>`.
type Pins = BTreeMap<String, String>;

/// The artifacts to package, and the configuration with their names.
struct Input {
    artifacts: PathBuf,
    configuration: PathBuf,
    version: &'static str,
}

impl Input {
    fn example(artifacts: &Path) -> Self {
        let artifacts = artifacts.to_owned();
        Self { artifacts, configuration: configuration(), version: "7.1.0" }
    }

    fn debian(folder: &str) -> Self {
        Self {
            artifacts: Path::new(folder).join("debian-build"),
            configuration: repository("examples/debian-rocm/packaging.toml"),
            version: "5.7.1",
        }
    }

    /// Builds into `out` with `options`.
    fn build(&self, out: &Path, options: &[&str]) {
        let mut build = rockpack();
        build.env("SOURCE_DATE_EPOCH", STAMP).args(["build", "--version", self.version]);
        build.arg("--artifacts").arg(&self.artifacts).arg("--config").arg(&self.configuration);
        run(build.arg("--out").arg(out).args(options));
    }

    /// The digests of a build with these options.
    fn built(&self, options: &[&str]) -> Pins {
        let folder = tempfile::tempdir().unwrap();
        self.build(folder.path(), options);
        digests(folder.path())
    }

    /// The digests of the parts that several machines build into one folder.
    fn built_in_parts(&self, parts: usize) -> Pins {
        let folder = tempfile::tempdir().unwrap();
        for part in 1..=parts {
            self.build(folder.path(), &["--partition", &format!("{part}/{parts}")]);
        }
        digests(folder.path())
    }

    /// The digests of a build that takes everything from a filled cache.
    fn built_again(&self) -> Pins {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let options = ["--cache", cache.to_str().unwrap()];
        self.build(&folder.path().join("first"), &options);
        let again = folder.path().join("again");
        self.build(&again, &options);
        digests(&again)
    }

    /// The digests of a signed set and of the repository where it is published.
    fn signed(&self) -> Pins {
        let folder = tempfile::tempdir().unwrap();
        let (out, repo) = (folder.path().join("out"), folder.path().join("repo"));
        let key = repository("tests/pipeline/pins/key.asc");
        let options = ["--sign-key", key.to_str().unwrap(), "--repo", repo.to_str().unwrap()];
        self.build(&out, &[&options[..], &["--url", "https://packages.example.org/rocm"]].concat());
        let published = digests(&repo).into_iter();
        // rockpack's own state of a publication has file system times.
        let published = published
            .filter(|(path, _)| !path.starts_with(".rockpack/"))
            .map(|(path, digest)| (format!("repo/{path}"), digest));
        digests(&out).into_iter().chain(published).collect()
    }
}

/// The digests of the files below `folder`, without receipts and their signatures.
fn digests(folder: &Path) -> Pins {
    let files = files(folder).into_iter();
    let is_package = |path: &str| !path.contains(".json") || path.contains('/');
    files.filter(|(path, _)| is_package(path)).map(|(path, bytes)| (path, sha256(&bytes))).collect()
}

/// The digests of all variants of a set, each path prefixed with the variant's name.
fn variants(input: &Input) -> Pins {
    let ways: [(&str, Pins); 5] = [
        ("rocm", input.built(&[])),
        ("rocm-versioned", input.built(&["--scheme", "rocm-versioned"])),
        ("amdrocm", input.built(&["--scheme", "amdrocm"])),
        ("xz", input.built(&["--compression", "xz", "--preset", "fast"])),
        ("signed", input.signed()),
    ];
    let pins = ways.into_iter().flat_map(|(name, pins)| {
        assert!(!pins.is_empty(), "{name} has no files");
        pins.into_iter().map(move |(path, digest)| (format!("{name}/{path}"), digest))
    });
    pins.collect()
}

/// The pinned digests of one variant.
fn pinned(file: &str, variant: &str) -> Pins {
    let text = fs::read_to_string(repository(file)).unwrap();
    let lines = text.lines().filter_map(|line| {
        let (digest, path) = line.split_once("  ")?;
        let path = path.strip_prefix(variant)?.strip_prefix('/')?;
        Some((path.to_owned(), digest.to_owned()))
    });
    let pins: Pins = lines.collect();
    assert!(!pins.is_empty(), "{file} has nothing of {variant}");
    pins
}

/// Compares `pins` with the list in `file`, or writes that list when blessing.
fn check(file: &str, pins: &Pins) {
    let text: String = pins.iter().map(|(path, digest)| format!("{digest}  {path}\n")).collect();
    let path = repository(file);
    if env::var("ROCKPACK_BLESS").as_deref() == Ok("1") {
        fs::write(path, text).unwrap();
        return;
    }
    assert_eq!(text, fs::read_to_string(path).unwrap(), "the bytes of {file} have changed");
}

const EXAMPLE: &str = "tests/pipeline/pins/example.sha256";
const DEBIAN: &str = "tests/pipeline/pins/debian.sha256";

#[test]
fn example_sets_have_the_bytes_that_are_pinned() {
    check(EXAMPLE, &variants(&Input::example(&shards())));
}

#[test]
fn parts_and_caches_give_the_pinned_bytes() {
    let input = Input::example(&shards());
    assert_eq!(input.built_in_parts(2), pinned(EXAMPLE, "rocm"));
    assert_eq!(input.built_again(), pinned(EXAMPLE, "rocm"));
}

#[test]
fn packed_artifacts_give_the_pinned_bytes() {
    need(&archives::TOOLS);
    let folder = tempfile::tempdir().unwrap();
    example::copy_shards(folder.path());
    for (number, group) in GROUPS.iter().enumerate() {
        let shard = group.folder(folder.path());
        for artifact in names(&shard) {
            let packing = if number == 0 { Packing::Xz } else { Packing::Zstd };
            archives::pack(&shard.join(artifact), packing);
        }
    }
    let input = Input::example(folder.path());
    assert_eq!(input.built(&[]), pinned(EXAMPLE, "rocm"));
}

#[test]
fn split_artifacts_give_the_pinned_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut split = rockpack();
    split.arg("split").arg("--artifacts").arg(shards()).arg("--output-dir").arg(folder.path());
    run(&mut split);
    let input = Input::example(folder.path());
    assert_eq!(input.built(&[]), pinned(EXAMPLE, "rocm"));
}

/// Debian's ROCm libraries (2.3 GB), where `examples/debian-rocm/fetch.sh` has put them.
#[test]
#[ignore = "needs ROCKPACK_DEBIAN_ROCM, the folder that examples/debian-rocm/fetch.sh filled"]
fn debian_sets_have_the_bytes_that_are_pinned() {
    let input = Input::debian(&env::var("ROCKPACK_DEBIAN_ROCM").unwrap());
    check(DEBIAN, &variants(&input));
    assert_eq!(input.built_in_parts(2), pinned(DEBIAN, "rocm"));
    assert_eq!(input.built_again(), pinned(DEBIAN, "rocm"));
}
