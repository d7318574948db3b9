//! The page of a repository for people, `index.html`, as Python's `html.parser` reads it.

mod broken_off;
mod commands;
mod others;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::example::tree;
use support::gpg_keys::key;
use support::repo_fixture::{
    contents, deb, failed_checks, plain_spec, publish, repo_at, rpm, verify,
};
use support::tools::{need, succeed};
use support::{python, sha256};

use crate::pool::state_text;
use crate::python::wheels::{ARCHS, family};

const PAGE: &str = "index.html";
const URL: [&str; 2] = ["--url", "https://repo.example/rocm"];

/// Makes a library and its device code for each of [`ARCHS`], in packages of every kind.
fn packages(folder: &Path, version: &str) {
    deb(folder, ("rocm-blas", version, "amd64"), "");
    rpm(folder, &plain_spec("rocm-blas", version, ""));
    for arch in ARCHS {
        let name = format!("rocm-blas-{arch}");
        let fields = "Depends: rocm-blas\nEnhances: rocm-blas\nX-ROCm-GPU-Architecture:";
        deb(folder, (&name, version, "amd64"), &format!("{fields} {arch}\n"));
        let lines = "Provides: rocm-blas-kernels\nRequires: rocm-blas\nEnhances: rocm-blas";
        rpm(folder, &plain_spec(&name, version, lines));
    }
    family(folder, version);
}

fn page(out: &Path) -> String {
    fs::read_to_string(out.join(PAGE)).unwrap()
}

/// What a page says: see `reader.py`.
fn read(page: &str) -> Value {
    serde_json::from_str(&python::run(include_str!("reader.py"), &[], page).unwrap()).unwrap()
}

/// The channels whose states have the digest of a page, right or wrong.
fn holders(out: &Path) -> Vec<String> {
    let names = support::example::names(&out.join(".rockpack")).into_iter();
    let states = names.filter_map(|name| name.strip_suffix(".json.zst").map(str::to_owned));
    let holds =
        |channel: &String| state_text(&state(out, channel)).contains(&format!("\"{PAGE}\":\""));
    states.filter(holds).collect()
}

fn state(out: &Path, channel: &str) -> PathBuf {
    out.join(format!(".rockpack/{channel}.json.zst"))
}

/// Fails unless the state of this channel alone has the digest of the page, and `verify` accepts it.
fn is_of(out: &Path, channel: &str) {
    assert_eq!(holders(out), [channel]);
    let entry = format!("\"{PAGE}\":\"{}\"", sha256(page(out).as_bytes()));
    assert!(state_text(&state(out, channel)).contains(&entry), "{channel}");
    let said = verify(out);
    assert!(failed_checks(&said).is_empty(), "{said}");
}

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&succeed(command.arg("--json"))).unwrap()
}

