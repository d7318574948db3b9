//! What `rockpack verify REPO` finds, beside what clients refuse.

use std::fs;
use std::path::Path;

use crate::fixture::{deb, plain_spec, publish, repo, repo_at, rpm};
use crate::tools::{have, told};

fn failed(out: &Path) -> Vec<String> {
    let said = told(crate::example::rockpack().arg("verify").arg(out));
    let failed = said.lines().filter_map(|line| line.strip_prefix("failed: "));
    let mut codes: Vec<String> = failed.map(|line| line[..4].to_owned()).collect();
    codes.sort();
    codes.dedup();
    assert_eq!(codes.is_empty(), said.ends_with("exit status: 0\n"), "{said}");
    codes
}

#[test]
fn dependencies_close_within_a_suite_and_an_architecture() {
    if !have(&["dpkg-deb", "rpmbuild"]) {
        return;
    }
    let room = tempfile::tempdir().unwrap();
    let (good, bad) = (room.path().join("good"), room.path().join("bad"));
    let out = room.path().join("repo");
    deb(&good, ("host", "1.0-1", "amd64"), "Provides: capability (= 2)\n");
    deb(&good, ("kernels", "1.0-1", "amd64"), "Depends: host (= 1.0-1), libc6 (>= 2.34), x | y\n");
    deb(&good, ("user", "1", "all"), "Depends: absent | capability (>= 1)\n");
    rpm(&good, &plain_spec("host", "1.0", "Provides: capability = 2"));
    rpm(&good, &plain_spec("kernels", "1.0", "Requires: host = 1.0-1, capability >= 1, libc"));
    publish(&mut repo(&[&good], &out));
    assert!(failed(&out).is_empty());
    // Another version, another architecture, a sibling that is not there.
    deb(&bad, ("a", "1", "amd64"), "Depends: host (>= 2)\n");
    deb(&bad, ("b", "1", "arm64"), "Depends: host\n");
    deb(&bad, ("c", "1", "amd64"), "Depends: elsewhere (= 1)\n");
    rpm(&bad, &plain_spec("d", "1", "Requires: host >= 2"));
    for name in ["a_1_amd64.deb", "b_1_arm64.deb", "c_1_amd64.deb", "d-1-1.noarch.rpm"] {
        let out = room.path().join(name);
        publish(&mut repo(&[&good], &out));
        publish(&mut repo_at(&[&bad.join(name)], &out, 1));
        assert_eq!(failed(&out), ["V077"], "{name}");
    }
}

#[test]
fn what_is_gone_lost_or_contradicts_is_named() {
    if !have(&["dpkg-deb", "rpmbuild"]) {
        return;
    }
    let room = tempfile::tempdir().unwrap();
    let packages = room.path().join("packages");
    deb(&packages, ("one", "1", "amd64"), "");
    rpm(&packages, &plain_spec("plain", "1", ""));
    let damages: [Damage; 7] = [
        ("package", |out| remove(&out.join("pool/main/o/one/one_1_amd64.deb")), &["V072"]),
        ("rpm", |out| remove(&out.join("packages/p/plain-1-1.noarch.rpm")), &["V072"]),
        ("index", |out| remove(&out.join("dists/stable/main/binary-amd64/Packages.xz")), &["V071"]),
        ("list", |out| remove(&ending(out, "filelists.xml.gz")), &["V071", "V078"]),
        ("orphan", |out| fs::write(out.join("packages/x.rpm"), "").unwrap(), &["V076"]),
        (
            "release",
            |out| fs::write(out.join("dists/stable/Release"), "x").unwrap(),
            &["V070", "V076"],
        ),
        (
            "repomd",
            |out| fs::write(out.join("repodata/repomd.xml"), "<a>").unwrap(),
            &["V070", "V076"],
        ),
    ];
    for (name, damage, codes) in damages {
        let out = room.path().join(name);
        publish(&mut repo(&[&packages], &out));
        assert!(failed(&out).is_empty());
        damage(&out);
        assert_eq!(failed(&out), codes, "{name}");
    }
}

/// Its name, the damage, and the codes of the checks that fail.
type Damage = (&'static str, fn(&Path), &'static [&'static str]);

fn remove(path: &Path) {
    fs::remove_file(path).unwrap();
}

fn ending(out: &Path, end: &str) -> std::path::PathBuf {
    let entries = fs::read_dir(out.join("repodata")).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    paths.find(|path| path.to_str().unwrap().ends_with(end)).unwrap()
}

#[test]
fn names_with_dots_are_names_like_others() {
    if !have(&["dpkg-deb"]) {
        return;
    }
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    for (number, component) in ["7.1", "7.2"].into_iter().enumerate() {
        let name = format!("in-{component}");
        let one = deb(&packages, (&name, "1", "amd64"), "");
        let words = ["--suite", "rocm-7.x", "--component", component];
        publish(repo_at(&[&one], &out, i64::try_from(number).unwrap()).args(words));
    }
    assert!(failed(&out).is_empty());
}
