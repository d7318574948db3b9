//! Input that changes during a run: the run fails, names the input, and leaves nothing.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use support::archives::{self, Packing, pack, sum};
use support::example::{GROUPS, build_of};
use support::tools::{have, need};
use support::waiting::{Process, until};

use crate::main_job::killed::{larger_shards, staged, visible};

/// Builds the example shards, changes them with `change` once the first package is being written, and returns
/// the run's error.
fn changed(change: impl FnOnce(&Path)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (shards, out) = (folder.path().join("shards"), folder.path().join("out"));
    larger_shards(&shards);
    let artifact = GROUPS[2].folder(&shards).join("blas_run_gfx120X-all");
    if have(&archives::TOOLS) {
        sum(&pack(&artifact, Packing::Xz));
    }
    let mut command = build_of(&shards, &out);
    let build = Process::start(command.stdout(Stdio::null()).stderr(Stdio::piped()));
    until("the run writes", || (!staged(&out).is_empty()).then_some(()));
    change(&shards);
    let output = build.output();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("during the run") && said.contains("run again once"), "{said}");
    assert_eq!(visible(&out).len(), 0);
    said
}

const ARTIFACT: &str = "gfx1151-build/blas_lib_gfx1151";
const LIB: &str = "gfx1151-build/blas_lib_gfx1151/math-libs/BLAS/rocBLAS/stage/lib";

#[test]
fn a_manifest_that_changes_fails_the_run() {
    let said = changed(|shards| {
        let manifest = shards.join(ARTIFACT).join("artifact_manifest.txt");
        let text = fs::read_to_string(&manifest).unwrap();
        fs::write(manifest, text + "more/stage\n").unwrap();
    });
    assert!(said.contains("blas_lib_gfx1151/artifact_manifest.txt: "), "{said}");
}

#[test]
fn a_link_that_changes_fails_the_run() {
    let said = changed(|shards| {
        let link = shards.join(LIB).join("libexblas.so");
        fs::remove_file(&link).unwrap();
        symlink("libexblas.so.1.2", link).unwrap();
    });
    assert!(said.contains("lib/libexblas.so: the link was changed"), "{said}");
}

#[test]
fn a_file_that_appears_and_one_that_vanishes_fail_the_run() {
    let said = changed(|shards| fs::write(shards.join(LIB).join("new"), "new").unwrap());
    assert!(
        said.contains("rocBLAS/stage/lib: a file was added to or removed from the input folder"),
        "{said}"
    );
    let said = changed(|shards| {
        fs::remove_file(shards.join(LIB).join("rocblas/library/TensileLibrary_fallback.dat"))
            .unwrap();
    });
    assert!(said.contains("TensileLibrary_fallback.dat: vanished"), "{said}");
}

#[test]
fn an_artifact_that_appears_fails_the_run() {
    let said =
        changed(|shards| fs::create_dir(shards.join("gfx1151-build/x_lib_generic")).unwrap());
    assert!(said.contains("gfx1151-build: a file was added to or removed"), "{said}");
}

#[test]
fn a_packed_artifact_and_its_checksum_that_change_fail_the_run() {
    need(&archives::TOOLS);
    let archive = "gfx120X-build/blas_run_gfx120X-all.tar.xz";
    for name in [archive.to_owned(), format!("{archive}.sha256sum")] {
        let said = changed(|shards| {
            let file = shards.join(&name);
            let bytes = fs::read(&file).unwrap();
            fs::write(file, [&bytes[..], b"\n"].concat()).unwrap();
        });
        assert!(said.contains(&format!("{name}: the input file had")), "{said}");
    }
}
