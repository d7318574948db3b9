//! Installed prefixes, single files, and packages of split artifacts.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use super::*;
use support::program::rockpack;

#[test]
fn packages_of_split_artifacts_hold_all_of_them() {
    let out = tempfile::tempdir().unwrap();
    let artifacts = split().join("split");
    let mut build = rockpack();
    build.args(["build", "--version", "7.1.0", "--format", "deb", "--config"]);
    build.arg(tools::repository("examples/packaging-config.json"));
    tools::run(build.arg("--artifacts").arg(&artifacts).arg("--out").arg(out.path()));
    let folder = out.path().to_str().unwrap();
    for against in [artifacts, tools::repository("examples/shards")] {
        verify(&[folder], &["--against", against.to_str().unwrap()]).fired(&[]);
    }
    // A code object that the packages lack.
    let more = Copy::of(&split().join("split"));
    let other =
        more.root().join(SHARD).join("blas_lib_gfx1100").join(STAGE).join(archive("gfx1100"));
    let keys = [0, 1].map(|wrapper| format!("{LIBRARY}#{wrapper}"));
    let keys = [keys[0].as_str(), keys[1].as_str()];
    Archive::edit(&other, |archive| archive.exchange(keys, "gfx1100"));
    let run = verify(&[folder], &["--against", more.root().to_str().unwrap()]);
    run.fired(&["V012"]);
}

#[test]
fn an_installed_prefix_passes_with_some_of_its_groups() {
    let prefix = prefix();
    let run = prefix.verify();
    run.fired(&[]);
    let json: serde_json::Value = serde_json::from_str(&run.text).unwrap();
    assert_eq!(json["prefixes"], 1);
    assert!(json["archive_rows"].as_u64().unwrap() > 0);
    let root = prefix.root();
    verify(&[root.parent().unwrap().to_str().unwrap()], &["--installed"]).fired(&[]);
    let text = rockpack().arg("verify").arg(root).output();
    let text = String::from_utf8(text.unwrap().stdout).unwrap();
    assert!(text.starts_with("1 installed prefix, ") && text.ends_with("all checks passed\n"));
}

#[test]
fn a_prefix_without_archives_or_with_others() {
    let spoiled = prefix();
    fs::remove_file(spoiled.root().join(archive("gfx1100"))).unwrap();
    spoiled.verify().fired(&["V030", "V033"]);
    let spoiled = prefix();
    let other = split().join("split").join(SHARD).join("blas_lib_gfx1101").join(STAGE);
    fs::copy(other.join(archive("gfx1101")), spoiled.root().join(archive("gfx1100"))).unwrap();
    spoiled.verify().fired(&["V023", "V033"]);
    let spoiled = prefix();
    Archive::edit(&spoiled.root().join(archive("gfx1100")), |archive| {
        archive.drop_row(&format!("{LIBRARY}#1"), "gfx1100");
    });
    spoiled.verify().fired(&["V033"]);
    // The host package is not installed, or lost a library.
    let spoiled = prefix();
    fs::remove_file(spoiled.root().join(LIBRARY)).unwrap();
    let run = spoiled.verify();
    run.fired(&["V034"]);
    assert!(
        run.text.contains(&format!("has code for {LIBRARY}, which is missing")),
        "{}",
        run.text
    );
    // A fat binary that nobody has transformed is in order where host and device code may be.
    let spoiled = prefix();
    fs::copy(fat_library(), spoiled.root().join("lib/libfat.so")).unwrap();
    spoiled.verify().fired(&[]);
}

#[test]
fn single_files() {
    let copy = Copy::split();
    let kpack = copy.at("blas_lib_gfx1100", &archive("gfx1100"));
    let kpm = copy.at("blas_lib_generic", "lib/.kpack/blas_lib.kpm");
    let library = copy.at("blas_lib_generic", LIBRARY);
    let code = copy.at("blas_lib_gfx1100", &format!("{DATABASE}/TensileLibrary_gfx1100.co"));
    let all = [&kpack, &kpm, &library, &code].map(|path| path.to_str().unwrap());
    let run = verify(&all, &[]);
    run.fired(&[]);
    let json: serde_json::Value = serde_json::from_str(&run.text).unwrap();
    assert_eq!(json["single_files"], 4);
    let bytes = fs::read(&kpack).unwrap();
    for len in [0, 3, 4, 70, bytes.len() / 2, bytes.len() - 1] {
        assert_spoiled(&kpack, &bytes[..len], "V023");
    }
    assert_spoiled(&kpm, &[0x85, 1], "V033");
    let mut wrapped = fs::read(&library).unwrap();
    wrapped[wrapper_section(&library)..][..4].copy_from_slice(b"FPIH");
    assert_spoiled(&library, &wrapped, "V032");
    let readme = tools::repository("README.md");
    assert_eq!(verify(&[readme.to_str().unwrap()], &[]).status, 64);
}

/// Fails unless a file with other bytes has a problem with this code.
fn assert_spoiled(path: &Path, bytes: &[u8], code: &str) {
    let kept = fs::read(path).unwrap();
    fs::write(path, bytes).unwrap();
    verify(&[path.to_str().unwrap()], &[]).fired(&[code]);
    fs::write(path, kept).unwrap();
}

#[test]
fn v001_names_that_are_no_utf_8() {
    let prefix = tempfile::tempdir().unwrap();
    let folder = prefix.path().join("lib/.kpack");
    fs::create_dir_all(&folder).unwrap();
    let [plain, file, other] = [&b"x.kpack"[..], b"x\xff.kpack", b"x\xfe.kpack"]
        .map(|name| folder.join(OsStr::from_bytes(name)));
    let paths = [prefix.path().to_str().unwrap()];
    fs::write(&plain, "bad").unwrap();
    verify(&paths, &[]).fired(&["V023"]);
    fs::remove_file(plain).unwrap();
    // Both would be one name, and the later of them what is looked at.
    fs::write(&file, "bad").unwrap();
    fs::create_dir(&other).unwrap();
    let run = verify(&paths, &[]);
    run.fired(&["V001"]);
    assert_eq!(run.problems().len(), 2, "{}", run.text);
    assert!(run.text.contains(r"x\\xff.kpack"), "{}", run.text);
    assert!(run.text.contains("not UTF-8"), "{}", run.text);
    fs::remove_file(file).unwrap();
    fs::remove_dir(other).unwrap();
    symlink(OsStr::from_bytes(b"\xff"), folder.join("link")).unwrap();
    let run = verify(&paths, &[]);
    run.fired(&["V001"]);
    assert!(run.text.contains("its target is not UTF-8"), "{}", run.text);
}
