//! The entries of the receipt for code objects in files of their own, which `verify` compares with
//! the packages.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rockpack_core::content::Sha256Digest;
use rockpack_core::tree::TreePath;
use rockpack_package::receipt::{CodeObjectPlace, CodeObjectRecord, Receipt};
use rockpack_report::{Code, Finding, InputArtifact, found};
use serde_json::json;
use support::program::{repository, rockpack};
use support::tampered::{self, Set, sha256, shard};
use tempfile::TempDir;

/// The kernel database of the example library below its stage prefix.
const DATABASE: &str = "lib/rocblas/library";

pub const SHARDS: &[&str] = &["--against", "examples/shards"];

/// The stage prefix of the example library.
const STAGE: &str = "math-libs/BLAS/rocBLAS/stage";

fn in_files(receipt: &Receipt) -> Vec<&CodeObjectRecord> {
    let in_file = |record: &&CodeObjectRecord| matches!(record.place, CodeObjectPlace::File { .. });
    receipt.code_objects.iter().filter(in_file).collect()
}

pub fn receipt_of(folder: &Path) -> Receipt {
    Receipt::parse(&fs::read(folder.join("packages.json")).unwrap()).unwrap()
}

/// A shard whose library is the example's, with a database that `edit` changes.
fn shard_with(edit: impl FnOnce(&Path)) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let artifact = root.path().join("one-build/blas_lib_gfx110X-dgpu");
    let from = shard("gfx110X");
    for file in ["artifact_manifest.txt", "lib/libexblas.so.1.2"] {
        let (from, to) = if file.starts_with("lib") {
            (from.join(STAGE).join(file), artifact.join(STAGE).join(file))
        } else {
            (from.join(file), artifact.join(file))
        };
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
    let database = artifact.join(STAGE).join(DATABASE);
    fs::create_dir_all(&database).unwrap();
    edit(&database);
    root
}

/// Builds the packages of `artifacts`, `.deb` only.
fn build(artifacts: &Path, out: &Path) {
    build_with(artifacts, out, &[]);
}

fn build_with(artifacts: &Path, out: &Path, arguments: &[&str]) {
    let run = rockpack()
        .current_dir(repository(""))
        .args(["build", "--version", "7.1.0", "--format", "deb", "--artifacts"])
        .arg(artifacts)
        .arg("--out")
        .arg(out)
        .args(arguments)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

/// The offload bundles of the example library.
fn bundles() -> Vec<u8> {
    let fat = fs::read(shard("gfx110X").join(STAGE).join("lib/libexblas.so.1.2")).unwrap();
    let (offset, size) = tampered::section(&fat, ".hip_fatbin");
    fat[offset..offset + size].to_vec()
}

#[test]
fn every_code_object_of_the_databases_has_its_record() {
    let set = Set::of_debs();
    let receipt = receipt_of(set.path("packages.json").parent().unwrap());
    let recorded: BTreeSet<(String, String, &str, u64)> = in_files(&receipt)
        .into_iter()
        .map(|record| {
            let file = record.place.path().strip_prefix("/opt/rocm-7.1/").unwrap();
            let digest = record.sha256.clone();
            (file.to_owned(), digest, record.shard.as_deref().unwrap(), record.size)
        })
        .collect();
    let mut expected = BTreeSet::new();
    for name in ["gfx110X", "gfx1151", "gfx120X"] {
        for file in code_files(&shard(name).join(STAGE).join(DATABASE)) {
            let bytes = fs::read(&file).unwrap();
            let at = format!("{DATABASE}/{}", file.file_name().unwrap().to_str().unwrap());
            let build = ["gfx110X-build", "gfx1151-build", "gfx120X-build"];
            let build = build.into_iter().find(|build| build.starts_with(name)).unwrap();
            expected.insert((at, sha256(&bytes), build, bytes.len() as u64));
        }
    }
    assert_eq!(expected.len(), 18);
    assert_eq!(recorded, expected);
    for record in in_files(&receipt) {
        assert!(record.place.path().contains(&record.target), "{record:?}");
        assert!(matches!(&record.place, CodeObjectPlace::File { entry: None, .. }));
    }
}

fn code_files(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|e| e == "co" || e == "hsaco")).collect()
}

#[test]
fn a_shared_bundle_has_a_record_for_every_entry() {
    let artifacts = shard_with(|database| {
        let database = database.join("../../hipblaslt/library");
        fs::create_dir_all(&database).unwrap();
        fs::write(database.join("hipblasltTransform.hsaco"), bundles()).unwrap();
    });
    let out = tempfile::tempdir().unwrap();
    build(artifacts.path(), out.path());
    let receipt = receipt_of(out.path());
    let records = in_files(&receipt);
    let entries: BTreeSet<&str> = records
        .iter()
        .map(|record| match &record.place {
            CodeObjectPlace::File { entry: Some(entry), .. } => entry.as_str(),
            place => panic!("{place:?}"),
        })
        .collect();
    assert_eq!(records.len(), 7, "two units for three archs, and the fallback: {records:?}");
    assert!(entries.iter().all(|entry| entry.contains("amdgcn-amd-amdhsa--gfx")), "{entries:?}");
    let packages: BTreeSet<&str> = records.iter().map(|record| record.package.as_str()).collect();
    assert_eq!(packages, ["rocm-blas"].into());
    let (folder, against) = (out.path().to_str().unwrap(), artifacts.path().to_str().unwrap());
    let run = tampered::verify(&[folder], &["--against", against]);
    assert_eq!((run.status, run.codes()), (0, vec![]), "{}", run.text);
}