#[test]
fn all_channels_are_on_the_page_whichever_is_published() {
    need(&["dpkg-deb", "rpmbuild", "gpg", "python3"]);
    let room = tempfile::tempdir().unwrap();
    let (given, out) = (room.path().join("given"), room.path().join("out"));
    let [own, next] = ["own", "next"].map(|name| key(room.path(), name, "ed25519"));
    ["1.9", "1.10"].iter().for_each(|version| packages(&given, version));
    let channels = [
        ("apt-stable", &["--deb"][..]),
        ("apt-testing", &["--deb", "--suite", "testing"]),
        ("rpm", &["--rpm"]),
        ("python", &["--wheel"]),
    ];
    let at = |packages: &[&Path], after, words: &[&str]| {
        let mut repo = repo_at(packages, &out, after);
        repo.args(words).args(URL).args(["--set", "name=own"]);
        repo.arg("--public-key").arg(&next.public).arg("--sign-key").arg(&own.secret);
        publish(&mut repo);
    };
    for (channel, words) in channels {
        at(&[&given], 0, words);
        is_of(&out, channel);
    }
    let (text, said) = (page(&out), read(&page(&out)));
    let versions = [
        ("deb-stable", "6 packages; versions 1.10, 1.9\n"),
        ("deb-testing", "6 packages; versions 1.10, 1.9\n"),
        ("dnf", "6 packages; versions 1.10-1, 1.9-1\n"),
        ("zypper", "6 packages; versions 1.10-1, 1.9-1\n"),
        ("pip", "6 wheels; versions 1.10, 1.9; all projects\n"),
    ];
    let parts = said["parts"].as_object().unwrap();
    let names: BTreeSet<&str> = parts.keys().map(String::as_str).collect();
    assert_eq!(names, BTreeSet::from(versions.map(|(part, _)| part)));
    for (part, words) in versions {
        let shown = parts[part]["text"].as_str().unwrap();
        assert!(shown.contains(words) && !shown.contains("not signed"), "{part}: {shown}");
        let commands: BTreeSet<&str> =
            parts[part]["commands"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(commands, BTreeSet::from(["gfx1100", "gfx942", "Another package"]), "{part}");
    }
    let mut gpg = Command::new("gpg");
    gpg.env("GNUPGHOME", &own.home).args(["--batch", "--show-keys"]);
    let shown = succeed(gpg.arg(out.join("own-archive-keyring.asc")));
    let is_fingerprint = |line: &&str| line.len() == 40 && !line.contains(' ');
    let mut fingerprints: Vec<&str> = shown.lines().map(str::trim).filter(is_fingerprint).collect();
    fingerprints.sort_unstable();
    let keys = said["keys"].as_array().unwrap().iter().map(|key| key.as_str().unwrap());
    assert_eq!(keys.collect::<Vec<_>>(), fingerprints);
    assert_eq!(fingerprints.len(), 2, "{shown}");
    // The page says the same whichever channel is published.
    for (channel, words) in channels {
        at(&[], 1, words);
        is_of(&out, channel);
        assert_eq!(page(&out), text, "{channel}");
    }
    at(&[], 1, &["--wheel"]);
    assert_eq!(page(&out), text);
}

#[test]
fn a_changed_page_is_noticed_and_kept_until_it_is_removed() {
    need(&["dpkg-deb", "rpmbuild", "python3"]);
    let room = tempfile::tempdir().unwrap();
    let (given, out) = (room.path().join("given"), room.path().join("out"));
    packages(&given, "1");
    publish(repo_at(&[&given], &out, 0).args(URL));
    let text = page(&out);
    for (channel, kind) in [("apt-stable", "--deb"), ("rpm", "--rpm"), ("python", "--wheel")] {
        let edited = text.replace("rocm-blas", "other-blas");
        fs::write(out.join(PAGE), &edited).unwrap();
        let said = verify(&out);
        assert_eq!(failed_checks(&said), ["V104"], "{said}");
        assert!(said.contains("index.html: was changed or removed since"), "{said}");
        assert!(publish(repo_at(&[], &out, 0).arg(kind)).contains("R162"), "{kind}");
        // It is a page of somebody else from now on.
        assert_eq!((page(&out), holders(&out)), (edited, Vec::new()), "{kind}");
        assert!(failed_checks(&verify(&out)).is_empty());
        fs::remove_file(out.join(PAGE)).unwrap();
        assert!(!publish(repo_at(&[], &out, 0).arg(kind)).contains("R162"), "{kind}");
        assert_eq!(page(&out), text, "{kind}");
        is_of(&out, channel);
        fs::remove_file(out.join(PAGE)).unwrap();
        assert_eq!(failed_checks(&verify(&out)), ["V104"], "{kind}");
        publish(repo_at(&[], &out, 0).arg(kind));
        is_of(&out, channel);
    }
}

#[test]
fn without_the_option_the_page_goes_and_comes_back() {
    need(&["dpkg-deb", "rpmbuild", "python3"]);
    let room = tempfile::tempdir().unwrap();
    let [given, out, plan] = ["given", "out", "plan.json"].map(|name| room.path().join(name));
    packages(&given, "1");
    let planned = |after, words: &[&str]| -> Value {
        let mut repo = repo_at(&[&given], &out, after);
        publish(repo.args(URL).args(words).arg("--upload-plan").arg(&plan));
        serde_json::from_slice(&fs::read(&plan).unwrap()).unwrap()
    };
    let deletions = |plan: &Value| plan["phases"][3]["files"].clone();
    planned(0, &["--set=index_page=false"]);
    assert!(!out.join(PAGE).exists() && holders(&out).is_empty());
    let shown = planned(1, &[]);
    let mut visible = shown["phases"][2]["files"].as_array().unwrap().iter();
    let entry = visible.find(|entry| entry["path"] == PAGE).unwrap();
    assert_eq!(entry["content_type"], "text/html; charset=utf-8");
    assert_eq!(entry["cache_control"], "no-cache");
    assert_eq!(entry["sha256"], sha256(page(&out).as_bytes()));
    assert_eq!(deletions(&shown), Value::Array(Vec::new()));
    // Of another channel than the one that has the digest.
    let removed = planned(2, &["--deb", "--set=index_page=false"]);
    assert_eq!(deletions(&removed), serde_json::json!([PAGE]));
    assert!(!out.join(PAGE).exists() && holders(&out).is_empty());
    assert!(failed_checks(&verify(&out)).is_empty());
    fs::write(out.join(PAGE), "of somebody else").unwrap();
    let kept = planned(3, &["--set=index_page=false"]);
    assert_eq!(deletions(&kept), Value::Array(Vec::new()));
    assert_eq!(page(&out), "of somebody else");
}

#[test]
fn a_dry_run_names_the_page_and_no_page_is_made_without_a_url() {
    need(&["dpkg-deb", "rpmbuild", "python3"]);
    let room = tempfile::tempdir().unwrap();
    let (given, out) = (room.path().join("given"), room.path().join("out"));
    packages(&given, "1");
    // Whether a dry run of each channel lists the page.
    let lists = |repo: &mut Command| -> Vec<bool> {
        let planned = json(repo.arg("--dry-run"));
        let channels = planned["channels"].as_array().unwrap().iter();
        // A channel without new files has no list.
        let has_page = |paths: &Vec<Value>| paths.contains(&PAGE.into());
        channels.map(|it| it["indexes"].as_array().is_some_and(has_page)).collect()
    };
    assert_eq!(lists(&mut repo_at(&[&given], &out, 0)), [false; 3]);
    publish(&mut repo_at(&[&given], &out, 0));
    assert!(!out.join(PAGE).exists());
    let before = tree(&out);
    assert_eq!(lists(repo_at(&[], &out, 1).args(URL)), [false, false, true]);
    assert_eq!(lists(repo_at(&[], &out, 1).args(URL).arg("--set=index_page=false")), [false; 3]);
    assert_eq!(tree(&out), before);
    publish(repo_at(&[], &out, 1).args(URL));
    is_of(&out, "python");
    let (first, again) = (contents(&out), room.path().join("again"));
    publish(&mut repo_at(&[], &out, 1));
    assert_eq!(contents(&out)[PAGE], first[PAGE]);
    publish(repo_at(&[&given], &again, 2).args(URL));
    assert_eq!(contents(&again)[PAGE], first[PAGE]);
}

#[test]
fn what_is_no_markup_is_shown_as_it_is() {
    need(&["dpkg-deb", "python3"]);
    let room = tempfile::tempdir().unwrap();
    let (given, out) = (room.path().join("given"), room.path().join("out"));
    deb(&given, ("one", "1", "amd64"), "");
    let title = "GPUs <b>& <script>alert('1')</script> \"Inc\"";
    publish(repo_at(&[&given], &out, 0).args(URL).args(["--set", &format!("description={title}")]));
    let said = read(&page(&out));
    assert_eq!(said["title"], title);
    let commands = said["parts"]["deb-stable"]["commands"].as_object().unwrap();
    assert_eq!(commands.keys().collect::<Vec<_>>(), ["Commands"]);
}

/// No key signs pages of wheels, also where one is given.
#[test]
fn the_page_has_the_keys_that_sign_indexes() {
    need(&["dpkg-deb", "gpg", "python3"]);
    let room = tempfile::tempdir().unwrap();
    let (given, out) = (room.path().join("given"), room.path().join("out"));
    let [own, other] = ["own", "other"].map(|name| key(room.path(), name, "ed25519"));
    deb(&given, ("one", "1", "amd64"), "");
    family(&given, "1");
    let keys = |kind: &str, key: &Path| {
        publish(repo_at(&[&given], &out, 0).args(URL).args([kind, "--sign-key"]).arg(key));
        read(&page(&out))["keys"].clone()
    };
    assert_eq!(keys("--wheel", &own.secret), serde_json::json!([]));
    let of_apt = keys("--deb", &own.secret);
    assert_eq!(of_apt.as_array().unwrap().len(), 1);
    assert_eq!(keys("--wheel", &other.secret), of_apt);
    // Another suite has files of another name, and another key.
    let mut testing = repo_at(&[&given], &out, 0);
    testing.args(URL).args(["--deb", "--suite", "testing", "--set", "name=other", "--sign-key"]);
    publish(testing.arg(&other.secret));
    let both = read(&page(&out))["keys"].clone();
    let both = both.as_array().unwrap();
    assert!(both.len() == 2 && both.contains(&of_apt[0]), "{both:?}");
}
