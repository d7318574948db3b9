//! Scanning of artifact folders: what a scan finds, and what it refuses with the name of the file.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use rockpack_core::error::{Error, Kind};
use rockpack_core::tree::{Node, TreePath};
use rockpack_report::{Code, Severity};
use rockpack_split::input::artifact::Scan;
use support::fixtures::scan;

/// A folder of shards, built file by file.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// An artifact `a_lib_generic` in `shard` with one file.
    fn with_artifact(shard: &str) -> Self {
        let folder = Self::new();
        folder.artifact(shard, "a_lib_generic");
        folder
    }

    fn artifact(&self, shard: &str, name: &str) {
        self.file(&format!("{shard}/{name}/artifact_manifest.txt"), "libs/A/stage\n");
        self.file(&format!("{shard}/{name}/libs/A/stage/lib/liba.so.1"), "library");
    }

    fn scan(&self) -> Result<Scan, Error> {
        scan(&[self.0.path().to_path_buf()])
    }

    fn refusal(&self) -> Error {
        self.scan().unwrap_err()
    }
}

const STAGE: &str = "shard/a_lib_generic/libs/A/stage";

fn assert_names(error: &Error, path: &Path, message: &str) {
    assert_eq!(error.place().file.as_deref(), Some(path), "{error}");
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn a_root_is_a_shard_or_a_folder_of_shards() {
    let folder = Folder::with_artifact("one");
    folder.artifact("two", "a_lib_generic");
    folder.artifact("two", "b_run_gfx110X-dgpu");
    let all = shape(folder.scan().unwrap());
    assert_eq!(all[0], ("one".to_owned(), vec!["a_lib_generic".to_owned()]));
    assert_eq!(all[1].1, ["a_lib_generic", "b_run_gfx110X-dgpu"]);
    let each = scan(&[folder.path("two"), folder.path("one")]).unwrap();
    assert_eq!(shape(each), all);
}

fn shape(scan: Scan) -> Vec<(String, Vec<String>)> {
    let shards = scan.shards.into_iter();
    let names = |artifacts: Vec<rockpack_split::input::artifact::Artifact>| {
        artifacts.iter().map(|a| a.name.to_string()).collect()
    };
    shards.map(|s| (s.name, names(s.artifacts))).collect()
}

#[test]
fn files_links_and_modes_are_kept() {
    let folder = Folder::with_artifact("shard");
    let tool = folder.file(&format!("{STAGE}/bin/tool"), "#!");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("liba.so.1", folder.path(&format!("{STAGE}/lib/liba.so"))).unwrap();
    // A hard link is an ordinary file.
    fs::hard_link(&tool, folder.path(&format!("{STAGE}/bin/same"))).unwrap();
    let scan = folder.scan().unwrap();
    let prefix = &scan.shards[0].artifacts[0].prefixes[0];
    assert_eq!(prefix.module.as_deref(), Some("A"));
    let [directory, link, tool, same] = ["bin", "lib/liba.so", "bin/tool", "bin/same"]
        .map(|path| prefix.tree.get(&TreePath::new(path).unwrap()).unwrap());
    assert!(matches!(directory, Node::Directory { .. }));
    assert!(matches!(link, Node::Link { target } if target == "liba.so.1"));
    for file in [tool, same] {
        assert!(matches!(file, Node::File { mode: 0o755, data } if data.len() == 2));
    }
    assert_eq!(prefix.tree.len(), 6);
    assert!(scan.inputs.recheck().is_ok());
}

#[test]
fn a_missing_or_empty_manifest_is_named() {
    let folder = Folder::with_artifact("shard");
    let manifest = folder.path("shard/a_lib_generic/artifact_manifest.txt");
    fs::write(&manifest, "\n").unwrap();
    assert_names(&folder.refusal(), &manifest, "lists no stage prefix");
    fs::remove_file(&manifest).unwrap();
    assert_names(&folder.refusal(), &manifest, "has no manifest");
    fs::create_dir(&manifest).unwrap();
    assert_names(&folder.refusal(), &manifest, "is not a regular file");
}

#[test]
fn a_folder_with_a_manifest_and_no_artifact_name_is_refused() {
    let folder = Folder::with_artifact("shard");
    folder.artifact("shard", "oddly named");
    assert_names(&folder.refusal(), &folder.path("shard/oddly named"), "is not an artifact name");
}

#[test]
fn an_absent_prefix_is_a_note() {
    let folder = Folder::with_artifact("shard");
    let manifest = folder.path("shard/a_lib_generic/artifact_manifest.txt");
    fs::write(&manifest, "libs/A/stage\nlibs/B/stage\n").unwrap();
    let scan = folder.scan().unwrap();
    let findings: Vec<_> = scan.shards[0].artifacts[0].findings.iter().collect();
    assert_eq!(findings[0].code(), Some(Code::PrefixAbsent));
    assert!(findings[0].message().contains("libs/B/stage"));
}

#[test]
fn a_manifest_that_leaves_its_artifact_is_refused() {
    let folder = Folder::with_artifact("shard");
    let manifest = folder.path("shard/a_lib_generic/artifact_manifest.txt");
    for line in ["../x/stage", "/etc", "libs/../../x", "./libs"] {
        fs::write(&manifest, line).unwrap();
        assert_names(&folder.refusal(), &manifest, "not a path inside");
    }
    fs::write(&manifest, "away/stage").unwrap();
    fs::create_dir_all(folder.path("outside/stage")).unwrap();
    let link = folder.path("shard/a_lib_generic/away");
    symlink(folder.path("outside"), &link).unwrap();
    let error = scan(&[folder.path("shard")]).unwrap_err();
    assert_names(&error, &link, "leads through a symbolic link");
}

#[test]
fn a_prefix_that_is_a_file_is_refused() {
    let folder = Folder::with_artifact("shard");
    let manifest = folder.path("shard/a_lib_generic/artifact_manifest.txt");
    fs::write(&manifest, "libs/A/stage/lib/liba.so.1").unwrap();
    let file = folder.path(&format!("{STAGE}/lib/liba.so.1"));
    assert_names(&folder.refusal(), &file, "is not a folder");
}

#[test]
fn links_that_leave_the_prefix_are_refused() {
    for target in ["/usr/lib/x", "../../x", "../lib/../../x"] {
        let folder = Folder::with_artifact("shard");
        let link = folder.path(&format!("{STAGE}/lib/link"));
        symlink(target, &link).unwrap();
        assert_names(&folder.refusal(), &link, "outside of the install prefix");
    }
}

#[test]
fn special_files_are_refused_without_opening_them() {
    let folder = Folder::with_artifact("shard");
    let socket = folder.path(&format!("{STAGE}/lib/socket"));
    let _listener = UnixListener::bind(&socket).unwrap();
    assert_names(&folder.refusal(), &socket, "is a socket");

    let folder = Folder::with_artifact("shard");
    let pipe = folder.path(&format!("{STAGE}/lib/pipe"));
    // Opening it for reading would wait for a writer forever.
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_names(&folder.refusal(), &pipe, "is a named pipe");

    let folder = Folder::with_artifact("shard");
    let file = folder.file(&format!("{STAGE}/bin/sudo"), "x");
    for mode in [0o4755, 0o2755] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        assert_names(&folder.refusal(), &file, "setuid or setgid");
    }
}

