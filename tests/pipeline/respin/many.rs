//! Packages of very many small files.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::example::{contents, files, rockpack};
use support::queries::packages;
use support::tampered::passes;
use support::tools::{need, run, told};

/// Files of the set: their MD5 sums are longer than their compressed content.
const FILES: usize = 2000;

fn build(artifacts: &Path, out: &Path, cache: &Path) {
    let mut build = rockpack();
    build.args(["build", "--version", "7.1.0", "--format", "deb", "--artifacts"]).arg(artifacts);
    told(build.arg("--out").arg(out).arg("--cache").arg(cache));
}

/// The sums would be most of the package if they were not compressed.
#[test]
fn long_lists_of_sums_are_compressed() {
    need(&["dpkg-deb", "md5sum", "ar"]);
    let room = tempfile::tempdir().unwrap();
    let [artifacts, out, tree] = ["artifacts", "out", "tree"].map(|name| room.path().join(name));
    let artifact = artifacts.join("shard/many_lib_generic");
    let stage = artifact.join("stage/share/many");
    fs::create_dir_all(&stage).unwrap();
    fs::write(artifact.join("artifact_manifest.txt"), "stage\n").unwrap();
    for number in 0..FILES {
        fs::write(stage.join(format!("file-{number:05}")), format!("{number}\n")).unwrap();
    }
    let cache = room.path().join("cache");
    build(&artifacts, &out, &cache);
    let package = packages(&out, "deb").into_iter().max_by_key(size).unwrap();
    let control = run(Command::new("ar").arg("p").arg(&package).arg("control.tar.gz")).stdout;
    run(Command::new("dpkg-deb").arg("-R").arg(&package).arg(&tree));
    let sums = tree.join("DEBIAN/md5sums");
    assert!(control.len() as u64 * 2 < size(&sums), "{} bytes", control.len());
    run(Command::new("md5sum").args(["--check", "--quiet"]).arg(&sums).current_dir(&tree));
    let packed = files(&tree).keys().filter(|path| path.contains("/many/file-")).count();
    assert_eq!(packed, FILES);
    // A payload of the cache, which is not moved, gives the same package.
    let again = room.path().join("again");
    build(&artifacts, &again, &cache);
    assert_eq!(contents(&again), contents(&out));
    passes(&out, &artifacts);
}

fn size(file: &impl AsRef<Path>) -> u64 {
    fs::metadata(file).unwrap().len()
}
