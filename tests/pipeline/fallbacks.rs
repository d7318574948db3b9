//! Wrappers that have code for a GPU only as code for its generic target.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use support::device::link;
use support::example::{Entry, plant, rockpack, tree};
use support::kpack::mach;
use support::queries::{deb_field, rpm_list};
use support::runtime::{Runtime, found, missing};
use support::tampered::{Archive, passes};
use support::tools::{need, run, told};
use tempfile::TempDir;

use crate::odd_code;

const GROUPS: &str = "[architecture_groups.gfx120X]\narchitectures = ['gfx1200', 'gfx1201']\n\
                      [architecture_groups.gfx94X]\narchitectures = ['gfx942']\n\
                      [libraries.'libamdhip64.so.7']\ndeb = 'hip'\n\
                      [runtime_relation]\ndeb = 'hip'\nrpm = 'hip'\n";
const BLAS: &str = "math-libs/BLAS/rocBLAS/stage";
const FFT: &str = "math-libs/rocFFT/stage";

/// A shard with two libraries: in rocBLAS, one of two wrappers has code for gfx1201; in rocFFT, none has.
struct Case(TempDir);

impl Case {
    fn without_libraries() -> Self {
        let case = Self(tempfile::tempdir().unwrap());
        let mut runtime = Command::new("clang-19");
        runtime.args([
            "-shared",
            "-nostdlib",
            "-x",
            "c",
            "/dev/null",
            "-Wl,-soname,libamdhip64.so.7",
        ]);
        run(runtime.arg("-o").arg(case.at("libamdhip64.so")));
        case
    }

