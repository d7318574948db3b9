//! Artifacts (fat, split by rockpack, split by the existing tool), installed prefixes and single
//! files: they pass as they are made, and each damage is found.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::tampered::{self, Archive, Run, Set, patch, shard, verify, wrapper_section};
use crate::tools;

const SHARD: &str = "gfx110X-build";
const STAGE: &str = "math-libs/BLAS/rocBLAS/stage";
const LIBRARY: &str = "lib/libexblas.so.1.2";
const DATABASE: &str = "lib/rocblas/library";

/// The example shards, split once.
fn split() -> &'static Path {
    static SPLIT: OnceLock<TempDir> = OnceLock::new();
    let split = || {
        let folder = tempfile::tempdir().unwrap();
        let mut split = Command::new(env!("CARGO_BIN_EXE_rockpack"));
        split.args(["split", "--artifacts"]).arg(tools::repository("examples/shards"));
        tools::run(split.arg("--output-dir").arg(folder.path().join("split")));
        folder
    };
    SPLIT.get_or_init(split).path()
}

/// A folder that may be spoiled.
struct Copy(TempDir);

impl Copy {
    fn of(from: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = Command::new("cp");
        tools::run(copy.arg("-r").arg(from).arg(folder.path().join("copy")));
        Self(folder)
    }

    /// The first shard, split.
    fn split() -> Self {
        Self::of(&split().join("split").join(SHARD))
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("copy")
    }

    /// A path of an artifact below the stage prefix of its library.
    fn at(&self, artifact: &str, path: &str) -> PathBuf {
        self.root().join(artifact).join(STAGE).join(path)
    }

    /// The one file whose path ends with `path`.
    fn find(&self, path: &str) -> PathBuf {
        let mut find = Command::new("find");
        let found = find.arg(self.root()).arg("-path").arg(format!("*/{path}"));
        let found = String::from_utf8(found.output().unwrap().stdout).unwrap();
        let lines: Vec<&str> = found.lines().collect();
        assert_eq!(lines.len(), 1, "{found}");
        PathBuf::from(lines[0])
    }

    fn verify(&self) -> Run {
        verify(&[self.root().to_str().unwrap()], &[])
    }

    /// Takes the manifests away, whose sizes would tell of every change of an archive.
    fn without_manifests(self) -> Self {
        for component in ["lib", "run"] {
            let manifest = format!("lib/.kpack/blas_{component}.kpm");
            fs::remove_file(self.at(&format!("blas_{component}_generic"), &manifest)).unwrap();
        }
        self
    }
}

fn archive(arch: &str) -> String {
    format!("lib/.kpack/blas_lib_{arch}.kpack")
}

fn database(ending: &str) -> String {
    format!("{DATABASE}/TensileLibrary_gfx1100.{ending}")
}

/// The artifacts of all shards, recombined.
fn recombined() -> Copy {
    let folder = tempfile::tempdir().unwrap();
    let mut recombine = Command::new(env!("CARGO_BIN_EXE_rockpack"));
    recombine.args(["recombine", "--artifacts"]).arg(split().join("split")).arg("--config");
    recombine.arg(tools::repository("examples/packaging-config.json"));
    tools::run(recombine.arg("--output-dir").arg(folder.path().join("copy")));
    Copy(folder)
}

/// The library of the example with its device code.
fn fat_library() -> PathBuf {
    shard("gfx110X").join(STAGE).join(LIBRARY)
}

/// A prefix with the host files and the kernels of one arch.
fn prefix() -> Copy {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("copy");
    fs::create_dir(&root).unwrap();
    for artifact in ["blas_lib_generic", "blas_lib_gfx1100"] {
        let stage = split().join("split").join(SHARD).join(artifact).join(STAGE);
        tools::run(Command::new("cp").arg("-r").arg(stage.join(".")).arg(&root));
    }
    Copy(folder)
}

#[test]
fn artifacts_pass_as_they_are_made() {
    let split = split().join("split");
    let paths = [tools::repository("examples/shards"), split.clone(), split.join(SHARD)];
    let artifacts = [9, 24, 10];
    for (path, count) in paths.iter().zip(artifacts) {
        let run = verify(&[path.to_str().unwrap()], &[]);
        run.fired(&[]);
        let json: serde_json::Value = serde_json::from_str(&run.text).unwrap();
        assert_eq!((&json["artifacts"], &json["packages"]), (&count.into(), &0.into()));
    }
    for artifact in ["blas_lib_generic", "blas_lib_gfx1100", "host-suite-sparse_lib_generic"] {
        verify(&[split.join(SHARD).join(artifact).to_str().unwrap()], &[]).fired(&[]);
    }
    let fat = shard("gfx1151");
    verify(&[fat.to_str().unwrap()], &[]).fired(&[]);
}

