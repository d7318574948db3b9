//! The crates that the program is built from on Linux, tests included: their sources and licences, by the
//! rules of `.ci/deny.toml`, which cargo-deny reads, too (`.ci/deny`); and the crates that become part of the
//! program. Security advisories need a database from the network and are not checked here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use spdx::{Expression, Licensee};
use support::program::repository;
use support::tools;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Runs `cargo`, which downloads crates of other targets and features if asked about them; compiling the
/// tests does not need these.
fn cargo(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).arg("--locked");
    tools::succeed(command.current_dir(tools::repository("")))
}

/// A machine may lack the crates for other systems, and only Linux is supported: neither this test nor
/// `.ci/deny` reads their licences. The lock file still has their sources and digests.
fn packages() -> Vec<Value> {
    let platform = ["--filter-platform", "x86_64-unknown-linux-gnu"];
    let metadata = cargo(&[&["metadata", "--format-version", "1"], &platform[..]].concat());
    let mut metadata: Value = serde_json::from_str(&metadata).unwrap();
    serde_json::from_value(metadata["packages"].take()).unwrap()
}

fn rules() -> toml::Table {
    fs::read_to_string(tools::repository(".ci/deny.toml")).unwrap().parse().unwrap()
}

fn strings(list: &toml::Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Tells whether the licences of `.ci/deny.toml` satisfy an expression. Old crates write `MIT/Apache-2.0`.
fn is_allowed(license: &str, allowed: &[Licensee]) -> bool {
    let expression = Expression::parse(&license.replace('/', " OR ")).unwrap();
    expression.evaluate(|required| allowed.iter().any(|licensee| licensee.satisfies(required)))
}

fn allowed() -> Vec<Licensee> {
    let names = strings(&rules()["licenses"]["allow"]);
    names.iter().map(|name| Licensee::parse(name).unwrap()).collect()
}

#[test]
fn every_licence_is_one_that_is_allowed() {
    let allowed = allowed();
    assert!(!is_allowed("GPL-3.0-only", &allowed) && !is_allowed("MIT AND NCSA", &allowed));
    assert!(is_allowed("GPL-3.0-only OR MIT", &allowed));
    for package in packages() {
        let license = package["license"].as_str().unwrap_or("NONE-STATED");
        assert!(is_allowed(license, &allowed), "{} has the licence {license}", package["id"]);
    }
}

#[test]
fn every_crate_is_from_the_registry_and_locked_with_a_digest() {
    let lock: toml::Table =
        fs::read_to_string(tools::repository("Cargo.lock")).unwrap().parse().unwrap();
    let own = own();
    for package in lock["package"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let source = package.get("source").and_then(toml::Value::as_str);
        if own.iter().any(|package| package["name"] == name) {
            assert_eq!(source, None, "{name}");
            continue;
        }
        assert_eq!(source, Some(REGISTRY), "{name}");
        assert_eq!(package["checksum"].as_str().unwrap().len(), 64, "{name}");
    }
    // The rules name the same registry, and do not allow wildcards as versions.
    let sources = rules()["sources"].clone();
    assert_eq!(strings(&sources["allow-registry"]), [REGISTRY.trim_start_matches("registry+")]);
    for package in own {
        for dependency in package["dependencies"].as_array().unwrap() {
            let asked = dependency["req"].as_str().unwrap();
            let is_own = dependency.get("path").is_some();
            assert!(is_own || !asked.contains('*'), "{dependency}");
        }
    }
}

/// The crates of this repository.
fn own() -> Vec<Value> {
    let own: Vec<Value> =
        packages().into_iter().filter(|package| package["source"].is_null()).collect();
    assert!(own.iter().any(|package| package["name"] == env!("CARGO_PKG_NAME")));
    own
}

/// The crates of libraries that other programs call with pointers; no part of them enters rockpack.
const RUNTIME: [&str; 3] = ["rocm-kpack", "rocm-kpack-core", "rocm-kpack-shim"];

/// The crates with a build script: one compresses the tables of distributions, one names the commit of a git clone.
const WITH_SCRIPT: [&str; 2] = ["rockpack-distribution", env!("CARGO_PKG_NAME")];

#[test]
fn there_is_no_unsafe_code_but_in_the_runtime_library_and_two_build_scripts() {
    for package in own() {
        let path = package["manifest_path"].as_str().unwrap();
        if RUNTIME.iter().any(|name| package["name"] == *name) {
            let lints = &table(path)["lints"];
            assert_eq!(lints["rust"]["unsafe_code"].as_str(), Some("deny"));
            let explained = lints["clippy"]["undocumented_unsafe_blocks"].as_str();
            assert_eq!(explained, Some("deny"));
            continue;
        }
        for target in package["targets"].as_array().unwrap() {
            let is_script = target["kind"][0] == "custom-build";
            assert!(
                !is_script || WITH_SCRIPT.iter().any(|name| package["name"] == *name),
                "{target}"
            );
        }
        // Forbidden, not denied: no `allow` in a file can undo it. The lint applies to all targets.
        assert_eq!(table(path)["lints"]["workspace"].as_bool(), Some(true), "{path}");
    }
    let root = table(tools::repository("Cargo.toml"));
    let lints = &root["workspace"]["lints"];
    assert_eq!(lints["rust"]["unsafe_code"].as_str(), Some("forbid"));
    assert!(in_the_program().iter().all(|(name, _)| !RUNTIME.contains(&name.as_str())));
}

fn table(path: impl AsRef<Path>) -> toml::Table {
    fs::read_to_string(path).unwrap().parse().unwrap()
}

/// Name and version of the crates compiled into the program, or run during its compilation.
fn in_the_program() -> BTreeSet<(String, String)> {
    let own = ["tree", "-p", env!("CARGO_PKG_NAME"), "-e", "normal,build"];
    let tree = cargo(&[&own[..], &["--prefix", "none", "--format", "{p}"]].concat());
    let mut found = BTreeSet::new();
    for line in tree.lines() {
        let mut words = line.split(' ');
        let (name, version) = (words.next().unwrap(), words.next().unwrap());
        found.insert((name.to_owned(), version.strip_prefix('v').unwrap().to_owned()));
    }
    found
}

/// No feature may bring crates of tests and benchmarks into the program, an asynchronous runtime, a TLS library of the
/// system, or certificates and names of hosts other than the system's.
#[test]
fn what_has_no_place_in_the_program_is_not_in_it() {
    let inside: BTreeSet<String> = in_the_program().into_iter().map(|(name, _)| name).collect();
    for name in [
        "proptest",
        "criterion",
        "tempfile",
        "tokio",
        "hyper",
        "reqwest",
        "openssl",
        "native-tls",
        "aws-lc-rs",
        "webpki-roots",
        "icu_normalizer",
        "chrono",
    ] {
        assert!(!inside.contains(name), "{name}");
    }
    assert!(inside.contains("zstd-sys") && inside.contains("sha2"));
}

/// `.ci/sbom`, which validates its output against CycloneDX's own schema, lists exactly these crates.
#[test]
#[ignore = "needs cargo-cyclonedx, which takes a minute to compile: .ci/nightly"]
fn the_sbom_of_the_program_lists_every_crate_with_the_digest_of_the_lock_file() {
    tools::need(&["cargo-cyclonedx", "git", "sed", "bash"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("program.json");
    let text = written(&file);
    assert_eq!(written(&file), text);
    assert!(!text.contains(repository("").to_str().unwrap()));
    let sbom: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(sbom["metadata"]["component"]["version"], env!("CARGO_PKG_VERSION"));
    let lock: toml::Table =
        fs::read_to_string(tools::repository("Cargo.lock")).unwrap().parse().unwrap();
    let checksums: BTreeMap<_, _> = lock["package"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            let [name, version, checksum] = ["name", "version", "checksum"].map(|key| {
                package.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned()
            });
            ((name, version), checksum)
        })
        .collect();
    let mut listed = BTreeSet::new();
    for component in sbom["components"].as_array().unwrap() {
        let key: (_, _) =
            ["name", "version"].map(|key| component[key].as_str().unwrap().to_owned()).into();
        let digest = &component["hashes"][0];
        // The crates of this repository have no checksum.
        if !checksums[&key].is_empty() {
            assert_eq!(digest["alg"], "SHA-256");
            assert_eq!(digest["content"], *checksums[&key]);
        }
        listed.insert(key);
    }
    let own = (env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let missing: Vec<_> =
        in_the_program().into_iter().filter(|key| *key != own && !listed.contains(key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn written(file: &Path) -> String {
    tools::run(Command::new(tools::repository(".ci/sbom")).arg(file));
    fs::read_to_string(file).unwrap()
}
