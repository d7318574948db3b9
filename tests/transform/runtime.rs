//! Tests of the end-to-end tests' judge: the stand-in HIP runtime of `support/runtime` reports `MISSING` for
//! every fault that it exists to find. The tests make archives and markers by hand, without any part of
//! rockpack.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use support::runtime;
use support::runtime::{Line, Runtime, fat, found, missing};
use support::tools;
use tempfile::TempDir;

const KEY: &str = "lib/libsample.so";
const TAG: &str = "rockpack-example shard=s tu=t arch=gfx1100";
/// Two wrappers that share a marker; the first registers one kernel.
const SAMPLE: &str = r#"
void **__hipRegisterFatBinary(const void *wrapper);
void __hipUnregisterFatBinary(void **handle);
void __hipRegisterFunction(void **handle, const void *host, char *device, const char *name, unsigned limit,
                           void *thread, void *block, void *block_size, void *grid_size, int *warp);
__attribute__((section(".rocm_kpack_ref"))) static const unsigned char marker[] = {MARKER};
static struct { unsigned magic, version; const void *marker; unsigned long index; } wrappers[] = {
  {0x4b504948, 1, marker, 0}, {0x4b504948, 1, marker, 1}};
static void **handles[2];
__attribute__((constructor)) static void load(void) {
  for (int i = 0; i < 2; i++) handles[i] = __hipRegisterFatBinary(&wrappers[i]);
  __hipRegisterFunction(handles[0], 0, "kernel_a", "kernel_a", 0, 0, 0, 0, 0, 0);
}
__attribute__((destructor)) static void unload(void) {
  for (int i = 0; i < 2; i++) __hipUnregisterFatBinary(handles[i]);
}
"#;

/// A prefix with `lib/libsample.so`, and the runtime that loads it.
struct Sample {
    folder: TempDir,
    runtime: Runtime,
}

impl Sample {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join(KEY);
        fs::create_dir_all(folder.path().join("lib/.kpack")).unwrap();
        compile(folder.path(), &library);
        let runtime = Runtime::build(&folder.path().join("stub"), &[library]);
        Self { folder, runtime }
    }

    fn archive(&self, name: &str, bytes: &[u8]) {
        fs::write(self.folder.path().join("lib/.kpack").join(name), bytes).unwrap();
    }

    fn load(&self, devices: &str) -> Vec<Line> {
        self.runtime.load(&[self.folder.path().join(KEY)], devices)
    }

    /// Writes the only archive, of the base arch gfx1100, and returns the missing code objects that loading
    /// reports.
    fn faults(&self, archive: &[u8]) -> Vec<String> {
        self.archive("x_gfx1100.kpack", archive);
        let lines = self.load("gfx1100");
        missing(&lines).into_iter().map(str::to_owned).collect()
    }
}

/// Compiles the sample, linked with an empty library that has the HIP runtime's soname.
fn compile(folder: &Path, library: &Path) {
    let marker = json!({"kernel_name": KEY, "kpack_search_paths": [".kpack/x_@GFXARCH@.kpack"]});
    let bytes: Vec<String> = packed(&marker).iter().map(u8::to_string).collect();
    let source = folder.join("sample.c");
    fs::write(&source, SAMPLE.replace("MARKER", &bytes.join(","))).unwrap();
    let empty = folder.join("libamdhip64.so.7");
    link_shared(&empty, &["-x", "c", "/dev/null", "-Wl,-soname,libamdhip64.so.7"]);
    let (source, empty) = (source.to_str().unwrap(), empty.to_str().unwrap());
    link_shared(library, &[source, "-Wl,--no-as-needed", empty]);
    fs::remove_file(empty).unwrap();
}

fn link_shared(output: &Path, arguments: &[&str]) {
    let mut command = Command::new("gcc");
    command.args(["-shared", "-fPIC", "-w", "-o"]).arg(output).args(arguments);
    tools::run(&mut command);
}

/// The parts of an AMDGPU code object that the runtime reads.
fn code_object(kernel: &str) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..4].copy_from_slice(b"\x7fELF");
    bytes[18] = 224;
    bytes.extend_from_slice(format!("\0{kernel}\0{TAG}\0").as_bytes());
    bytes
}

/// The table of contents for `rows` (key, target, ordinal), each with the size of `codes[ordinal]`.
fn toc(archs: &[&str], codes: &[Vec<u8>], rows: &[(String, &str, usize)]) -> Value {
    let mut toc = json!({});
    for (key, target, ordinal) in rows {
        toc[key][target] =
            json!({"type": "hsaco", "ordinal": ordinal, "original_size": codes[*ordinal].len()});
    }
    json!({"format_version": 1, "group_name": "x", "gfx_arch_family": "gfx1100", "gfx_arches": archs, "toc": toc})
}

