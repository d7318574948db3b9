//! Tests with synthetic artifacts; fat binaries of real compilers are in `tests/pipeline/device_code.rs`.

use std::collections::BTreeSet;

use rockpack_core::content::Content;
use rockpack_core::error::Kind;
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::{MemberKind, Node, Tree, TreePath};
use rockpack_elf::message_pack;

use super::*;
use crate::input::artifact::StagePrefix;
use crate::input::database::DatabaseRules;
use rockpack_report::{Code, Finding};

/// The header of a code object of code object version 4, with its processor and features as
/// flags.
pub(super) fn code_object(flags: u32) -> Vec<u8> {
    let mut file = vec![0_u8; 64];
    file[..9].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 64, 2]);
    file[16] = 3;
    file[18] = 224;
    file[48..52].copy_from_slice(&flags.to_le_bytes());
    file
}

const GFX906: u32 = 0x52f;
const GFX90A: u32 = 0x53f;
const GFX1100: u32 = 0x41;

fn bundle(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut table = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    table.extend((entries.len() as u64).to_le_bytes());
    let mut offset = 4096;
    for (id, content) in entries {
        for number in [offset, content.len() as u64, id.len() as u64] {
            table.extend(number.to_le_bytes());
        }
        table.extend(id.as_bytes());
        offset += (content.len() as u64).next_multiple_of(4096);
    }
    for (_, content) in entries {
        table.resize(table.len().next_multiple_of(4096), 0);
        table.extend(content);
    }
    table
}

fn hip(target: &str) -> String {
    format!("hipv4-amdgcn-amd-amdhsa--{target}")
}

fn index(strings: &[&str]) -> Vec<u8> {
    let strings = strings.iter().map(|text| (*text).into()).collect();
    message_pack::encode(&rmpv::Value::Array(strings)).unwrap()
}

