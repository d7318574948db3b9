//! Publishing again: what is not read, what stays, what goes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use ::rpm::PackageBuilder;
use serde_json::Value;
use support::example::rockpack;
use support::repo_fixture::{contents, deb, plain_spec, publish, repo, repo_at, rpm};
use support::tools::{need, run, succeed};

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&succeed(command.arg("--json"))).unwrap()
}

fn counts(report: &Value) -> Vec<(String, usize, usize, u64)> {
    let channels = report["channels"].as_array().unwrap().iter();
    channels
        .map(|channel| {
            let name = channel["channel"].as_str().unwrap().to_owned();
            let read = channel["read"].as_u64().unwrap();
            let [added, removed] =
                ["added", "removed"].map(|change| channel[change].as_array().unwrap().len());
            (name, added, removed, read)
        })
        .collect()
}

fn names(out: &Path, start: &str) -> Vec<String> {
    contents(out).into_keys().filter(|name| name.starts_with(start)).collect()
}

#[test]
fn what_was_published_is_not_read_again() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    deb(&packages, ("one", "1", "amd64"), "");
    deb(&packages, ("two", "1", "amd64"), "");
    rpm(&packages, &plain_spec("plain", "1", ""));
    let first = json(&mut repo(&[&packages], &out));
    assert_eq!(counts(&first), [("apt-stable".into(), 2, 0, 2), ("rpm".into(), 1, 0, 1)]);
    let before = contents(&out);
    let same = json(&mut repo(&[&packages], &out));
    assert_eq!(counts(&same), [("apt-stable".into(), 0, 0, 0), ("rpm".into(), 0, 0, 0)]);
    assert_eq!(contents(&out), before, "the same packages at the same time, the same bytes");
    deb(&packages, ("three", "1", "amd64"), "");
    let more = json(repo_at(&[&packages], &out, 1).arg("--deb"));
    assert_eq!(counts(&more), [("apt-stable".into(), 1, 0, 1)]);
    let checked = json(repo_at(&[&packages], &out, 1).arg("--check"));
    assert_eq!(counts(&checked), [("apt-stable".into(), 0, 0, 3), ("rpm".into(), 0, 0, 1)]);
    // Without packages: the same again, with a new date.
    let refreshed = json(&mut repo_at(&[], &out, 7));
    assert_eq!(counts(&refreshed), [("apt-stable".into(), 0, 0, 0), ("rpm".into(), 0, 0, 0)]);
    let release = fs::read_to_string(out.join("dists/stable/Release")).unwrap();
    assert!(release.contains("22:13:27 UTC"), "{release}");
}

/// All but what the repository remembers of itself.
fn published(out: &Path) -> BTreeMap<String, Vec<u8>> {
    contents(out).into_iter().filter(|(name, _)| !name.starts_with(".rockpack")).collect()
}

#[test]
fn indexes_of_unchanged_packages_are_made_again_only_where_they_are_needed() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    deb(&packages, ("one", "1", "amd64"), "");
    rpm(&packages, &plain_spec("plain", "1", ""));
    publish(&mut repo(&[&packages], &out));
    deb(&packages, ("two", "1", "amd64"), "");
    publish(&mut repo_at(&[&packages], &out, 1));
    let list = out.join("dists/stable/main/binary-amd64/Packages");
    let before = inode_and_time(&list);
    publish(&mut repo_at(&[], &out, 1));
    assert_eq!(inode_and_time(&list), before, "the list is not made again");
    let quick = published(&out);
    publish(rockpack().arg("verify").arg(&out));
    publish(repo_at(&[&packages], &out, 1).arg("--check"));
    assert_ne!(inode_and_time(&list), before);
    assert_eq!(published(&out), quick, "as if everything were made again");
    // What somebody deleted comes back, whichever it is.
    for gone in quick.keys().filter(|name| {
        (name.starts_with("dists/") && name.contains("Packages")) || name.ends_with(".xml.gz")
    }) {
        fs::remove_file(out.join(gone)).unwrap();
        publish(&mut repo_at(&[], &out, 1));
        assert_eq!(published(&out).get(gone), quick.get(gone), "{gone}");
    }
    publish(repo_at(&[], &out, 2).args(["--set", "rpm_md_compression=zstd"]));
    let repomd = fs::read_to_string(out.join("repodata/repomd.xml")).unwrap();
    assert!(repomd.contains("-primary.xml.zst") && !repomd.contains(".xml.gz"), "{repomd}");
    publish(rockpack().arg("verify").arg(&out));
}