fn framed(blob: &[u8], toc: &Value) -> Vec<u8> {
    let mut bytes = b"KPAK\x01\0\0\0".to_vec();
    bytes.extend_from_slice(&(64 + blob.len() as u64).to_le_bytes());
    bytes.resize(64, 0);
    bytes.extend_from_slice(blob);
    bytes.extend_from_slice(&packed(toc));
    bytes
}

/// `value` in MessagePack.
fn packed(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, &packable(value)).unwrap();
    bytes
}

fn packable(value: &Value) -> rmpv::Value {
    match value {
        Value::Object(fields) => rmpv::Value::Map(
            fields.iter().map(|(key, value)| (key.as_str().into(), packable(value))).collect(),
        ),
        Value::Array(items) => rmpv::Value::Array(items.iter().map(packable).collect()),
        Value::String(text) => text.as_str().into(),
        Value::Number(number) => number.as_u64().unwrap().into(),
        other => panic!("{other}"),
    }
}

fn compressed(codes: &[Vec<u8>], mut toc: Value) -> Vec<u8> {
    let mut blob = u32::try_from(codes.len()).unwrap().to_le_bytes().to_vec();
    for code in codes {
        let frame = zstd::bulk::compress(code, 3).unwrap();
        blob.extend_from_slice(&u32::try_from(frame.len()).unwrap().to_le_bytes());
        blob.extend_from_slice(&frame);
    }
    toc["compression_scheme"] = json!("zstd-per-kernel");
    toc["zstd_offset"] = json!(64);
    toc["zstd_size"] = json!(blob.len());
    framed(&blob, &toc)
}

fn uncompressed(codes: &[Vec<u8>], mut toc: Value) -> Vec<u8> {
    let mut blob = Vec::new();
    let mut places = Vec::new();
    for code in codes {
        places.push(json!({"offset": 64 + blob.len(), "size": code.len()}));
        blob.extend_from_slice(code);
    }
    toc["compression_scheme"] = json!("none");
    toc["blobs"] = json!(places);
    framed(&blob, &toc)
}

fn key(index: usize) -> String {
    format!("{KEY}#{index}")
}

fn codes() -> Vec<Vec<u8>> {
    vec![code_object("kernel_a"), code_object("kernel_bb")]
}

fn both_rows() -> Vec<(String, &'static str, usize)> {
    vec![(key(0), "gfx1100", 0), (key(1), "gfx1100", 1)]
}

#[test]
fn finds_what_is_there_in_both_schemes() {
    tools::need(runtime::TOOLS);
    let sample = Sample::new();
    let toc = toc(&["gfx1100"], &codes(), &both_rows());
    for archive in [compressed(&codes(), toc.clone()), uncompressed(&codes(), toc.clone())] {
        sample.archive("x_gfx1100.kpack", &archive);
        let lines = sample.load("gfx1100");
        assert_eq!(missing(&lines), Vec::<&str>::new());
        let found = found(&lines);
        assert_eq!(found.len(), 2, "{lines:?}");
        for (index, found) in found.iter().enumerate() {
            assert_eq!(found.key, key(index));
            assert_eq!(found.ordinal, index as u64);
            assert_eq!(found.size, codes()[index].len() as u64);
            assert_eq!(found.tag.as_deref(), Some(TAG));
            assert!(found.archive.ends_with("lib/.kpack/x_gfx1100.kpack"));
        }
        assert!(lines.contains(&Line::Kernels { key: key(0), found: 1, registered: 1 }));
    }
}

#[test]
fn says_what_is_missing() {
    tools::need(runtime::TOOLS);
    let sample = Sample::new();
    let reason = |lines: Vec<String>| lines.join("\n");
    let lines = sample.load("gfx1100");
    assert_eq!(missing(&lines).len(), 2, "no archive: {lines:?}");

    let faults = sample.faults(&archive_of(&["gfx1100"], &both_rows()[..1]));
    assert_eq!(
        faults,
        [format!("MISSING {} gfx1100: no such key in the table of contents", key(1))]
    );

    let faults = reason(sample.faults(&archive_of(&["gfx1101"], &both_rows())));
    assert_eq!(faults.matches("lists no compatible target").count(), 2, "{faults}");
}

/// An archive of both code objects.
fn archive_of(archs: &[&str], rows: &[(String, &str, usize)]) -> Vec<u8> {
    compressed(&codes(), toc(archs, &codes(), rows))
}

#[test]
fn tells_one_wrappers_code_object_from_anothers() {
    tools::need(runtime::TOOLS);
    let sample = Sample::new();
    let swapped = [(key(0), "gfx1100", 1), (key(1), "gfx1100", 0)];
    let archive = compressed(&codes(), toc(&["gfx1100"], &codes(), &swapped));
    assert_eq!(sample.faults(&archive), Vec::<String>::new());
    let lines = sample.load("gfx1100");
    let kernel = "kernel_a".to_owned();
    assert!(lines.contains(&Line::Absent { key: key(0), kernel }));
    assert!(lines.contains(&Line::Kernels { key: key(0), found: 0, registered: 1 }));
}

