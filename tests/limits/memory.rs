//! Input whose records or tables need more memory than `--memory` leaves.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::sweep::or_all;
use support::tools;
use support::wheels::LooseWheel;

use crate::{Input, STAGE, limited, refusal, rockpack, text};

/// The least memory for a build in MiB, and the memory that it may take in addition.
const BUDGET: u32 = 512;
const BESIDE: u32 = 256;

/// Fails unless a build with little memory refuses `input`, which needs more.
fn refused_for(input: &Input, expected: &str) {
    refused_to(input, input.build(), expected);
}

fn refused_to(input: &Input, mut build: Command, expected: &str) {
    build.args(["--format", "deb", "--compression", "xz", "--preset", "fast", "--jobs", "1"]);
    build.args(["--memory", &format!("{BUDGET}M")]);
    let said = refusal(&mut limited(&build, BUDGET + BESIDE));
    assert!(said.contains(expected) && said.contains("--memory"), "{said}");
    assert!(!input.out().exists(), "{said}");
}

/// Folders and numbers of files that exceed [`BUDGET`]: a few with long paths, which take most of the memory
/// then, and in full sweeps also very many with short ones.
fn many() -> &'static [(Place, u32)] {
    or_all(&[(deep, 6000)], &[(deep, 6000), (shallow, 100_000)])
}

type Place = fn(&Path) -> PathBuf;

/// A folder inside another one, with a path of 2.4 KB.
fn deep(folder: &Path) -> PathBuf {
    (0..12).fold(folder.to_owned(), |path, _| path.join("x".repeat(200)))
}

fn shallow(folder: &Path) -> PathBuf {
    folder.join("share")
}

#[test]
fn more_files_than_the_memory_is_for_are_refused() {
    for &(place, count) in many() {
        let packed = Input::handmade(|archive| {
            for number in 0..count {
                let path = format!("{}/{number}\0", place(STAGE.as_ref()).display());
                archive.member("././@LongLink", b'L', "", 0o644, path.as_bytes());
                archive.file("x", b"");
            }
        });
        refused_for(&packed, "the list of files and code objects of the input needs");
        let folder = Input::folder();
        touch(&place(&folder.stage()), count);
        refused_for(&folder, "the list of files and code objects of the input needs");
    }
}

/// A link's target takes as much memory as its path.
#[test]
fn more_targets_of_links_than_the_memory_is_for_are_refused() {
    let target = vec!["x".repeat(200); 12].join("/");
    let packed = Input::handmade(|archive| {
        for number in 0..6000 {
            archive.member("././@LongLink", b'K', "", 0o644, format!("{target}\0").as_bytes());
            archive.member(&format!("{STAGE}/lib/{number}"), b'2', "x", 0o777, b"");
        }
    });
    refused_for(&packed, "the list of files and code objects of the input needs");
    let folder = Input::folder();
    for number in 0..6000 {
        symlink(&target, folder.stage().join(format!("lib/{number}"))).unwrap();
    }
    refused_for(&folder, "the list of files and code objects of the input needs");
}

/// The folders around files take no memory for the depth of each file, in artifacts and in wheels. Owned paths
/// of these folders would take 250 MB, more than any run here may have.
#[test]
fn folders_around_many_files_cost_little_memory() {
    const FILES: u32 = 550;
    let folder = vec!["folder-of-files"; 240].join("/");
    let packed = Input::handmade(|archive| {
        for number in 0..FILES {
            let path = format!("{STAGE}/{folder}/{number}\0");
            archive.member("././@LongLink", b'L', "", 0o644, path.as_bytes());
            archive.file("x", b"");
        }
    });
    let mut discover = rockpack();
    discover.arg("discover").arg(packed.shard());
    tools::run(&mut limited(&discover, 128));
    let room = packed.folder.path();
    let mut wheel = LooseWheel::new("x-1.0-py3-none-any.whl", "");
    (0..FILES).for_each(|number| wheel.add(&format!("{folder}/{number}"), ""));
    let wheel = wheel.write(room);
    let mut split = rockpack();
    split.arg("wheel").arg(&wheel).arg("--out").arg(room.join("wheels"));
    tools::run(&mut limited(&split, 224));
}

/// Makes `count` empty files.
fn touch(folder: &Path, count: u32) {
    fs::create_dir_all(folder).unwrap();
    for number in 0..count {
        fs::write(folder.join(number.to_string()), "").unwrap();
    }
}

/// Files outside of artifacts are looked at but not remembered, in any number. With an artifact among them
/// they count, since a shard's files are listed.
#[test]
fn files_beside_artifacts_do_not_count() {
    let input = Input::folder();
    fs::write(input.stage().join("lib/a.txt"), "a").unwrap();
    let logs = input.folder.path().join("zzz-logs");
    fs::create_dir(&logs).unwrap();
    for number in 0..or_all(20_000, 100_000) {
        fs::write(logs.join(format!("{number:0>240}")), "").unwrap();
    }
    let out = tempfile::tempdir().unwrap();
    let split = || {
        let mut split = rockpack();
        split.args(["split", "--memory", "1", "--artifacts"]).arg(input.folder.path());
        split.arg("--output-dir").arg(out.path()).output().unwrap()
    };
    let output = split();
    assert!(output.status.success(), "{}", text(&output));
    assert!(out.path().join("shard/a_lib_generic").join(STAGE).join("lib/a.txt").exists());
    fs::rename(input.shard().join("a_lib_generic"), logs.join("a_lib_generic")).unwrap();
    let output = split();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(
        text(&output).contains("the list of files and code objects of the input needs"),
        "{}",
        text(&output)
    );
}

