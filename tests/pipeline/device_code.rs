//! Device code as LLVM's tools write it: bundles, compressed bundles, fat binaries.

use std::collections::BTreeSet;
use std::path::Path;

use rockpack_core::content::{Content, Sha256Digest};
use rockpack_core::error::{Kind, Result};
use rockpack_core::tree::{Node, Tree, TreePath};
use rockpack_elf::code_object;
use rockpack_elf::fatbin;
use rockpack_report::{Code, Findings};
use rockpack_split::input::artifact::{Artifact, StagePrefix};
use rockpack_split::input::database::DatabaseRules;
use rockpack_split::{FatBinary, HostKind, SplitArtifact, SplitPolicy, WrapperCode, split};
use sha2::Digest;
use support::ccob::ccob;
use support::device::{compile, run};
use support::tools::need;

const BUNDLER: &str = "clang-offload-bundler-19";
const ARCHS: [&str; 2] = ["gfx1100", "gfx90a:xnack+"];

fn bytes(content: &Content) -> Vec<u8> {
    content.read_vec(0..content.len(), 1 << 30, "test content").unwrap()
}

/// The bytes of all bundles of a file by entry ID, without empty entries.
fn entries(path: &Path) -> Vec<(String, Vec<u8>)> {
    let bundles = fatbin::parse(&support::fixtures::content(path)).unwrap();
    let entries = bundles.iter().flat_map(|bundle| &bundle.bundle.entries);
    entries
        .filter(|entry| !entry.content.is_empty())
        .map(|entry| (entry.id.text.clone(), bytes(&entry.content)))
        .collect()
}

const HOST: &str = "host-x86_64-unknown-linux-gnu-";
const FIRST: &str = "hipv4-amdgcn-amd-amdhsa--gfx1100";
const SECOND: &str = "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+";

/// Two code object files, and the bundle that clang-offload-bundler makes of them with `flags`.
fn bundle_with(dir: &Path, flags: &[&str]) -> [Vec<u8>; 2] {
    let codes = [b"first code ".repeat(1000), b"second code ".repeat(2000)];
    std::fs::write(dir.join("first"), &codes[0]).unwrap();
    std::fs::write(dir.join("second"), &codes[1]).unwrap();
    let targets = format!("-targets={HOST},{FIRST},{SECOND}");
    let mut command = vec![BUNDLER, "-type=o", "-bundle-align=4096", &targets];
    command.extend(["-input=/dev/null", "-input=first", "-input=second", "-output=bundle"]);
    command.extend(flags);
    run(dir, &command);
    codes
}

#[test]
fn bundles_of_the_bundler_are_read() {
    need(&[BUNDLER]);
    for (flags, version) in [(&[][..], None), (&["-compress"][..], Some(2))] {
        let dir = tempfile::tempdir().unwrap();
        let [first, second] = bundle_with(dir.path(), flags);
        let path = dir.path().join("bundle");
        let expected = [(FIRST.to_owned(), first), (SECOND.to_owned(), second)];
        assert_eq!(entries(&path), expected);
        let bundles = fatbin::parse(&support::fixtures::content(&path)).unwrap();
        let header = bundles[0].compression.as_ref();
        assert_eq!(header.map(|header| header.version), version);
        assert_eq!(bundles[0].extent, std::fs::metadata(&path).unwrap().len());
    }
}

/// Header and zlib stream of a compressed bundle of version 2, up to where LLVM reads.
fn compressed_by_hand(plain: &[u8]) -> Vec<u8> {
    use std::io::Read;
    let mut stream = Vec::new();
    flate2::read::ZlibEncoder::new(plain, flate2::Compression::best())
        .read_to_end(&mut stream)
        .unwrap();
    ccob(2, 0, plain, &stream)
}

#[test]
fn a_compressed_bundle_made_by_hand_is_read_alike_by_the_bundler() {
    need(&[BUNDLER]);
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = bundle_with(dir.path(), &[]);
    let plain = std::fs::read(dir.path().join("bundle")).unwrap();
    std::fs::write(dir.path().join("ccob"), compressed_by_hand(&plain)).unwrap();
    let targets = format!("-targets={FIRST},{SECOND}");
    let unbundle = ["-unbundle", "-type=o", "-input=ccob", "-output=a", "-output=b"];
    let mut command = vec![BUNDLER, &targets];
    command.extend(unbundle);
    run(dir.path(), &command);
    let theirs = ["a", "b"].map(|name| std::fs::read(dir.path().join(name)).unwrap());
    let ours = entries(&dir.path().join("ccob")).into_iter().map(|(_, bytes)| bytes);
    assert_eq!(ours.collect::<Vec<_>>(), theirs);
    assert_eq!(theirs, [first, second]);
}