/// The lists of packages as they are in a repository, by their names, which say their content.
fn lists(out: &Path) -> Vec<String> {
    let names = names(out, "repodata/");
    let named = fs::read_to_string(out.join("repodata/repomd.xml")).unwrap();
    names.into_iter().filter(|name| named.contains(name)).collect()
}

#[test]
fn chunks_of_packages_that_stay_are_those_of_earlier_lists() {
    let room = tempfile::tempdir().unwrap();
    let [out, fresh, most, rest] =
        ["out", "fresh", "most", "rest"].map(|name| room.path().join(name));
    (0..600).for_each(|number| built(&most, &format!("m{number:03}")));
    ["a", "z"].into_iter().for_each(|name| built(&rest, name));
    publish(&mut repo(&[&most], &out));
    publish(&mut repo(&[&most, &rest], &fresh));
    // The first chunk has these and perhaps more. They are not read again.
    let files = (0..256).map(|number| out.join(format!("packages/m/m{number:03}-1-1.noarch.rpm")));
    let files: Vec<_> = files.map(|file| (fs::read(&file).unwrap(), file)).collect();
    files.iter().for_each(|(whole, file)| overwrite(file, &vec![0; whole.len()]));
    publish(&mut repo(&[&rest.join("z-1-1.noarch.rpm")], &out));
    files.iter().for_each(|(whole, file)| overwrite(file, whole));
    publish(&mut repo(&[&rest], &out));
    assert_eq!(lists(&out), lists(&fresh));
    let packed = lists(&out).into_iter().filter(|list| list.ends_with(".gz"));
    run(Command::new("gzip").arg("--test").args(packed).current_dir(&out));
    // Without a list, all are.
    for list in lists(&out) {
        fs::write(out.join(&list), "other content").unwrap();
        publish(repo(&[], &out).args(["--remove", "m300"]));
        publish(&mut repo(&[&most], &out));
        assert_eq!(lists(&out), lists(&fresh));
    }
    publish(rockpack().arg("verify").arg(&out));
    publish(repo(&[], &out).args(["--set", "rpm_md_compression=zstd"]));
    publish(repo(&[], &out).args(["--set", "rpm_md_compression=zstd", "--remove", "a"]));
    publish(rockpack().arg("verify").arg(&out));
}

/// Writes a package without files.
fn built(folder: &Path, name: &str) {
    fs::create_dir_all(folder).unwrap();
    let package = PackageBuilder::new(name, "1", "MIT", "noarch", "one of many").build().unwrap();
    package.write_file(folder.join(format!("{name}-1-1.noarch.rpm"))).unwrap();
}

/// Gives a file other content of its length, and its old time.
fn overwrite(path: &Path, content: &[u8]) {
    let time = inode_and_time(path).1;
    fs::write(path, content).unwrap();
    fs::File::open(path).unwrap().set_modified(time).unwrap();
}

fn inode_and_time(file: &Path) -> (u64, SystemTime) {
    fs::metadata(file).map(|file| (file.ino(), file.modified().unwrap())).unwrap()
}

