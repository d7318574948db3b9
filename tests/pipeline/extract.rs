//! `rockpack extract`, from outside: the bytes are those that clang-offload-bundler and a Python
//! reader of kernel archives take out of the same files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use object::{Object, ObjectSection};
use rockpack::inspect::{self, extract::Selection};
use rockpack_core::error::Kind;
use rockpack_core::run::{Budget, Limits};
use serde_json::{Value, json};
use support::example::{GROUPS, PREFIX, Set, contents, rockpack, shards};
use support::kpack;
use support::repo_fixture::rpm;
use support::tools;

use crate::text;

const LIBRARY: &str = "lib/libexblas.so.1.2";

/// A specification with a symbolic link alone.
const LINK: &str = "\
Name: linked
Version: 1
Release: 1
Summary: x
License: MIT
BuildArch: noarch
%description
x
%install
mkdir -p %{buildroot}/opt
ln -s there %{buildroot}/opt/linked
%files
/opt/linked
";

fn set() -> &'static Set {
    static SET: OnceLock<Set> = OnceLock::new();
    SET.get_or_init(Set::build)
}

fn library() -> PathBuf {
    GROUPS[0].original(&shards(), LIBRARY)
}

fn extract(file: &Path, out: &Path, options: &[&str]) -> Output {
    let mut command = rockpack();
    command.arg("extract").arg(file).arg("--out").arg(out).args(options).output().unwrap()
}

