//! Folders, manifests and links.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use support::example::{build_of, configuration, contents, names, rockpack};
use support::program::rockpack_path;
use support::tools;

use crate::refusals::{Bad, FAILED, USAGE, patch, refused};

const MANIFEST: &str = "blas_lib_gfx110X-dgpu/artifact_manifest.txt: ";

#[test]
fn a_missing_manifest_is_refused() {
    let bad = Bad::new();
    fs::remove_file(bad.artifact().join("artifact_manifest.txt")).unwrap();
    bad.is_refused(FAILED, &[MANIFEST, "the artifact has no manifest", "one per line"]);
}

#[test]
fn an_empty_manifest_is_refused() {
    for text in ["", "\n\r\n\n"] {
        let bad = Bad::new();
        fs::write(bad.artifact().join("artifact_manifest.txt"), text).unwrap();
        let expected = [MANIFEST, "lists no stage prefix", "math-libs/BLAS/rocBLAS/stage"];
        bad.is_refused(FAILED, &expected);
    }
}

#[test]
fn a_manifest_that_leaves_its_artifact() {
    for line in ["../gfx1151-build/stage", "/usr", "math-libs/../../stage", "a//stage"] {
        let bad = Bad::new();
        let manifest = bad.artifact().join("artifact_manifest.txt");
        fs::write(&manifest, format!("math-libs/BLAS/rocBLAS/stage\n{line}\n")).unwrap();
        let message = format!("line 2: `{line}` is not a path inside the prefix");
        bad.is_refused(FAILED, &[MANIFEST, &message]);
    }
}

#[test]
fn a_link_that_leaves_its_prefix() {
    let up = "../".repeat(12) + "etc/passwd";
    for target in ["/etc/passwd", up.as_str(), "../../outside"] {
        let bad = Bad::new();
        symlink(target, bad.file("lib/passwd")).unwrap();
        let message =
            format!("lib/passwd: the link leads to `{target}`, outside of the install prefix");
        bad.is_refused(FAILED, &[&message]);
    }
}

#[test]
fn a_stage_prefix_behind_a_link_is_refused() {
    let bad = Bad::new();
    let elsewhere = bad.folder.path().join("elsewhere");
    let stage = bad.artifact().join("math-libs/BLAS/rocBLAS/stage");
    fs::rename(&stage, &elsewhere).unwrap();
    symlink(&elsewhere, &stage).unwrap();
    bad.is_refused(FAILED, &["math-libs/BLAS/rocBLAS/stage", "link"]);
}