#[test]
fn names_that_are_not_utf8_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::with_artifact("shard");
    let name = std::ffi::OsStr::from_bytes(b"lib\xff.so");
    let path = folder.path(STAGE).join(name);
    fs::write(&path, "").unwrap();
    assert_names(&folder.refusal(), &path, "is not UTF-8");
}

#[test]
fn all_faults_are_reported_together() {
    let folder = Folder::with_artifact("shard");
    symlink("/x", folder.path(&format!("{STAGE}/lib/one"))).unwrap();
    symlink("/y", folder.path(&format!("{STAGE}/lib/two"))).unwrap();
    folder.file("shard/b_lib_generic/x", "");
    assert_eq!(folder.refusal().others().len(), 2);
}

#[test]
fn two_shards_of_one_name_are_refused() {
    let folder = Folder::with_artifact("x/shard");
    folder.artifact("y/shard", "a_lib_generic");
    let roots = [folder.path("x/shard"), folder.path("y/shard")];
    let error = scan(&roots).unwrap_err();
    assert_names(&error, &roots[1], "a shard named shard was also read from");
    assert_eq!(error.kind(), Kind::Conflict);
    assert!(scan(&[roots[0].clone(), roots[0].clone()]).is_err());
}

#[test]
fn roots_without_artifacts_are_refused() {
    let folder = Folder::with_artifact("shard");
    let artifact = folder.path("shard/a_lib_generic");
    let error = scan(std::slice::from_ref(&artifact)).unwrap_err();
    assert_names(&error, &artifact, "is one artifact");
    let missing = folder.path("missing");
    let error = scan(std::slice::from_ref(&missing)).unwrap_err();
    assert_names(&error, &missing, "cannot list");
    let empty = folder.path("empty");
    fs::create_dir(&empty).unwrap();
    let error = scan(std::slice::from_ref(&empty)).unwrap_err();
    assert_names(&error, &empty, "is not a shard, a folder of shards or an install tree");
    folder.artifact(".", "b_lib_generic");
    assert_names(&folder.refusal(), folder.0.path(), "both an artifact");
}

