//! SPDX documents beside packages, which say something else than the packages.

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::program::{repository, rockpack};
use support::tampered::{Run, verify};
use tempfile::TempDir;

const WHOLE: &str = "packages.spdx.json";
const HOST: &str = "rocm-blas_7.1.0-1_amd64.deb";

/// The packages of an example shard with their documents.
struct Described {
    folder: TempDir,
}

impl Described {
    /// Builds the set in parts, one for each of `partitions`, which has its options.
    fn new(partitions: &[&[&str]]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for options in partitions {
            let mut build = rockpack();
            build.current_dir(repository(""));
            build.args(["build", "--artifacts", "examples/shards/gfx1151-build"]);
            build.args(["--version", "7.1.0", "--out"]).arg(folder.path()).args(*options);
            let run = build.output().unwrap();
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        }
        Self { folder }
    }

    fn whole() -> Self {
        Self::new(&[&["--sbom"]])
    }

    fn verify(&self, arguments: &[&str]) -> Run {
        verify(&[self.folder.path().to_str().unwrap()], arguments)
    }

    /// The problems of the set after one change of its document, which is then undone.
    fn after(&self, edit: impl FnOnce(&mut Value)) -> Vec<String> {
        let file = self.folder.path().join(WHOLE);
        let before = fs::read(&file).unwrap();
        let mut document = serde_json::from_slice(&before).unwrap();
        edit(&mut document);
        fs::write(&file, document.to_string()).unwrap();
        let found = found(&self.verify(&[]));
        fs::write(&file, before).unwrap();
        found
    }
}

/// Subjects and messages of the problems of documents. The receipt has the digests of documents, too.
fn found(run: &Run) -> Vec<String> {
    run.fired(&["V002", "V064"]);
    let told = |problem: &Value| {
        let [subject, message] = ["subject", "message"].map(|key| problem[key].as_str().unwrap());
        format!("{subject}: {message}")
    };
    run.problems().iter().filter(|problem| problem["code"] == "V064").map(told).collect()
}

/// The elements of `key` that have `value` in `field`.
fn element<'a>(document: &'a mut Value, (key, field, value): (&str, &str, &str)) -> &'a mut Value {
    let elements = document[key].as_array_mut().unwrap().iter_mut();
    elements.into_iter().find(|element| element[field] == value).unwrap()
}

fn sha256(element: &mut Value) -> &mut Value {
    let checksums = element["checksums"].as_array_mut().unwrap().iter_mut();
    let mut sha256 = checksums.filter(|checksum| checksum["algorithm"] == "SHA256");
    &mut sha256.next().unwrap()["checksumValue"]
}

#[test]
fn a_document_describes_its_set() {
    let set = Described::whole();
    set.verify(&[]).fired(&[]);
    // Packages that are named one by one have no document beside them.
    let package = set.folder.path().join(HOST);
    fs::write(set.folder.path().join(WHOLE), "{}").unwrap();
    let alone = verify(&[package.to_str().unwrap()], &[]).codes();
    assert!(!alone.contains(&"V064".to_owned()), "{alone:?}");
    let told = found(&set.verify(&[]));
    assert!(told[0].starts_with("packages.spdx.json: is no SPDX document"), "{told:?}");
}

#[test]
fn v002_a_document_is_the_one_of_the_receipt() {
    let set = Described::whole();
    let file = set.folder.path().join(WHOLE);
    fs::write(&file, fs::read_to_string(&file).unwrap() + "\n").unwrap();
    set.verify(&[]).fired(&["V002"]);
}

#[test]
fn other_digests_than_those_of_the_packages_are_found() {
    let set = Described::whole();
    let host = ("packages", "packageFileName", HOST);
    let told = set.after(|document| *sha256(element(document, host)) = "0".repeat(64).into());
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(&format!("{HOST} has the SHA-256")), "{told:?}");

    let told = set.after(|document| {
        let checksums = element(document, host)["checksums"].as_array_mut().unwrap();
        let other = serde_json::json!({ "algorithm": "SHA256", "checksumValue": "0".repeat(64) });
        checksums.push(other);
    });
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn other_packages_than_those_that_are_there_are_found() {
    let set = Described::whole();
    let host = ("packages", "packageFileName", HOST);
    let told = set.after(|document| element(document, host)["packageFileName"] = "x.deb".into());
    let [described, there] = ["x.deb: an SPDX document describes it", HOST];
    assert!(told.iter().any(|told| told.starts_with(described)), "{told:?}");
    assert!(told.iter().any(|told| told.starts_with(there)), "{told:?}");
}

#[test]
fn documents_of_parts_describe_the_set_together() {
    let parts: [&[&str]; 2] =
        [&["--sbom", "--partition", "1/2"], &["--sbom", "--partition", "2/2"]];
    let set = Described::new(&parts);
    let second = set.folder.path().join("packages-2-of-2.spdx.json");
    set.verify(&[]).fired(&[]);
    // Beside the receipt of the whole set, too.
    let receipt = set.folder.path().join("packages.json");
    set.verify(&["--join", receipt.to_str().unwrap()]).fired(&[]);
    assert!(receipt.exists());
    set.verify(&[]).fired(&[]);
    let remove_one = |file: &Path| {
        let mut document: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let packages = document["packages"].as_array_mut().unwrap();
        packages.remove(0);
        fs::write(file, document.to_string()).unwrap();
    };
    remove_one(&second);
    let told = found(&set.verify(&[]));
    assert!(told[0].ends_with("no SPDX document describes it"), "{told:?}");
    // A part that was built without one is not described.
    fs::remove_file(second).unwrap();
    set.verify(&[]).fired(&[]);
    // What is left of a part that is gone describes nothing, whatever it says.
    let first = set.folder.path().join("packages-1-of-2.spdx.json");
    fs::write(first, "{}").unwrap();
    set.verify(&[]).fired(&["V002", "V064"]);
    fs::remove_file(set.folder.path().join("packages-1-of-2.json")).unwrap();
    set.verify(&[]).fired(&[]);
}
