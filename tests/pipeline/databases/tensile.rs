//! Libraries of Tensile and TensileLite as built for lazy loading, in one shard and in several.

use std::collections::BTreeMap;
use std::process::Command;

use rmpv::Value;
use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::tree::{Node, TreePath};
use rockpack_elf::offload_bundle;
use rockpack_plan::config::{Config, Grouping};
use rockpack_plan::recombine::{Recombined, recombine};
use rockpack_report::Code;
use rockpack_split::HostKind;
use support::kpack;
use support::tools::{need, run};

use crate::databases::{Files, bytes, code_object, encoded, findings, map, placed, split_files};

const ROCBLAS: &str = "lib/rocblas/library";
const HIPBLASLT: &str = "lib/hipblaslt/library";
const TYPE: &str = "TensileLibrary_Type_SS_Contraction_l_Ailk_Bjlk_Cijk_Dijk";

const GFX906: (&str, u8) = ("gfx906", 0x2f);
const GFX1100: (&str, u8) = ("gfx1100", 0x41);
const GFX1200: (&str, u8) = ("gfx1200", 0x48);

/// An index with one solution whose kernel is `kernel`.
pub(super) fn index(kernel: &str) -> Vec<u8> {
    let problem = map(&[("operationIdentifier", "Contraction_l_Ailk_Bjlk_Cijk_Dijk".into())]);
    let solution = map(&[("name", kernel.into()), ("problemType", problem)]);
    let rows = map(&[("type", "Single".into()), ("index", 0.into())]);
    encoded(&map(&[("solutions", Value::Array(vec![solution])), ("library", rows)]))
}

/// The master index of an arch, which loads `libraries` lazily.
pub(super) fn master(arch: &str, libraries: &[String]) -> Vec<u8> {
    let row =
        |name: &String| map(&[("type", "Placeholder".into()), ("value", name.as_str().into())]);
    let problems = map(&[
        ("type", "Problem".into()),
        ("rows", Value::Array(libraries.iter().map(row).collect())),
    ]);
    let processor = map(&[("type", "Processor".into()), ("value", arch.into())]);
    let hardware = map(&[
        ("type", "Hardware".into()),
        ("rows", Value::Array(vec![map(&[("predicate", processor), ("library", problems)])])),
    ]);
    encoded(&map(&[("solutions", Value::Array(Vec::new())), ("library", hardware)]))
}

/// rocBLAS as built by a shard for `archs`. The names of fallback kernels differ between shards.
fn rocblas(shard: &str, archs: &[(&str, u8)]) -> Files {
    let mut files = Files::new();
    for (arch, mach) in archs {
        let libraries = [format!("{TYPE}_{arch}"), format!("{TYPE}_fallback")];
        files.insert(format!("TensileLibrary_lazy_{arch}.dat"), master(arch, &libraries));
        files.insert(format!("{TYPE}_{arch}.dat"), index("Cijk_Ailk_Bjlk_SB"));
        files.insert(format!("{TYPE}_{arch}.co"), code_object(*mach));
        files.insert(format!("{TYPE}_fallback_{arch}.hsaco"), code_object(*mach));
        files.insert(format!("Kernels.so-000-{arch}.hsaco"), code_object(*mach));
    }
    files.insert(format!("{TYPE}_fallback.dat"), index(&format!("Cijk_fallback_of_{shard}")));
    files.insert("TensileManifest.txt".to_owned(), format!("built by {shard}").into_bytes());
    files.into_iter().map(|(name, bytes)| (format!("{ROCBLAS}/{name}"), bytes)).collect()
}

#[test]
fn a_lazily_loaded_library_is_complete() {
    let files = rocblas("one", &[GFX906, GFX1100]);
    let split = split_files("one", &files);
    let fallback = format!("{TYPE}_fallback.dat");
    assert_eq!(findings(&split), [("R021", fallback.as_str()), ("R021", "TensileManifest.txt")]);
    for (path, archs) in placed(&split) {
        let named = ["gfx906", "gfx1100"].into_iter().find(|arch| path.contains(arch));
        assert_eq!(archs, named.unwrap_or("host"), "{path}");
    }
}

#[test]
fn what_a_library_refers_to_has_to_be_there() {
    let (own, fallback) = (format!("{TYPE}_gfx906"), format!("{TYPE}_fallback"));
    assert_eq!(found_without("TensileManifest.txt"), Vec::<String>::new());
    assert_eq!(
        found_without(&format!("{own}.dat")),
        [format!("R022 {own}.co"), "R027 TensileLibrary_lazy_gfx906.dat".to_owned()]
    );
    assert_eq!(found_without(&format!("{own}.co")), [format!("R022 {own}.dat")]);
    assert_eq!(
        found_without(&format!("{fallback}.dat")),
        [
            format!("R022 {fallback}_gfx1100.hsaco"),
            format!("R022 {fallback}_gfx906.hsaco"),
            "R027 TensileLibrary_lazy_gfx1100.dat".to_owned(),
            "R027 TensileLibrary_lazy_gfx906.dat".to_owned(),
        ]
    );
}

