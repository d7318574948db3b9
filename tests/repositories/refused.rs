//! Bad input is named, and nothing of the run is published.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use rpm::IndexData;
use support::headers::{Tagged, remade};
use support::repo_fixture::{
    EPOCH, contents, deb, plain_spec, publish, published_one, refused, repo, repo_at, rpm,
};
use support::strace::Trace;
use support::tools::{have, need};

/// All faults that need no packages are reported together, before a package is opened.
#[test]
fn all_that_is_wrong_with_the_options_is_told_at_once() {
    let room = tempfile::tempdir().unwrap();
    let packages = room.path().join("packages");
    fs::create_dir(&packages).unwrap();
    fs::write(packages.join("text.deb"), "no package\n").unwrap();
    let out = room.path().join("repo");
    let cases: [(&[&str], i32, &[&str]); 3] = [
        (
            &["--suite", "a b", "--url", "x", "--sign-key", "no-key", "--key-package", "x.y"],
            64,
            &[
                "`x.y` is not a valid version of",
                "the suite `a b`",
                "`x` is not a URL",
                "no-key: cannot",
            ],
        ),
        (
            &["--sign-packages", "--key-package", "1", "--set", "maintainer=A <a@b.example>\nX: y"],
            64,
            &["--sign-packages needs a key", "a key package needs a key", "the maintainer `A <a@b"],
        ),
        (&["--sign-key", "no-key", "--sign-packages", "--key-package", "1"], 64, &["no-key"]),
    ];
    for (words, code, parts) in cases {
        let mut command = repo(&[&packages], &out);
        command.args(words);
        let (said, exit) = refused(&mut command);
        assert_eq!(exit, code, "{said}");
        let faults = said.lines().filter(|line| line.trim_start().starts_with('×')).count();
        assert_eq!(faults, parts.len(), "{said}");
        parts.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
        if have(&["strace"]) {
            let below = packages.to_str().unwrap();
            let calls = Trace::of(&command, &[]).calls;
            assert_eq!(calls.iter().find(|call| call.contains(below)), None);
        }
    }
    assert!(!out.exists());
    let (said, exit) = refused(repo(&[&packages], &out).env("SOURCE_DATE_EPOCH", "today"));
    assert_eq!((exit, said.matches("SOURCE_DATE_EPOCH is today").count()), (64, 1), "{said}");
}

/// A run into a new repository is refused with `parts`, and leaves nothing that a client reads.
fn nothing_published(command: &mut Command, out: &Path, parts: &[&str]) {
    let before = if out.exists() { contents(out) } else { Default::default() };
    let (said, _) = refused(command);
    for part in parts {
        assert!(said.contains(part), "{part}: {said}");
    }
    let after = if out.exists() { contents(out) } else { Default::default() };
    assert_eq!(after, before, "{said}");
}

#[test]
fn what_is_no_package_is_named() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    let good = deb(&packages, ("one", "1", "amd64"), "");
    let plain = rpm(&packages, &plain_spec("plain", "1", ""));
    fs::write(packages.join("text.deb"), "no package\n").unwrap();
    fs::write(packages.join("empty.rpm"), "").unwrap();
    let parts =
        ["text.deb: is not a .deb, .rpm, wheel or source distribution", "empty.rpm: is not a .deb"];
    nothing_published(&mut repo(&[&packages], &out), &out, &parts);
    for (file, at) in [(&good, 3), (&plain, 2)] {
        let name = file.file_name().unwrap().to_str().unwrap();
        let cut = room.path().join("cut").join(name);
        fs::create_dir_all(cut.parent().unwrap()).unwrap();
        let bytes = fs::read(file).unwrap();
        for len in [bytes.len() - 1, bytes.len() / at, 100] {
            fs::write(&cut, &bytes[..len]).unwrap();
            nothing_published(&mut repo(&[&cut], &out), &out, &[name]);
        }
    }
    // A byte of an rpm's header.
    let damaged = room.path().join("damaged.rpm");
    fs::copy(&plain, &damaged).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&damaged).unwrap();
    let bytes = fs::read(&damaged).unwrap();
    let at = bytes.windows(12).rposition(|bytes| bytes == b"one of plain").unwrap();
    file.write_at(b"two", at as u64).unwrap();
    nothing_published(&mut repo(&[&damaged], &out), &out, &["damaged.rpm", "SHA-256"]);
}