/// Root may read everything, so as root the build runs as nobody, with the program and its input in a folder
/// that nobody can reach.
#[test]
fn an_unreadable_file_is_refused() {
    let bad = Bad::new();
    let file = bad.file("lib/libexblas.so.1.2");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    let expected = ["lib/libexblas.so.1.2: cannot open: Permission denied", "permissions"];
    if tools::succeed(Command::new("id").arg("-u")).trim() != "0" {
        return bad.is_refused(FAILED, &expected);
    }
    tools::need(&["setpriv"]);
    let program = bad.folder.path().join("rockpack");
    // A program that this process writes is busy as long as a child of another test has its descriptor.
    tools::run(Command::new("cp").arg(rockpack_path()).arg(&program));
    fs::set_permissions(bad.folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let configuration = bad.folder.path().join("packaging-config.json");
    fs::copy(support::example::configuration(), &configuration).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    command.args(["build", "--version", "7.1.0", "--artifacts"]).arg(bad.shards());
    command.arg("--config").arg(configuration).arg("--out").arg(bad.out());
    refused(&mut command, FAILED, &expected);
    assert!(!bad.out().exists());
}

#[test]
fn what_is_no_folder_of_artifacts() {
    let bad = Bad::new();
    refused(&mut build_from(&bad, "nothing"), USAGE, &["nothing: cannot list: No such file"]);
    fs::create_dir(bad.folder.path().join("empty")).unwrap();
    refused(&mut build_from(&bad, "empty"), USAGE, &["empty: is not a shard, a folder of shards"]);
    let artifact = "shards/gfx110X-build/blas_lib_gfx110X-dgpu";
    let expected = ["is one artifact, not a folder of artifacts"];
    refused(&mut build_from(&bad, artifact), USAGE, &expected);
    assert_eq!(names(&bad.out()).len(), 0);
}

fn build_from(bad: &Bad, folder: &str) -> Command {
    build_of(&bad.folder.path().join(folder), &bad.out())
}

#[test]
fn all_faults_are_named_at_once() {
    let bad = Bad::new();
    fs::remove_file(bad.artifact().join("artifact_manifest.txt")).unwrap();
    symlink("/etc/passwd", crate::refusals::GROUPS[1].original(&bad.shards(), "lib/passwd"))
        .unwrap();
    bad.is_refused(FAILED, &["the artifact has no manifest", "lib/passwd: the link leads to"]);
}

#[test]
fn a_kernel_archive_under_another_name() {
    let bad = Bad::new();
    fs::write(bad.file("lib/kernels.bin"), b"KPAK\x01\0\0\0").unwrap();
    bad.is_refused(FAILED, &["lib/kernels.bin: ", "is a kernel archive", ".kpack"]);
}

#[test]
fn a_kernel_archive_that_was_copied_in_part_is_refused() {
    let bad = Bad::new();
    fs::write(bad.file("lib/blas_lib_gfx1102.kpack"), b"KPAK\x01\0\0\0").unwrap();
    let expected =
        ["lib/blas_lib_gfx1102.kpack: ", "kernel archive header", "8 left", "copied only in part"];
    bad.is_refused(FAILED, &expected);
}

#[test]
fn a_database_file_that_was_copied_in_part_is_refused() {
    let bad = Bad::new();
    let name = "lib/rocblas/library/TensileLibrary_gfx1101.co";
    patch(&bad.file(name), |bytes| bytes.truncate(2000));
    bad.is_refused(FAILED, &[name, "copied only in part"]);
}

#[test]
fn one_database_file_from_two_components_of_a_package_is_refused() {
    let bad = Bad::new();
    let name = "rocblas/library/TensileLibrary_gfx1101.co";
    let run = bad.file("bin/exblas-bench").ancestors().nth(2).unwrap().join("lib").join(name);
    fs::create_dir_all(run.parent().unwrap()).unwrap();
    fs::copy(bad.file(&format!("lib/{name}")), run).unwrap();
    bad.is_refused(FAILED, &["comes from blas_lib and from blas_run", "a path once"]);
}

#[test]
fn a_link_in_the_place_of_the_manifest_is_refused() {
    let bad = Bad::new();
    let manifest = bad.file("lib/.kpack/blas_lib.kpm");
    fs::create_dir_all(manifest.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("../libexblas.so", manifest).unwrap();
    bad.is_refused(FAILED, &["lib/.kpack/blas_lib.kpm is in the input", "remove it"]);
}

#[test]
fn an_output_folder_that_is_a_link_to_nowhere() {
    let bad = Bad::new();
    std::os::unix::fs::symlink("nowhere", bad.out()).unwrap();
    refused(&mut bad.build(), USAGE, &["out: is a dangling symbolic link"]);
    assert!(bad.out().is_symlink() && !bad.out().exists());
}

#[test]
fn an_output_folder_among_the_artifacts_is_refused() {
    let bad = Bad::new();
    let out = bad.shards().join("packages");
    let expected = ["packages: the output folder lies inside of ", "outside of all artifacts"];
    refused(&mut build_of(&bad.shards(), &out), USAGE, &expected);
    assert!(!out.exists());
}

#[test]
fn a_file_in_the_way_of_a_package_is_refused() {
    let bad = Bad::new();
    fs::create_dir(bad.out()).unwrap();
    let foreign = bad.out().join("rocm-blas_7.1.0-1_amd64.deb");
    fs::write(&foreign, b"somebody's").unwrap();
    let expected = ["rocm-blas_7.1.0-1_amd64.deb: has the name of a package", "move it away"];
    refused(&mut bad.build(), FAILED, &expected);
    assert!(names(&bad.out()).iter().eq(["rocm-blas_7.1.0-1_amd64.deb"]));
    assert_eq!(fs::read(foreign).unwrap(), b"somebody's");
}

#[test]
fn a_file_in_the_way_of_a_package_that_the_receipt_there_does_not_list() {
    let bad = Bad::new();
    tools::run(&mut bad.build());
    let foreign = "rocm-blas_7.1.0-2_amd64.deb";
    fs::write(bad.out().join(foreign), b"somebody's").unwrap();
    let before = contents(&bad.out());
    let expected = [format!("{foreign}: has the name of a package"), "move it away".to_owned()];
    let expected = expected.each_ref().map(String::as_str);
    refused(bad.build().args(["--release", "2"]), FAILED, &expected);
    assert!(contents(&bad.out()) == before, "{:?}", names(&bad.out()));
}

/// dpkg first writes `NAME.dpkg-new`, and rpm `NAME;xxxxxxxx`; file systems allow 255 bytes.
#[test]
fn a_name_that_package_managers_cannot_unpack() {
    let put: [fn(&Path); 3] = [
        |place| fs::write(place, "x").unwrap(),
        |place| symlink("readme", place).unwrap(),
        |place| fs::create_dir(place).unwrap(),
    ];
    for put in put {
        let bad = Bad::new();
        put(&bad.file(&format!("lib/{}", "n".repeat(247))));
        let named = format!("rocm-blas: /opt/rocm-7.1/lib/{}: ", "n".repeat(247));
        let why = "the name has 247 bytes, and package managers can unpack at most 246";
        bad.is_refused(FAILED, &[&named, why, "shorten it in the build"]);
        let mut plan = rockpack();
        plan.args(["plan", "--version", "7.1.0", "--config"]).arg(configuration());
        refused(plan.arg("--artifacts").arg(bad.shards()), FAILED, &[&named, why]);
    }
}