/// Splits an artifact with the files `names` of `dir`.
fn split_of(dir: &Path, names: &[&str]) -> Result<SplitArtifact> {
    let mut tree = Tree::new();
    for name in names {
        let data = support::fixtures::content(dir.join(name));
        let path = TreePath::new(format!("lib/{name}")).unwrap();
        tree.insert(path, Node::File { data, mode: 0o644 }).unwrap();
    }
    let artifact = Artifact {
        shard: "shard".to_owned(),
        name: "blas_lib_all".parse().unwrap(),
        root: dir.to_path_buf(),
        sha256: None,
        prefixes: vec![StagePrefix {
            path: "math-libs/blas/stage".to_owned(),
            module: Some("blas".to_owned()),
            tree,
        }],
        findings: Findings::default(),
    };
    split(&artifact, &SplitPolicy::strict(&DatabaseRules::builtin().unwrap()))
}

fn fat<'a>(split: &'a SplitArtifact, path: &str) -> &'a FatBinary {
    match split.host.get(&TreePath::new(path).unwrap()) {
        Some(Node::File { data, .. }) => match &data.kind {
            HostKind::Fat(fat) => fat,
            HostKind::Plain(_) => panic!("{path} has no device code"),
        },
        other => panic!("{path} is {other:?}"),
    }
}