#[track_caller]
fn extracted(file: &Path, out: &Path, options: &[&str]) -> Vec<Value> {
    let output = extract(file, out, &[&["--json"], options].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = all.as_array().unwrap().clone();
    for one in &all {
        let bytes = fs::read(one["file"].as_str().unwrap()).unwrap();
        assert_eq!(one["sha256"], json!(kpack::sha256(&bytes)));
        assert_eq!(one["size"], json!(bytes.len()));
        assert_eq!(Path::new(one["file"].as_str().unwrap()).parent(), Some(out));
    }
    all
}

#[track_caller]
fn refused(file: &Path, out: &Path, options: &[&str], message: &str) {
    let before = contents(out);
    let output = extract(file, out, options);
    let errors = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    assert!(!output.status.success() && errors.contains(message), "{errors}");
    assert!(contents(out) == before, "something was written");
}

/// The bundles of a fat binary, each in a file of its own below `folder`.
fn bundles_of(binary: &Path, folder: &Path) -> Vec<PathBuf> {
    let found = tools::run(rockpack().args(["inspect", "--json"]).arg(binary));
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    let bytes = fs::read(binary).unwrap();
    let file = object::File::parse(bytes.as_slice()).unwrap();
    let section = file.section_by_name(".hip_fatbin").unwrap().data().unwrap();
    let bundles = found[0]["bundles"].as_array().unwrap().iter().enumerate();
    bundles
        .map(|(index, bundle)| {
            let start = number(&bundle["offset"]);
            let path = folder.join(format!("bundle.{index}"));
            fs::write(&path, &section[start..start + number(&bundle["size"])]).unwrap();
            path
        })
        .collect()
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// The code object that clang-offload-bundler unbundles for a target.
fn unbundled(bundle: &Path, target: &str) -> Vec<u8> {
    let out = bundle.with_extension("out");
    let mut unbundle = Command::new("clang-offload-bundler-19");
    unbundle.args(["--unbundle", "--type=o"]);
    unbundle.arg(format!("--targets=hipv4-amdgcn-amd-amdhsa--{target}"));
    unbundle
        .arg(format!("--input={}", bundle.display()))
        .arg(format!("--output={}", out.display()));
    tools::run(&mut unbundle);
    fs::read(out).unwrap()
}

/// One bundle of the library is plain, the other compressed.
#[test]
fn a_fat_binary_gives_what_clang_takes_out() {
    tools::need(&["clang-offload-bundler-19"]);
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let all = extracted(&library(), &out, &[]);
    assert_eq!(all.len(), 7);
    let bundles = bundles_of(&library(), scratch.path());
    for one in &all {
        let index = usize::try_from(one["index"].as_u64().unwrap()).unwrap();
        let target = one["target"].as_str().unwrap();
        let own = fs::read(one["file"].as_str().unwrap()).unwrap();
        assert!(own == unbundled(&bundles[index], target), "{one}");
    }
    let names: BTreeSet<String> = contents(&out).into_keys().collect();
    let expected =
        ["0-gfx1100", "0-gfx1101", "0-gfx1102", "0-gfx906", "1-gfx1100", "1-gfx1101", "1-gfx1102"];
    let expected = expected.map(|part| format!("libexblas.so.1.2-{part}.hsaco"));
    assert_eq!(names, BTreeSet::from(expected));
}

#[test]
fn a_file_of_bundles_gives_what_clang_takes_out() {
    tools::need(&["clang-offload-bundler-19"]);
    let scratch = tempfile::tempdir().unwrap();
    for (index, bundle) in bundles_of(&library(), scratch.path()).iter().enumerate() {
        let out = scratch.path().join(format!("out-{index}"));
        let all = extracted(bundle, &out, &[]);
        assert_eq!(all.len(), [4, 3][index]);
        for one in &all {
            let own = fs::read(one["file"].as_str().unwrap()).unwrap();
            assert!(own == unbundled(bundle, one["target"].as_str().unwrap()), "{one}");
            assert_eq!(
                (&one["index"], &one["binary"]),
                (&json!(0), &json!(format!("bundle.{index}")))
            );
        }
    }
}

/// The digests that `extract` reports, by key and target.
fn rows(all: &[Value]) -> BTreeMap<(String, String), String> {
    let row = |one: &Value| {
        let key = format!("{}#{}", text(&one["binary"]), one["index"]);
        ((key, text(&one["target"])), text(&one["sha256"]))
    };
    all.iter().map(row).collect()
}

/// The digests that the Python reader reports, by key and target.
fn judged(archive: &Path) -> BTreeMap<(String, String), String> {
    let found = kpack::python("kpack_reader.py", &[archive.to_str().unwrap()]).unwrap();
    let mut rows = BTreeMap::new();
    for (key, targets) in found["rows"].as_object().unwrap() {
        for (target, row) in targets.as_object().unwrap() {
            let sha256 = row["sha256"].as_str().unwrap().to_owned();
            rows.insert((key.clone(), target.clone()), sha256);
        }
    }
    rows
}

#[test]
fn an_archive_gives_what_the_python_reader_sees() {
    tools::need(&["dpkg-deb"]);
    kpack::need_python();
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("root");
    set().unpack_debs(&["rocm-blas-gfx110x"], &root);
    let folder = root.join(PREFIX).join("lib/.kpack");
    let mut packaged = BTreeMap::new();
    for arch in GROUPS[0].archs {
        let archive = folder.join(format!("blas_lib_{arch}.kpack"));
        let all = extracted(&archive, &scratch.path().join(arch), &[]);
        assert_eq!(rows(&all), judged(&archive));
        assert_eq!(all.len(), 4);
        packaged.extend(rows(&all));
        assert!(
            scratch
                .path()
                .join(arch)
                .join(format!("lib%2Flibexblas.so.1.2-1-{arch}.hsaco"))
                .exists()
        );
    }
    // Packages give what their archives give.
    for package in [set().deb("rocm-blas-gfx110x"), set().rpm("rocm-blas-gfx110x")] {
        let out = scratch.path().join(package.extension().unwrap());
        let all = extracted(&package, &out, &[]);
        assert_eq!(rows(&all), packaged);
        assert_eq!(all[0]["member"], format!("/{PREFIX}/lib/.kpack/blas_lib_gfx1100.kpack"));
    }
}

#[test]
fn archives_of_another_writer_are_extracted_in_both_schemes() {
    kpack::need_python();
    for scheme in ["none", "zstd-per-kernel"] {
        let scratch = tempfile::tempdir().unwrap();
        let archive = scratch.path().join("x.kpack");
        kpack::python("kpack_writer.py", &[archive.to_str().unwrap(), scheme]).unwrap();
        let out = scratch.path().join("out");
        assert_eq!(rows(&extracted(&archive, &out, &[])), judged(&archive));
        assert_eq!(extracted(&archive, &out, &["--target", "gfx90a:xnack-"]).len(), 3);
        assert_eq!(extracted(&archive, &out, &["--target", "gfx90a"]).len(), 6);
        let file = out.join("bin%2Ftwo-0-gfx90a-xnack+.hsaco");
        assert!(file.exists());
    }
}

#[test]
fn targets_and_kernels_select() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let both = [(0, "gfx1101".to_owned()), (1, "gfx1101".to_owned())];
    assert_eq!(extracted_targets(&out, &["--target", "gfx1101"]), both);
    let all = extracted_targets(&out, &["--target", "gfx906", "--target", "gfx1102"]);
    assert_eq!(all.len(), 3);
    // A kernel of the first translation unit, by the name that its code object defines.
    let first = out.join("libexblas.so.1.2-0-gfx1101.hsaco");
    let shown = tools::run(rockpack().args(["inspect", "--json"]).arg(first));
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let kernel = shown[0]["kernels"][0].as_str().unwrap();
    let own = extracted_targets(&out, &["--kernel", kernel]);
    let own: Vec<u64> = own.iter().map(|(index, _)| *index).collect();
    assert_eq!(own, [0; 4]);
    refused(&library(), &out, &["--kernel", "nothing"], "holds none of the selected code objects");
    refused(
        &library(),
        &out,
        &["--target", "gfx942"],
        "it has code for gfx1100, gfx1101, gfx1102, gfx906",
    );
    refused(&library(), &out, &["--target", "sm_90"], "`sm_90` is not a GPU arch");
}

fn extracted_targets(out: &Path, options: &[&str]) -> Vec<(u64, String)> {
    let all = extracted(&library(), out, options);
    all.iter()
        .map(|one| (one["index"].as_u64().unwrap(), one["target"].as_str().unwrap().to_owned()))
        .collect()
}

#[test]
fn nothing_is_overwritten() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let first = String::from_utf8(extract(&library(), &out, &[]).stdout).unwrap();
    let last = "7 code objects, 30.99 kB\n";
    assert!(first.ends_with(last) && first.lines().count() == 8, "{first}");
    assert!(first.lines().take(7).all(|line| line.starts_with("wrote ")), "{first}");
    let again = String::from_utf8(extract(&library(), &out, &[]).stdout).unwrap();
    assert_eq!(again, first.replace("wrote ", "kept "));
    let taken = out.join("libexblas.so.1.2-1-gfx1102.hsaco");
    fs::write(&taken, "mine").unwrap();
    fs::remove_file(out.join("libexblas.so.1.2-0-gfx1100.hsaco")).unwrap();
    refused(&library(), &out, &[], "already exists with other content");
    assert_eq!(fs::read(&taken).unwrap(), b"mine");
}

