//! Indexes of kernel databases and the files that they refer to.

use std::fs;
use std::path::Path;

use rmpv::Value;
use rockpack_report::Code;
use support::tampered::{Run, Set, shard, verify};

use crate::databases::{build, shards};
use crate::shared_code::bundle;

const LIBRARY: &str = "lib/hipblaslt/library";
const INSTALLED: &str = "opt/rocm-7.1/lib/hipblaslt/library";

fn encoded(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, value).unwrap();
    bytes
}

/// The index of an arch that loads `libraries` when they are needed.
fn master(libraries: &[String]) -> Vec<u8> {
    let row = |name: &String| {
        Value::Map(vec![
            ("type".into(), "Placeholder".into()),
            ("value".into(), name.as_str().into()),
        ])
    };
    let rows = Value::Array(libraries.iter().map(row).collect());
    encoded(&Value::Map(vec![
        ("solutions".into(), Value::Array(Vec::new())),
        ("library".into(), rows),
    ]))
}

/// A mapping to `libraries`.
fn mapping(libraries: &[String]) -> Vec<u8> {
    let entries = libraries.iter().enumerate();
    encoded(&Value::Map(entries.map(|(at, name)| (at.into(), name.as_str().into())).collect()))
}

fn code(arch: &str) -> Vec<u8> {
    let name = if arch == "gfx1151" { arch } else { "gfx110X" };
    let library = "math-libs/BLAS/rocBLAS/stage/lib/rocblas/library";
    fs::read(shard(name).join(library).join(format!("Kernels.so-000-{arch}.hsaco"))).unwrap()
}

fn master_of(arch: &str) -> String {
    format!("TensileLibrary_lazy_{arch}.dat")
}

fn mapping_of(arch: &str) -> String {
    format!("TensileLiteLibrary_lazy_{arch}_Mapping.dat")
}

/// The libraries in the mapping of an arch.
fn libraries(arch: &str) -> [String; 2] {
    [format!("TensileLibrary_A_{arch}"), format!("TensileLibrary_A_fallback_{arch}")]
}

/// The files of a library for `arch`, with its shard, by name.
fn tensile_lite(arch: &str) -> Vec<(&'static str, String, Vec<u8>)> {
    let shard = if arch == "gfx1151" { "gfx1151" } else { "gfx110X" };
    let libraries = libraries(arch);
    let mut files = vec![
        (shard, master_of(arch), master(&libraries)),
        (shard, mapping_of(arch), mapping(&libraries)),
    ];
    for library in libraries {
        files.push((shard, format!("{library}.co"), code(arch)));
        files.push((shard, format!("{library}.dat"), master(&[])));
    }
    files
}

/// The packages of the example's shards with these files.
fn built(files: &[(&'static str, String, Vec<u8>)]) -> Set {
    let at = |name: &String| format!("{LIBRARY}/{name}");
    let paths: Vec<String> = files.iter().map(|(_, name, _)| at(name)).collect();
    let files = files.iter().zip(&paths);
    let files: Vec<(&str, &str, &[u8])> =
        files.map(|((shard, _, bytes), path)| (*shard, path.as_str(), bytes.as_slice())).collect();
    build(shards(&files).path())
}

/// The packages of a whole library for three archs of two groups.
fn whole() -> Set {
    built(&["gfx1100", "gfx1101", "gfx1151"].map(tensile_lite).concat())
}

fn kernels(set: &Set) -> String {
    set.kernels("gfx110x")
}

#[test]
fn a_whole_library_passes_and_each_of_its_packages() {
    let set = whole();
    set.fires(&[], &[]);
    for path in set.packages() {
        verify(&[set.path(&path).to_str().unwrap()], &["--partial"]).fired(&[]);
    }
}

/// A mapping for all archs may lack what is for others than those of its folder.
#[test]
fn references_of_merged_mappings_that_moved() {
    let name = "TensileLiteLibrary_lazy_Mapping.dat";
    let mut files = ["gfx1100", "gfx1151"].map(tensile_lite).concat();
    files.retain(|(_, name, _)| !name.ends_with("_Mapping.dat"));
    let absent = "TensileLibrary_B_gfx1100".to_owned();
    let one = [libraries("gfx1100").to_vec(), vec![absent]].concat();
    files.push(("gfx110X", name.to_owned(), mapping(&one)));
    files.push(("gfx1151", name.to_owned(), mapping(&libraries("gfx1151"))));
    // Code without an index, which the build names where the file was.
    files.push(("gfx110X", "TensileLibrary_C_gfx1100.co".to_owned(), code("gfx1100")));
    let set = built(&files);
    let moved = format!("{INSTALLED}/gfx1100/{name}");
    assert!(!set.file_of(&kernels(&set), &moved).is_empty());
    set.fires(&[], &[]);
    set.edit_receipt(|receipt| {
        receipt.findings.retain(|finding| finding.code() != Code::of_id("R027"))
    });
    let run = set.verify(&[]);
    run.fired(&["V024"]);
    assert!(
        run.text.contains("TensileLibrary_B_gfx1100.dat, which is not next to"),
        "{}",
        run.text
    );
    set.edit(&kernels(&set), |root| {
        let all = [libraries("gfx1100"), libraries("gfx942")].concat();
        fs::write(root.join(&moved), mapping(&all)).unwrap();
    });
    set.fires(&[], &[]);
}

/// Kernel packages of several groups depend on the package with what they share.
#[test]
fn references_to_what_several_groups_share() {
    let archs = ["gfx1100", "gfx1151"];
    let entries = archs.map(|arch| (format!("hipv4-amdgcn-amd-amdhsa--{arch}"), code(arch)));
    let entries: Vec<(&str, Vec<u8>)> =
        entries.iter().map(|(id, code)| (id.as_str(), code.clone())).collect();
    let shared = "TensileLibrary_A_several".to_owned();
    let lone = master(std::slice::from_ref(&shared));
    let set = built(&[
        ("gfx110X", format!("{shared}.co"), bundle(&entries)),
        ("gfx110X", format!("{shared}.dat"), master(&[])),
        ("gfx110X", master_of("gfx1100"), lone.clone()),
        ("gfx1151", master_of("gfx1151"), lone),
    ]);
    let common = set.named("rocm-blas-kernels-common");
    let index = format!("{INSTALLED}/{shared}.dat");
    assert!(!set.file_of(&common, &index).is_empty());
    set.edit_receipt(|receipt| {
        receipt.findings.retain(|finding| finding.code() != Code::of_id("R027"))
    });
    set.fires(&[], &[]);
    set.edit(&common, |root| fs::remove_file(root.join(&index)).unwrap());
    set.fires(&[], &["V024"]);
}

/// A file of the flat folder does not help an index of the folder of an arch.
#[test]
fn references_are_met_within_the_folder_of_an_arch() {
    let prefix = tempfile::tempdir().unwrap();
    let library = prefix.path().join(LIBRARY);
    let (index, gfx942) = (master(&[]), library.join("gfx942"));
    put(&gfx942.join(master_of("gfx942")), &master(&["TensileLibrary_A_gfx942".to_owned()]));
    put(&library.join("TensileLibrary_A_gfx942.dat"), &index);
    put(&library.join("TensileLibrary_A_gfx942.co"), &code("gfx1100"));
    verify_installed(prefix.path()).fired(&["V024"]);
}

fn put(file: &Path, bytes: &[u8]) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, bytes).unwrap();
}

fn verify_installed(prefix: &Path) -> Run {
    verify(&[prefix.to_str().unwrap()], &["--installed"])
}
