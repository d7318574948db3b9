//! Kernel archives that a component ships: its library opens them by path, and no marker names them.

mod inspected;
mod odd;
mod packed;
mod split_off;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::{GROUPS, PREFIX, copy_shards, deb_name, files, kernels, rockpack};
use support::kpack::{code_object, mach, shipped};
use support::tools;

use crate::directories::Work;

/// hipDNN's kernel provider looks for its archives here, in the folder of a device's arch.
const ENGINES: &str = "lib/hipdnn_plugins/engines/arch_content/hip-kernel-provider";

/// A descriptor, which names the archive of its arch by a relative path.
fn descriptor(arch: &str) -> String {
    format!("{{\"kind\": \"kpack\", \"library\": \"../../kpack/provider_{arch}.kpack\"}}")
}

/// An archive with two rows for each arch.
fn archive(archs: &[(&str, u8)]) -> Vec<u8> {
    let rows = archs.iter().flat_map(|(arch, mach)| {
        ["0f3c", "conv/fwd.co"]
            .map(|key| (key, *arch, code_object(*mach, &format!("{key} {arch}"))))
    });
    shipped(&rows.collect::<Vec<_>>())
}

/// Additional files for the example's shards, one map of path → bytes for each group's shard.
type Added = [BTreeMap<String, Vec<u8>>; 2];

/// Archives inside and outside of arch folders, of one arch and of several, with files beside them.
fn added() -> Added {
    let mut added = Added::default();
    let archs = [("gfx1100", mach::GFX1100), ("gfx1151", mach::GFX1151)];
    for (files, (arch, number)) in added.iter_mut().zip(archs) {
        let folder = format!("{ENGINES}/{arch}");
        let path = format!("{folder}/kpack/provider_{arch}.kpack");
        files.insert(path, archive(&[(arch, number)]));
        files.insert(format!("{folder}/rocKE/conv/a.kdp.json"), descriptor(arch).into());
    }
    let (one, other, third) =
        (("gfx1100", mach::GFX1100), ("gfx1101", mach::GFX1101), ("gfx1151", mach::GFX1151));
    for (name, archs) in [("one", &[other][..]), ("group", &[one, other]), ("apart", &[one, third])]
    {
        added[0].insert(format!("lib/foo/{name}.kpack"), archive(archs));
    }
    added
}

/// The package of every path of [`added`].
fn expected() -> BTreeMap<String, String> {
    let (first, second) = (kernels(&GROUPS[0]), kernels(&GROUPS[1]));
    let mut expected = BTreeMap::new();
    for (files, package) in added().iter().zip([&first, &second]) {
        expected.extend(files.keys().map(|path| (path.clone(), package.clone())));
    }
    expected.insert("lib/foo/apart.kpack".to_owned(), "rocm-blas-kernels-common".to_owned());
    expected
}

/// The example shards with further files.
fn shards_with(work: &Work, added: &Added) -> PathBuf {
    let shards = work.path("shards");
    copy_shards(&shards);
    for (group, files) in GROUPS.iter().zip(added) {
        for (path, bytes) in files {
            write(&group.original(&shards, path), bytes);
        }
    }
    shards
}

fn write(file: &Path, bytes: &[u8]) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, bytes).unwrap();
}

/// Path → package and bytes of the files below the prefix in the `.deb`s of a set.
fn installed(work: &Work, out: &Path) -> BTreeMap<String, (String, Vec<u8>)> {
    tools::need(&["dpkg-deb"]);
    let mut found = BTreeMap::new();
    let groups = GROUPS.iter().map(kernels);
    let hosts = ["rocm-blas", "rocm-blas-kernels-common"].map(str::to_owned);
    for package in groups.chain(hosts) {
        let deb = out.join(deb_name(&package));
        if !deb.is_file() {
            continue;
        }
        let root = work.path(&format!("root-{package}"));
        tools::run(Command::new("dpkg-deb").arg("-x").arg(deb).arg(&root));
        for (path, bytes) in files(&root.join(PREFIX)) {
            assert!(found.insert(path, (package.clone(), bytes)).is_none());
        }
        fs::remove_dir_all(root).unwrap();
    }
    found
}

/// Fails unless `rockpack verify` accepts `path` and reports nothing except success.
fn verifies(path: &Path, against: Option<&Path>) {
    let mut command = rockpack();
    command.arg("verify").arg(path);
    if let Some(artifacts) = against {
        command.arg("--against").arg(artifacts);
    }
    tools::run(&mut command);
}