#[test]
fn artifacts_of_the_existing_tool_pass() {
    let python = Path::new("/usr/bin/python3");
    let imports = Command::new(python).args(["-c", "import msgpack, zstandard"]).output();
    if !imports.is_ok_and(|output| output.status.success()) {
        return tools::skip("needs python3 with msgpack and zstandard");
    }
    let out = tempfile::tempdir().unwrap();
    for scheme in ["zstd-per-kernel", "none"] {
        let fat = tools::repository("examples/shards").join(SHARD);
        let existing = out.path().join(scheme).join(SHARD);
        let mut script = Command::new(python);
        script.arg(tools::repository("tests/support/existing_split.py")).arg(fat);
        tools::run(script.arg(split().join("split").join(SHARD)).arg(&existing).arg(scheme));
        verify(&[existing.to_str().unwrap()], &[]).fired(&[]);
        fs::remove_file(
            existing
                .join("blas_run_gfx1101")
                .join(STAGE)
                .join(".kpack")
                .join("blas_run_gfx1101.kpack"),
        )
        .unwrap();
        verify(&[existing.to_str().unwrap()], &[]).fired(&[]);
        for arch in ["gfx1100", "gfx1102"] {
            fs::remove_dir_all(existing.join(format!("blas_run_{arch}"))).unwrap();
        }
        verify(&[existing.to_str().unwrap()], &[]).fired(&["V030"]);
    }
}

#[test]
fn v060_manifests_of_artifacts() {
    for text in [None, Some(""), Some("../other/stage\n")] {
        let copy = Copy::split();
        let manifest = copy.root().join("blas_lib_gfx1100/artifact_manifest.txt");
        match text {
            None => fs::remove_file(&manifest).unwrap(),
            Some(text) => fs::write(&manifest, text).unwrap(),
        }
        let run = copy.verify();
        run.fired(&["V060"]);
        assert!(run.text.contains("blas_lib_gfx1100/artifact_manifest.txt"), "{}", run.text);
    }
}

#[test]
fn v020_device_code_in_a_generic_artifact() {
    let code = format!("{DATABASE}/Kernels.so-000-gfx1100.hsaco");
    let copy = Copy::split();
    fs::copy(fat_library(), copy.at("blas_lib_generic", LIBRARY)).unwrap();
    copy.verify().fired(&["V020"]);
    let copy = Copy::split();
    fs::rename(copy.at("blas_lib_gfx1100", &code), copy.at("blas_lib_generic", &code)).unwrap();
    copy.verify().fired(&["V020"]);
    // Without any sign of a split, the name alone promises host code.
    let copy = Copy::of(&shard("gfx1151"));
    let generic = copy.0.path().join("shard/blas_lib_generic");
    fs::create_dir(generic.parent().unwrap()).unwrap();
    fs::rename(copy.root(), &generic).unwrap();
    verify(&[generic.to_str().unwrap()], &[]).fired(&["V020"]);
}

#[test]
fn v020_a_transformed_binary_that_keeps_its_device_code() {
    let copy = Copy::split();
    let bytes = fs::read(fat_library()).unwrap();
    let (offset, size) = tampered::section(&bytes, ".hip_fatbin");
    let library = copy.at("blas_lib_generic", LIBRARY);
    let mut transformed = fs::read(&library).unwrap();
    transformed.extend(&bytes[offset..offset + size]);
    fs::write(&library, transformed).unwrap();
    copy.verify().fired(&["V020"]);
}

#[test]
fn v021_host_code_in_an_arch_artifact() {
    let copy = Copy::split();
    let library = shard("gfx110X").join("math-libs/BLAS/hipBLAS/stage/lib/libexcblas.so.1.0");
    fs::copy(library, copy.at("blas_lib_gfx1100", "lib/libhelper.so")).unwrap();
    copy.verify().fired(&["V021"]);
}

#[test]
fn v022_code_of_another_arch() {
    let name = format!("{DATABASE}/Kernels.so-000-gfx1101.hsaco");
    for name in [name, archive("gfx1101")] {
        let copy = Copy::split();
        fs::rename(copy.at("blas_lib_gfx1101", &name), copy.at("blas_lib_gfx1100", &name)).unwrap();
        copy.verify().fired(&["V022"]);
    }
    // The name of the file says one thing, its content another.
    let copy = Copy::split();
    let [own, other] = ["gfx1100", "gfx1101"].map(|arch| {
        let name = format!("{DATABASE}/TensileLibrary_{arch}.co");
        copy.at(&format!("blas_lib_{arch}"), &name)
    });
    fs::copy(other, own).unwrap();
    copy.verify().fired(&["V022"]);
}

