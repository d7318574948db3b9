//! Files in the folder of a repository that rockpack did not put there, or no longer has in its state: they
//! are refused, and stay.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::rockpack;
use support::gpg_keys::key;
use support::repo_fixture::{
    contents, deb, plain_spec, publish, refused, repo, repo_at, rpm, verify, verify_by,
};
use support::tools::{need, run};

/// A run is refused with `parts`, and changes nothing that a client reads.
fn stays(command: &mut Command, out: &Path, parts: &[&str]) {
    let before = contents(out);
    let (said, code) = refused(command);
    assert_eq!(code, 2, "{said}");
    parts.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
    assert_eq!(contents(out), before, "{said}");
}

/// Puts a package of each format into a folder.
fn fill(packages: &Path) -> [PathBuf; 2] {
    [deb(packages, ("one", "1", "amd64"), ""), rpm(packages, &plain_spec("plain", "1", ""))]
}

/// The paths of packages in a repository.
const PLACES: [&str; 2] = ["pool/main/o/one/one_1_amd64.deb", "packages/p/plain-1-1.noarch.rpm"];

fn write(path: &Path, text: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn indexes_of_another_tool_are_not_replaced() {
    need(&["dpkg-deb", "rpmbuild", "gpg"]);
    let room = tempfile::tempdir().unwrap();
    let packages = room.path().join("packages");
    fill(&packages);
    let own = key(room.path(), "own", "ed25519");
    let indexes = [
        "dists/stable/Release",
        "dists/stable/InRelease",
        "dists/stable/Release.gpg",
        "repodata/repomd.xml",
        "repodata/repomd.xml.asc",
    ];
    for (number, index) in indexes.into_iter().enumerate() {
        let out = room.path().join(format!("out{number}"));
        write(&out.join(index), b"of another tool");
        let parts = [index, "rockpack has no record of it", "name another folder"];
        stays(&mut repo(&[&packages], &out), &out, &parts);
        stays(repo(&[&packages], &out).arg("--sign-key").arg(&own.secret), &out, &parts);
        // Before anything is built for it.
        let mut build = rockpack();
        build.args(["build", "--artifacts"]).arg(support::example::shards());
        build.args(["--version", "7.1.0", "--out"]).arg(room.path().join("set"));
        stays(build.arg("--repo").arg(&out), &out, &parts);
        assert!(!room.path().join("set").exists());
    }
    // What is beside the channel is no matter of it.
    let out = room.path().join("beside");
    write(&out.join("dists/other/Release"), b"of another tool");
    write(&out.join("repodata/repomd.xml"), b"of another tool");
    publish(repo(&[&packages], &out).arg("--deb"));
    stays(&mut repo(&[&packages], &out), &out, &["repodata/repomd.xml"]);
}

#[test]
fn a_signed_repository_is_not_published_unsigned_when_its_memory_is_lost() {
    need(&["dpkg-deb", "rpmbuild", "gpg"]);
    let room = tempfile::tempdir().unwrap();
    let packages = room.path().join("packages");
    fill(&packages);
    let own = key(room.path(), "own", "ed25519");
    // What the message says to do.
    let (out, aside) = (room.path().join("moved"), room.path().join("aside"));
    loses_its_memory(&out, &packages, &own.secret);
    fs::create_dir(&aside).unwrap();
    for folder in ["pool", "packages"] {
        fs::rename(out.join(folder), aside.join(folder)).unwrap();
    }
    let before = contents(&aside);
    for folder in ["dists", "repodata"] {
        fs::remove_dir_all(out.join(folder)).unwrap();
    }
    let mut again = repo_at(&[&aside], &out, 10);
    publish(again.arg("--sign-key").arg(&own.secret));
    let mut after = contents(&out);
    after.retain(|path, _| before.contains_key(path));
    assert_eq!(after, before, "the same packages in the same places");
    all_passes(&out, &own.public);
    // Debs have the bytes that they were given with; they may stay where they are.
    let out = room.path().join("stayed");
    loses_its_memory(&out, &packages, &own.secret);
    for folder in ["dists", "repodata", "packages"] {
        fs::remove_dir_all(out.join(folder)).unwrap();
    }
    publish(&mut signed(&packages, &out, 10, &own.secret));
    all_passes(&out, &own.public);
}

fn loses_its_memory(out: &Path, packages: &Path, key: &Path) {
    publish(&mut signed(packages, out, 0, key));
    fs::remove_dir_all(out.join(".rockpack")).unwrap();
    let parts = ["dists/stable/InRelease", "repodata/repomd.xml.asc", "remove dists/stable/"];
    stays(&mut repo_at(&[packages], out, 10), out, &parts);
    stays(&mut signed(packages, out, 10, key), out, &parts);
}

fn signed(packages: &Path, out: &Path, after: i64, key: &Path) -> Command {
    let mut repo = repo_at(&[packages], out, after);
    repo.arg("--sign-packages").arg("--sign-key").arg(key);
    repo
}

fn all_passes(out: &Path, key: &Path) {
    let said = verify_by(out, key);
    assert!(said.contains("all checks passed"), "{said}");
}

#[test]
fn signatures_of_others_are_not_left_beside_new_indexes() {
    need(&["dpkg-deb", "rpmbuild", "gpg"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    fill(&packages);
    let own = key(room.path(), "own", "ed25519");
    publish(&mut repo(&[&packages], &out));
    let signatures =
        ["dists/stable/InRelease", "dists/stable/Release.gpg", "repodata/repomd.xml.asc"];
    for signature in signatures {
        fs::write(out.join(signature), "of another tool").unwrap();
        let parts = [signature, "published without a signature", "remove it"];
        stays(&mut repo_at(&[], &out, 10), &out, &parts);
        fs::remove_file(out.join(signature)).unwrap();
    }
    publish(repo_at(&[], &out, 10).arg("--sign-key").arg(&own.secret));
    all_passes(&out, &own.public);
}

#[test]
fn files_of_others_in_the_pool_are_not_replaced() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    let places = PLACES;
    let bytes = fill(&packages).map(|file| fs::read(file).unwrap());
    // Of another size, and of the same.
    for change in [b"more".to_vec(), Vec::new()] {
        for (place, bytes) in places.iter().zip(&bytes) {
            let mut other = [&bytes[..], &change].concat();
            *other.last_mut().unwrap() ^= 1;
            write(&out.join(place), &other);
        }
        let parts = [places[0], places[1], "rockpack did not publish"];
        stays(&mut repo(&[&packages], &out), &out, &parts);
        assert_eq!(contents(&out).len(), 2);
    }
    // The same bytes are the package.
    places.iter().zip(&bytes).for_each(|(place, bytes)| write(&out.join(place), bytes));
    let before = inodes(&out);
    publish(&mut repo(&[&packages], &out));
    assert_eq!(inodes(&out), before);
    let said = verify(&out);
    assert!(said.contains("all checks passed"), "{said}");
}

fn inodes(out: &Path) -> [u64; 2] {
    PLACES.map(|place| fs::metadata(out.join(place)).unwrap().ino())
}

#[test]
fn files_of_others_stay_when_a_publication_that_uses_them_is_taken_back() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    let files = fill(&packages);
    PLACES
        .iter()
        .zip(&files)
        .for_each(|(place, file)| write(&out.join(place), &fs::read(file).unwrap()));
    let two = deb(room.path(), ("two", "1", "amd64"), "");
    publish(&mut repo(&[&packages, &two], &out));
    // As a run leaves it that was killed before anything was visible.
    for channel in ["apt-stable", "rpm"] {
        let [state, next] =
            ["", "next-"].map(|name| out.join(format!(".rockpack/{name}{channel}.json.zst")));
        fs::rename(state, next).unwrap();
    }
    ["dists", "repodata"].iter().for_each(|folder| fs::remove_dir_all(out.join(folder)).unwrap());
    let three = deb(room.path(), ("three", "1", "amd64"), "");
    publish(&mut repo_at(&[&three], &out, 10));
    assert!(!out.join("pool/main/t/two").exists(), "what the run wrote is gone");
    for (place, file) in PLACES.iter().zip(&files) {
        assert_eq!(fs::read(out.join(place)).unwrap(), fs::read(file).unwrap(), "{place}");
    }
}

/// Puts something in place of a file.
type Replace = fn(&Path);

const NO_FILES: [(&str, Replace); 5] = [
    ("pipe", |path| drop(run(Command::new("mkfifo").arg(path)))),
    ("device", |path| symlink("/dev/null", path).unwrap()),
    ("nothing", |path| symlink("gone", path).unwrap()),
    ("folder", |path| fs::create_dir(path).unwrap()),
    ("link", |path| symlink("../../whole.json.zst", path).unwrap()),
];

#[test]
fn a_state_that_is_no_file_is_not_taken_for_absent() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| deb(room.path(), (name, "1", "amd64"), ""));
    for (name, replace) in NO_FILES {
        let out = room.path().join(name);
        publish(&mut repo(&[&one], &out));
        let state = out.join(".rockpack/apt-stable.json.zst");
        fs::rename(&state, room.path().join("whole.json.zst")).unwrap();
        replace(&state);
        let parts = ["apt-stable.json.zst: is not a regular file", "restore the file"];
        stays(&mut repo_at(&[&two], &out, 10), &out, &parts);
        // Nor is one of a run that was interrupted.
        fs::rename(&state, out.join(".rockpack/next-apt-stable.json.zst")).unwrap();
        fs::copy(room.path().join("whole.json.zst"), &state).unwrap();
        let parts = ["next-apt-stable.json.zst: is not a regular file"];
        stays(&mut repo_at(&[&two], &out, 10), &out, &parts);
    }
}

