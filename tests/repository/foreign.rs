//! What is in the folder of a repository and was not put there by rockpack, or is remembered by it no
//! longer: it is refused, and stays.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::example::rockpack;
use crate::fixture::{contents, deb, plain_spec, publish, refused, repo, repo_at, rpm};
use crate::keys::key;
use crate::tools::{have, run, told};

/// A run is refused with `parts`, and changes nothing that a client reads.
fn stays(command: &mut Command, out: &Path, parts: &[&str]) {
    let before = contents(out);
    let (said, code) = refused(command);
    assert_eq!(code, 2, "{said}");
    parts.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
    assert_eq!(contents(out), before, "{said}");
}

fn write(path: &Path, text: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn all_passes(out: &Path, key: &Path) {
    let said = told(rockpack().arg("verify").arg(out).arg("--key").arg(key));
    assert!(said.contains("all checks passed"), "{said}");
}

/// Puts something in place of a file.
type Replace = fn(&Path);

const NO_FILES: [(&str, Replace); 5] = [
    ("pipe", |path| drop(run(Command::new("mkfifo").arg(path)))),
    ("device", |path| symlink("/dev/null", path).unwrap()),
    ("nothing", |path| symlink("gone", path).unwrap()),
    ("folder", |path| fs::create_dir(path).unwrap()),
    ("link", |path| symlink("../../whole.json", path).unwrap()),
];

#[test]
fn a_state_that_is_no_file_is_not_taken_for_absent() {
    if !have(&["dpkg-deb"]) {
        return;
    }
    let room = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| deb(room.path(), (name, "1", "amd64"), ""));
    for (name, replace) in NO_FILES {
        let out = room.path().join(name);
        publish(&mut repo(&[&one], &out));
        let state = out.join(".rockpack/apt-stable.json");
        fs::rename(&state, room.path().join("whole.json")).unwrap();
        replace(&state);
        let parts = ["apt-stable.json: is no regular file", "restore the file"];
        stays(&mut repo_at(&[&two], &out, 10), &out, &parts);
        // Nor is one of a run that was interrupted.
        fs::rename(&state, out.join(".rockpack/next-apt-stable.json")).unwrap();
        fs::copy(room.path().join("whole.json"), &state).unwrap();
        let parts = ["next-apt-stable.json: is no regular file"];
        stays(&mut repo_at(&[&two], &out, 10), &out, &parts);
    }
}

/// Every file below a folder.
fn names(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn nothing_is_written_through_links_below_the_repository() {
    if !have(&["dpkg-deb", "rpmbuild", "gpg"]) {
        return;
    }
    let room = tempfile::tempdir().unwrap();
    let packages = room.path().join("packages");
    deb(&packages, ("one", "1", "amd64"), "");
    rpm(&packages, &plain_spec("plain", "1", ""));
    let own = key(room.path(), "own", "ed25519");
    let run_into = |out: &Path| {
        let mut repo = repo(&[&packages], out);
        repo.args(["--key-package", "1", "--sign-key"]).arg(&own.secret);
        repo
    };
    let links =
        ["dists", "dists/stable", "pool", "pool/main/o", "packages", "repodata", ".rockpack"];
    for (number, link) in links.into_iter().chain([".rockpack/keyring"]).enumerate() {
        let at = |name: &str| room.path().join(format!("{number}-{name}"));
        let (out, elsewhere) = (at("repo"), at("elsewhere"));
        fs::create_dir(&elsewhere).unwrap();
        fs::create_dir_all(out.join(link).parent().unwrap()).unwrap();
        symlink(&elsewhere, out.join(link)).unwrap();
        let parts = [link, "is a symbolic link", "the whole repository may be a link"];
        stays(&mut run_into(&out), &out, &parts);
        assert_eq!(names(&elsewhere), [""; 0].map(PathBuf::from), "{link}");
    }
    // Its lock is emptied by who takes it.
    let (out, victim) = (room.path().join("locked"), room.path().join("victim"));
    fs::create_dir_all(out.join(".rockpack")).unwrap();
    fs::write(&victim, "of somebody").unwrap();
    symlink(&victim, out.join(".rockpack/lock")).unwrap();
    stays(&mut run_into(&out), &out, &["lock: is no regular file"]);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "of somebody");
    // The repository itself may be anywhere.
    let (real, link) = (room.path().join("real"), room.path().join("link"));
    fs::create_dir(&real).unwrap();
    symlink("real", &link).unwrap();
    publish(&mut run_into(&link));
    all_passes(&real, &own.public);
}

#[test]
fn nothing_is_removed_through_links_below_the_repository() {
    if !have(&["dpkg-deb"]) {
        return;
    }
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    let elsewhere = room.path().join("elsewhere");
    deb(&packages, ("one", "1", "amd64"), "");
    deb(&packages, ("two", "1", "amd64"), "");
    publish(&mut repo(&[&packages], &out));
    publish(repo_at(&[], &out, 10).args(["--remove", "one"]));
    fs::rename(out.join("pool"), &elsewhere).unwrap();
    symlink("../elsewhere", out.join("pool")).unwrap();
    let before = contents(&elsewhere);
    stays(
        repo_at(&[], &out, 5000).args(["--generations", "1"]),
        &out,
        &["pool: is a symbolic link"],
    );
    assert_eq!(contents(&elsewhere), before);
}

#[test]
fn a_folder_where_an_index_belongs_is_told_before_anything_is_put_in_place() {
    if !have(&["dpkg-deb"]) {
        return;
    }
    let room = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| deb(room.path(), (name, "1", "amd64"), ""));
    let out = room.path().join("repo");
    publish(&mut repo(&[&one], &out));
    let index = out.join("dists/stable/main/binary-amd64/Packages.xz");
    fs::remove_file(&index).unwrap();
    write(&index.join("kept"), b"");
    stays(&mut repo_at(&[&two], &out, 10), &out, &["Packages.xz: is no regular file"]);
    assert!(!out.join(".rockpack/next-apt-stable.json").exists());
}
