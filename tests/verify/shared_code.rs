//! Packages all of whose code is device code, and which are no kernel packages: what makes one is what
//! it is for, not what else it happens to hold.

use std::fs;
use std::path::Path;
use std::process::Command;

use rockpack_package::receipt::Receipt;
use support::program::rockpack;
use support::tampered::{shard, verify};
use support::tools;
use tempfile::TempDir;

const TRANSFORM: &str = "lib/hipblaslt/library/hipblasltTransform.hsaco";

/// A code object of the example.
fn code_object() -> Vec<u8> {
    let database = "math-libs/BLAS/rocBLAS/stage/lib/rocblas/library";
    let file = shard("gfx110X").join(database).join("Kernels.so-000-gfx1100.hsaco");
    fs::read(file).unwrap()
}

/// An offload bundle of these entries.
pub fn bundle(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut table = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    table.extend((entries.len() as u64).to_le_bytes());
    let mut code = Vec::new();
    for (id, bytes) in entries {
        let words = [4096 + code.len(), bytes.len(), id.len()];
        table.extend(words.map(|word| (word as u64).to_le_bytes()).concat());
        table.extend(id.as_bytes());
        code.extend(bytes);
        code.resize(code.len().next_multiple_of(4096), 0);
    }
    table.resize(4096, 0);
    table.extend(code);
    table
}

/// A shard of artifacts (`transform_lib`) with a file each, and the packages made of it.
fn built(files: &[(&str, &str, Vec<u8>)], format: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (component, path, bytes) in files {
        let artifact = folder.path().join(format!("shards/one/{component}_generic"));
        let file = artifact.join("math-libs/stage").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
        fs::write(artifact.join("artifact_manifest.txt"), "math-libs/stage\n").unwrap();
    }
    let mut build = rockpack();
    build.args(["build", "--version", "7.1.0", "--format", format, "--artifacts"]);
    build.arg(folder.path().join("shards")).arg("--out").arg(folder.path().join("out"));
    tools::run(&mut build);
    folder
}

fn out(folder: &TempDir) -> String {
    folder.path().join("out").to_str().unwrap().to_owned()
}

/// The kernel packages, by the receipt.
fn kernels(folder: &TempDir) -> Vec<String> {
    let bytes = fs::read(Path::new(&out(folder)).join("packages.json")).unwrap();
    let packages = Receipt::parse(&bytes).unwrap().packages.into_iter();
    packages.filter(|record| record.role.is_kernels()).map(|record| record.id).collect()
}

#[test]
fn files_that_serve_all_archs_make_no_kernel_package() {
    let entries = [
        ("host-x86_64-unknown-linux--", Vec::new()),
        ("hipv4-amdgcn-amd-amdhsa--gfx1100", code_object()),
    ];
    let spirv = [("hip-spirv64-amd-amdhsa--amdgcnspirv", b"\x03\x02\x23\x07code".to_vec())];
    for format in ["deb", "rpm"] {
        for bytes in [code_object(), bundle(&entries), bundle(&spirv)] {
            let set = built(&[("transform_lib", TRANSFORM, bytes)], format);
            assert!(kernels(&set).is_empty());
            let shards = set.path().join("shards");
            let against = ["--against", shards.to_str().unwrap()];
            verify(&[&out(&set)], &against).fired(&[]);
            // Without a receipt nothing accounts for the code; but it is no kernel package either.
            fs::remove_file(Path::new(&out(&set)).join("packages.json")).unwrap();
            verify(&[&out(&set)], &[]).fired(&["V020"]);
        }
    }
}

/// Shared code of every part of a family, beside kernel packages of others, and in one that only needs another.
#[test]
fn parts_with_shared_code_alone_are_no_kernel_packages() {
    for format in ["deb", "rpm"] {
        let files = [
            ("transform_lib", TRANSFORM, code_object()),
            (
                "transform_test",
                "share/test/hipblaslt/library/hipblasltTransform.hsaco",
                code_object(),
            ),
            ("transform_dev", "include/transform.h", b"#pragma once\n".to_vec()),
            ("tensile_lib", "lib/rocblas/library/Kernels.so-000-gfx1100.hsaco", code_object()),
        ];
        let set = built(&files, format);
        assert_eq!(kernels(&set), ["rocm-tensile-gfx110x"]);
        verify(&[&out(&set)], &[]).fired(&[]);
    }
}

/// A receipt does not make a host package of what states otherwise, and a kernel package that is
/// untied is still noticed.
#[test]
fn kernel_packages_are_judged_as_before() {
    tools::need(&["dpkg-deb"]);
    let file = "lib/rocblas/library/Kernels.so-000-gfx1100.hsaco";
    let set = built(&[("tensile_lib", file, code_object())], "deb");
    let place = set.path().join("out/rocm-tensile-gfx110x_7.1.0-1_amd64.deb");
    let root = set.path().join("root");
    tools::run(Command::new("dpkg-deb").arg("-R").arg(&place).arg(&root));
    let control = root.join("DEBIAN/control");
    let text = fs::read_to_string(&control).unwrap().replace("(= 7.1.0-1)", "");
    fs::write(&control, text).unwrap();
    tools::run(Command::new("dpkg-deb").args(["--root-owner-group", "-b"]).arg(&root).arg(&place));
    let receipt = set.path().join("out/packages.json");
    let text = fs::read_to_string(&receipt).unwrap();
    assert_untied_is_noticed(&out(&set));
    fs::write(&receipt, text.replace("\"kernels\"", "\"host\"")).unwrap();
    assert_untied_is_noticed(&out(&set));
    fs::remove_file(&receipt).unwrap();
    assert_untied_is_noticed(&out(&set));
}

fn assert_untied_is_noticed(packages: &str) {
    let codes = verify(&[packages], &[]).codes();
    assert!(codes.contains(&"V050".to_owned()), "{codes:?}");
}