/// Every file below a folder.
fn names(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn nothing_is_written_through_links_below_the_repository() {
    need(&["dpkg-deb", "rpmbuild", "gpg"]);
    let room = tempfile::tempdir().unwrap();
    let packages = room.path().join("packages");
    fill(&packages);
    let own = key(room.path(), "own", "ed25519");
    let links =
        ["dists", "dists/stable", "pool", "pool/main/o", "packages", "repodata", ".rockpack"];
    for (number, link) in links.into_iter().chain([".rockpack/keyring"]).enumerate() {
        let [out, elsewhere] =
            ["repo", "elsewhere"].map(|name| room.path().join(format!("{number}-{name}")));
        fs::create_dir(&elsewhere).unwrap();
        fs::create_dir_all(out.join(link).parent().unwrap()).unwrap();
        symlink(&elsewhere, out.join(link)).unwrap();
        let parts = [link, "is a symbolic link", "the repository itself may be a link"];
        stays(&mut with_key_package(&packages, &out, &own.secret), &out, &parts);
        assert_eq!(names(&elsewhere), [""; 0].map(PathBuf::from), "{link}");
    }
    // Its lock is emptied by who takes it.
    let (out, victim) = (room.path().join("locked"), room.path().join("victim"));
    fs::create_dir_all(out.join(".rockpack")).unwrap();
    fs::write(&victim, "of somebody").unwrap();
    symlink(&victim, out.join(".rockpack/lock")).unwrap();
    stays(
        &mut with_key_package(&packages, &out, &own.secret),
        &out,
        &["lock: is not a regular file"],
    );
    assert_eq!(fs::read_to_string(&victim).unwrap(), "of somebody");
    // The repository itself may be anywhere.
    let (real, link) = (room.path().join("real"), room.path().join("link"));
    fs::create_dir(&real).unwrap();
    symlink("real", &link).unwrap();
    publish(&mut with_key_package(&packages, &link, &own.secret));
    all_passes(&real, &own.public);
}

fn with_key_package(packages: &Path, out: &Path, key: &Path) -> Command {
    let mut repo = repo(&[packages], out);
    repo.args(["--key-package", "1", "--set", "name=own", "--sign-key"]).arg(key);
    repo
}

#[test]
fn nothing_is_removed_through_links_below_the_repository() {
    need(&["dpkg-deb"]);
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
        repo_at(&[], &out, 5000).args(["--set", "generations=1"]),
        &out,
        &["pool: is a symbolic link"],
    );
    assert_eq!(contents(&elsewhere), before);
}

#[test]
fn a_folder_where_an_index_belongs_is_told_before_anything_is_put_in_place() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| deb(room.path(), (name, "1", "amd64"), ""));
    let out = room.path().join("repo");
    publish(&mut repo(&[&one], &out));
    let index = out.join("dists/stable/main/binary-amd64/Packages.gz");
    fs::remove_file(&index).unwrap();
    write(&index.join("kept"), b"");
    stays(&mut repo_at(&[&two], &out, 10), &out, &["Packages.gz: is not a regular file"]);
    assert!(!out.join(".rockpack/next-apt-stable.json.zst").exists());
}