fn found_without(name: &str) -> Vec<String> {
    let mut files = rocblas("one", &[GFX906, GFX1100]);
    files.remove(&format!("{ROCBLAS}/{name}")).unwrap();
    let split = split_files("one", &files);
    let found = split.findings.iter().filter(|f| f.code() != Some(Code::DatabaseShared)).map(|f| {
        let subject = f.subject();
        format!("{} {}", f.code().unwrap().id, subject.rsplit('/').next().unwrap())
    });
    found.collect()
}

#[test]
fn references_stay_within_an_arch() {
    let mut files = rocblas("one", &[GFX906, GFX1100]);
    let foreign = master("gfx906", &[format!("{TYPE}_gfx1100")]);
    files.insert(format!("{ROCBLAS}/TensileLibrary_lazy_gfx906.dat"), foreign);
    let split = split_files("one", &files);
    let found = split.findings.iter().find(|f| f.code() == Some(Code::DatabaseUnresolved)).unwrap();
    let message = found.message();
    assert!(message.contains("gfx906") && message.contains(&format!("{TYPE}_gfx1100")));
}

/// Joins shards, each with its files.
fn joined(shards: &[(&str, Files)]) -> Result<Recombined> {
    let split = shards.iter().map(|(shard, files)| split_files(shard, files)).collect();
    recombine(split, &Config::defaults()?, &Grouping::default())
}

/// The archs of all files of the only component by path; `host` for host files.
fn whole(recombined: &Recombined) -> BTreeMap<String, String> {
    let component = &recombined.components[0];
    let host = component.host.keys().map(|path| (path.to_string(), "host".to_owned()));
    let databases = component.databases.iter().map(|file| {
        let archs: Vec<&str> = file.archs.iter().map(|arch| arch.as_str()).collect();
        (file.path.to_string(), archs.join(" "))
    });
    host.chain(databases).collect()
}

fn codes(recombined: &Recombined) -> Vec<&str> {
    let mut codes: Vec<&str> = recombined.findings.iter().map(|f| f.code().unwrap().id).collect();
    codes.dedup();
    codes
}

#[test]
fn shards_with_fallbacks_of_their_own_have_directories_of_their_own() {
    let shards = [("one", rocblas("one", &[GFX906, GFX1100])), ("two", rocblas("two", &[GFX1200]))];
    let recombined = joined(&shards).unwrap();
    let mut expected =
        BTreeMap::from([(format!("{ROCBLAS}/TensileManifest.txt"), "host".to_owned())]);
    for (_, files) in &shards {
        for path in files.keys() {
            let name = path.rsplit('/').next().unwrap();
            let archs = ["gfx906", "gfx1100", "gfx1200"].into_iter();
            if let Some(arch) = archs.clone().find(|arch| name.contains(arch)) {
                expected.insert(format!("{ROCBLAS}/{arch}/{name}"), arch.to_owned());
            } else if name.contains("fallback") {
                let moved = |arch: &str| (format!("{ROCBLAS}/{arch}/{name}"), arch.to_owned());
                expected.extend(archs.map(moved));
            }
        }
    }
    assert_eq!(whole(&recombined), expected);
    for file in &recombined.components[0].databases {
        if file.path.name().ends_with("_fallback.dat") {
            let shard = if file.archs[0].as_str() == "gfx1200" { "two" } else { "one" };
            assert_eq!(bytes(&file.content), index(&format!("Cijk_fallback_of_{shard}")));
        }
    }
    assert_eq!(codes(&recombined), ["R021", "R025", "R026"]);
}

/// hipBLASLt as built by a shard for `archs`, before it had files for each arch.
fn hipblaslt(archs: &[(&str, u8)]) -> Files {
    let mut files = Files::new();
    let mut operations = Vec::new();
    let mut mapping = Vec::new();
    let mut bundle = vec![("host-x86_64-unknown-linux-gnu-".to_owned(), Content::zeros(0))];
    for (number, (arch, mach)) in archs.iter().enumerate() {
        let library = format!("{TYPE}_{arch}");
        files.insert(
            format!("TensileLibrary_lazy_{arch}.dat"),
            master(arch, std::slice::from_ref(&library)),
        );
        files.insert(format!("{library}.dat"), index("Cijk_Ailk_Bjlk_SB"));
        files.insert(format!("{library}.co"), code_object(*mach));
        files.insert(format!("Kernels.so-000-{arch}.hsaco"), code_object(*mach));
        let file = format!("extop_{arch}.co");
        files.insert(file.clone(), code_object(*mach));
        let kernel = map(&[("func_name", "LayerNorm".into()), ("co_path", file.into())]);
        operations.push((Value::from(*arch), map(&[("LayerNorm", Value::Array(vec![kernel]))])));
        mapping.push((Value::from((number * 10).to_string()), Value::from(library)));
        let id = format!("hipv4-amdgcn-amd-amdhsa--{arch}");
        bundle.push((id, Content::of_bytes(code_object(*mach))));
    }
    files.insert("hipblasltExtOpLibrary.dat".to_owned(), encoded(&Value::Map(operations)));
    files.insert("TensileLiteLibrary_lazy_Mapping.dat".to_owned(), encoded(&Value::Map(mapping)));
    let transform = bytes(&offload_bundle::write(&bundle).unwrap());
    files.insert("hipblasltTransform.hsaco".to_owned(), transform);
    files.into_iter().map(|(name, bytes)| (format!("{HIPBLASLT}/{name}"), bytes)).collect()
}

