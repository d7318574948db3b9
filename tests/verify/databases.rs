//! `verify --against` where the shards' database files are not packed as they were.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rockpack_core::content::Content;
use rockpack_report::Code;
use rockpack_split::code_file;
use support::example::configuration;
use support::fixtures::content;
use support::program::rockpack;
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

pub fn build(artifacts: &Path) -> Set {
    build_by(artifacts, &configuration())
}

fn build_by(artifacts: &Path, configuration: &Path) -> Set {
    let set = Set::empty();
    let mut build = rockpack();
    build.arg("build").arg("--artifacts").arg(artifacts).arg("--config").arg(configuration);
    build.args(["--version", "7.1.0", "--format", "deb", "--out"]).arg(set.path(""));
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
        assert!(
            receipt.findings.iter().any(|finding| finding.code() == Code::of_id(code)),
            "{code}"
        );
        set.fresh_receipt();
        set.edit_receipt(|receipt| {
            receipt.findings.retain(|finding| finding.code() != Code::of_id(code))
        });
        // The first shard's cache is packed unchanged.
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
    // Where a file was moved to, nobody but root may write to it.
    set.fresh_receipt();
    let path = |package: &String| {
        let mut list = Command::new("dpkg-deb");
        let listed = tools::succeed(list.arg("-c").arg(set.path(package)));
        let line = listed.lines().find(|line| line.ends_with("/TensileLibrary_fallback.dat"))?;
        let name = package.rsplit('/').next()?.to_owned();
        Some((name, line.split(" ./").nth(1)?.to_owned()))
    };
    let (kernels, moved) = set.packages().iter().find_map(path).unwrap();
    assert!(!moved.contains(fallback), "{moved}");
    let whole = fs::read(set.path(&kernels)).unwrap();
    set.edit(&kernels, |root| {
        fs::set_permissions(root.join(&moved), fs::Permissions::from_mode(0o777)).unwrap();
    });
    let run = set.verify(&against);
    run.fired(&["V013"]);
    assert!(run.text.contains("is in a package with mode 777; expected 644"), "{}", run.text);
    fs::write(set.path(&kernels), whole).unwrap();
    set.fresh_receipt();
    set.fires(&against, &[]);
    // The union has the values of the shards, not others.
    set.edit(&set.host(), |root| {
        let file = root.join("opt/rocm-7.1").join(extension);
        let mut bytes = fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() = 2;
        fs::write(file, bytes).unwrap();
    });
    set.fires(&against, &["V013"]);
}

/// Where the shards' fallbacks differ, code files move, too.
#[test]
fn compressed_code_files_hold_the_code_of_the_artifacts() {
    let name = "TensileLibrary_gfx1100.co";
    for (second, folder, of_file) in [(1, "", &["V013"][..]), (2, "gfx1100/", &["V013", "V101"])] {
        let fallback = "lib/rocblas/library/TensileLibrary_fallback.dat";
        let artifacts = shards(&[
            ("gfx110X", fallback, &map(b'k', 1)),
            ("gfx1151", fallback, &map(b'k', second)),
        ]);
        let config = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
        let text = fs::read_to_string(configuration()).unwrap();
        let text = text.replacen('{', "{ \"code_files\": \"compressed\",", 1);
        fs::write(config.path(), text).unwrap();
        let set = build_by(artifacts.path(), config.path());
        let against = ["--against", artifacts.path().to_str().unwrap()];
        set.fires(&against, &[]);
        set.edit_receipt(|receipt| {
            receipt.findings.retain(|finding| finding.code() != Code::of_id("R160"))
        });
        set.fires(&against, of_file);
        set.fresh_receipt();

        let original = shard("gfx110X").join(STAGE).join("lib/rocblas/library").join(name);
        let installed = format!("opt/rocm-7.1/lib/rocblas/library/{folder}{name}");
        let expected = code_file::compressed(&content(&original)).unwrap().unwrap();
        let kernels = set.kernels("gfx110x");
        assert!(set.file_of(&kernels, &installed) == expected && expected.starts_with(b"CCOB"));
        let mut other = fs::read(original).unwrap();
        *other.last_mut().unwrap() ^= 1;
        let other = code_file::compressed(&Content::of_bytes(other)).unwrap().unwrap();
        set.edit(&kernels, |root| fs::write(root.join(&installed), &other).unwrap());
        set.fires(&against, &[&["V010", "V011"][..], of_file].concat());
    }
}

/// Three code objects of the example, each with another field of its header that loaders refuse.
const REFUSED: [(&str, usize, u8, &str); 3] = [
    ("Kernels.so-000-gfx1100.hsaco", 8, 9, "has ABI version 9 (EI_ABIVERSION)"),
    ("TensileLibrary_gfx1100.co", 7, 0, "has ABI 0 (EI_OSABI)"),
    ("TensileLibrary_fallback_gfx1100.hsaco", 16, 2, "has type 2 (e_type)"),
];

#[test]
fn code_objects_that_loaders_refuse_are_refused_and_found() {
    let library = "lib/rocblas/library";
    let set = Set::of_debs();
    set.edit(&set.kernels("gfx110x"), |root| {
        for (name, at, value, _) in REFUSED {
            let file = root.join("opt/rocm-7.1").join(library).join(name);
            support::tampered::patch(&file, at, &[value]);
        }
    });
    let run = set.verify(&[]);
    for (name, _, _, expected) in REFUSED {
        let is_told = |problem: &serde_json::Value| {
            let text = problem.to_string();
            text.contains(name) && text.contains(expected)
        };
        assert!(run.problems().iter().any(is_told), "{name}: {}", run.text);
    }
    let (name, at, value, expected) = REFUSED[0];
    let file = shard("gfx110X").join(STAGE).join(library).join(name);
    let mut bytes = fs::read(file).unwrap();
    bytes[at] = value;
    let artifacts = shards(&[("gfx110X", &format!("{library}/{name}"), &bytes)]);
    let mut build = rockpack();
    build.args(["build", "--version", "7.1.0", "--artifacts"]).arg(artifacts.path());
    let out = tempfile::tempdir().unwrap();
    let output = build.arg("--out").arg(out.path().join("out")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    assert!(!output.status.success() && said.contains(expected), "{said}");
}

#[test]
fn a_library_of_one_arch_is_found_whole() {
    let plugin = "lib/libMIOpenCKGroupedConv_gfx1100.so.1.0";
    let library = shard("gfx110X").join("math-libs/BLAS/hipBLAS/stage/lib/libexcblas.so.1.0");
    let artifacts = shards(&[("gfx110X", plugin, &fs::read(library).unwrap())]);
    let set = build(artifacts.path());
    let against = ["--against", artifacts.path().to_str().unwrap()];
    set.fires(&against, &[]);
    set.edit_receipt(|receipt| {
        receipt.findings.retain(|finding| finding.code() != Code::of_id("R028"))
    });
    set.fires(&[], &["V021"]);
}
