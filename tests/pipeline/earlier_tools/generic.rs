//! Host packages whose files several shards have, and files that do not state their arch.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use rmpv::Value;
use support::example::{
    GROUPS, PREFIX, Set, build_of, copy_shards, deb_name, files, kernels, rockpack, shards,
};
use support::tools;

/// The files of packages of the set in `out`, unpacked by dpkg-deb.
fn unpacked(out: &Path, packages: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let root = tempfile::tempdir().unwrap();
    for package in packages {
        let mut dpkg = Command::new("dpkg-deb");
        tools::run(dpkg.arg("-x").arg(out.join(deb_name(package))).arg(root.path()));
    }
    files(root.path())
}

fn field<'a>(value: &'a Value, name: &str) -> &'a Value {
    let map = value.as_map().unwrap();
    &map.iter().find(|(key, _)| key.as_str() == Some(name)).unwrap().1
}

/// The test reads the manifest without the project's own reader.
#[test]
fn the_manifest_lists_the_archives_of_all_shards() {
    tools::need(&["dpkg-deb"]);
    let set = Set::build();
    let packages: Vec<String> = GROUPS.iter().map(kernels).collect();
    let archives = unpacked(&set.out(), &packages.iter().map(String::as_str).collect::<Vec<_>>());
    let folder = format!("{PREFIX}/lib/.kpack/");
    let present: BTreeSet<(String, u64)> = archives
        .iter()
        .filter_map(|(path, bytes)| Some((path.strip_prefix(&folder)?, bytes.len())))
        .map(|(name, len)| (name.to_owned(), len as u64))
        .collect();
    assert_eq!(present.len(), GROUPS.iter().map(|group| group.archs.len()).sum::<usize>());
    let host = unpacked(&set.out(), &["rocm-blas"]);
    let manifest = host[&format!("{folder}blas_lib.kpm")].as_slice();
    let manifest = rmpv::decode::read_value(&mut { manifest }).unwrap();
    let listed = field(&manifest, "kpack_files").as_map().unwrap().iter().map(|(_, archive)| {
        let name = field(archive, "filename").as_str().unwrap().to_owned();
        (name, field(archive, "size").as_u64().unwrap())
    });
    assert_eq!(listed.collect::<BTreeSet<_>>(), present);
}

/// All shards but one are split already. Whichever shard has the fat library, it is never packed fat.
#[test]
fn a_fat_library_of_one_shard_does_not_replace_the_transformed_one() {
    tools::need(&["dpkg-deb"]);
    let folder = tempfile::tempdir().unwrap();
    let split = folder.path().join("split");
    let mut command = rockpack();
    tools::run(
        command.arg("split").arg("--artifacts").arg(shards()).arg("--output-dir").arg(&split),
    );
    for (index, fat) in GROUPS.iter().enumerate() {
        let mixed = folder.path().join(format!("shards-{index}"));
        fs::create_dir(&mixed).unwrap();
        for group in &GROUPS {
            let from = if group.name == fat.name { shards() } else { split.clone() };
            symlink(group.folder(&from), group.folder(&mixed)).unwrap();
        }
        let out = folder.path().join(format!("out-{index}"));
        tools::run(build_of(&mixed, &out).args(["--format", "deb"]));
        let host = unpacked(&out, &["rocm-blas"]);
        assert!(host.keys().any(|path| path.ends_with("libexblas.so.1.2")));
        for (path, bytes) in host {
            for sign in [&b"CCOB"[..], b"__CLANG_OFFLOAD_BUNDLE__"] {
                let holds = bytes.windows(sign.len()).any(|part| part == sign);
                assert!(!holds, "{path} is fat, with {} as it was built", fat.name);
            }
        }
    }
}

/// A library may add such database files any day: code of one arch, under a name without an arch.
#[test]
fn a_database_file_that_names_no_arch_is_its_archs_own() {
    tools::need(&["dpkg-deb"]);
    let folder = tempfile::tempdir().unwrap();
    let (shards, out) = (folder.path().join("shards"), folder.path().join("out"));
    copy_shards(&shards);
    let group = &GROUPS[1];
    let library = group.stage(&shards, "lib").join("lib/hipsparselt/library");
    let code = group.original(&shards, "lib/rocblas/library/TensileLibrary_gfx1151.co");
    fs::create_dir_all(&library).unwrap();
    fs::copy(code, library.join("hipsparselt_spmm.co")).unwrap();
    tools::run(build_of(&shards, &out).args(["--format", "deb"]));
    let path = format!("{PREFIX}/lib/hipsparselt/library/hipsparselt_spmm.co");
    assert!(!unpacked(&out, &["rocm-blas"]).contains_key(&path), "the host package has it");
    assert!(unpacked(&out, &[&kernels(group)]).contains_key(&path), "no kernel package has it");
}