fn host_file(recombined: &Recombined, path: &str) -> Vec<u8> {
    match recombined.components[0].host.get(&TreePath::new(path).unwrap()) {
        Some(Node::File { data, .. }) => match &data.kind {
            HostKind::Plain(content) => bytes(content),
            HostKind::Fat(_) => panic!("{path} has wrappers"),
        },
        other => panic!("{path} is {other:?}"),
    }
}

#[test]
fn what_can_be_merged_is_and_the_rest_moves() {
    let one = hipblaslt(&[GFX906, GFX1100]);
    assert_eq!(
        findings(&split_files("one", &one)),
        [
            ("R021", "TensileLiteLibrary_lazy_Mapping.dat"),
            ("R021", "hipblasltExtOpLibrary.dat"),
            ("R021", "hipblasltTransform.hsaco"),
        ]
    );
    let recombined = joined(&[("one", one), ("two", hipblaslt(&[GFX1200]))]).unwrap();
    let placed = whole(&recombined);
    assert_eq!(place_of(&placed, "hipblasltExtOpLibrary.dat"), Some("host"));
    assert_eq!(place_of(&placed, "hipblasltTransform.hsaco"), Some("host"));
    for arch in ["gfx906", "gfx1100", "gfx1200"] {
        assert_eq!(place_of(&placed, &format!("extop_{arch}.co")), Some(arch));
        for name in ["TensileLiteLibrary_lazy_Mapping.dat", &format!("{TYPE}_{arch}.co")] {
            assert_eq!(place_of(&placed, name), None);
            assert_eq!(place_of(&placed, &format!("{arch}/{name}")), Some(arch));
        }
    }
    assert_eq!(codes(&recombined), ["R021", "R024", "R025"]);
}

fn place_of<'a>(placed: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    placed.get(&format!("{HIPBLASLT}/{name}")).map(String::as_str)
}

const READ_MAP: &str = "import json,msgpack,sys;\
    print(json.dumps(msgpack.unpackb(open(sys.argv[1],'rb').read(),strict_map_key=False)))";

/// The value that MessagePack for Python reads from a file.
fn read_by_python(bytes: &[u8]) -> serde_json::Value {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("map");
    std::fs::write(&file, bytes).unwrap();
    let printed = support::python::run(READ_MAP, &[file.to_str().unwrap()], "").unwrap();
    serde_json::from_str(&printed).unwrap()
}

#[test]
fn other_readers_understand_what_was_merged() {
    kpack::need_python();
    need(&["clang-offload-bundler-19"]);
    let shards = [("one", hipblaslt(&[GFX906, GFX1100])), ("two", hipblaslt(&[GFX1200]))];
    let recombined = joined(&shards).unwrap();
    let operations = format!("{HIPBLASLT}/hipblasltExtOpLibrary.dat");
    let theirs = read_by_python(&host_file(&recombined, &operations));
    let mut expected = serde_json::Map::new();
    for (_, files) in &shards {
        expected.extend(read_by_python(&files[&operations]).as_object().unwrap().clone());
    }
    assert_eq!(theirs, serde_json::Value::Object(expected));
    let dir = tempfile::tempdir().unwrap();
    let path = format!("{HIPBLASLT}/hipblasltTransform.hsaco");
    std::fs::write(dir.path().join("merged"), host_file(&recombined, &path)).unwrap();
    for (arch, mach) in [GFX906, GFX1100, GFX1200] {
        let targets = format!("-targets=hipv4-amdgcn-amd-amdhsa--{arch}");
        let mut bundler = Command::new("clang-offload-bundler-19");
        bundler.args(["-unbundle", "-type=o", "-input=merged", "-output=code", &targets]);
        run(bundler.current_dir(dir.path()));
        assert_eq!(std::fs::read(dir.path().join("code")).unwrap(), code_object(mach), "{arch}");
    }
}