#[test]
fn v023_archives_that_are_damaged() {
    let bytes = fs::read(Copy::split().at("blas_lib_gfx1100", &archive("gfx1100"))).unwrap();
    let flipped = |at: usize, with: u8| {
        let mut bytes = bytes.clone();
        bytes[at..at + 24].fill(with);
        bytes
    };
    // The table, a frame, and the end of both.
    for damaged in [flipped(8, 0xff), flipped(64 + 8 + 40, 0xff), bytes[..100].to_vec()] {
        let copy = Copy::split().without_manifests();
        fs::write(copy.at("blas_lib_gfx1100", &archive("gfx1100")), damaged).unwrap();
        let codes = copy.verify().codes();
        assert!(codes.contains(&"V023".to_owned()), "{codes:?}");
    }
}

#[test]
fn v023_archives_without_their_first_bytes() {
    let bytes = fs::read(Copy::split().at("blas_lib_gfx1100", &archive("gfx1100"))).unwrap();
    let mut headless = bytes.clone();
    headless[0] = 0;
    for damaged in [&headless[..], &bytes[..3], &[], &bytes[..bytes.len() / 2]] {
        let prefix = prefix();
        fs::write(prefix.root().join(archive("gfx1100")), damaged).unwrap();
        prefix.verify().fired(&["V023"]);
        let copy = Copy::split();
        fs::write(copy.at("blas_lib_gfx1100", &archive("gfx1100")), damaged).unwrap();
        copy.verify().fired(&["V023"]);
        let artifact = copy.root().join("blas_lib_gfx1100");
        verify(&[artifact.to_str().unwrap()], &[]).fired(&["V023"]);
    }
}

#[test]
fn v023_an_archive_of_a_package_without_its_magic() {
    let set = Set::new();
    set.remove_receipt();
    let kernels = "rocm-blas-gfx110x_7.1.0-1_amd64.deb";
    let kernels = set.packages().into_iter().find(|path| path.ends_with(kernels)).unwrap();
    let name = Path::new(&kernels).file_name().unwrap().to_str().unwrap().to_owned();
    set.edit(&name, |root| {
        patch(&root.join("opt/rocm-7.1").join(archive("gfx1100")), 0, &[0]);
    });
    set.fires(&[], &["V023"]);
}

#[test]
fn v024_an_index_without_its_code() {
    for (lost, found) in [("co", "dat"), ("dat", "co")] {
        let copy = Copy::split();
        let file = format!("{DATABASE}/TensileLibrary_gfx1100.{lost}");
        fs::remove_file(copy.at("blas_lib_gfx1100", &file)).unwrap();
        let run = copy.verify();
        run.fired(&["V024"]);
        assert!(run.text.contains(&format!("TensileLibrary_gfx1100.{found}")), "{}", run.text);
    }
}

#[test]
fn v024_an_index_without_the_code_of_its_own_arch() {
    let group = recombined();
    let shown = |run: &Run, found: &str| assert!(run.text.contains(found), "{}", run.text);
    for (lost, found) in [("co", "dat"), ("dat", "co")] {
        let file = format!("{DATABASE}/TensileLibrary_gfx1101.{lost}");
        let spoiled = Copy::of(&group.root());
        fs::remove_file(spoiled.find(&file)).unwrap();
        let run = spoiled.verify();
        run.fired(&["V024"]);
        shown(&run, &format!("TensileLibrary_gfx1101.{found}"));
        shown(&run, "for gfx1101 beside it");
        let prefix = prefix();
        let other = split().join("split").join(SHARD).join("blas_lib_gfx1101").join(STAGE);
        tools::run(Command::new("cp").arg("-r").arg(other.join(".")).arg(prefix.root()));
        prefix.verify().fired(&[]);
        fs::remove_file(prefix.root().join(&file)).unwrap();
        prefix.verify().fired(&["V024"]);
    }
}