type Files<'a> = &'a [(&'a str, Vec<u8>)];

fn prefix(name: &str, files: Files) -> StagePrefix {
    let mut tree = Tree::new();
    for (path, bytes) in files {
        let data = Content::of_bytes(bytes.clone());
        tree.insert(TreePath::new(*path).unwrap(), Node::File { data, mode: 0o644 }).unwrap();
    }
    StagePrefix { path: format!("{name}/stage"), module: Some(name.to_owned()), tree }
}

fn artifact(prefixes: Vec<StagePrefix>) -> Artifact {
    Artifact::new("shard", "blas_lib_all".parse().unwrap(), "blas_lib_all".as_ref(), prefixes)
}

fn run(artifact: &Artifact) -> Result<SplitArtifact> {
    let split = split(artifact, &SplitPolicy::strict(&DatabaseRules::builtin().unwrap()))?;
    assert_nothing_lost(artifact, &split);
    Ok(split)
}

/// Asserts that every path of the input is in the output once, with its bytes.
fn assert_nothing_lost(artifact: &Artifact, split: &SplitArtifact) {
    let mut left: BTreeSet<&TreePath> = BTreeSet::new();
    for prefix in &artifact.prefixes {
        left.extend(prefix.tree.keys());
    }
    for (path, node) in &split.host {
        assert!(left.remove(path), "{path}");
        if let Node::File { data, .. } = node {
            let HostKind::Plain(content) = &data.kind else {
                panic!("{path} is fat");
            };
            let content = content.read_vec(0..content.len(), 1 << 20, "x").unwrap();
            assert_eq!(content, bytes_of_input(artifact, path), "{path}");
        }
    }
    for file in &split.databases {
        assert!(left.remove(&file.path), "{}", file.path);
        let content = file.content.read_vec(0..file.content.len(), 1 << 20, "x").unwrap();
        assert_eq!(content, bytes_of_input(artifact, &file.path), "{}", file.path);
    }
    assert!(left.is_empty(), "{left:?}");
}

fn bytes_of_input(artifact: &Artifact, path: &TreePath) -> Vec<u8> {
    let node = artifact.prefixes.iter().find_map(|prefix| prefix.tree.get(path));
    match node.unwrap() {
        Node::File { data, .. } => data.read_vec(0..data.len(), 1 << 20, "x").unwrap(),
        _ => Vec::new(),
    }
}

fn split_files(files: Files) -> Result<SplitArtifact> {
    run(&artifact(vec![prefix("rocBLAS", files)]))
}

/// The name and the one arch of each database file.
fn archs(split: &SplitArtifact) -> Vec<(&str, &str)> {
    for file in &split.databases {
        assert_eq!(file.archs.len(), 1, "{file:?}");
    }
    split.databases.iter().map(|file| (file.path.name(), file.archs[0].as_str())).collect()
}

/// Name and archs of the database files.
fn all_archs(split: &SplitArtifact) -> Vec<String> {
    let files = split.databases.iter();
    files.map(|file| format!("{}: {}", file.path.name(), names_of_archs(file))).collect()
}

fn names_of_archs(file: &DatabaseFile) -> String {
    let names: Vec<&str> = file.archs.iter().map(BaseArch::as_str).collect();
    names.join(" ")
}

/// Codes and the names of files.
fn codes(split: &SplitArtifact) -> Vec<(Code, &str)> {
    let findings = split.findings.iter();
    findings.map(|it| (it.code().unwrap(), name_of_subject(it))).collect()
}

fn name_of_subject(finding: &Finding) -> &str {
    finding.subject().rsplit('/').next().unwrap_or_default()
}

fn library(files: &[(&str, Vec<u8>)]) -> Result<SplitArtifact> {
    let paths: Vec<String> =
        files.iter().map(|(name, _)| format!("lib/rocblas/library/{name}")).collect();
    let files: Vec<(&str, Vec<u8>)> =
        paths.iter().zip(files).map(|(path, (_, bytes))| (path.as_str(), bytes.clone())).collect();
    split_files(&files)
}

#[test]
fn database_files_go_to_the_arch_of_their_content() {
    let split = library(&[
        ("TensileLibrary_gfx906.co", code_object(GFX906)),
        ("Kernels.so-000-gfx90a-xnack+.hsaco", code_object(0x73f)),
        ("TensileLibrary_lazy_gfx1100.dat", index(&["gfx1100"])),
        ("TensileLibrary.dat", index(&["gfx906", "gfx90a"])),
    ])
    .unwrap();
    assert_eq!(
        archs(&split),
        [
            ("Kernels.so-000-gfx90a-xnack+.hsaco", "gfx90a"),
            ("TensileLibrary_gfx906.co", "gfx906"),
            ("TensileLibrary_lazy_gfx1100.dat", "gfx1100"),
        ]
    );
    assert_eq!(codes(&split), [(Code::DatabaseShared, "TensileLibrary.dat")]);
    assert_eq!(split.databases[0].rule, "rocblas");
    assert_eq!(split.databases[0].module.as_deref(), Some("rocBLAS"));
}

#[test]
fn content_beats_names_with_a_finding() {
    let split = library(&[
        ("Kernels.so-000-gfx906.hsaco", code_object(GFX1100)),
        ("x_lazy_gfx906.dat", index(&["gfx1100"])),
        ("y_lazy_gfx906.dat", index(&["gfx1100", "gfx90a"])),
        ("z_lazy_gfx906.dat", index(&["gfx1100", "gfx906"])),
    ])
    .unwrap();
    assert_eq!(
        archs(&split),
        [
            ("Kernels.so-000-gfx906.hsaco", "gfx1100"),
            ("x_lazy_gfx906.dat", "gfx1100"),
            ("z_lazy_gfx906.dat", "gfx906"),
        ]
    );
    assert_eq!(
        codes(&split),
        [
            (Code::DatabaseArchMismatch, "Kernels.so-000-gfx906.hsaco"),
            (Code::DatabaseArchMismatch, "x_lazy_gfx906.dat"),
            (Code::DatabaseArchMismatch, "y_lazy_gfx906.dat"),
            (Code::DatabaseShared, "y_lazy_gfx906.dat"),
        ]
    );
}

#[test]
fn partners_land_together() {
    let split = library(&[
        ("A.co", code_object(GFX1100)),
        ("A.dat", index(&["nothing"])),
        ("B.co", code_object(GFX1100)),
        ("B.dat", index(&["gfx906"])),
        ("C_gfx90a-xnack+.hsaco", code_object(0x73f)),
        ("C_gfx90a.dat", index(&["gfx90a"])),
        ("D_fallback_gfx906.hsaco", code_object(GFX906)),
        ("D_fallback.dat", index(&["gfx906"])),
        ("E_gfx906.co", code_object(GFX906)),
        ("F_gfx906.dat", index(&["gfx906"])),
    ])
    .unwrap();
    assert_eq!(
        archs(&split),
        [
            ("A.co", "gfx1100"),
            ("A.dat", "gfx1100"),
            ("B.co", "gfx1100"),
            ("B.dat", "gfx1100"),
            ("C_gfx90a-xnack+.hsaco", "gfx90a"),
            ("C_gfx90a.dat", "gfx90a"),
            ("D_fallback_gfx906.hsaco", "gfx906"),
            ("E_gfx906.co", "gfx906"),
            ("F_gfx906.dat", "gfx906"),
        ]
    );
    assert_eq!(
        codes(&split),
        [
            (Code::DatabaseShared, "D_fallback.dat"),
            (Code::DatabaseUnpaired, "B.dat"),
            (Code::DatabaseUnpaired, "E_gfx906.co"),
            (Code::DatabaseUnpaired, "F_gfx906.dat"),
        ]
    );
}

#[test]
fn a_bundle_of_one_arch_is_that_archs_and_one_of_several_is_named() {
    let variants = bundle(&[
        (&hip("gfx90a:xnack+"), code_object(0x73f)),
        (&hip("gfx90a:xnack-"), code_object(0x63f)),
    ]);
    let several =
        bundle(&[(&hip("gfx906"), code_object(GFX906)), (&hip("gfx1100"), code_object(GFX1100))]);
    let split = library(&[
        ("Kernels.so-000-gfx90a.hsaco", variants),
        ("Kernels.so-all.hsaco", several.clone()),
    ])
    .unwrap();
    assert_eq!(
        all_archs(&split),
        ["Kernels.so-000-gfx90a.hsaco: gfx90a", "Kernels.so-all.hsaco: gfx1100 gfx906"]
    );
    assert_eq!(codes(&split), [(Code::DatabaseBundle, "Kernels.so-all.hsaco")]);
    let name = "Kernels.so-000-gfx906.hsaco";
    let split = library(&[(name, several)]).unwrap();
    assert_eq!(all_archs(&split), ["Kernels.so-000-gfx906.hsaco: gfx1100 gfx906"]);
    let expected = [(Code::DatabaseArchMismatch, name), (Code::DatabaseBundle, name)];
    assert_eq!(codes(&split), expected);
}

#[test]
fn everything_below_the_directory_of_an_arch_is_that_archs() {
    let split = library(&[
        ("gfx1100/x_fallback.dat", index(&[])),
        ("gfx1100/Kernels.so-x.hsaco", code_object(GFX906)),
        ("gfx1100/x_fallback.co", code_object(GFX1100)),
        ("gfx1100/notes.txt", b"text".to_vec()),
    ])
    .unwrap();
    assert_eq!(
        archs(&split),
        [
            ("Kernels.so-x.hsaco", "gfx906"),
            ("notes.txt", "gfx1100"),
            ("x_fallback.co", "gfx1100"),
            ("x_fallback.dat", "gfx1100"),
        ]
    );
    assert_eq!(codes(&split), [(Code::DatabaseArchMismatch, "Kernels.so-x.hsaco")]);
}

#[test]
fn device_code_that_no_rule_claims_is_not_left_with_the_host() {
    let split = split_files(&[
        ("share/a/kernels.bin", code_object(GFX90A)),
        ("share/a/strict_gfx1250-strict.bin", code_object(0x149)),
        ("share/a/unknown_gfx1400.bin", code_object(0xf0)),
    ])
    .unwrap();
    assert_eq!(
        archs(&split),
        [
            ("kernels.bin", "gfx90a"),
            ("strict_gfx1250-strict.bin", "gfx1250-strict"),
            ("unknown_gfx1400.bin", "gfx1400"),
        ]
    );
    assert_eq!(codes(&split), [(Code::UnknownProcessor, "unknown_gfx1400.bin")]);
    let error = split_files(&[("share/a/b", code_object(0xf0))]).unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
}

#[test]
fn development_files_stay_whole_with_a_finding() {
    let mut object = code_object(GFX906);
    object[16] = 1;
    let bundled = bundle(&[("host-x86_64-unknown-linux--", b"host".to_vec())]);
    let split = split_files(&[
        ("lib/a.a", static_archive_with(&object)),
        ("lib/b.a", static_archive_with(b"text")),
        ("lib/c.bc", b"BC\xc0\xde rest".to_vec()),
        ("lib/d.o", object),
        ("lib/e.o", bundled),
    ])
    .unwrap();
    let fat = Code::FatDevelopmentFile;
    assert_eq!(codes(&split), [(fat, "a.a"), (fat, "c.bc"), (fat, "d.o"), (fat, "e.o")]);
    let mut cut = static_archive_with(b"text");
    cut.pop();
    assert!(split_files(&[("lib/x.a", cut)]).is_err());
}

fn static_archive_with(member: &[u8]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for content in [b"odd".as_slice(), member] {
        bytes.extend(format!("{:<48}{:<10}`\n", "name/", content.len()).as_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    bytes
}

#[test]
fn entries_that_cannot_be_kept_are_refused_and_empty_ones_named() {
    let id = hip("gfx906");
    let good = (id.as_str(), code_object(GFX906));
    for (entry, kind) in [
        (("sycl-spir64--", b"x".to_vec()), Kind::Unsupported),
        (("hip-nvptx64--sm_70", code_object(0)), Kind::Unsupported),
        (("hip-amdgcn-amd-amdhsa--gfx908", b"BC\xc0\xde".to_vec()), Kind::Malformed),
        (("hip-amdgcn-amd-amdhsa--gfx906", code_object(0x2f)), Kind::Conflict),
    ] {
        let error = split_bundle(&[good.clone(), entry.clone()]).unwrap_err();
        assert_eq!(error.kind(), kind, "{}", entry.0);
    }
    let empty = split_bundle(&[good.clone(), ("hip-amdgcn-amd-amdhsa--gfx908", vec![])]).unwrap();
    assert_eq!(codes(&empty), [(Code::EmptyCodeObject, "x.hsaco")]);
    assert_eq!(archs(&empty), [("x.hsaco", "gfx906")]);
    let again = ("hip-amdgcn-amd-amdhsa--gfx906", good.1.clone());
    let twice = split_bundle(&[good.clone(), again]).unwrap();
    assert_eq!(codes(&twice), [(Code::DuplicateCode, "x.hsaco")]);
    let spirv = ("hip-spirv64-amd-amdhsa--amdgcnspirv", vec![3, 2, 0x23, 7, 0]);
    let neutral = split_bundle(&[spirv]).unwrap();
    assert_eq!(archs(&neutral), [("x.hsaco", "amdgcnspirv")]);
    assert_eq!(codes(&neutral), [(Code::ArchNeutralCode, "x.hsaco")]);
}

fn split_bundle(entries: &[(&str, Vec<u8>)]) -> Result<SplitArtifact> {
    split_files(&[("share/x.hsaco", bundle(entries))])
}

#[test]
fn prefixes_lie_over_one_another() {
    let same = [("lib/x", b"same".to_vec())];
    let merged = run(&artifact(vec![prefix("one", &same), prefix("two", &same)])).unwrap();
    assert_eq!(codes(&merged), [(Code::FileMerged, "x")]);
    let Some(Node::File { data, .. }) = merged.host.get(&TreePath::new("lib/x").unwrap()) else {
        panic!("lib/x is gone");
    };
    assert_eq!(data.module.as_deref(), Some("one"));
    for (files, words) in
        [(("lib/x", b"else".to_vec()), "differs"), (("lib", b"file".to_vec()), "below it")]
    {
        let prefixes = vec![prefix("one", &same), prefix("two", &[files])];
        let error = run(&artifact(prefixes)).unwrap_err();
        assert_eq!(error.kind(), Kind::Conflict);
        assert!(error.message().contains(words), "{error}");
        assert!(error.message().contains("one/stage") && error.message().contains("two/stage"));
    }
}

#[test]
fn a_link_against_a_directory_is_an_error_and_modes_of_directories_merge() {
    let prefixes = vec![prefix_with_directory("one", 0o755), prefix_with_link("two")];
    let error = run(&artifact(prefixes)).unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
    let below = prefix("two", &[("lib/x", vec![])]);
    assert!(run(&artifact(vec![prefix_with_link("one"), below])).is_err());
    let prefixes = vec![prefix_with_directory("one", 0o755), prefix_with_directory("two", 0o1711)];
    let merged = run(&artifact(prefixes)).unwrap();
    let node = merged.host.get(&TreePath::new("lib").unwrap());
    assert_eq!(node.map(Node::kind), Some(MemberKind::Directory));
    assert!(matches!(node, Some(Node::Directory { mode: 0o1755 })));
}

fn prefix_with_directory(name: &str, mode: u32) -> StagePrefix {
    prefix_with_lib(name, Node::Directory { mode })
}

fn prefix_with_link(name: &str) -> StagePrefix {
    prefix_with_lib(name, Node::Link { target: "lib64".to_owned() })
}

fn prefix_with_lib(name: &str, node: Node<Content>) -> StagePrefix {
    let mut prefix = prefix(name, &[]);
    prefix.tree.insert(TreePath::new("lib").unwrap(), node).unwrap();
    prefix
}

#[test]
fn all_faults_are_reported_at_once() {
    let bad = code_object(0xf0);
    let error = split_files(&[("a/b", bad.clone()), ("a/c", bad)]).unwrap_err();
    assert_eq!(error.others().len(), 1);
}

#[test]
fn names_of_libraries_tell_the_release() {
    for (name, old) in [
        ("libamdhip64.so.6.4.60401", Some(true)),
        ("libamdhip64-69e34bce.so.7.14.60850-0000000", Some(false)),
        ("/opt/rocm/lib/libhipblas.so.2", Some(true)),
        ("libhiprtc-builtins.so.6", Some(true)),
        ("libhipblaslt.so.1", Some(false)),
        ("libhipblaslt-other.so.0", None),
        ("libamdhip64.so", None),
        ("libMIOpen.so.1", None),
    ] {
        assert_eq!(is_old(name), old, "{name}");
    }
}