#[test]
fn a_new_repository_has_the_same_bytes_wherever_its_packages_come_from() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let here = room.path();
    deb(&here.join("a"), ("one", "1", "amd64"), "");
    rpm(&here.join("a"), &plain_spec("plain", "1", ""));
    fs::create_dir_all(here.join("b/below")).unwrap();
    for entry in fs::read_dir(here.join("a")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, here.join("b/below").join(path.file_name().unwrap())).unwrap();
    }
    publish(&mut repo(&[&here.join("a")], &here.join("first")));
    publish(repo(&[&here.join("b")], &here.join("second")).env("RAYON_NUM_THREADS", "1"));
    assert_eq!(contents(&here.join("first")), contents(&here.join("second")));
}

#[test]
fn what_goes_out_of_use_stays_for_generations_and_an_hour() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    keep_one(&packages, &out, "1", 0);
    let own = count_of_hashed(&out);
    keep_one(&packages, &out, "2", 10);
    let pool = names(&out, "pool/");
    assert_eq!(pool.len(), 2, "clients may still have the index that names version 1");
    assert_eq!(count_of_hashed(&out), 2 * own);
    let index = fs::read_to_string(out.join("dists/stable/main/binary-amd64/Packages")).unwrap();
    assert!(index.contains("Version: 2\n") && !index.contains("Version: 1\n"), "{index}");
    keep_one(&packages, &out, "3", 20);
    keep_one(&packages, &out, "4", 30);
    let counts = (names(&out, "pool/").len(), count_of_hashed(&out));
    assert_eq!(counts, (4, 4 * own), "not an hour yet");
    keep_one(&packages, &out, "5", 3700);
    // Versions 1 and 2 went two publications and more than an hour ago; of 3 that is not so.
    let pool = names(&out, "pool/");
    assert_eq!(pool.len(), 3, "{pool:?}");
    assert_eq!(count_of_hashed(&out), 3 * own);
}

fn count_of_hashed(out: &Path) -> usize {
    names(out, "dists/stable/main/binary-amd64/by-hash/SHA256/").len()
}

fn keep_one(packages: &Path, out: &Path, version: &str, after: i64) {
    // What the run is given stays.
    let _ = fs::remove_dir_all(packages);
    deb(packages, ("one", version, "amd64"), "");
    publish(repo_at(&[packages], out, after).args(["--keep", "1", "--set", "generations=2"]));
}

#[test]
fn versions_are_kept_removed_and_never_lowered_unasked() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let (old, new, out) =
        (room.path().join("old"), room.path().join("new"), room.path().join("repo"));
    deb(&old, ("one", "1.9", "amd64"), "");
    deb(&new, ("one", "1.10", "amd64"), "");
    rpm(&old, &plain_spec("plain", "1.9", ""));
    rpm(&new, &plain_spec("plain", "1.10", ""));
    publish(&mut repo(&[&new], &out));
    let before = contents(&out);
    let (said, code) = support::repo_fixture::refused(&mut repo(&[&old], &out));
    assert_eq!(code, 2, "{said}");
    for part in ["1.9 of one", "already has 1.10", "1.9-1 of plain", "--allow=downgrade"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(contents(&out), before, "nothing is published");
    // Beside a higher version that is given, too, it is not a downgrade.
    publish(&mut repo(&[&old, &new], &out));
    let removed =
        publish(repo_at(&[], &out, 1).args(["--remove", "one=1.10", "--remove", "plain"]));
    assert!(removed.contains("- pool/main/o/one/one_1.10_amd64.deb"), "{removed}");
    let index = fs::read_to_string(out.join("dists/stable/main/binary-amd64/Packages")).unwrap();
    assert!(index.contains("Version: 1.9\n") && !index.contains("Version: 1.10\n"), "{index}");
    let (said, code) =
        support::repo_fixture::refused(repo_at(&[], &out, 2).args(["--remove", "nothing"]));
    assert!(code == 64 && said.contains("no package nothing"), "{said}");
    publish(&mut repo_at(&[&new], &out, 3));
    publish(repo_at(&[&old], &out, 4).arg("--allow=downgrade"));
}