#[test]
fn v024_an_index_that_refers_to_what_is_not_there() {
    // {"0": "TensileLibrary_x_gfx1100"}: solutions from 0 on are in the library of that name.
    let mut lazy = vec![0x81, 0xa1, b'0', 0xb8];
    lazy.extend(b"TensileLibrary_x_gfx1100");
    let copy = Copy::split();
    let at = |name: &str| copy.at("blas_lib_gfx1100", &format!("{DATABASE}/{name}"));
    fs::write(at("TensileLibrary_lazy_gfx1100.dat"), lazy).unwrap();
    let run = copy.verify();
    run.fired(&["V024"]);
    assert!(run.text.contains("refers to TensileLibrary_x_gfx1100.dat"), "{}", run.text);
    for ending in ["co", "dat"] {
        let from = at(&format!("TensileLibrary_gfx1100.{ending}"));
        fs::copy(from, at(&format!("TensileLibrary_x_gfx1100.{ending}"))).unwrap();
    }
    copy.verify().fired(&[]);
}

#[test]
fn v025_database_files_that_are_not_what_their_names_say() {
    let code = fs::read(Copy::split().at("blas_lib_gfx1100", &database("co"))).unwrap();
    let cases: [(&str, &[u8]); 5] = [
        ("co", b""),
        ("co", b"hello"),
        ("co", &code[..code.len() - 1]),
        ("dat", b"hello"),
        ("dat", b""),
    ];
    for (ending, bytes) in cases {
        let copy = Copy::split();
        fs::write(copy.at("blas_lib_gfx1100", &database(ending)), bytes).unwrap();
        copy.verify().fired(&["V025"]);
        let prefix = prefix();
        fs::write(prefix.root().join(database(ending)), bytes).unwrap();
        prefix.verify().fired(&["V025"]);
    }
    let generic = format!("{DATABASE}/TensileLibrary_fallback.dat");
    let copy = Copy::split();
    fs::write(copy.at("blas_lib_generic", &generic), "hello").unwrap();
    copy.verify().fired(&["V025"]);
}

#[test]
fn v030_archives_that_are_gone() {
    let copy = Copy::split();
    for arch in ["gfx1100", "gfx1101", "gfx1102", "gfx906"] {
        let artifact = format!("blas_lib_{arch}");
        let archive = copy.at(&artifact, &archive(arch));
        fs::remove_file(archive).unwrap();
    }
    copy.verify().fired(&["V030", "V033"]);
    copy.without_manifests().verify().fired(&["V030"]);
}

#[test]
fn v031_a_wrapper_without_rows() {
    let copy = Copy::split().without_manifests();
    for arch in ["gfx1100", "gfx1101", "gfx1102"] {
        let file = copy.at(&format!("blas_lib_{arch}"), &archive(arch));
        Archive::edit(&file, |archive| archive.drop_row(&format!("{LIBRARY}#1"), arch));
    }
    copy.verify().fired(&["V031"]);
}

#[test]
fn v032_a_wrapper_with_another_index() {
    for copy in [Copy::split(), prefix()] {
        let generic = copy.at("blas_lib_generic", LIBRARY);
        let library = if generic.exists() { generic } else { copy.root().join(LIBRARY) };
        patch(&library, wrapper_section(&library) + 24 + 16, &[0]);
        copy.verify().fired(&["V032"]);
    }
}

#[test]
fn v040_a_path_of_two_artifacts() {
    let copy = Copy::split();
    for artifact in ["blas_lib_generic", "blas_lib_gfx1100"] {
        fs::write(copy.at(artifact, "lib/README"), "text").unwrap();
    }
    copy.verify().fired(&["V040"]);
}

#[test]
fn what_is_for_several_archs_is_the_same_in_each_of_their_artifacts() {
    let file = "lib/aotriton.images/amd-gfx11xx/x.aks2";
    let archs = ["gfx1100", "gfx1101", "gfx1102"];
    let copy = Copy::split();
    let at = |arch: &str| copy.at(&format!("blas_lib_{arch}"), file);
    for arch in archs {
        fs::create_dir_all(at(arch).parent().unwrap()).unwrap();
        fs::write(at(arch), "image").unwrap();
    }
    copy.verify().fired(&[]);
    fs::write(at("gfx1101"), "other").unwrap();
    let run = copy.verify();
    run.fired(&["V040"]);
    assert!(run.text.contains("differs in the artifacts of two archs"), "{}", run.text);
    fs::remove_file(at("gfx1101")).unwrap();
    fs::create_dir(at("gfx1101")).unwrap();
    copy.verify().fired(&["V040"]);
}

