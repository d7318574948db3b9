//! Code files that packages have as compressed bundles (`code_files`).

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use md5::{Digest, Md5};
use rmpv::Value as Packed;
use serde_json::{Value, json};
use support::example::{contents, files, rockpack};
use support::tampered::passes;
use support::tools::{need, run, succeed};
use tempfile::TempDir;

use crate::odd_code::{GFX1100, HOST, bundle, code_object};

use super::{encoded, map};

const CONFIGURATION: &str = "version = '7.1.0'\ncode_files = 'compressed'\n\
                             [architecture_groups.one]\narchitectures = ['gfx1100']\n\
                             [architecture_groups.two]\narchitectures = ['gfx90a']\n";

const CODE: &str = "lib/rocblas/library/Kernels.so-000-gfx1100.hsaco";
const WITH_FEATURE: &str = "lib/rocblas/library/Kernels.so-000-gfx90a-xnack+.hsaco";
const EXTENSION: &str = "lib/hipblaslt/library/extop_gfx1100.co";

/// Code objects that compress well.
fn code(flags: u32) -> Vec<u8> {
    code_object(flags, &"text ".repeat(400))
}

/// Files of databases that stay as they are, and why.
fn plain() -> [(&'static str, Vec<u8>); 6] {
    let index = encoded(&map(&[("text", Packed::from("text ".repeat(400)))]));
    [
        // Code for a generic target, a bundle, and code that compression makes larger.
        ("lib/rocblas/library/Kernels.so-000-gfx11-generic.hsaco", code(0x0100_0054)),
        ("lib/rocblas/library/Kernels.so-001-gfx1100.hsaco", bundle(&[(GFX1100, code(0x41))])),
        ("lib/rocblas/library/Kernels.so-002-gfx1100.hsaco", code_object(0x41, "short")),
        ("lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat", index),
        // A file for all GPUs, which is a host file, and one of a library that reads it.
        ("lib/hipblaslt/library/hipblasltTransform.hsaco", code(0x41)),
        ("lib/aotriton/kernels/gfx1100/one.hsaco", code(0x41)),
    ]
}

/// A shard with the databases of two components, and what is built from it.
struct Case(TempDir);

impl Case {
    fn new() -> Self {
        let case = Self(tempfile::tempdir().unwrap());
        case.add("blas_lib_all", CODE, &code(0x41));
        case.add("blas_lib_all", WITH_FEATURE, &code(0x33f));
        case.add("solver_lib_all", EXTENSION, &code(0x41));
        case
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn add(&self, artifact: &str, path: &str, bytes: &[u8]) {
        let artifact = self.path("shards/one").join(artifact);
        let file = artifact.join("stage").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
        fs::write(artifact.join("artifact_manifest.txt"), "stage\n").unwrap();
    }

    fn build(&self, out: &str, configuration: &str, options: &[&str]) {
        let mut build = self.command("build", out, configuration);
        run(build.args(options).arg("--out").arg(self.path(out)));
    }

    /// The plan by a configuration that is written under `name`.
    fn plan(&self, name: &str, configuration: &str) -> Value {
        let mut plan = self.command("plan", name, configuration);
        serde_json::from_str(&succeed(plan.arg("--json"))).unwrap()
    }

    fn command(&self, command: &str, name: &str, configuration: &str) -> Command {
        let config = self.path(&format!("{name}.toml"));
        fs::write(&config, configuration).unwrap();
        let mut run = rockpack();
        run.arg(command).arg("--artifacts").arg(self.path("shards")).arg("--config").arg(config);
        run.args(["--format", "deb"]);
        run
    }

    /// The files below the prefix in all packages.
    fn installed(&self, out: &str) -> BTreeMap<String, Vec<u8>> {
        let root = self.path(&format!("{out}.root"));
        for package in contents(&self.path(out)).into_keys().filter(|name| name.ends_with(".deb")) {
            let package = self.path(out).join(package);
            run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&root));
        }
        files(&root.join("opt/rocm-7.1"))
    }

    /// Whether the packages have the code file of each component compressed.
    fn compressed(&self, out: &str) -> [bool; 2] {
        let installed = self.installed(out);
        [CODE, EXTENSION].map(|path| installed[path].starts_with(b"CCOB"))
    }

    /// Component, files and version of each finding about compressed code files.
    fn findings(&self, out: &str) -> Vec<[Value; 3]> {
        let receipt = fs::read(self.path(out).join("packages.json")).unwrap();
        let receipt: Value = serde_json::from_slice(&receipt).unwrap();
        let own = receipt["findings"].as_array().unwrap().iter().filter(|it| it["code"] == "R160");
        own.map(|it| ["component", "files", "too_old"].map(|field| it[field].clone())).collect()
    }
}

