//! Debug files that two packages have under one build-id: in `.rpm`s both own the same path, in
//! `.deb`s each has one of its own, and `verify` sees whether they are the same.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::program::rockpack;
use support::tampered::Set;
use support::tools;

const SOURCE: &str = "int sample(int x) { return x + 1; }\n";

/// A library without debug information, its debug file, and the build-id of both.
fn compile(folder: &Path) -> (PathBuf, PathBuf, String) {
    let [source, whole, library, debug] =
        ["sample.c", "whole", "library", "debug"].map(|name| folder.join(name));
    fs::write(&source, SOURCE).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-shared", "-fPIC", "-nostdlib", "-Wl,--build-id=sha1", "-o"]);
    tools::run(gcc.arg(&whole).arg(&source));
    for (how, to) in [("--strip-debug", &library), ("--only-keep-debug", &debug)] {
        tools::run(Command::new("objcopy").arg(how).arg(&whole).arg(to));
    }
    let notes = tools::succeed(Command::new("readelf").arg("-n").arg(&whole));
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).unwrap();
    (library, debug, id.to_owned())
}

/// The artifacts of two components that have the library, and its debug file.
fn plant(shard: &Path) -> String {
    let work = tempfile::tempdir().unwrap();
    let (library, debug, id) = compile(work.path());
    for component in ["one", "two"] {
        let debug_name = format!(".build-id/{}/{}.debug", &id[..2], &id[2..]);
        let library_name = format!("lib/lib{component}.so.1");
        for (kind, from, to) in [("lib", &library, library_name), ("dbg", &debug, debug_name)] {
            let artifact = shard.join(format!("{component}_{kind}_generic"));
            let file = artifact.join("stage").join(to);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::copy(from, file).unwrap();
            fs::write(artifact.join("artifact_manifest.txt"), "stage\n").unwrap();
        }
    }
    id
}

#[test]
fn debug_files_of_one_build_id_are_in_both_packages() {
    let needed = ["gcc", "objcopy", "readelf", "dpkg-deb", "rpm", "rpm2cpio", "cpio", "rpmbuild"];
    tools::need(&needed);
    let artifacts = tempfile::tempdir().unwrap();
    let id = plant(&artifacts.path().join("shard"));
    let set = Set::empty();
    let mut build = rockpack();
    build.args(["build", "--version", "7.1.0", "--artifacts"]).arg(artifacts.path());
    tools::run(build.arg("--out").arg(set.path("")));
    let set = set.reopen();
    let against = ["--against", artifacts.path().to_str().unwrap()];
    set.fires(&against, &[]);

    let name = format!("{}/{}.debug", &id[..2], &id[2..]);
    let rpms = ["one", "two"].map(|part| format!("rocm-{part}-debuginfo-7.1.0-1.x86_64.rpm"));
    let path = format!("usr/lib/debug/.build-id/{name}");
    let [one, two] = rpms.clone().map(|rpm| set.file_of(&rpm, &path));
    assert!(one == two && one.starts_with(b"\x7fELF"));
    for part in ["one", "two"] {
        let path = format!("usr/lib/debug/rocm-{part}-dbgsym/.build-id/{name}");
        assert!(set.file_of(&format!("rocm-{part}-dbgsym_7.1.0-1_amd64.deb"), &path) == one);
    }
    for (package, path) in [
        (rpms[0].clone(), path.clone()),
        (
            "rocm-one-dbgsym_7.1.0-1_amd64.deb".to_owned(),
            format!("usr/lib/debug/rocm-one-dbgsym/.build-id/{name}"),
        ),
    ] {
        let whole = fs::read(set.path(&package)).unwrap();
        set.edit(&package, |root| {
            let mode = fs::Permissions::from_mode(0o666);
            fs::set_permissions(root.join(&path), mode).unwrap();
        });
        let run = set.verify(&against);
        let said = "is in a package with mode 666; expected 644";
        assert!(run.text.contains(said) && run.text.contains(&path), "{}", run.text);
        fs::write(set.path(&package), whole).unwrap();
        set.fresh_receipt();
    }
    set.fires(&against, &[]);
    // Of an .rpm, either package may be the only one that is installed.
    set.edit(&rpms[1], |root| fs::write(root.join(&path), "other").unwrap());
    let run = set.verify(&[]);
    run.fired(&["V040"]);
    assert!(run.text.contains("differs in two packages"), "{}", run.text);
}
