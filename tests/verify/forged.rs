//! Receipts that an attacker wrote: they excuse nothing that the artifacts disprove.

use std::fs;
use std::path::Path;

use rockpack_core::content::Sha256Digest;
use rockpack_package::receipt::{CodeObjectPlace, Receipt};
use rockpack_report::found;
use support::tampered::{Archive, Set, section, sha256};
use support::tools::need;

const SHARDS: &[&str] = &["--against", "examples/shards"];
const LIBRARY: &str = "opt/rocm-7.1/lib/libexblas.so.1.2";
const PLAIN: &str = "opt/rocm-7.1/lib/libexsuitesparse.so.7.8";
const ARCHIVE: &str = "opt/rocm-7.1/lib/.kpack/blas_lib_gfx1100.kpack";
/// Rows of the archive.
const ROWS: [&str; 2] = ["lib/libexblas.so.1.2#1", "bin/exblas-bench#0"];

/// Adds a finding that these digests are dropped.
fn excuse(receipt: &mut Receipt, digests: &[String]) {
    let digests = digests.iter().map(|digest| serde_json::from_value(digest.as_str().into()));
    receipt.findings.add(found::ArchNotGrouped {
        arch: "gfx1100".parse().unwrap(),
        count: 1,
        different: 1,
        places: Vec::new(),
        code_objects: digests.collect::<Result<Vec<Sha256Digest>, _>>().unwrap(),
    });
}

fn flip(path: &Path, section_name: &str) {
    let mut bytes = fs::read(path).unwrap();
    let (at, _) = section(&bytes, section_name);
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn v013_what_is_left_out_is_not_there() {
    need(&["dpkg-deb"]);
    for (package, path) in [("rocm-blas", LIBRARY), ("rocm-host-suite-sparse", PLAIN)] {
        let set = Set::of_debs();
        set.edit(&set.named(package), |root| flip(&root.join(path), ".text"));
        set.edit_receipt(|receipt| receipt.left_out.push(format!("/{path}")));
        let run = set.verify(SHARDS);
        assert!(run.codes().contains(&"V013".to_owned()), "{path}: {}", run.text);
    }
}

#[test]
fn v013_findings_about_archs_drop_no_host_binary() {
    need(&["dpkg-deb"]);
    let set = Set::of_debs();
    let package = set.named("rocm-host-suite-sparse");
    let digest = sha256(&set.file_of(&package, PLAIN));
    set.edit_receipt(|receipt| excuse(receipt, &[digest]));
    set.fires(SHARDS, &[]);
    set.edit(&package, |root| flip(&root.join(PLAIN), ".text"));
    set.fires(SHARDS, &["V013"]);
    set.edit(&package, |root| fs::remove_file(root.join(PLAIN)).unwrap());
    set.fires(SHARDS, &["V013"]);
}

#[test]
fn v010_findings_drop_all_code_of_a_binary_for_an_arch() {
    need(&["dpkg-deb"]);
    let set = Set::of_debs();
    set.edit(&set.kernels("gfx110x"), |root| {
        Archive::edit(&root.join(ARCHIVE), |archive| archive.drop_row(ROWS[0], "gfx1100"));
    });
    set.edit_manifest(&["gfx1100"]);
    set.edit_receipt(|receipt| {
        let (dropped, left): (Vec<_>, Vec<_>) =
            receipt.code_objects.drain(..).partition(|record| is_in_row(&record.place, ROWS[0]));
        receipt.code_objects = left;
        excuse(receipt, &dropped.into_iter().map(|record| record.sha256).collect::<Vec<_>>());
    });
    set.fires(SHARDS, &["V010"]);
}

fn is_in_row(place: &CodeObjectPlace, row: &str) -> bool {
    let archive = format!("/{ARCHIVE}");
    matches!(place, CodeObjectPlace::Archive { key, archive: own, .. } if key == row && *own == archive)
}

#[test]
fn v010_v012_rows_have_code_of_their_own_binary() {
    need(&["dpkg-deb"]);
    let set = Set::of_debs();
    set.edit(&set.kernels("gfx110x"), |root| {
        Archive::edit(&root.join(ARCHIVE), |archive| archive.exchange(ROWS, "gfx1100"));
    });
    set.edit_manifest(&["gfx1100"]);
    set.edit_receipt(|receipt| {
        let at = ROWS.map(|row| {
            let mut records = receipt.code_objects.iter();
            records.position(|record| is_in_row(&record.place, row)).unwrap()
        });
        let [one, other] = at.map(|at| receipt.code_objects[at].sha256.clone());
        excuse(receipt, &[one.clone(), other.clone()]);
        receipt.code_objects[at[0]].sha256 = other;
        receipt.code_objects[at[1]].sha256 = one;
    });
    set.fires(SHARDS, &["V010", "V012"]);
}

#[test]
fn v013_a_marker_names_its_own_binary() {
    need(&["dpkg-deb"]);
    let set = Set::of_debs();
    set.edit(&set.host(), |root| {
        let file = root.join(LIBRARY);
        let mut bytes = fs::read(&file).unwrap();
        let (start, size) = section(&bytes, ".rocm_kpack_ref");
        let marker = &mut bytes[start..start + size];
        let at = marker.windows(6).position(|name| name == b"so.1.2").unwrap();
        marker[at..at + 6].copy_from_slice(b"so.1.3");
        fs::write(file, bytes).unwrap();
    });
    let run = set.verify(SHARDS);
    assert!(run.codes().contains(&"V013".to_owned()), "{}", run.text);
    assert!(run.text.contains("the marker"), "{}", run.text);
}
