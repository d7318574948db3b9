//! A set that an earlier version wrote: its packages are made again, byte for byte, and its receipt,
//! of schema 2, is `tests/fixtures/receipts/schema-2.json`.

use std::fs;

use rockpack::receipt::{FindingRecord, Receipt};
use serde_json::Value;

use crate::databases::shards;
use support::tampered::{Set, replace, shard};
use support::tools;

const RECEIPT: &str = include_str!("../fixtures/receipts/schema-2.json");

const CONFIG: &str = "
primary_shard = 'gfx110X-build'
runpath = 'origin'
[architecture_groups.gfx110X]
architectures = ['gfx1100', 'gfx1101', 'gfx1102']
[architecture_groups.gfx115X]
architectures = ['gfx1151']
[components.blas]
exclude_architectures = ['gfx1102']
[libraries.'libc.so.6']
";

/// What is in no package, merged, moved, whole, rewritten or left open because of a finding, and
/// the checks that fail without that finding.
const EXCUSED: [(&str, &[&str]); 7] = [
    ("R012", &["V010"]),
    ("R024", &["V013"]),
    ("R025", &["V013"]),
    ("R028", &["V021"]),
    ("R045", &["V010", "V013"]),
    ("R072", &["V013"]),
    ("R094", &["V063"]),
];

#[test]
fn a_set_with_a_receipt_of_schema_2_passes_by_what_its_findings_say() {
    let map = |key, value| [0x81, 0xa1, key, value];
    let extension = "lib/hipblaslt/library/hipblasltExtOpLibrary.dat";
    let fallback = "lib/rocblas/library/TensileLibrary_fallback.dat";
    let library = shard("gfx110X").join("math-libs/BLAS/hipBLAS/stage/lib/libexcblas.so.1.0");
    let artifacts = shards(&[
        ("gfx110X", extension, &map(b'a', 1)),
        ("gfx1151", extension, &map(b'b', 1)),
        ("gfx110X", fallback, &map(b'k', 1)),
        ("gfx1151", fallback, &map(b'k', 2)),
        ("gfx110X", "lib/libMIOpenCKGroupedConv_gfx1100.so.1.0", &fs::read(library).unwrap()),
    ]);
    for artifact in ["gfx110X-build/blas_lib_gfx110X-dgpu", "gfx1151-build/blas_lib_gfx1151"] {
        let library = "math-libs/BLAS/hipBLAS/stage/lib/libexcblas.so.1.0";
        let library = artifacts.path().join(artifact).join(library);
        replace(&library, b"$ORIGIN\0", b"/x/y/zz\0");
    }
    let set = Set::empty();
    fs::write(artifacts.path().join("config.toml"), CONFIG).unwrap();
    let mut build = support::program::rockpack();
    build.args(["build", "--version", "7.1.0", "--format", "deb", "--artifacts"]);
    build.arg(artifacts.path()).arg("--config").arg(artifacts.path().join("config.toml"));
    tools::run(build.arg("--out").arg(set.path("")));
    let against = ["--against", artifacts.path().to_str().unwrap()];
    let write = |receipt: &Value| {
        fs::write(set.path("packages.json"), serde_json::to_vec(receipt).unwrap()).unwrap();
    };

    let old: Value = serde_json::from_str(RECEIPT).unwrap();
    write(&old);
    set.fires(&against, &[]);
    for (code, checks) in EXCUSED {
        let mut without = old.clone();
        without["findings"].as_array_mut().unwrap().retain(|finding| finding["code"] != code);
        write(&without);
        set.fires(&against, checks);
    }
    // Where the texts are not read, they excuse nothing.
    let mut unread = old;
    unread["schema"] = 3.into();
    write(&unread);
    set.fires(&against, &["V010", "V013", "V021", "V063"]);
    let kept = Receipt::parse(&serde_json::to_vec(&unread).unwrap()).unwrap().findings;
    assert!(kept.iter().all(|finding| matches!(finding, FindingRecord::Unread(_))));
}