    /// The libraries are compiled once in a run.
    fn new() -> Self {
        static MADE: OnceLock<BTreeMap<String, Entry>> = OnceLock::new();
        let make = || {
            let case = Self::without_libraries();
            let all: &[&str] = &["gfx1201", "gfx942", "gfx12-generic"];
            let generic: &[&str] = &["gfx12-generic", "gfx942"];
            case.library("blas", BLAS, "librocblas.so.5", &[("own", all), ("general", generic)]);
            case.library("fft", FFT, "librocfft.so.0", &[("transform", generic)]);
            tree(case.0.path())
        };
        let case = Self(tempfile::tempdir().unwrap());
        plant(MADE.get_or_init(make), case.0.path(), false);
        case
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn library(&self, name: &str, stage: &str, file: &str, wrappers: &[(&str, &[&str])]) {
        let artifact = self.at(&format!("shards/one/{name}_lib_all"));
        let folder = artifact.join(stage).join("lib");
        fs::create_dir_all(&folder).unwrap();
        fs::write(artifact.join("artifact_manifest.txt"), format!("{stage}\n")).unwrap();
        let runtime = self.at("libamdhip64.so");
        fs::rename(link(self.0.path(), file, wrappers, &[&runtime]), folder.join(file)).unwrap();
    }

    fn build(&self, shards: &str, out: &str, more: &str) -> Command {
        let config = self.at(&format!("{out}.toml"));
        fs::write(&config, format!("{GROUPS}{more}")).unwrap();
        let mut command = rockpack();
        command.args(["build", "--version", "7.1.0", "--strict", "-v", "--artifacts"]);
        command.arg(self.at(shards)).arg("--config").arg(config).arg("--out").arg(self.at(out));
        command
    }

    fn verify(&self, out: &str) {
        passes(&self.at(out), &self.at("shards"));
    }

    fn unpack(&self, packages: &[&str], root: &str) -> PathBuf {
        for package in packages {
            let deb = self.at(&format!("out/{package}_7.1.0-1_amd64.deb"));
            run(Command::new("dpkg-deb").arg("-x").arg(deb).arg(self.at(root)));
        }
        self.at(root).join("opt/rocm-7.1")
    }

    fn needs(&self, package: &str) -> String {
        let deb = deb_field(&self.at(&format!("out/{package}_7.1.0-1_amd64.deb")), "Depends");
        let rpm = self.at(&format!("out/{package}-7.1.0-1.x86_64.rpm"));
        format!("{deb}\n{}", rpm_list(&rpm, "--requires"))
    }
}

/// `gfx1200` and `gfx1201` without code that only some other configuration would explain.
const ACCEPTED: &str = "[[accept]]\ncode = 'R013'\nsubject = '*'\nreason = 'not built'\n";

#[test]
fn kernel_packages_bring_the_generic_code_that_their_gpus_need() {
    need(&["dpkg-deb", "rpm", "clang++-19", "ld.lld-19", "clang-offload-bundler-19"]);
    let case = Case::new();
    run(&mut case.build("shards", "out", ACCEPTED));
    case.verify("out");
    for needed in ["rocm-blas-gfx12-generic (= 7.1.0-1)", "rocm-blas-gfx12-generic = 7.1.0-1"] {
        assert!(case.needs("rocm-blas-gfx120x").contains(needed), "{needed}");
    }
    assert!(!case.needs("rocm-blas-gfx94x").contains("generic"));
    let meta = case.needs("rocm-gfx120x");
    assert!(meta.contains("rocm-fft-gfx12-generic (>= 7.1.0-1)"), "{meta}");
    assert!(!case.needs("rocm-gfx94x").contains("generic"));

    // The loader stops at the archive of the device itself, so this has a row for each wrapper.
    let prefix = case.unpack(&["rocm-blas", "rocm-blas-gfx120x"], "root");
    let archive = prefix.join("lib/.kpack/blas_lib_gfx1201.kpack");
    let library = prefix.join("lib/librocblas.so.5");
    let runtime = Runtime::build(&case.at("stub"), std::slice::from_ref(&library));
    let lines = runtime.with_kpack_library().load(&[library], "gfx1201");
    assert_eq!(missing(&lines), Vec::<&str>::new());
    let loaded: BTreeSet<(&str, &Path)> =
        found(&lines).iter().map(|line| (line.key.as_str(), line.archive.as_path())).collect();
    let archive = archive.canonicalize().unwrap();
    let keys = ["lib/librocblas.so.5#0", "lib/librocblas.so.5#1"];
    assert_eq!(loaded, keys.map(|key| (key, archive.as_path())).into());
    // The copy is no code object of its own.
    let receipt = fs::read(case.at("out/packages.json")).unwrap();
    let receipt: Value = serde_json::from_slice(&receipt).unwrap();
    let records = receipt["code_objects"].as_array().unwrap().iter();
    let of_copies = records.filter(|it| it["key"] == keys[1] && it["target"] == "gfx1201");
    assert_eq!(of_copies.count(), 0);
}

/// A device finds its own code first, and generic code where its own arch has code for other features alone.
#[test]
fn copies_serve_the_devices_that_other_code_does_not() {
    need(&["dpkg-deb", "rpm", "clang++-19", "ld.lld-19", "clang-offload-bundler-19"]);
    let case = Case::without_libraries();
    let wrappers: [(&str, &[&str]); 4] = [
        ("bare", &["gfx906"]),
        ("partial", &["gfx906:xnack+", "gfx9-generic"]),
        ("both", &["gfx906:xnack+", "gfx906:xnack-", "gfx9-generic"]),
        ("general", &["gfx9-generic"]),
    ];
    case.library("blas", BLAS, "librocblas.so.5", &wrappers);
    let group = "[architecture_groups.gfx906]\narchitectures = ['gfx906']\n";
    run(&mut case.build("shards", "out", &format!("{group}{ACCEPTED}")));
    case.verify("out");
    let generic = "rocm-blas-gfx9-generic (= 7.1.0-1)";
    assert!(case.needs("rocm-blas-gfx906").contains(generic));
    let prefix = case.unpack(&["rocm-blas", "rocm-blas-gfx906"], "root");
    let archive = prefix.join("lib/.kpack/blas_lib_gfx906.kpack").canonicalize().unwrap();
    let library = prefix.join("lib/librocblas.so.5");
    let runtime = Runtime::build(&case.at("stub"), std::slice::from_ref(&library));
    let runtime = runtime.with_kpack_library();
    for device in ["gfx906:sramecc+:xnack-", "gfx906:sramecc-:xnack+"] {
        let lines = runtime.load(std::slice::from_ref(&library), device);
        assert_eq!(missing(&lines), Vec::<&str>::new(), "{device}");
        assert_eq!(found(&lines).len(), wrappers.len(), "{device}");
        assert!(found(&lines).iter().all(|line| line.archive == archive), "{device}");
    }
}

/// SPIR-V is needed by the groups for which a wrapper has no other code.
#[test]
fn kernel_packages_bring_the_spirv_that_their_gpus_need() {
    need(&["dpkg-deb", "rpm", "clang-19", "ld.lld-19"]);
    let case = Case::without_libraries();
    let words = [3, 2, 0x23, 7, 0, 0, 1, 0, 0, 0, 0, 0].to_vec();
    let spirv = ("hip-spirv64-amd-amdhsa--amdgcnspirv", words);
    let code = |id, mach: u8, text| (id, odd_code::code_object(mach.into(), text));
    let gfx942 = code("hipv4-amdgcn-amd-amdhsa--gfx942", mach::GFX942, "1");
    let gfx1201 = code("hipv4-amdgcn-amd-amdhsa--gfx1201", mach::GFX1201, "2");
    let all = [(odd_code::HOST, Vec::new()), gfx942.clone(), gfx1201, spirv.clone()];
    let some = [(odd_code::HOST, Vec::new()), gfx942, spirv];
    let artifact = case.at("shards/one/blas_lib_all");
    let library = artifact.join(BLAS).join("lib/librocblas.so.5");
    fs::create_dir_all(library.parent().unwrap()).unwrap();
    fs::write(artifact.join("artifact_manifest.txt"), format!("{BLAS}\n")).unwrap();
    let bundles = [odd_code::bundle(&all), odd_code::bundle(&some)];
    odd_code::link(case.0.path(), &library, &bundles, "");
    run(&mut case.build("shards", "out", ACCEPTED));
    case.verify("out");
    for needed in ["rocm-blas-amdgcnspirv (= 7.1.0-1)", "rocm-blas-amdgcnspirv = 7.1.0-1"] {
        assert!(case.needs("rocm-blas-gfx120x").contains(needed), "{needed}");
    }
    assert!(!case.needs("rocm-blas-gfx94x").contains("spirv"));
    assert!(case.needs("rocm-gfx120x").contains("rocm-blas-amdgcnspirv (>= 7.1.0-1)"));
}

#[test]
fn split_artifacts_give_the_packages_of_fat_ones() {
    need(&["dpkg-deb", "clang++-19", "ld.lld-19", "clang-offload-bundler-19"]);
    let case = Case::new();
    let mut split = rockpack();
    split
        .arg("split")
        .arg("--artifacts")
        .arg(case.at("shards/one"))
        .arg("--output-dir")
        .arg(case.at("split"));
    run(&mut split);
    run(&mut case.build("split", "out", ACCEPTED));
    case.verify("out");
    assert!(case.needs("rocm-blas-gfx120x").contains("rocm-blas-gfx12-generic (= 7.1.0-1)"));
}

#[test]
fn generic_code_that_is_left_out_is_told_with_its_wrappers() {
    need(&["dpkg-deb", "clang++-19", "ld.lld-19", "clang-offload-bundler-19"]);
    let case = Case::new();
    for (number, table) in ["packages.rocm-blas", "components.blas_lib"].iter().enumerate() {
        let exclude = format!("[{table}]\nexclude_architectures = ['gfx12-generic']\n{ACCEPTED}");
        let output = case.build("shards", "out", &exclude).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        let warning = "R132 fallback-left-out: blas_lib/lib/librocblas.so.5: wrapper 1 has code for \
                       gfx1200, gfx1201 only as gfx12-generic";
        assert!(said.contains(warning), "{said}");
        let accept = "[[accept]]\ncode = 'R132'\nsubject = '*'\nreason = 'no RDNA 4 yet'\n";
        let out = format!("out{number}");
        run(&mut case.build("shards", &out, &format!("{exclude}{accept}")));
        case.verify(&out);
    }
}

#[test]
fn verify_finds_missing_copies() {
    need(&["dpkg-deb", "clang++-19", "ld.lld-19", "clang-offload-bundler-19"]);
    let case = Case::new();
    run(&mut case.build("shards", "out", ACCEPTED));
    let packages = ["rocm-blas", "rocm-blas-gfx120x", "rocm-blas-gfx12-generic"];
    let prefix = case.unpack(&packages, "root");
    let verify = || told(rockpack().args(["verify", "--installed"]).arg(&prefix));
    let said = verify();
    assert!(said.contains("all checks passed"), "{said}");
    let archive = prefix.join("lib/.kpack/blas_lib_gfx1201.kpack");
    Archive::edit(&archive, |archive| archive.drop_row("lib/librocblas.so.5#1", "gfx1201"));
    let said = verify();
    let lack = "lib/librocblas.so.5#1: gfx1201 has no row, so loaders stop here with an error";
    assert!(said.contains("V031 row-missing"), "{said}");
    assert!(said.contains(lack), "{said}");
}

/// rocBLAS looks fallback files up by the name of the GPU, so those of a generic target serve none.
#[test]
fn fallback_files_for_a_generic_target_alone_are_noted() {
    let case = Case(tempfile::tempdir().unwrap());
    let library = case.at(&format!("shards/one/blas_lib_all/{BLAS}/lib/rocblas/library"));
    fs::create_dir_all(&library).unwrap();
    let manifest = case.at("shards/one/blas_lib_all/artifact_manifest.txt");
    fs::write(manifest, format!("{BLAS}\n")).unwrap();
    let add = |mach: u8, arch: &str| {
        let file = library.join(format!("TensileLibrary_Type_SS_fallback_{arch}.hsaco"));
        fs::write(file, support::kpack::code_object(mach, arch)).unwrap();
    };
    add(mach::GFX942, "gfx942");
    let note = |archs: &str| {
        format!(
            "R133 fallback-files-generic: blas_lib/lib/rocblas/library: has fallback files for \
             gfx12-generic and none for {archs}: "
        )
    };
    assert!(!told(&mut case.build("shards", "out", ACCEPTED)).contains("R133"));
    add(mach::GFX12_GENERIC, "gfx12-generic");
    let said = told(&mut case.build("shards", "out", ACCEPTED));
    assert!(said.contains(&note("gfx1200, gfx1201")), "{said}");
    add(mach::GFX1201, "gfx1201");
    let said = told(&mut case.build("shards", "out", ACCEPTED));
    assert!(said.contains(&note("gfx1200")), "{said}");
}
