//! Archives that were split off binaries, in any folder: rockpack gives their rows to these binaries, and
//! reports rows that no binary asks for.

use std::fs;
use std::path::{Path, PathBuf};

use support::example::{GROUPS, build_of, configuration, deb_name, rockpack, shards};
use support::kpack::{self, code_object, mach, shipped};

use crate::directories::shipped::{Added, archive, installed, shards_with, verifies, write};
use crate::directories::{Work, assert_same_packages, ends_with};

const STAGE: &str = "math-libs/BLAS/rocBLAS/stage";

/// The device artifact of the first shard for gfx1100, and the folder of its archives.
fn artifact(split: &Path) -> (PathBuf, PathBuf) {
    let stage = GROUPS[0].folder(split).join("blas_lib_gfx1100").join(STAGE);
    (stage.clone(), stage.join("lib/.kpack"))
}

#[test]
fn rows_that_a_split_artifact_lost_are_reported() {
    kpack::need_python();
    let work = Work::new();
    let split = work.split_shards();
    let (stage, folder) = artifact(&split);
    let lost = archive(&[("gfx1100", kpack::mach::GFX1100)]);
    write(&folder.join("old_lib_gfx1100.kpack"), &lost);
    // A manifest anywhere that lists an archive marks it as split off.
    write(&stage.join("lib/foo/older_lib_gfx1100.kpack"), &lost);
    let generic = GROUPS[0].folder(&split).join("blas_lib_generic").join(STAGE);
    let listed = fs::read(generic.join("lib/.kpack/blas_lib.kpm")).unwrap();
    write(&generic.join("lib/foo/older_lib.kpm"), &renamed(&listed, "older_lib_gfx1100.kpack"));
    let out = work.path("out");
    let (_, said) = ends_with(&mut build_of(&split, &out), 0);
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("R040")).collect();
    assert_eq!(lines.len(), 2, "{said}");
    for name in ["lib/.kpack/old_lib_gfx1100.kpack", "lib/foo/older_lib_gfx1100.kpack"] {
        let expected = "refers to 2 code objects, so no kernel package has them";
        let is_it = |line: &&str| line.contains(name) && line.contains(expected);
        assert!(lines.iter().any(is_it), "{said}");
    }
    let installed = installed(&work, &out);
    assert!(!installed.keys().any(|path| path.contains("old")), "{:?}", installed.keys());
}

/// A manifest that lists `file` instead of its archive for gfx1100.
fn renamed(manifest: &[u8], file: &str) -> Vec<u8> {
    let is_archive = |text: &str| text.ends_with(".kpack");
    let mut value = rmpv::decode::read_value(&mut &manifest[..]).unwrap();
    change_field(&mut value, "component_name", |name| *name = "older_lib".into());
    change_field(&mut value, "kpack_files", |files| {
        let rmpv::Value::Map(files) = files else { panic!("no map") };
        files.retain(|(arch, _)| arch.as_str() == Some("gfx1100"));
        let rmpv::Value::Map(fields) = &mut files[0].1 else { panic!("no map") };
        let names = fields.iter_mut().filter(|(_, text)| text.as_str().is_some_and(is_archive));
        names.for_each(|(_, name)| *name = file.into());
    });
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, &value).unwrap();
    bytes
}

fn change_field(value: &mut rmpv::Value, name: &str, change: impl Fn(&mut rmpv::Value)) {
    let rmpv::Value::Map(fields) = value else { panic!("no map") };
    for (key, value) in fields {
        if key.as_str() == Some(name) {
            change(value);
        }
    }
}

#[test]
fn an_archive_elsewhere_whose_rows_a_marker_asks_for_belongs_to_the_binary() {
    kpack::need_python();
    let work = Work::new();
    let split = work.split_shards();
    let (stage, folder) = artifact(&split);
    fs::create_dir_all(stage.join("lib/foo")).unwrap();
    let elsewhere = stage.join("lib/foo/kernels.kpack");
    fs::rename(folder.join("blas_lib_gfx1100.kpack"), &elsewhere).unwrap();
    let direct = work.direct("direct");
    let built = work.build(&split, "built");
    assert_same_packages(&direct, &built, |_| true);
    verifies(&built, Some(&split));
}

