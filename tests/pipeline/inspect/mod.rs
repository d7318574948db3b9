//! `rockpack inspect`, from outside: its text for every kind of file, its JSON, and the reports of foreign
//! tools on the same files.

mod kernels;
mod sets;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use rockpack_core::tree::TreePath;
use serde_json::{Value, json};
use support::program::{repository, rockpack};
use support::{shim_library, tools};
use tempfile::TempDir;

const LIBRARY: &str = "lib/libexblas.so.1.2";

/// The libraries and programs of the first example shard.
fn stage() -> PathBuf {
    tools::repository(
        "examples/shards/gfx110X-build/blas_lib_gfx110X-dgpu/math-libs/BLAS/rocBLAS/stage",
    )
}

fn inspect(arguments: &[&str]) -> Output {
    rockpack().arg("inspect").args(arguments).output().unwrap()
}

#[track_caller]
fn text(file: &Path) -> String {
    text_with(&[file.to_str().unwrap()])
}

#[track_caller]
fn text_with(arguments: &[&str]) -> String {
    let output = inspect(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The JSON of one file, without the file's name.
#[track_caller]
fn json(file: &Path) -> Value {
    let output = inspect(&["--json", file.to_str().unwrap()]);
    let mut all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut one = all[0].take();
    let name = one.as_object_mut().unwrap().remove("file");
    assert_eq!(name.unwrap().as_str(), file.to_str());
    one
}

/// The files that the example packages install below the prefix, unpacked by the crate's reader.
fn installed() -> &'static Path {
    static INSTALLED: OnceLock<TempDir> = OnceLock::new();
    let install = || {
        let folder = tempfile::tempdir().unwrap();
        let packages = folder.path().join("packages");
        let run = rockpack()
            .current_dir(repository(""))
            .args(["build", "--artifacts", "examples/shards", "--version", "7.1.0"])
            .args(["--config", "examples/packaging-config.json", "--format", "deb", "--out"])
            .arg(&packages)
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        for name in ["rocm-blas_7.1.0-1_amd64.deb", "rocm-blas-gfx110x_7.1.0-1_amd64.deb"] {
            unpack(&packages.join(name), folder.path());
        }
        folder
    };
    INSTALLED.get_or_init(install).path()
}

fn unpack(package: &Path, folder: &Path) {
    let content = support::fixtures::content(package);
    let reader = rockpack_archive::package_file::PackageReader::open(content).unwrap();
    reader
        .visit(&mut |entry, content| {
            let below = entry.entry.path.strip_prefix("opt/rocm-7.1/");
            if let Some(below) = below.filter(|_| entry.entry.is_file()) {
                let path = folder.join(TreePath::new(below)?.as_str());
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::io::copy(content, &mut fs::File::create(path).unwrap()).unwrap();
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_fat_binary_is_shown() {
    let summary = "\
Host binary: fat (48.78 kB)
Archs: gfx1100 gfx1101 gfx1102 gfx906
Code objects: 7 (30.99 kB)
";
    let library = stage().join(LIBRARY);
    let counts = "Wrappers: 2, bundles: 2 (listed with -v)\n";
    assert_eq!(text(&library), format!("{summary}{counts}"));
    let expected = "\
Wrappers: 2
  #0 → bundle at 0x0
  #1 → bundle at 0x9000
Bundles: 2
  at 0x0 (33.16 kB)
    host-x86_64-unknown-linux-- (0 B)
    hipv4-amdgcn-amd-amdhsa--gfx1100 (4.91 kB, SHA-256 …)
    hipv4-amdgcn-amd-amdhsa--gfx1101 (4.91 kB, SHA-256 …)
    hipv4-amdgcn-amd-amdhsa--gfx1102 (4.91 kB, SHA-256 …)
    hipv4-amdgcn-amd-amdhsa--gfx906 (4.49 kB, SHA-256 …)
  at 0x9000 (1.49 kB, CCOB version 2, zstd, 16.20 kB uncompressed)
    host-x86_64-unknown-linux-- (0 B)
    hipv4-amdgcn-amd-amdhsa--gfx1100 (3.92 kB, SHA-256 …)
    hipv4-amdgcn-amd-amdhsa--gfx1101 (3.92 kB, SHA-256 …)
    hipv4-amdgcn-amd-amdhsa--gfx1102 (3.92 kB, SHA-256 …)
";
    let listed = text_with(&["-v", library.to_str().unwrap()]);
    let listed = listed.strip_prefix(summary).unwrap();
    let line = |line: &str| match line.split_once("SHA-256 ") {
        Some((start, _)) => format!("{start}SHA-256 …)\n"),
        None => format!("{line}\n"),
    };
    assert_eq!(listed.lines().map(line).collect::<String>(), expected);
}

#[test]
fn a_fat_binary_in_json_is_shown() {
    let found = json(&stage().join(LIBRARY));
    assert_eq!((&found["type"], &found["state"]), (&json!("host-binary"), &json!("fat")));
    let wrappers = json!([{"index": 0, "bundle_offset": 0}, {"index": 1, "bundle_offset": 0x9000}]);
    assert_eq!(found["wrappers"], wrappers);
    assert_eq!(found["size"], fs::metadata(stage().join(LIBRARY)).unwrap().len());
    let bundle = &found["bundles"][1];
    assert_eq!((&bundle["compressed_version"], &bundle["size"]), (&json!(2), &json!(1497)));
    assert_eq!(bundle["compression_method"], "zstd");
    let entry = bundle["entries"][1].as_object().unwrap();
    assert_eq!((&entry["target"], &entry["size"]), (&json!("gfx1100"), &json!(3920)));
    assert_eq!(entry["id"], "hipv4-amdgcn-amd-amdhsa--gfx1100");
    assert_eq!(entry["sha256"].as_str().unwrap().len(), 64);
}

/// clang-offload-bundler lists the same entries of each bundle.
#[test]
fn bundles_are_those_that_clang_sees() {
    tools::need(&["clang-offload-bundler-19"]);
    let library = stage().join(LIBRARY);
    let found = json(&library);
    let bytes = fs::read(&library).unwrap();
    let file = object::File::parse(bytes.as_slice()).unwrap();
    let section = object::Object::section_by_name(&file, ".hip_fatbin").unwrap();
    let fatbin = object::ObjectSection::data(&section).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let input = scratch.path().join("bundle");
    for bundle in found["bundles"].as_array().unwrap() {
        let [offset, size] =
            ["offset", "size"].map(|name| usize::try_from(bundle[name].as_u64().unwrap()).unwrap());
        fs::write(&input, &fatbin[offset..offset + size]).unwrap();
        let mut list = Command::new("clang-offload-bundler-19");
        list.args(["--type=o", "--list"]).arg(format!("--input={}", input.display()));
        let listed = tools::succeed(&mut list);
        let mut listed: Vec<&str> = listed.lines().map(str::trim).collect();
        let mut entries: Vec<&str> = bundle["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["id"].as_str().unwrap())
            .collect();
        listed.sort_unstable();
        entries.sort_unstable();
        assert_eq!(entries, listed);

        // The same bundle in a file of its own.
        let alone = json(&input);
        assert_eq!(alone["type"], "offload-bundles");
        assert_eq!(alone["bundles"][0]["entries"], bundle["entries"]);
        assert!(text(&input).starts_with("Bundles: 1\n  at 0x0 ("));
    }
}

#[test]
fn a_transformed_binary_is_shown() {
    let summary = "\
Host binary: transformed (16.30 kB)
Kernel name: lib/libexblas.so.1.2
Search path: .kpack/blas_lib_@GFXARCH@.kpack
";
    let library = installed().join(LIBRARY);
    assert_eq!(text(&library), format!("{summary}Wrappers: 2 (listed with -v)\n"));
    let listed = "\
Wrappers: 2
  #0 → rows of lib/libexblas.so.1.2#0
  #1 → rows of lib/libexblas.so.1.2#1
";
    let shown = text_with(&["--verbose", library.to_str().unwrap()]);
    assert_eq!(shown, format!("{summary}{listed}"));
    let expected = json!({
        "type": "host-binary",
        "size": 16304,
        "state": "transformed",
        "wrappers": [{"index": 0}, {"index": 1}],
        "marker": {
            "kernel_name": "lib/libexblas.so.1.2",
            "kpack_search_paths": [".kpack/blas_lib_@GFXARCH@.kpack"],
        },
        "bundles": [],
    });
    assert_eq!(json(&library), expected);
    tools::need(&["readelf"]);
    let mut dump = Command::new("readelf");
    let dump = tools::succeed(dump.args(["-p", ".rocm_kpack_ref"]).arg(&library));
    assert!(dump.contains(".kpack/blas_lib_@GFXARCH@.kpack"), "{dump}");
}

#[test]
fn a_binary_that_every_hip_runtime_loads_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let [config, out] = ["configuration.json", "out"].map(|name| folder.path().join(name));
    let example = fs::read_to_string(repository("examples/packaging-config.json")).unwrap();
    fs::write(&config, shim_library::configuration(&example, folder.path())).unwrap();
    let mut build = rockpack();
    build.current_dir(repository("")).args(["build", "--artifacts", "examples/shards"]);
    build.args(["--version", "7.1.0", "--format", "deb", "--config"]).arg(config);
    tools::run(build.arg("--out").arg(&out));
    unpack(&out.join("rocm-blas_7.1.0-1_amd64.deb"), folder.path());
    let library = folder.path().join(LIBRARY);
    let line = format!("\nRegisters with {}: any HIP runtime\n", shim_library::SHIM);
    assert!(text(&library).contains(&line), "{}", text(&library));
    assert_eq!(json(&library)["registers_with"], shim_library::SHIM);
}

#[test]
fn a_binary_without_device_code_and_a_debug_file_are_shown() {
    let library = installed().join("lib/libexcblas.so.1.0");
    assert_eq!(text(&library), "Host binary: no device code (2.64 kB)\n");
    tools::need(&["objcopy"]);
    let scratch = tempfile::tempdir().unwrap();
    let debug = scratch.path().join("debug");
    let mut split = Command::new("objcopy");
    tools::run(split.arg("--only-keep-debug").arg(stage().join(LIBRARY)).arg(&debug));
    assert!(text(&debug).starts_with("Host binary: separate debug file ("));
    assert_eq!(json(&debug)["state"], "separate-debug");
}

#[test]
fn an_artifact_folder_is_shown() {
    let folder = tools::repository("examples/shards/gfx110X-build/blas_lib_gfx110X-dgpu");
    let found = json(&folder);
    assert_eq!(
        (&found["type"], &found["name"]),
        (&json!("artifact"), &json!("blas_lib_gfx110X-dgpu"))
    );
    let file = &found["files"][LIBRARY];
    assert_eq!(file["what"], "fat-binary");
    let library = json(&stage().join(LIBRARY));
    let entries = library["bundles"].as_array().unwrap().iter();
    let entries = entries.flat_map(|bundle| bundle["entries"].as_array().unwrap());
    let of_arch = entries.filter(|entry| entry["target"] == "gfx1101");
    let sum: u64 = of_arch.map(|entry| entry["size"].as_u64().unwrap()).sum();
    assert_eq!(file["device_bytes"]["gfx1101"], sum);
    let code = "lib/rocblas/library/TensileLibrary_gfx1101.co";
    let size = fs::metadata(stage().join(code)).unwrap().len();
    assert_eq!(found["files"][code]["device_bytes"], json!({"gfx1101": size}));
    assert_eq!(found["files"]["lib/libexblas.so"]["target"], "libexblas.so.1");
    let transformed = fs::metadata(installed().join(LIBRARY)).unwrap().len();
    assert_eq!(file["generic_bytes"], transformed);

    let text = text(&folder);
    for line in [
        "Prefix: math-libs/BLAS/hipBLAS/stage",
        "Device code for gfx906: 4.49 kB",
        "    libexblas.so.1 -> libexblas.so.1.2",
        "      library/: generic 57 B, gfx1100 11.48 kB, gfx1101 11.48 kB, gfx1102 11.48 kB",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let shard = folder.parent().unwrap().to_str().unwrap();
    let output = inspect(&[shard]);
    assert_eq!(output.status.code(), Some(64));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("is neither an artifact nor an install tree"), "{said}");
    for command in ["discover", "verify", "verify --installed"] {
        assert!(said.contains(&format!("`rockpack {command} {shard}`")), "{said}");
    }
}

#[test]
fn several_files_stand_under_their_names() {
    let (one, other) = (stage().join(LIBRARY), installed().join("lib/libexcblas.so.1.0"));
    let output = inspect(&[other.to_str().unwrap(), one.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = format!(
        "{}:\nHost binary: no device code (2.64 kB)\n\n{}:\nHost binary: fat (48.78 kB)\n",
        other.display(),
        one.display()
    );
    assert!(text.starts_with(&expected), "{text}");
}

#[test]
fn what_is_unknown_is_an_error_beside_what_is_known() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let known = installed().join("lib/libexcblas.so.1.0");
    let mut object = fs::read(&known).unwrap();
    object[16] = 1;
    let mut foreign = fs::read(&known).unwrap();
    foreign[18] = 183;
    for (unknown, message) in [
        (written(folder, "text", b"some text"), "is not a file of a known kind"),
        (written(folder, "empty", b""), "is not a file of a known kind"),
        (written(folder, "object.o", &object), "is an ELF file of type 1, not a linked binary"),
        (written(folder, "cut.dat", b"\x82\xaaarchitecture"), "kernel index"),
        (written(folder, "foreign.so", &foreign), "is an ELF file for machine 183"),
        (written(folder, "cut.kpack", b"KPAK\x01\0\0\0"), "kernel archive header"),
        (
            written(folder, "cut.kpm", b"\x85\xaeformat_version\x01\xaecomponent_name"),
            "kpm manifest",
        ),
        (folder.join("missing").display().to_string(), "No such file"),
    ] {
        let output = inspect(&[&unknown, known.to_str().unwrap()]);
        let errors = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
        let is_named_wrong =
            ["missing", "text", "empty"].iter().any(|name| unknown.ends_with(name));
        let code = if is_named_wrong { 64 } else { 2 };
        assert_eq!(output.status.code(), Some(code), "{errors}");
        // The terminal output wraps long lines.
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (errors, name) = (words(&errors), Path::new(&unknown).file_name().unwrap());
        assert!(errors.contains(message), "{errors}");
        assert!(errors.contains(name.to_str().unwrap()), "{errors}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("Host binary: no device code"), "{text}");
    }
}

fn written(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}