#[test]
fn two_contents_of_one_version_are_refused_wherever_they_are() {
    need(&["dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let [a, b, out] = ["a", "b", "repo"].map(|name| room.path().join(name));
    deb(&a, ("one", "1", "amd64"), "");
    deb(&b, ("one", "1", "amd64"), "Section: libs\n");
    rpm(&a, &plain_spec("plain", "1", ""));
    rpm(&b, &plain_spec("plain", "1", "URL: https://example.org/"));
    let parts = ["one 1 for amd64", "plain 1-1 for noarch", "raise the release"];
    nothing_published(&mut repo(&[&a, &b], &out), &out, &parts);
    publish(&mut repo(&[&a], &out));
    nothing_published(&mut repo(&[&b], &out), &out, &parts);
    let other = &["--set", "component=other"];
    nothing_published(repo(&[&b], &out).args(other).arg("--deb"), &out, &["different packages"]);
    let other = &["--suite", "other"];
    nothing_published(repo(&[&b], &out).args(other).arg("--deb"), &out, &["has or had"]);
    // The same package in another suite is the same file.
    publish(repo(&[&a], &out).args(other).arg("--deb"));
    // Taken out, it stays for a while, and so does its name.
    publish(repo_at(&[], &out, 1).args(["--remove", "one"]));
    nothing_published(repo_at(&[&b], &out, 2).arg("--deb"), &out, &["has or had"]);
}

#[test]
fn names_that_would_leave_the_repository_are_refused() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    let good = deb(&packages, ("one", "1", "amd64"), "");
    let cases = [
        ("suite=../x", "the suite `../x`"),
        ("component=a/b", "the component `a/b`"),
        ("codename=a b", "the codename `a b`"),
        ("name=/etc/x", "the name `/etc/x`"),
        ("name=Rocm", "the name `Rocm`"),
        ("name=a_b", "the name `a_b`"),
        ("name=a+b", "the name `a+b`"),
        ("name=.a", "the name `.a`"),
        ("origin=a\nSuite: b", "the origin"),
        ("origin=a ", "the origin"),
        ("description= a", "the description"),
        ("url=not a url", "`not a url`"),
        ("generations=0", "`generations` must be at least 1"),
        ("pin=0", "`pin` must be from 1 to 32767"),
        ("pin=32768", "`pin` must be from 1 to 32767"),
        ("pin=-1", "--set: `pin=-1`: invalid value"),
        ("valid_days=36526", "`valid_days` must be at most 36525"),
        ("validity=1", "--set: `validity=1`: unknown field `validity`"),
        ("pin", "--set: `pin`: has no ="),
    ];
    for (setting, expected) in cases {
        let (said, code) = refused(repo(&[&good], &out).args(["--set", setting]));
        assert!(code == 64 && said.contains(expected), "{setting:?}: {said}");
    }
    // apt would ignore the file for clients, and takes the suite.
    let suite = ["--suite", "a~b"];
    let url = ["--url", "https://example.org/rocm"];
    let (said, code) = refused(repo(&[&good], &out).args(suite).args(url));
    assert!(code == 64 && said.contains("the suite `a~b`"), "{said}");
    publish(repo(&[&good], &room.path().join("suite")).args(suite).args(["--set", "name=a.b-1"]));
    let bad = deb(&packages, ("bad", "1", "amd64"), "Source: ../../up\n");
    nothing_published(&mut repo(&[&bad], &out), &out, &["is not a valid source name"]);
    let bad = deb(&packages, ("worse", "1", "amd64"), "Filename: pool/other\n");
    nothing_published(&mut repo(&[&bad], &out), &out, &["has Filename, a field of indexes only"]);
}

#[test]
fn a_pool_that_was_changed_is_noticed() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let out = published_one(room.path());
    let pooled = out.join("pool/main/o/one/one_1_amd64.deb");
    let whole = fs::read(&pooled).unwrap();
    let modified = fs::metadata(&pooled).unwrap().modified().unwrap();
    let mut other = whole.clone();
    *other.last_mut().unwrap() ^= 1;
    // Of the same size and time, it takes a look at the content.
    write_at_time(&pooled, &other, modified);
    publish(&mut repo(&[], &out));
    nothing_published(repo(&[], &out).arg("--check"), &out, &["is not the package"]);
    write_at_time(&pooled, &other[1..], modified);
    nothing_published(&mut repo(&[], &out), &out, &["is not the package"]);
    fs::remove_file(&pooled).unwrap();
    nothing_published(&mut repo(&[], &out), &out, &["is missing from the repository"]);
    publish(repo(&[], &out).args(["--remove", "one"]));
}