#[test]
fn a_marker_of_another_component_asks_for_rows_too() {
    let work = Work::new();
    let split = work.split_shards();
    let (_, folder) = artifact(&split);
    let archive = fs::read(folder.join("blas_lib_gfx1100.kpack")).unwrap();
    let run = GROUPS[0].folder(&split).join("blas_run_gfx1100").join(STAGE);
    assert!(run.is_dir());
    write(&run.join("lib/foo/kernels.kpack"), &archive);
    let out = work.path("out");
    let (_, said) = ends_with(&mut build_of(&split, &out), 0);
    let lost = |line: &str| line.contains("R040") && line.contains("lib/foo/kernels.kpack");
    assert!(said.lines().any(lost), "{said}");
    assert!(!installed(&work, &out).contains_key("lib/foo/kernels.kpack"));
    verifies(&out, Some(&split));
}

/// As in an install tree, where archives and binaries are not sorted alike.
#[test]
fn a_binary_without_rows_in_its_component_gets_those_of_another() {
    let work = Work::new();
    let split = work.split_shards();
    let shard = GROUPS[0].folder(&split);
    let mut moved = 0;
    for entry in fs::read_dir(&shard).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let archive = entry.path().join(STAGE).join(format!("lib/.kpack/{name}.kpack"));
        if name.starts_with("blas_lib_") && archive.exists() {
            let run =
                shard.join("blas_run_gfx1100").join(STAGE).join(format!("lib/foo/{name}.kpack"));
            write(&run, &fs::read(&archive).unwrap());
            fs::remove_file(archive).unwrap();
            moved += 1;
        }
    }
    assert!(moved > 1, "{moved}");
    let built = work.build(&split, "built");
    assert_same_packages(&work.direct("direct"), &built, |_| true);
    verifies(&built, Some(&split));
}

/// The rows are for a binary that is being transformed, or for one of another shard: neither gets them.
#[test]
fn rows_of_a_binary_that_does_not_get_them_are_reported() {
    for keys in
        [["lib/libexblas.so.1.2#0", "lib/libexblas.so.1.2#1"], ["lib/libexblas.so.1.2#0", "x"]]
    {
        let work = Work::new();
        let rows = keys.map(|key| (key, "gfx1151", code_object(mach::GFX1151, key)));
        let mut added = Added::default();
        added[1].insert("lib/foo/kernels.kpack".to_owned(), shipped(&rows));
        let shards = shards_with(&work, &added);
        let out = work.path("out");
        let (_, said) = ends_with(&mut build_of(&shards, &out), 0);
        let lost = |line: &str| line.contains("R040") && line.contains("lib/foo/kernels.kpack");
        assert!(said.lines().any(lost), "{said}");
        verifies(&out, Some(&shards));
        assert!(!installed(&work, &out).contains_key("lib/foo/kernels.kpack"));
    }
}

/// The binary is only in another shard.
#[test]
fn rows_of_a_binary_of_another_shard_are_reported() {
    let work = Work::new();
    let split = work.split_shards();
    let generic = GROUPS[1].folder(&split).join("blas_lib_generic");
    let archive = GROUPS[1].folder(&split).join("blas_lib_gfx1151").join(STAGE);
    let moved = fs::read(archive.join("lib/.kpack/blas_lib_gfx1151.kpack")).unwrap();
    fs::remove_file(archive.join("lib/.kpack/blas_lib_gfx1151.kpack")).unwrap();
    fs::remove_dir_all(generic).unwrap();
    write(&archive.join("lib/foo/kernels.kpack"), &moved);
    let out = work.path("out");
    let (_, said) = ends_with(&mut build_of(&split, &out), 0);
    let lost = |line: &str| line.contains("R040") && line.contains("lib/foo/kernels.kpack");
    assert!(said.lines().any(lost), "{said}");
    verifies(&out, Some(&split));
}

/// The host packages, whose manifests and markers lead to the archives, may be absent.
#[test]
fn archives_in_another_folder_are_known_by_their_rows() {
    let work = Work::new();
    let out = work.path("out");
    let text = fs::read_to_string(configuration()).unwrap();
    let config = work.path("config.json");
    fs::write(&config, text.replacen('{', "{\"kpackdir\": \"lib/kernels\",", 1)).unwrap();
    let mut build = rockpack();
    build.args(["build", "--version", "7.1.0", "--artifacts"]).arg(shards());
    ends_with(build.arg("--config").arg(config).arg("--out").arg(&out), 0);
    verifies(&out, Some(&shards()));
    let kernels = work.path("kernels");
    let name = deb_name(&support::example::kernels(&GROUPS[0]));
    write(&kernels.join(&name), &fs::read(out.join(&name)).unwrap());
    let mut verify = rockpack();
    verify.arg("verify").arg(&kernels).args(["--partial", "--against"]).arg(shards());
    ends_with(&mut verify, 0);
}