#[test]
fn each_wrapper_has_the_kernels_of_its_own_translation_unit() {
    need(&["clang++-19", "ld.lld-19", "llvm-objcopy-19", BUNDLER]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    compile(dir, "first", &ARCHS, &[]);
    compile(dir, "second", &ARCHS[..1], &["--offload-compress"]);
    compile(dir, "third", &ARCHS, &["--offload-compress"]);
    let names = ["first", "second", "third"];
    run(
        dir,
        &["clang++-19", "-shared", "-fuse-ld=lld", "first.o", "second.o", "third.o", "-o", "x.so"],
    );
    let split = split_of(dir, &["x.so"]).unwrap();
    assert!(split.findings.is_empty(), "{:?}", split.findings);
    let fat = fat(&split, "lib/x.so");
    assert_eq!(fat.wrappers.len(), 3);
    for (wrapper, name) in fat.wrappers.iter().zip(names) {
        let mut ours = Vec::new();
        for code in wrapper.code_objects.iter() {
            let kernels = code_object::kernel_names(&code.content).unwrap();
            assert_eq!(kernels, BTreeSet::from([name.to_owned()]));
            ours.push((code.target.to_string(), bytes(&code.content)));
        }
        let section = format!("--dump-section=.hip_fatbin={name}.bundle");
        run(dir, &["llvm-objcopy-19", &section, &format!("{name}.o")]);
        let target = |arch: &str| format!("hipv4-amdgcn-amd-amdhsa--{arch}");
        let archs = &ARCHS[..if name == "second" { 1 } else { 2 }];
        let theirs: Vec<_> = archs
            .iter()
            .map(|arch| {
                let (targets, input) = (target(arch), format!("-input={name}.bundle"));
                let targets = format!("-targets={targets}");
                let flags = ["-unbundle", "-type=o", "-output=code"];
                run(dir, &[&[BUNDLER, &targets, &input][..], &flags].concat());
                ((*arch).to_owned(), std::fs::read(dir.join("code")).unwrap())
            })
            .collect();
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn unlinked_objects_and_archives_keep_their_device_code() {
    need(&["clang++-19", "llvm-ar-19"]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    compile(dir, "plain", &ARCHS, &[]);
    compile(dir, "relocatable", &ARCHS, &["-fgpu-rdc"]);
    compile(dir, "driver", &ARCHS, &["--offload-new-driver"]);
    run(dir, &["llvm-ar-19", "rcs", "fat.a", "driver.o"]);
    std::fs::write(dir.join("host.c"), "int host;").unwrap();
    run(dir, &["clang++-19", "-x", "c", "-c", "host.c", "-o", "host.o"]);
    run(dir, &["llvm-ar-19", "rcs", "host.a", "host.o"]);
    let fat = ["lib/driver.o", "lib/fat.a", "lib/plain.o", "lib/relocatable.o"];
    let names = ["plain.o", "relocatable.o", "driver.o", "fat.a", "host.o", "host.a"];
    let split = split_of(dir, &names).unwrap();
    let named: Vec<_> =
        split.findings.iter().map(|f| (f.code().unwrap().id, f.subject().to_owned())).collect();
    assert_eq!(named, fat.map(|path| ("R030", format!("shard/blas_lib_all/{path}"))));
    let findings = serde_json::to_value(&split.findings).unwrap();
    let kinds: Vec<_> = findings.as_array().unwrap().iter().map(|f| f["kind"].clone()).collect();
    assert_eq!(kinds, ["host-object", "static-archive", "host-object", "host-object"]);
    assert_eq!((split.host.len(), split.databases.len()), (6, 0));
}

/// Links a library with one wrapper for each of `pointers`: (index into `bundles`, offset in it).
fn assemble(dir: &Path, bundles: &[&str], pointers: &[(usize, u64)]) {
    let mut source = String::from(".section .hip_fatbin,\"a\",@progbits\n");
    for (index, bundle) in bundles.iter().enumerate() {
        source.push_str(&format!(".p2align 12\nbundle{index}: .incbin \"{bundle}\"\n"));
    }
    source.push_str(".section .hipFatBinSegment,\"aw\",@progbits\n.p2align 3\n");
    for (bundle, offset) in pointers {
        source.push_str(&format!(".long 0x48495046, 1\n.quad bundle{bundle} + {offset}, 0\n"));
    }
    std::fs::write(dir.join("x.s"), source).unwrap();
    run(dir, &["clang-19", "-shared", "-nostdlib", "-fuse-ld=lld", "x.s", "-o", "x.so"]);
}

/// Writes the bundles `one`, `two` and `three` to `dir`, each of one translation unit.
fn three_bundles(dir: &Path) {
    for (name, flags) in [("one", &[][..]), ("two", &["--offload-compress"]), ("three", &[])] {
        compile(dir, name, &ARCHS, flags);
        let section = format!("--dump-section=.hip_fatbin={name}");
        run(dir, &["llvm-objcopy-19", &section, &format!("{name}.o")]);
    }
}

fn kernel_of(wrapper: &WrapperCode) -> String {
    let names = code_object::kernel_names(&wrapper.code_objects[0].content).unwrap();
    names.into_iter().collect()
}

#[test]
fn the_pointer_and_not_the_order_says_which_bundle_is_a_wrappers_own() {
    need(&["clang++-19", "ld.lld-19", "llvm-objcopy-19"]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    three_bundles(dir);
    assemble(dir, &["one", "two", "three"], &[(1, 0), (0, 0), (1, 0)]);
    let split = split_of(dir, &["x.so"]).unwrap();
    let kernels = fat(&split, "lib/x.so").wrappers.iter().map(kernel_of);
    assert_eq!(kernels.collect::<Vec<_>>(), ["two", "one", "two"]);
    let findings: Vec<_> = split.findings.iter().collect();
    assert_eq!((findings.len(), findings[0].code()), (1, Some(Code::BundleUnreferenced)));
    let unreferenced = entries(&dir.join("three")).into_iter();
    let digests = unreferenced
        .map(|(_, bytes)| Sha256Digest::from(<[u8; 32]>::from(sha2::Sha256::digest(bytes))));
    assert_eq!(findings[0].code_objects(), digests.collect::<Vec<_>>());
}

#[test]
fn a_wrapper_that_points_into_a_bundle_is_an_error_with_the_place() {
    need(&["clang++-19", "ld.lld-19", "llvm-objcopy-19"]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    three_bundles(dir);
    assemble(dir, &["one", "two"], &[(0, 0), (1, 16)]);
    let error = split_of(dir, &["x.so"]).unwrap_err();
    assert_eq!(error.kind(), Kind::Malformed);
    assert!(error.message().starts_with("wrapper 1 points"), "{error}");
    let file = std::fs::read(dir.join("x.so")).unwrap();
    let magic = file.windows(4).position(|window| window == b"CCOB").unwrap();
    assert_eq!(error.place().offset, Some(magic as u64 + 16));
}