/// Components are split one after the other, and counted so.
#[test]
fn a_component_that_is_too_large_leaves_the_others_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let split = || {
        let mut split = rockpack();
        split.args(["split", "--memory", "1", "--artifacts"]).arg(folder.path().join("shard"));
        split.arg("--output-dir").arg(folder.path().join("out")).output().unwrap()
    };
    let files = |name: &str| {
        let stage = folder.path().join("out").join("shard").join(name).join(STAGE);
        fs::read_dir(deep(&stage)).unwrap().count()
    };
    for name in ["b_lib_generic", "c_lib_generic"] {
        make_component(folder.path(), name, 1200);
    }
    let output = split();
    assert!(output.status.success(), "each fits by itself: {}", text(&output));
    make_component(folder.path(), "a_lib_generic", 3600);
    let output = split();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(
        text(&output).contains("the list of files and code objects of the input needs"),
        "{}",
        text(&output)
    );
    assert_eq!(["b_lib_generic", "c_lib_generic"].map(files), [1200; 2]);
}

fn make_component(folder: &Path, name: &str, files: u32) {
    let artifact = folder.join("shard").join(name);
    touch(&deep(&artifact.join(STAGE)), files);
    fs::write(artifact.join("artifact_manifest.txt"), format!("{STAGE}\n")).unwrap();
}

/// A table of contents with one-byte values.
#[test]
fn tables_larger_than_the_memory_is_for_are_refused() {
    const VALUES: u32 = 10_000_000;
    let mut archive = b"KPAK".to_vec();
    archive.extend(1u32.to_le_bytes());
    archive.extend(64u64.to_le_bytes());
    archive.resize(64, 0);
    // A map with one text and an array.
    archive.extend([0x81, 0xa1, b'x', 0xdd]);
    archive.extend(VALUES.to_be_bytes());
    archive.resize(archive.len() + VALUES as usize, 0xc0);
    let path = format!("{STAGE}/lib/.kpack/a.kpack");
    let input = Input::handmade(|members| members.file(&path, &archive));
    refused_for(&input, "kernel archive TOC of 10000008 bytes exceeds");
}

/// A build reads the set that it updates within its own memory limit.
#[test]
fn an_earlier_set_larger_than_the_memory_is_for_is_refused() {
    let input = Input::folder();
    fs::write(input.stage().join("lib/a.txt"), "a").unwrap();
    let receipt = input.folder.path().join("packages.json");
    fs::File::create(&receipt).unwrap().set_len(400 << 20).unwrap();
    let mut build = input.build();
    build.arg("--since").arg(&receipt);
    refused_to(&input, build, "package set of 419430400 bytes exceeds the ");
}

/// Wrappers that share a bundle, as with `-fgpu-rdc`, each have rows in the archives.
#[test]
fn code_objects_count_for_each_wrapper_of_their_bundle() {
    tools::need(&["cc"]);
    let input = Input::folder();
    let library = input.stage().join("lib/libx.so");
    fat_library(&library, 3);
    tools::run(input.build().args(["--format", "deb", "--preset", "fast"]));
    fs::remove_dir_all(input.out()).unwrap();
    fat_library(&library, 100_000);
    refused_for(&input, "the list of files and code objects of the input needs");
}

/// Writes a library whose wrappers all point to one bundle of a few small code objects.
fn fat_library(path: &Path, wrappers: u32) {
    let room = tempfile::tempdir().unwrap();
    fs::write(room.path().join("bundle"), bundle()).unwrap();
    let source = format!(
        ".section .hip_fatbin,\"a\",@progbits\n.p2align 12\nbundle: .incbin \"bundle\"\n\
         .section .hipFatBinSegment,\"aw\",@progbits\n.p2align 3\n\
         .rept {wrappers}\n.long 0x48495046,1\n.quad bundle\n.quad 0\n.endr\n\
         .text\n.globl f\nf: ret\n.section .note.GNU-stack,\"\",@progbits\n"
    );
    fs::write(room.path().join("x.s"), source).unwrap();
    let mut compiler = Command::new("cc");
    compiler.current_dir(room.path()).args(["-shared", "-nostdlib", "x.s", "-o"]).arg(path);
    tools::run(&mut compiler);
}

/// A bundle of code objects of ABI version 2, whose headers do not state their target.
fn bundle() -> Vec<u8> {
    let mut code_object = b"\x7fELF\x02\x01\x01\x40".to_vec();
    code_object.resize(16, 0);
    code_object.extend([3, 0, 224, 0, 1, 0, 0, 0]);
    code_object.resize(52, 0);
    code_object.extend([64, 0]);
    code_object.resize(64, 0);
    let ids = ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx1030", "gfx1100", "gfx1101", "gfx1200"];
    let ids = ids.map(|arch| format!("hipv4-amdgcn-amd-amdhsa--{arch}"));
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bytes.extend((ids.len() as u64).to_le_bytes());
    for (index, id) in (0..).zip(&ids) {
        let offset = 4096 + index * code_object.len() as u64;
        for number in [offset, code_object.len() as u64, id.len() as u64] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(id.bytes());
    }
    bytes.resize(4096, 0);
    bytes.extend(code_object.repeat(ids.len()));
    bytes
}