#[test]
fn an_installed_prefix_passes_with_some_of_its_groups() {
    let prefix = prefix();
    let run = prefix.verify();
    run.fired(&[]);
    let json: serde_json::Value = serde_json::from_str(&run.text).unwrap();
    assert_eq!(json["prefixes"], 1);
    assert!(json["archive_rows"].as_u64().unwrap() > 0);
    let root = prefix.root();
    verify(&[root.parent().unwrap().to_str().unwrap()], &["--prefix"]).fired(&[]);
    let text = Command::new(env!("CARGO_BIN_EXE_rockpack")).arg("verify").arg(root).output();
    let text = String::from_utf8(text.unwrap().stdout).unwrap();
    assert!(text.starts_with("1 installed prefix, ") && text.ends_with("all checks passed\n"));
}

#[test]
fn a_prefix_without_archives_or_with_others() {
    let spoiled = prefix();
    fs::remove_file(spoiled.root().join(archive("gfx1100"))).unwrap();
    spoiled.verify().fired(&["V030", "V033"]);
    let spoiled = prefix();
    let other = split().join("split").join(SHARD).join("blas_lib_gfx1101").join(STAGE);
    fs::copy(other.join(archive("gfx1101")), spoiled.root().join(archive("gfx1100"))).unwrap();
    spoiled.verify().fired(&["V023", "V033"]);
    let spoiled = prefix();
    Archive::edit(&spoiled.root().join(archive("gfx1100")), |archive| {
        archive.drop_row(&format!("{LIBRARY}#1"), "gfx1100");
    });
    spoiled.verify().fired(&["V033"]);
    // A fat binary that nobody has transformed is in order where host and device code may be.
    let spoiled = prefix();
    fs::copy(fat_library(), spoiled.root().join("lib/libfat.so")).unwrap();
    spoiled.verify().fired(&[]);
}

#[test]
fn single_files() {
    let copy = Copy::split();
    let kpack = copy.at("blas_lib_gfx1100", &archive("gfx1100"));
    let kpm = copy.at("blas_lib_generic", "lib/.kpack/blas_lib.kpm");
    let library = copy.at("blas_lib_generic", LIBRARY);
    let code = copy.at("blas_lib_gfx1100", &format!("{DATABASE}/TensileLibrary_gfx1100.co"));
    let all = [&kpack, &kpm, &library, &code].map(|path| path.to_str().unwrap());
    let run = verify(&all, &[]);
    run.fired(&[]);
    let json: serde_json::Value = serde_json::from_str(&run.text).unwrap();
    assert_eq!(json["single_files"], 4);
    let spoil = |path: &Path, bytes: &[u8], code: &str| {
        let kept = fs::read(path).unwrap();
        fs::write(path, bytes).unwrap();
        verify(&[path.to_str().unwrap()], &[]).fired(&[code]);
        fs::write(path, kept).unwrap();
    };
    let bytes = fs::read(&kpack).unwrap();
    for len in [0, 3, 4, 70, bytes.len() / 2, bytes.len() - 1] {
        spoil(&kpack, &bytes[..len], "V023");
    }
    spoil(&kpm, &[0x85, 1], "V033");
    let mut wrapped = fs::read(&library).unwrap();
    wrapped[wrapper_section(&library)..][..4].copy_from_slice(b"FPIH");
    spoil(&library, &wrapped, "V032");
    let readme = tools::repository("README.md");
    assert_eq!(verify(&[readme.to_str().unwrap()], &[]).status, 64);
}

#[test]
fn packages_of_split_artifacts_hold_all_of_them() {
    let out = tempfile::tempdir().unwrap();
    let artifacts = split().join("split");
    let mut build = Command::new(env!("CARGO_BIN_EXE_rockpack"));
    build.args(["build", "--version", "7.1.0", "--format", "deb", "--config"]);
    build.arg(tools::repository("examples/packaging-config.json"));
    tools::run(build.arg("--artifacts").arg(&artifacts).arg("--out").arg(out.path()));
    let folder = out.path().to_str().unwrap();
    for against in [artifacts, tools::repository("examples/shards")] {
        verify(&[folder], &["--against", against.to_str().unwrap()]).fired(&[]);
    }
    // A code object that the packages lack.
    let more = Copy::of(&split().join("split"));
    let other =
        more.root().join(SHARD).join("blas_lib_gfx1100").join(STAGE).join(archive("gfx1100"));
    let keys = [0, 1].map(|wrapper| format!("{LIBRARY}#{wrapper}"));
    let keys = [keys[0].as_str(), keys[1].as_str()];
    Archive::edit(&other, |archive| archive.exchange(keys, "gfx1100"));
    let run = verify(&[folder], &["--against", more.root().to_str().unwrap()]);
    run.fired(&["V012"]);
}
