//! A library of three translation units with different archs and features, from compilation to loading its
//! kernels in the runtime's stand-in.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection};
use rmpv::Value;
use serde_json::Value as Json;
use support::device::{compile, run};
use support::example::{PREFIX, VERSION, contents, deb_name, files, names, rockpack};
use support::runtime::{Line, Runtime, TOOLS, found, missing};
use support::tools;
use tempfile::TempDir;

/// The translation units in the order of their wrappers. The first lacks an arch of the others; the last has
/// code for both settings of a feature that the second leaves open.
const UNITS: [(&str, &[&str]); 3] = [
    ("plain", &["gfx1100"]),
    ("both", &["gfx1100", "gfx90a"]),
    ("special", &["gfx90a:xnack+", "gfx90a:xnack-"]),
];

/// Every target ID of a gfx90a GPU, as the runtime names it.
const GFX90A: [&str; 4] = [
    "gfx90a:sramecc+:xnack+",
    "gfx90a:sramecc+:xnack-",
    "gfx90a:sramecc-:xnack+",
    "gfx90a:sramecc-:xnack-",
];

const LIBRARY: &str = "lib/libunits.so";

/// A shard with the library, and the packages built from it.
struct Work(TempDir);

impl Work {
    /// All units, compiled as usual.
    fn new() -> Self {
        Self::with(&UNITS, &[])
    }

    /// `units`, compiled with `flags`.
    fn with(units: &[(&str, &[&str])], flags: &[&str]) -> Self {
        tools::need(&["clang++-19", "ld.lld-19", "dpkg-deb"]);
        tools::need(TOOLS);
        let work = Self(tempfile::tempdir().unwrap());
        let artifact = work.path("shards/one-build/blas_lib_all");
        let folder = artifact.join("math-libs/BLAS/rocBLAS/stage/lib");
        fs::create_dir_all(&folder).unwrap();
        fs::write(artifact.join("artifact_manifest.txt"), "math-libs/BLAS/rocBLAS/stage\n")
            .unwrap();
        work.link(&folder.join("libunits.so"), units, flags);
        work
    }

    fn link(&self, library: &Path, units: &[(&str, &[&str])], flags: &[&str]) {
        let dir = self.path("objects");
        fs::create_dir(&dir).unwrap();
        for (unit, archs) in units {
            compile(&dir, unit, archs, flags);
        }
        let empty = ["gcc", "-shared", "-x", "c", "/dev/null", "-Wl,-soname,libamdhip64.so.7"];
        run(&dir, &[&empty[..], &["-o", "libamdhip64.so.7"]].concat());
        let library = library.to_str().unwrap();
        let mut link = vec!["clang++-19", "-fuse-ld=lld", "-shared", "-Wl,--no-as-needed"];
        let objects: Vec<String> = units.iter().map(|(unit, _)| format!("{unit}.o")).collect();
        link.extend(objects.iter().map(String::as_str));
        link.extend(["-o", library, "libamdhip64.so.7"]);
        run(&dir, &link);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn build(&self, artifacts: &str, out: &str) -> PathBuf {
        let (artifacts, out) = (self.path(artifacts), self.path(out));
        let mut command = rockpack();
        command.args(["build", "--version", VERSION, "--format", "deb", "--artifacts"]);
        command.arg(artifacts).arg("--out").arg(&out);
        // Groups of one arch each; rockpack would propose none.
        let configuration = self.path("packaging.toml");
        fs::write(&configuration, "").unwrap();
        tools::run(command.arg("--config").arg(configuration));
        out
    }

    /// The packages, built and unpacked.
    fn installed(&self) -> PathBuf {
        let (out, root) = (self.build("shards", "out"), self.path("root"));
        for package in ["rocm-blas", "rocm-blas-gfx1100", "rocm-blas-gfx90a"] {
            let package = out.join(deb_name(package));
            tools::run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&root));
        }
        root.join(PREFIX)
    }

    fn runtime(&self, prefix: &Path) -> Runtime {
        Runtime::build(&self.path("stub"), &[prefix.join(LIBRARY)])
    }
}

/// Kernels that the host code of each wrapper registers, by key: the numbers that its code object has and
/// lacks.
fn kernels(lines: &[Line]) -> BTreeMap<&str, (usize, usize)> {
    let counts = lines.iter().filter_map(|line| match line {
        Line::Kernels { key, found, registered } => Some((key.as_str(), (*found, *registered))),
        _ => None,
    });
    counts.collect()
}

#[test]
fn a_wrapper_finds_its_own_code_where_others_lack_the_arch() {
    let work = Work::new();
    let prefix = work.installed();
    let runtime = work.runtime(&prefix);
    let library = [prefix.join(LIBRARY)];
    let keys = [0, 1, 2].map(|index| format!("{LIBRARY}#{index}"));
    for (device, has) in [("gfx1100", &keys[..2]), (GFX90A[0], &keys[1..])] {
        let lines = runtime.load(&library, device);
        let expected = has.iter().map(|key| (key.as_str(), (1, 1))).collect();
        assert_eq!(kernels(&lines), expected, "{device}: {lines:?}");
    }
}