fn write_at_time(path: &Path, bytes: &[u8], modified: SystemTime) {
    fs::write(path, bytes).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(modified).unwrap();
}

#[test]
fn times_before_the_last_publication_are_refused() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    deb(&packages, ("one", "1", "amd64"), "");
    publish(&mut repo_at(&[&packages], &out, 10));
    nothing_published(&mut repo_at(&[], &out, 9), &out, &["clients refuse indexes older"]);
    nothing_published(&mut repo(&[&out.join("pool")], &out), &out, &["is inside the repository"]);
}

/// Faults that are known before hours of compression are reported before.
#[test]
fn a_build_does_not_begin_when_its_publication_would_be_refused() {
    need(&["gpg", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let own = support::gpg_keys::key(room.path(), "own", "ed25519");
    publish(repo_at(&[&one], &out, 10).arg("--sign-key").arg(&own.secret));
    let before = contents(&out);
    let secret = own.secret.to_str().unwrap();
    let signed = ["--sign-key", secret];
    let cases: [(&[&str], i64, &str); 5] = [
        (&["--repo-set", "suite=../x"], 10, "the suite `../x`"),
        (&["--repo-set", "name=a b"], 10, "the name `a b`"),
        (&["--repo-set", "url=nowhere"], 10, "`nowhere` is not a URL"),
        (&[], 10, "the repository is signed"),
        (&signed, 9, "clients refuse indexes older"),
    ];
    for (words, after, reason) in cases {
        build_is_refused((&packages, &out), words, after, reason);
    }
    let lock = fs::File::open(out.join(".rockpack/lock")).unwrap();
    lock.lock().unwrap();
    build_is_refused((&packages, &out), &signed, 10, "another run");
    assert_eq!(contents(&out), before);
}

fn build_is_refused((packages, out): (&Path, &Path), words: &[&str], after: i64, reason: &str) {
    let mut build = support::example::rockpack();
    build.args(["build", "--artifacts"]).arg(support::example::shards());
    build.args(["--version", "7.1.0", "--out"]).arg(packages).arg("--repo").arg(out);
    build.args(words).env("SOURCE_DATE_EPOCH", (EPOCH + after).to_string());
    let (said, _) = refused(&mut build);
    assert!(said.contains(reason), "{words:?}: {said}");
    assert!(!packages.exists(), "{words:?}");
}

/// rpmbuild writes no such package, but its header can be written anew; a client would take the
/// name for an option, or the version for two.
#[test]
fn an_rpm_with_a_name_or_version_that_rpm_does_not_take_is_not_published() {
    need(&["rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let plain = fs::read(rpm(room.path(), &plain_spec("plain", "1", ""))).unwrap();
    let out = room.path().join("repo");
    let (name, version, release, arch) = (1000, 1001, 1002, 1022);
    for (tag, text) in [
        (name, "-rf"),
        (name, "a;b"),
        (name, "+a"),
        (version, "1-2"),
        (version, "1:2"),
        (release, "1-2"),
        (arch, "no-arch"),
    ] {
        let change = |mut tags: Vec<Tagged>| {
            let of_tag = tags.iter_mut().filter(|(found, _)| *found == tag);
            of_tag.for_each(|(_, data)| *data = IndexData::StringTag(text.to_owned()));
            tags
        };
        let package = room.path().join("changed.rpm");
        fs::write(&package, remade(&plain, change, &[])).unwrap();
        let said = format!("`{text}` is not valid");
        nothing_published(&mut repo(&[&package], &out), &out, &["changed.rpm", &said]);
    }
    let package = room.path().join("same.rpm");
    fs::write(&package, remade(&plain, |tags| tags, &[])).unwrap();
    publish(&mut repo(&[&package], &out));
}
