//! `verify --against` where the shards' database files are not packed as they were.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::program::{repository, rockpack};
use support::tampered::{Set, shard};
use support::tools;
use tempfile::TempDir;

use crate::receipt::{SHARDS, receipt_of};

const STAGE: &str = "math-libs/BLAS/rocBLAS/stage";

/// The libraries of two example shards, with further files at install paths.
pub fn shards(files: &[(&str, &str, &[u8])]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for name in ["gfx110X", "gfx1151"] {
        let from = shard(name);
        let to = root.path().join(format!("{name}-build"));
        fs::create_dir(&to).unwrap();
        let run = Command::new("cp").arg("-r").arg(&from).arg(&to).status().unwrap();
        assert!(run.success());
        let stage = to.join(from.file_name().unwrap()).join(STAGE);
        for (_, path, bytes) in files.iter().filter(|file| file.0 == name) {
            let path: PathBuf = stage.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }
    root
}

fn build(artifacts: &Path) -> Set {
    let set = Set::empty();
    let mut build = rockpack();
    build.current_dir(repository("")).arg("build").arg("--artifacts").arg(artifacts);
    build.args(["--version", "7.1.0", "--format", "deb", "--config"]);
    build.arg("examples/packaging-config.json").arg("--out").arg(set.path(""));
    tools::run(&mut build);
    set.reopen()
}

/// MessagePack: a map with one entry.
fn map(key: u8, value: u8) -> [u8; 4] {
    [0x81, 0xa1, key, value]
}

#[test]
fn files_that_were_merged_or_moved_are_found() {
    let extension = "lib/hipblaslt/library/hipblasltExtOpLibrary.dat";
    let fallback = "lib/rocblas/library/TensileLibrary_fallback.dat";
    let cache = "lib/rocblas/library/TensileManifest.txt";
    let artifacts = shards(&[
        ("gfx110X", extension, &map(b'a', 1)),
        ("gfx1151", extension, &map(b'b', 1)),
        ("gfx110X", fallback, &map(b'k', 1)),
        ("gfx1151", fallback, &map(b'k', 2)),
        ("gfx110X", cache, b"one"),
        ("gfx1151", cache, b"other"),
    ]);
    let set = build(artifacts.path());
    let against = ["--against", artifacts.path().to_str().unwrap()];
    set.fires(&against, &[]);
    let receipt = receipt_of(set.path("packages.json").parent().unwrap());
    for code in ["R024", "R025", "R026"] {
        assert!(receipt.findings.iter().any(|finding| finding.code() == code), "{code}");
        set.fresh_receipt();
        set.edit_receipt(|receipt| receipt.findings.retain(|finding| finding.code() != code));
        // Of a cache, the first shard's is packed as it is.
        let fired: &[&str] = match code {
            "R026" => &[],
            // Where they are now, no artifact has any.
            "R025" => &["V013", "V101"],
            _ => &["V013"],
        };
        set.fires(&against, fired);
    }
    set.fresh_receipt();
    set.fires(SHARDS, &["V010", "V013", "V101"]);
    // The union has the values of the shards, not others.
    set.edit(&set.host(), |root| {
        let file = root.join("opt/rocm-7.1").join(extension);
        let mut bytes = fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() = 2;
        fs::write(file, bytes).unwrap();
    });
    set.fires(&against, &["V013"]);
}

#[test]
fn a_library_of_one_arch_is_found_whole() {
    let plugin = "lib/libMIOpenCKGroupedConv_gfx1100.so.1.0";
    let library = shard("gfx110X").join("math-libs/BLAS/hipBLAS/stage/lib/libexcblas.so.1.0");
    let artifacts = shards(&[("gfx110X", plugin, &fs::read(library).unwrap())]);
    let set = build(artifacts.path());
    let against = ["--against", artifacts.path().to_str().unwrap()];
    set.fires(&against, &[]);
    set.edit_receipt(|receipt| receipt.findings.retain(|finding| finding.code() != "R028"));
    set.fires(&[], &["V021"]);
}