/// The targets in the receipt and in the archives.
#[test]
fn code_for_feature_variants_is_packed() {
    let work = Work::new();
    let out = work.build("shards", "out");
    let receipt: Json =
        serde_json::from_slice(&fs::read(out.join("packages.json")).unwrap()).unwrap();
    let records = receipt["code_objects"].as_array().unwrap().iter();
    let mut targets: Vec<(&str, &str)> = records
        .map(|record| (record["key"].as_str().unwrap(), record["target"].as_str().unwrap()))
        .collect();
    targets.sort_unstable();
    let keys = [0, 1, 2].map(|index| format!("{LIBRARY}#{index}"));
    let of_unit = |(key, (_, archs)): (_, &(_, &'static [&'static str]))| {
        let key: &String = key;
        archs.iter().map(|arch| (key.as_str(), *arch)).collect::<Vec<_>>()
    };
    let expected: Vec<(&str, &str)> = keys.iter().zip(&UNITS).flat_map(of_unit).collect();
    assert_eq!(targets, expected);
}

/// Replaces `gfx90a:xnack+` by `gfx90a-xnack+`, another tool's spelling in archives.
fn hyphenated(value: Value) -> Value {
    match value {
        Value::String(text) => text.as_str().unwrap().replace(":xnack", "-xnack").into(),
        Value::Array(values) => Value::Array(values.into_iter().map(hyphenated).collect()),
        Value::Map(pairs) => {
            let both = |(key, value)| (hyphenated(key), hyphenated(value));
            Value::Map(pairs.into_iter().map(both).collect())
        }
        other => other,
    }
}

#[test]
fn code_in_archives_with_hyphens_in_their_targets_is_packed() {
    let work = Work::new();
    let mut split = rockpack();
    split.arg("split").arg("--artifacts").arg(work.path("shards"));
    tools::run(split.arg("--output-dir").arg(work.path("split")));
    let artifact = work.path("split/one-build/blas_lib_gfx90a");
    let archives: Vec<(String, Vec<u8>)> =
        files(&artifact).into_iter().filter(|(path, _)| path.ends_with(".kpack")).collect();
    let [(path, bytes)] = &archives[..] else { panic!("{:?}", names(&artifact)) };
    let toc = usize::try_from(u64::from_le_bytes(bytes[8..16].try_into().unwrap())).unwrap();
    let table = rmpv::decode::read_value(&mut &bytes[toc..]).unwrap();
    let mut changed = bytes[..toc].to_vec();
    rmpv::encode::write_value(&mut changed, &hyphenated(table)).unwrap();
    assert_ne!(*bytes, changed);
    fs::write(artifact.join(path), changed).unwrap();
    let (direct, again) = (work.build("shards", "out"), work.build("split", "again"));
    let packages = |out: &Path| {
        let mut packages = contents(out);
        packages.remove("packages.json");
        packages
    };
    let (direct, again) = (packages(&direct), packages(&again));
    assert!(direct.keys().eq(again.keys()), "{:?} {:?}", direct.keys(), again.keys());
    assert!(direct == again);
}

#[test]
fn one_archive_serves_all_feature_variants_of_an_arch() {
    let work = Work::new();
    let prefix = work.installed();
    let archives = ["blas_lib.kpm", "blas_lib_gfx1100.kpack", "blas_lib_gfx90a.kpack"];
    assert!(names(&prefix.join("lib/.kpack")).iter().eq(archives.iter()));
    let runtime = work.runtime(&prefix);
    for device in GFX90A {
        let lines = runtime.load(&[prefix.join(LIBRARY)], device);
        let keys: Vec<&str> = found(&lines).iter().map(|found| found.key.as_str()).collect();
        assert_eq!(keys, ["lib/libunits.so#1", "lib/libunits.so#2"], "{device}: {lines:?}");
        assert_eq!(missing(&lines).len(), 1, "the first unit has no code for it: {lines:?}");
    }
}

/// AddressSanitizer puts zeros between wrappers: each takes 64 bytes.
#[test]
fn wrappers_between_redzones_are_found() {
    let flags = ["-Xarch_host", "-fsanitize=address"];
    let work = Work::with(&UNITS[..2], &flags);
    let bytes = fs::read(work.installed().join(LIBRARY)).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let section = file.section_by_name(".hipFatBinSegment").unwrap();
    let wrappers = section.data().unwrap();
    assert_ne!(wrappers.len() % 24, 0, "wrappers follow one another");
    let starts = (0..wrappers.len()).step_by(8);
    let starts = starts.filter(|at| wrappers[*at..].starts_with(b"HIPK\x01\0\0\0"));
    let indexes: Vec<u8> = starts.map(|at| wrappers[at + 16]).collect();
    assert_eq!(indexes, [0, 1]);
}