/// The two files have the same name, are in two shards, and have different code.
#[test]
fn two_files_of_one_name_are_told_apart_or_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let other = GROUPS[2].original(&shards(), LIBRARY);
    let mut command = rockpack();
    command.arg("extract").args([library(), other]).arg("--out").arg(&out);
    let both = command.output().unwrap();
    let errors = String::from_utf8_lossy(&both.stderr).replace('\n', " ");
    assert!(errors.contains("would hold this code and that of"), "{errors}");
    assert!(!out.exists());
    let selected = tools::run(command.args(["--target", "gfx1100", "--target", "gfx1200"]));
    let told = String::from_utf8(selected.stdout).unwrap();
    assert!(told.contains("\n4 code objects, "), "{told}");
}

#[test]
fn what_has_no_code_objects_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let text = scratch.path().join("text");
    fs::write(&text, "text").unwrap();
    refused(&text, &out, &[], "is not a file that code objects can be extracted from");
    refused(&scratch.path().join("missing"), &out, &[], "No such file");
    let database = "lib/rocblas/library/TensileLibrary_gfx1100.co";
    let code_object = GROUPS[0].original(&shards(), database);
    refused(&code_object, &out, &[], "is itself a code object");
    refused(&set().deb("rocm-blas"), &out, &[], "the package holds no kernel archives");
    for metapackage in [set().deb("rocm"), set().rpm("rocm-gfx110x")] {
        refused(&metapackage, &out, &[], "is a metapackage, which installs nothing itself");
    }
    if tools::have(&["rpmbuild"]) {
        let linked = rpm(scratch.path(), LINK);
        refused(&linked, &out, &[], "the package holds no kernel archives");
    }
    if tools::have(&["dpkg-deb"]) {
        let root = scratch.path().join("root");
        set().unpack_debs(&["rocm-blas"], &root);
        let transformed = root.join(PREFIX).join(LIBRARY);
        let message = "it is in archives (.kpack/blas_lib_@GFXARCH@.kpack)";
        refused(&transformed, &out, &[], message);
        let plain = root.join(PREFIX).join("lib/libexcblas.so.1.0");
        refused(&plain, &out, &[], "is an ELF file without device code");
    }
    assert!(!out.exists());
}

#[test]
fn a_file_cut_anywhere_is_refused_or_gives_the_same() {
    let scratch = tempfile::tempdir().unwrap();
    let whole = extracted(&library(), &scratch.path().join("whole"), &[]);
    let bundle = bundles_of(&library(), scratch.path()).remove(1);
    let compressed = fs::read(&bundle).unwrap();
    let (cut, out) = (scratch.path().join("cut"), scratch.path().join("out"));
    // By the function that the command calls: a start of the program takes longer.
    let fault = |bytes: &[u8]| {
        fs::write(&cut, bytes).unwrap();
        let budget = Budget::new(Limits::of_machine());
        let files = std::slice::from_ref(&cut);
        inspect::extract::extract(files, &out, &Selection::default(), &budget).unwrap_err()
    };
    for end in (0..compressed.len()).step_by(31) {
        let error = fault(&compressed[..end]);
        assert!(error.full_text().contains("cut"), "{error}");
        assert!(contents(&out).is_empty(), "something was written");
    }
    let bytes = fs::read(library()).unwrap();
    for end in (0..bytes.len()).step_by(2311) {
        let error = fault(&bytes[..end]);
        assert!(!matches!(error.kind(), Kind::Bug | Kind::Io), "{error}");
    }
    let output = extract(&cut, &out, &[]);
    assert!(matches!(output.status.code(), Some(2 | 64)), "{:?}", output.status);
    assert_eq!(whole.len(), 7);
}
