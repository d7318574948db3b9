//! Indexes of kernel databases that contradict what is installed beside them.

use std::fs;
use std::path::Path;

use rmpv::Value;
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

/// The names of files and the faults that `V105` tells.
fn told(run: &Run) -> Vec<(String, String)> {
    let problems = run.problems().into_iter().filter(|problem| problem["code"] == "V105");
    let told = problems.map(|problem| {
        let name = problem["subject"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        let fault = problem["fault"].as_object().unwrap().keys().next().unwrap().clone();
        (name, fault)
    });
    told.collect()
}

#[test]
fn a_whole_library_passes_and_each_of_its_packages() {
    let set = whole();
    set.fires(&[], &[]);
    for path in set.packages() {
        verify(&[set.path(&path).to_str().unwrap()], &["--partial"]).fired(&[]);
    }
}

#[test]
fn v105_a_master_or_a_mapping_by_itself() {
    for (lost, left, fault) in [
        (mapping_of("gfx1101"), master_of("gfx1101"), "master-without-mapping"),
        (master_of("gfx1101"), mapping_of("gfx1101"), "mapping-without-master"),
    ] {
        let set = whole();
        set.edit(&kernels(&set), |root| {
            fs::remove_file(root.join(INSTALLED).join(&lost)).unwrap();
        });
        let run = set.verify(&[]);
        run.fired(&["V105"]);
        assert_eq!(told(&run), [(left, fault.to_owned())]);
        // Where the host is not there, it may have the other.
        let run = verify(&[set.path(&kernels(&set)).to_str().unwrap()], &["--partial"]);
        run.fired(&[]);
        let report: serde_json::Value = serde_json::from_str(&run.text).unwrap();
        let undecided = report["undecided"].as_array().unwrap();
        assert!(undecided.iter().any(|check| check["code"] == "V105"), "{}", run.text);
    }
}

#[test]
fn v105_a_mapping_in_a_package_that_the_master_does_not_need() {
    let set = whole();
    let name = mapping_of("gfx1101");
    let bytes = set.file_of(&kernels(&set), &format!("{INSTALLED}/{name}"));
    set.edit(&kernels(&set), |root| {
        fs::remove_file(root.join(INSTALLED).join(&name)).unwrap();
    });
    let at = |root: &Path| root.join(INSTALLED).join(&name);
    set.edit(&set.kernels("gfx115x"), |root| fs::write(at(root), &bytes).unwrap());
    let told = told(&set.verify(&[]));
    assert_eq!(
        told,
        [
            (master_of("gfx1101"), "master-without-mapping".to_owned()),
            (name.clone(), "mapping-without-master".to_owned()),
        ]
    );
}

#[test]
fn v105_names_that_do_not_fit() {
    let [own, fallback] = libraries("gfx1100");
    let [foreign, _] = libraries("gfx1101");
    for (names, fault) in [
        ([own.clone(), fallback.clone(), foreign].to_vec(), Some("foreign-names")),
        ([own.clone()].to_vec(), Some("fallback-unmapped")),
        ([own, fallback].to_vec(), None),
    ] {
        let set = whole();
        let name = mapping_of("gfx1100");
        set.edit(&kernels(&set), |root| {
            fs::write(root.join(INSTALLED).join(&name), mapping(&names)).unwrap();
        });
        let Some(fault) = fault else {
            set.fires(&[], &[]);
            continue;
        };
        // Such a mapping is wrong whatever else there is.
        for run in
            [set.verify(&[]), verify(&[set.path(&kernels(&set)).to_str().unwrap()], &["--partial"])]
        {
            run.fired(&["V105"]);
            assert_eq!(told(&run), [(name.clone(), fault.to_owned())]);
        }
    }
}

#[test]
fn v105_a_plain_index_beside_the_compressed_one() {
    let set = whole();
    let [own, _] = libraries("gfx1151");
    let name = format!("{own}.dat");
    // Readers go by the content: a compressed name may have plain content.
    set.edit(&set.kernels("gfx115x"), |root| {
        let file = root.join(INSTALLED).join(&name);
        fs::copy(&file, file.with_extension("dat.zlib")).unwrap();
    });
    let run = set.verify(&[]);
    run.fired(&["V105"]);
    assert_eq!(told(&run), [(name, "plain-and-compressed".to_owned())]);
}

#[test]
fn what_the_build_noticed_passes_with_its_receipt_alone() {
    let mut files = ["gfx1100", "gfx1101", "gfx1151"].map(tensile_lite).concat();
    files.retain(|(_, name, _)| *name != mapping_of("gfx1151"));
    let set = built(&files);
    set.fires(&[], &[]);
    set.edit_receipt(|receipt| receipt.findings.retain(|finding| finding.code() != "R119"));
    set.fires(&[], &["V105"]);
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
    set.edit_receipt(|receipt| receipt.findings.retain(|finding| finding.code() != "R027"));
    let run = set.verify(&[]);
    run.fired(&["V024"]);
    assert!(run.text.contains("TensileLibrary_B_gfx1100.dat, which is not beside"), "{}", run.text);
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
    set.edit_receipt(|receipt| receipt.findings.retain(|finding| finding.code() != "R027"));
    set.fires(&[], &[]);
    set.edit(&common, |root| fs::remove_file(root.join(&index)).unwrap());
    set.fires(&[], &["V024"]);
}

/// Each folder of an installed prefix is judged by itself.
#[test]
fn v105_folders_of_archs() {
    let prefix = tempfile::tempdir().unwrap();
    let library = prefix.path().join(LIBRARY);
    let [gfx1250v0, gfx1250, gfx942] =
        ["gfx1250v0", "gfx1250", "gfx942"].map(|name| library.join(name));
    let (index, names) = (master(&[]), mapping(&[]));
    put(&gfx1250v0.join(master_of("gfx1250")), &index);
    put(&gfx942.join(master_of("gfx942")), &index);
    verify_installed(prefix.path()).fired(&[]);
    put(&gfx1250.join(master_of("gfx1250")), &index);
    put(&gfx1250.join(mapping_of("gfx1250")), &names);
    let found = verify_installed(prefix.path());
    found.fired(&["V105"]);
    assert_eq!(told(&found).len(), 2, "{}", found.text);
    put(&gfx1250v0.join(mapping_of("gfx1250")), &names);
    put(&gfx942.join("TensileLiteLibrary_lazy_Mapping.dat"), &names);
    verify_installed(prefix.path()).fired(&[]);
    // A file of the flat folder does not help an index of the folder of an arch.
    let needing = master(&["TensileLibrary_A_gfx942".to_owned()]);
    put(&gfx942.join(master_of("gfx942")), &needing);
    put(&library.join("TensileLibrary_A_gfx942.dat"), &index);
    put(&library.join("TensileLibrary_A_gfx942.co"), &code("gfx1100"));
    verify_installed(prefix.path()).fired(&["V024"]);
    put(&gfx942.join("TensileLibrary_A_gfx942.dat"), &index);
    put(&gfx942.join("TensileLibrary_A_gfx942.co"), &code("gfx1100"));
    let still = verify_installed(prefix.path()).codes();
    assert!(!still.contains(&"V105".to_owned()), "{still:?}");
}

fn put(file: &Path, bytes: &[u8]) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, bytes).unwrap();
}

fn verify_installed(prefix: &Path) -> Run {
    verify(&[prefix.to_str().unwrap()], &["--installed"])
}