#[test]
fn says_what_is_wrong_with_an_archive() {
    tools::need(runtime::TOOLS);
    let sample = Sample::new();
    let good = toc(&["gfx1100"], &codes(), &both_rows());
    let row = format!("/toc/{}/gfx1100", key(0).replace('/', "~1"));
    let cases = [
        (archive_with(&good, &format!("{row}/original_size"), json!(7)), "content size"),
        (archive_with(&good, &format!("{row}/ordinal"), json!(2)), "past the last frame"),
        (archive_with(&good, &format!("{row}/type"), json!("elf")), "not hsaco"),
        (archive_with(&good, "/format_version", json!(2)), "format_version"),
        (b"KPAK".to_vec(), "shorter than its header"),
        (compressed(&[vec![0; 80], codes().remove(1)], good.clone()), "content size"),
    ];
    for (archive, expected) in cases {
        let faults = sample.faults(&archive).join("\n");
        assert!(faults.contains(expected), "{expected}: {faults}");
    }
    let elf = vec![vec![0; codes()[0].len()], codes().remove(1)];
    let faults = sample.faults(&compressed(&elf, good.clone())).join("\n");
    assert!(faults.contains("is no ELF"), "{faults}");
}

/// An archive of both code objects, with a table of contents in which one value is another.
fn archive_with(toc: &Value, pointer: &str, value: Value) -> Vec<u8> {
    let mut toc = toc.clone();
    *toc.pointer_mut(pointer).unwrap() = value;
    compressed(&codes(), toc)
}

#[test]
fn commits_to_the_first_listed_compatible_target() {
    tools::need(runtime::TOOLS);
    let sample = Sample::new();
    let archs = ["gfx90a:xnack-", "gfx90a"];
    let mut rows = vec![(key(0), "gfx90a:xnack-", 0), (key(0), "gfx90a", 0), (key(1), "gfx90a", 1)];
    sample.archive("x_gfx90a.kpack", &archive_of(&archs, &rows));
    let lines = sample.load("gfx90a:sramecc+:xnack-");
    assert_eq!(found(&lines)[0].target, "gfx90a:xnack-");
    assert_eq!(
        missing(&lines),
        [format!("MISSING {} gfx90a:sramecc+:xnack-: no row for the target", key(1))],
        "the bare row must not be fallen back to"
    );

    rows.push((key(1), "gfx90a:xnack-", 1));
    sample.archive("x_gfx90a.kpack", &archive_of(&archs, &rows));
    let lines = sample.load("gfx90a:sramecc+:xnack-,gfx90a:sramecc+:xnack+");
    assert_eq!(missing(&lines), Vec::<&str>::new());
    let targets: Vec<_> = found(&lines).iter().map(|found| found.target.clone()).collect();
    assert_eq!(targets, ["gfx90a:xnack-", "gfx90a", "gfx90a:xnack-", "gfx90a"]);
}

#[test]
fn looks_for_the_most_specific_archive_first() {
    tools::need(runtime::TOOLS);
    let sample = Sample::new();
    for target in ["gfx90a", "gfx90a:sramecc+"] {
        let rows = [(key(0), target, 0), (key(1), target, 1)];
        sample.archive(&format!("x_{target}.kpack"), &archive_of(&[target], &rows));
    }
    let lines = sample.load("gfx90a:sramecc+:xnack-");
    assert_eq!(missing(&lines), Vec::<&str>::new());
    assert!(found(&lines).iter().all(|found| found.target == "gfx90a:sramecc+"), "{lines:?}");
}

#[test]
fn example_binaries_load_and_run_untransformed() {
    tools::need(runtime::TOOLS);
    let folder = tempfile::tempdir().unwrap();
    let shard = tools::repository("examples/shards/gfx110X-build");
    let stage = shard.join("blas_lib_gfx110X-dgpu/math-libs/BLAS/rocBLAS/stage");
    let library = stage.join("lib/libexblas.so.1");
    let programs = [
        shard.join("blas_run_gfx110X-dgpu/math-libs/BLAS/rocBLAS/stage/bin/exblas-bench"),
        stage.join("libexec/exblas/exblas-tune"),
    ];
    let mut binaries = vec![library.clone()];
    binaries.extend(programs.clone());
    let runtime = Runtime::build(folder.path(), &binaries).library_path(&stage.join("lib"));

    let lines = runtime.load(&[library], "gfx1100");
    let expected = ["bundle", "CCOB"]
        .map(|form| Line::Fat { binary: "libexblas.so.1.2".to_owned(), form: form.to_owned() });
    assert_eq!(lines[..2], expected);
    for (program, name) in programs.iter().zip(["bench", "tune"]) {
        let lines = runtime.run(program, "gfx1100");
        assert_eq!(fat(&lines, "libexblas.so.1.2"), 2);
        assert_eq!(fat(&lines, &format!("exblas-{name}")), 1);
        assert_eq!(lines.last(), Some(&Line::Other(format!("{name}: done"))));
    }
}