#[test]
fn what_is_no_artifact_is_a_note() {
    let folder = Folder::with_artifact("shard");
    folder.file("shard/notes.txt", "");
    // Left over from the archive that the folder was unpacked from.
    folder.file("shard/a_lib_generic.tar.zst.sha256sum", "");
    let scan = folder.scan().unwrap();
    let subjects: Vec<_> =
        scan.findings.iter().map(|f| (f.code().unwrap(), f.subject().to_owned())).collect();
    let left = ["shard/a_lib_generic.tar.zst.sha256sum", "shard/notes.txt"];
    assert_eq!(subjects, left.map(|name| (Code::NotAnArtifact, name.to_owned())));
}

#[test]
fn an_artifact_in_an_unknown_packing_is_a_warning() {
    let folder = Folder::with_artifact("one");
    let lost = [
        "one/b_lib_gfx1151.tar.gz",
        "one/b_lib_gfx1151.tar.zst.part",
        // The only content of a shard.
        "two/b_lib_generic.zip",
    ];
    for name in lost {
        folder.file(name, "");
    }
    let scan = folder.scan().unwrap();
    let subjects: Vec<_> =
        scan.findings.iter().map(|f| (f.code().unwrap(), f.subject().to_owned())).collect();
    assert_eq!(subjects, lost.map(|name| (Code::PackingUnknown, name.to_owned())));
    assert_eq!(Code::PackingUnknown.severity, Severity::Warning);
}

#[test]
fn a_checksum_without_its_archive_is_refused() {
    for shard in ["one", "two"] {
        let folder = Folder::with_artifact("one");
        let lost = folder.file(&format!("{shard}/b_lib_gfx1151.tar.zst.sha256sum"), "");
        let message = "is the checksum of b_lib_gfx1151.tar.zst, which is missing";
        assert_names(&folder.refusal(), &lost, message);
    }
}

#[test]
fn files_outside_of_all_prefixes_are_a_finding() {
    let folder = Folder::with_artifact("shard");
    for number in 0..7 {
        folder.file(&format!("shard/a_lib_generic/libs/A/build/{number}"), "");
    }
    let scan = folder.scan().unwrap();
    let findings: Vec<_> = scan.shards[0].artifacts[0].findings.iter().collect();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].code(), Some(Code::OutsidePrefixes));
    assert!(findings[0].message().starts_with("7 files"), "{}", findings[0].message());
    assert!(findings[0].message().contains("libs/A/build/0"));
}