#[test]
fn v010_a_record_of_a_file_that_lies() {
    let lies: [fn(&mut CodeObjectRecord); 3] = [
        |record| record.sha256 = "0".repeat(64),
        |record| {
            let file = record.place.path().replace("gfx1100", "gfx1101");
            record.place = CodeObjectPlace::File { file, entry: None };
        },
        |record| {
            let file = record.place.path().to_owned();
            let entry = Some("hipv4-amdgcn-amd-amdhsa--gfx1100".to_owned());
            record.place = CodeObjectPlace::File { file, entry };
        },
    ];
    for set in [Set::of_debs(), Set::of_rpms()] {
        for lie in lies {
            set.fresh_receipt();
            set.edit_receipt(|receipt| {
                let meant =
                    |record: &&mut CodeObjectRecord| record.place.path().ends_with("00.hsaco");
                lie(receipt.code_objects.iter_mut().find(meant).unwrap());
            });
            let run = set.verify(&[]);
            assert!(run.codes().contains(&"V010".to_owned()), "{}", run.text);
        }
    }
}

#[test]
fn v011_a_file_without_its_record() {
    for set in [Set::of_debs(), Set::of_rpms()] {
        set.edit_receipt(|receipt| {
            receipt.code_objects.retain(|record| !record.place.path().ends_with("_gfx1101.co"));
        });
        set.fires(&[], &["V011"]);
    }
}

#[test]
fn a_set_of_one_component_says_what_it_leaves_out() {
    for (only, left) in [("host-suite-sparse", "blas_lib"), ("blas", "host-suite-sparse_lib")] {
        let set = only_set(only);
        set.fires(SHARDS, &[]);
        let receipt = receipt_of(set.path("packages.json").parent().unwrap());
        let findings =
            receipt.findings.iter().filter(|finding| finding.code() == Code::of_id("R055"));
        let subjects: Vec<String> = findings.clone().map(|f| f.subject().to_owned()).collect();
        assert!(subjects.contains(&left.to_owned()), "{subjects:?}");
        assert!(findings.clone().all(|finding| finding.to_string().starts_with("note: ")));
        let run = rockpack()
            .arg("verify")
            .arg(set.path("packages.json").parent().unwrap())
            .output()
            .unwrap();
        let text = String::from_utf8(run.stdout).unwrap();
        let count = receipt.left_out.len();
        let line = format!("\n{count} paths of the artifacts left out on purpose (--only)\n");
        assert!(text.contains(&line), "{text}");
    }
}

#[test]
fn only_what_the_receipt_says_is_left_out() {
    let set = only_set("host-suite-sparse");
    let of = |receipt: &Receipt| -> BTreeSet<Sha256Digest> {
        let findings =
            receipt.findings.iter().filter(|finding| finding.code() == Code::of_id("R055"));
        findings.flat_map(|finding| finding.code_objects().to_vec()).collect()
    };
    let receipt = receipt_of(set.path("packages.json").parent().unwrap());
    assert_eq!(of(&receipt).len(), 24 + 18, "of binaries and of databases");
    set.edit_receipt(|receipt| {
        receipt.findings.retain(|finding| finding.code() != Code::of_id("R055"))
    });
    set.fires(SHARDS, &["V010"]);
    set.fresh_receipt();
    let library = "/opt/rocm-7.1/lib/libexblas.so.1.2";
    set.edit_receipt(|receipt| receipt.left_out.retain(|path| path != library));
    set.fires(SHARDS, &["V013"]);
}

#[test]
fn a_finding_of_another_kind_excuses_no_loss() {
    let set = Set::of_debs();
    let shared = |code_objects: &[Sha256Digest]| {
        let path = TreePath::new("lib/rocblas/library/T.dat").unwrap();
        Finding::from(found::DatabaseShared {
            file: InputArtifact::new("gfx110X-build", &"blas_lib_gfx110X-dgpu".parse().unwrap())
                .file(&path),
            rule: "rocblas".to_owned(),
            is_cache: false,
            code_objects: code_objects.to_vec(),
        })
    };
    let later = |code_objects: &[Sha256Digest]| {
        let later = json!({
            "code": "R999", "name": "of-a-later-version", "severity": "warning",
            "subject": "gfx906", "message": "is left out", "code_objects": code_objects,
        });
        serde_json::from_value(later).unwrap()
    };
    for other in [&shared as &dyn Fn(&[Sha256Digest]) -> Finding, &later] {
        set.fresh_receipt();
        set.fires(SHARDS, &[]);
        set.edit_receipt(|receipt| {
            let is_meant = |finding: &Finding| finding.code() == Some(Code::ArchNotGrouped);
            let meant = receipt.findings.iter().find(|it| is_meant(it)).unwrap().code_objects();
            receipt.findings.retain(|it| !is_meant(it));
            receipt.findings.add(other(&meant));
        });
        set.fires(SHARDS, &["V010"]);
    }
}

/// The example set limited to one component.
fn only_set(only: &str) -> Set {
    let set = Set::empty();
    let config = "examples/packaging-config.json";
    let arguments = ["--config", config, "--only", only];
    build_with(Path::new("examples/shards"), &set.path(""), &arguments);
    set.reopen()
}
