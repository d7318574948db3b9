//! SPDX documents next to packages, and their digests in the receipt.

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::program::{repository, rockpack};
use support::tampered::{Run, verify};
use tempfile::TempDir;

use crate::signed::Signer;

/// Builds the packages of an example shard with their documents in parts, one for each of `partitions`, which
/// has its options.
fn described(partitions: &[&[&str]]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for options in partitions {
        let mut build = rockpack();
        build.current_dir(repository(""));
        build.args(["build", "--artifacts", "examples/shards/gfx1151-build", "--sbom"]);
        build.args(["--version", "7.1.0", "--out"]).arg(folder.path()).args(*options);
        let run = build.output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }
    folder
}

fn verify_folder(folder: &TempDir, arguments: &[&str]) -> Run {
    verify(&[folder.path().to_str().unwrap()], arguments)
}

/// Changes one byte of white space in a document.
fn change(file: &Path) {
    fs::write(file, fs::read_to_string(file).unwrap() + "\n").unwrap();
}

#[test]
fn v002_v003_documents_are_those_of_the_receipt() {
    let set = described(&[&[]]);
    let file = set.path().join("packages.spdx.json");
    verify_folder(&set, &[]).fired(&[]);
    change(&file);
    verify_folder(&set, &[]).fired(&["V002"]);
    fs::remove_file(&file).unwrap();
    verify_folder(&set, &[]).fired(&["V003"]);
    verify_folder(&set, &["--partial"]).fired(&[]);
}

/// A receipt without documents vouches for none of them.
#[test]
fn v003_a_signed_receipt_names_all_documents() {
    let (own, set) = (Signer::new("own"), described(&[&[]]));
    let file = set.path().join("packages.json");
    let mut receipt: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    receipt.as_object_mut().unwrap().remove("spdx").unwrap();
    fs::write(&file, receipt.to_string()).unwrap();
    own.sign(&file);
    verify_folder(&set, &[]).fired(&[]);
    verify_folder(&set, &own.option()).fired(&["V003"]);
}

#[test]
fn documents_of_parts_are_those_of_their_receipts() {
    let set = described(&[&["--partition", "1/2"], &["--partition", "2/2"]]);
    let [first, second] = ["1", "2"].map(|part| format!("packages-{part}-of-2.spdx.json"));
    let [first, second] = [first, second].map(|name| set.path().join(name));
    verify_folder(&set, &[]).fired(&[]);
    // Beside the receipt of the whole set, too.
    let receipt = set.path().join("packages.json");
    verify_folder(&set, &["--join", receipt.to_str().unwrap()]).fired(&[]);
    verify_folder(&set, &[]).fired(&[]);
    let whole = set.path().join("packages.spdx.json");
    fs::copy(&first, &whole).unwrap();
    verify_folder(&set, &[]).fired(&["V003"]);
    fs::remove_file(whole).unwrap();
    change(&second);
    verify_folder(&set, &[]).fired(&["V002"]);
    fs::remove_file(second).unwrap();
    change(&first);
    verify_folder(&set, &[]).fired(&["V002"]);
    // What is left of a part that is gone is not looked at.
    fs::remove_file(set.path().join("packages-1-of-2.json")).unwrap();
    verify_folder(&set, &[]).fired(&[]);
}