/// The entries of a compressed bundle, whose fields all have to be right: the HIP runtime trusts them.
fn entries(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    assert_eq!(&file[..8], b"CCOB\x02\0\x01\0");
    let bundle = zstd::decode_all(&file[24..]).unwrap();
    assert_eq!([word(8), word(12)], [file.len(), bundle.len()]);
    assert_eq!(file[16..24], Md5::digest(&bundle)[..8]);
    assert!(!file[4..].windows(4).any(|bytes| bytes == b"CCOB"));
    assert!(bundle.starts_with(b"__CLANG_OFFLOAD_BUNDLE__"));
    let long = |at: usize| u64::from_le_bytes(bundle[at..at + 8].try_into().unwrap()) as usize;
    let mut at = 32;
    let entry = |_| {
        let (start, size, id) = (long(at), long(at + 8), at + 24..at + 24 + long(at + 16));
        at = id.end;
        assert_eq!(start % 4096, 0);
        (String::from_utf8(bundle[id].to_vec()).unwrap(), bundle[start..start + size].to_vec())
    };
    (0..long(24)).map(entry).collect()
}

#[test]
fn only_code_that_the_hip_runtime_opens_is_compressed() {
    need(&["dpkg-deb"]);
    let case = Case::new();
    plain().iter().for_each(|(path, bytes)| case.add("blas_lib_all", path, bytes));
    case.build("out", CONFIGURATION, &[]);
    let installed = case.installed("out");
    for (path, target, flags) in [
        (CODE, "gfx1100", 0x41),
        (EXTENSION, "gfx1100", 0x41),
        (WITH_FEATURE, "gfx90a:xnack+", 0x33f),
    ] {
        let id = format!("hipv4-amdgcn-amd-amdhsa--{target}");
        let expected = [(HOST.to_owned(), Vec::new()), (id, code(flags))];
        assert_eq!(entries(&installed[path]), expected, "{path}");
    }
    for (path, bytes) in plain() {
        assert!(installed[path] == bytes, "{path}");
    }
    // The file that would grow is among them, because sizes are not known when a set is planned.
    let blas = json!([CODE, WITH_FEATURE, plain()[2].0]);
    let [blas, solver] = [("blas_lib", blas), ("solver_lib", json!([EXTENSION]))]
        .map(|(component, files)| [json!(component), files, Value::Null]);
    assert_eq!(case.findings("out"), [blas, solver]);
    passes(&case.path("out"), &case.path("shards"));
}

#[test]
fn a_component_overrides_what_holds_for_all() {
    need(&["dpkg-deb"]);
    let case = Case::new();
    let plain = &*CONFIGURATION.replace("'compressed'", "'plain'");
    for (out, all, own, expected) in [
        ("all", CONFIGURATION, "", [true, true]),
        ("without", CONFIGURATION, "[components.blas_lib]\ncode_files = 'plain'\n", [false, true]),
        ("only", plain, "[components.blas_lib]\ncode_files = 'compressed'\n", [true, false]),
        ("none", plain, "", [false, false]),
    ] {
        case.build(out, &format!("{all}{own}"), &[]);
        assert_eq!(case.compressed(out), expected, "{out}");
        assert_eq!(case.findings(out).len(), expected.iter().filter(|it| **it).count(), "{out}");
    }
}

#[test]
fn a_plan_knows_their_sizes_and_those_without() {
    need(&["dpkg-deb"]);
    let case = Case::new();
    case.build("out", CONFIGURATION, &[]);
    let planned = case.plan("planned", CONFIGURATION);
    let packages = planned["packages"].as_array().unwrap().iter();
    let members: Vec<&Value> =
        packages.flat_map(|package| package["members"].as_array().unwrap()).collect();
    let installed = case.installed("out");
    for path in [CODE, WITH_FEATURE, EXTENSION] {
        let absolute = format!("/opt/rocm-7.1/{path}");
        let member = members.iter().find(|member| member["path"] == *absolute).unwrap();
        assert_eq!(member["size"], json!({ "bytes": installed[path].len() }), "{path}");
    }
    let plain = case.plan("plain", &CONFIGURATION.replace("'compressed'", "'plain'"));
    let groups = planned["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    for (sum, plain) in groups.iter().zip(plain["groups"].as_array().unwrap()) {
        assert_eq!(sum["by_default"]["installed"], plain["installed"], "{sum}");
        assert_eq!(plain["by_default"], Value::Null);
    }
}

#[test]
fn a_version_before_the_runtime_opens_them_is_noted() {
    let case = Case::new();
    for (version, too_old) in
        [("6.1.3", json!("6.1.3")), ("6.2.0", Value::Null), ("6.10.0", Value::Null)]
    {
        case.build(version, &CONFIGURATION.replace("7.1.0", version), &[]);
        let found = case.findings(version);
        assert!(found.len() == 2 && found.iter().all(|it| it[2] == too_old), "{found:?}");
    }
}

#[test]
fn neither_threads_nor_caches_change_a_byte() {
    let case = Case::new();
    let cache = case.path("cache");
    let cached = ["--cache", cache.to_str().unwrap()];
    case.build("out", CONFIGURATION, &["--jobs", "1"]);
    let expected = contents(&case.path("out"));
    for (out, options) in [("more", &["--jobs", "5"][..]), ("first", &cached), ("second", &cached)]
    {
        case.build(out, CONFIGURATION, options);
        assert!(contents(&case.path(out)) == expected, "{out}");
    }
}
