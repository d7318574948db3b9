//! Two keys sign while clients move from the one to the other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use support::example::rockpack;
use support::gpg_keys::{Key, key};
use support::repo_fixture::{
    client_file, deb, failed_checks, plain_spec, publish, refused, repo, repo_at, rpm, verify_by,
};
use support::tools::{need, run, succeed, told};

use crate::clients_apt::{Root, need_all};
use crate::clients_rpm;
use crate::key_lives::Ring;

/// The end of the name of the keyring.
const KEYRING: &str = "archive-keyring.asc";

/// The key before and the key after.
struct Keys {
    old: Key,
    new: Key,
}

impl Keys {
    fn of(room: &Path) -> Self {
        Self { old: key(room, "own", "rsa3072"), new: key(room, "new", "ed25519") }
    }

    fn both(&self) -> [&Key; 2] {
        [&self.old, &self.new]
    }

    /// Signs by each of `keys`.
    fn sign<'a>(repo: &'a mut Command, keys: &[&Key]) -> &'a mut Command {
        for key in keys {
            repo.arg("--sign-key").arg(&key.secret);
        }
        repo
    }
}

/// An attack on clients that accept any known key: somebody who can write to the repository adds a key to
/// the keyring, and its signatures to the indexes.
fn add_signer(out: &Path, key: &Key) {
    append(&client_file(out, KEYRING), &fs::read(&key.public).unwrap());
    for (signature, text) in [
        ("repodata/repomd.xml.asc", "repodata/repomd.xml"),
        ("dists/stable/Release.gpg", "dists/stable/Release"),
    ] {
        let mut gpg = Command::new("gpg");
        gpg.env("GNUPGHOME", &key.home).args([
            "--batch",
            "--armor",
            "--detach-sign",
            "--output",
            "-",
        ]);
        gpg.args(["--faked-system-time", "20231115T000000"]).arg(out.join(text));
        append(&out.join(signature), &run(&mut gpg).stdout);
    }
}

fn append(file: &Path, more: &[u8]) {
    let before = fs::read(file).unwrap();
    fs::write(file, [&before[..], more].concat()).unwrap();
}

#[test]
fn every_index_has_a_signature_of_each_key_and_verify_takes_either() {
    need(&["gpg", "dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let keys = Keys::of(room.path());
    let other = key(room.path(), "other", "ed25519");
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let plain = rpm(room.path(), &plain_spec("plain", "1", ""));
    let out = room.path().join("out");
    let url = ["--url", "https://example.org/rocm"];
    let mut first = repo(&[&one, &plain], &out);
    publish(Keys::sign(first.args(url), &keys.both()));
    let served = client_file(&out, KEYRING);
    let ring = Ring::new();
    run(ring.gpg("20231115").arg("--import").arg(&served));
    let files: [&[&str]; 3] = [
        &["dists/stable/InRelease"],
        &["dists/stable/Release.gpg", "dists/stable/Release"],
        &["repodata/repomd.xml.asc", "repodata/repomd.xml"],
    ];
    for files in files {
        let mut gpg = ring.gpg("20231115");
        gpg.args(["--no-auto-check-trustdb", "--status-fd", "1", "--verify"]);
        let said = succeed(gpg.args(files.iter().map(|file| out.join(file))));
        assert_eq!(said.matches("] GOODSIG ").count(), 2, "{files:?}: {said}");
    }
    let shown = succeed(Command::new("gpg").args(["--batch", "--show-keys"]).arg(&served));
    assert!(shown.contains("own@example.org") && shown.contains("new@example.org"), "{shown}");
    let said = verify_by(&out, &served);
    assert!(said.contains("3 good signatures") && said.contains("all checks passed"), "{said}");
    // Either is enough: what it signed names the other.
    for by in [&keys.old.public, &keys.new.public] {
        let said = verify_by(&out, by);
        assert!(said.contains("3 good signatures") && said.contains("all checks passed"), "{said}");
        assert!(said.contains("which --key does not have"), "{said}");
    }
    // A key that somebody put there, with a signature of it beside each, is not named.
    let touched = room.path().join("touched");
    run(Command::new("cp").arg("-a").arg(&out).arg(&touched));
    add_signer(&touched, &other);
    let said = verify_by(&touched, &keys.old.public);
    assert_eq!(failed_checks(&said), ["V104"], "{said}");
    assert!(said.contains("3 good signatures"), "{said}");
    assert_eq!(failed_checks(&verify_by(&out, &other.public)), ["V074"]);
    // The same keys and time give the same bytes, and a key that signs is named once.
    let again = room.path().join("again");
    let mut second = repo(&[&one, &plain], &again);
    Keys::sign(second.args(url), &keys.both()).arg("--public-key").arg(&keys.old.public);
    publish(&mut second);
    assert!(support::repo_fixture::contents(&again) == support::repo_fixture::contents(&out));
    // Packages are signed by the first.
    let mut signed = repo(&[&plain], &room.path().join("signed"));
    publish(Keys::sign(signed.arg("--sign-packages"), &keys.both()));
    let signed = room.path().join("signed");
    let served = client_file(&signed, KEYRING);
    for by in [&served, &keys.old.public, &keys.new.public] {
        let said = verify_by(&signed, by);
        assert!(said.contains("3 good signatures") || said.contains("2 good signatures"), "{said}");
        assert!(said.contains("all checks passed"), "{said}");
    }
}

/// Packages stay as they were signed when the key that signs is another one.
#[test]
fn packages_of_a_key_that_clients_lose_are_named() {
    need(&["gpg", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let keys = Keys::of(room.path());
    let [plain, more] = ["plain", "more"].map(|name| rpm(room.path(), &plain_spec(name, "1", "")));
    let out = room.path().join("out");
    let signed = |package: &Path, key: &Key, also: &[&Key]| {
        let mut repo = repo(&[package], &out);
        repo.arg("--sign-packages").arg("--sign-key").arg(&key.secret);
        for key in also {
            repo.arg("--public-key").arg(&key.public);
        }
        told(&mut repo)
    };
    let lost = "R117 packages-by-other-key: rpm: 1 package is signed by the key ";
    for (package, key, also, is_lost) in [
        (&plain, &keys.old, &[][..], false),
        (&more, &keys.new, &[&keys.old], false),
        (&more, &keys.new, &[], true),
    ] {
        let said = signed(package, key, also);
        assert_eq!(said.contains(lost), is_lost, "{said}");
        let fails = failed_checks(&verify_by(&out, &key.public));
        assert_eq!(fails, if is_lost { &["V074"][..] } else { &[] }, "{said}");
    }
}

/// Signed by the old key, then by both, then by the new one: who trusts one of the two alone gets what
/// that one signed.
fn apt_moves(suite: &str) {
    need_all();
    let room = tempfile::tempdir().unwrap();
    let keys = Keys::of(room.path());
    for (own, takes) in [(&keys.old, [true, true, false]), (&keys.new, [false, true, true])] {
        let root = Root::of(suite);
        let out = root.folder.join("srv/repository");
        fs::create_dir_all(&out).unwrap();
        let by: [&[&Key]; 3] = [&[&keys.old], &keys.both(), &[&keys.new]];
        for (after, by) in (0..).zip(by) {
            let version = after.to_string();
            let one = deb(room.path(), ("rocm-one", &version, "amd64"), "");
            let mut repo = repo_at(&[&one], &out, after);
            publish(Keys::sign(repo.args(["--url", "file:/srv/repository"]), by));
            fs::copy(&own.public, client_file(&out, KEYRING)).unwrap();
            root.trust(&out);
            if takes[usize::try_from(after).unwrap()] {
                run(&mut root.apt(&["update"]));
                run(&mut root.apt(&["install", &format!("rocm-one={version}")]));
            } else {
                root.refused(&["update"], &["NO_PUBKEY", "Missing key", "not signed"]);
            }
        }
    }
}

#[test]
fn debian_12_moves_from_key_to_key() {
    apt_moves("bookworm");
}

#[test]
fn debian_13_moves_from_key_to_key() {
    apt_moves("trixie");
}

/// Clients of the rpm repository, each of which is told of one key alone, move to the new key. They wait more
/// than they work, and so do it side by side.
fn rpm_client_moves(
    client: &str,
    takes: [[bool; 3]; 2],
    get: impl Fn(&clients_rpm::Room, &str, bool) + Sync,
) {
    let room = tempfile::tempdir().unwrap();
    let (keys, get) = (&Keys::of(room.path()), &get);
    let owners = keys.both().into_iter().zip(takes);
    let clients: Vec<_> = owners.map(|owner| (clients_rpm::ready(client), owner)).collect();
    thread::scope(|scope| {
        for (room, (own, takes)) in &clients {
            scope.spawn(move || {
                let by: [&[&Key]; 3] = [&[&keys.old], &keys.both(), &[&keys.new]];
                for ((after, by), takes) in (0..).zip(by).zip(*takes) {
                    get(room, &published_for(room, own, (after, by)), takes);
                }
            });
        }
    });
}

/// Publishes a version, signed by keys, with a file for clients that names one key. Returns the version.
fn published_for(room: &clients_rpm::Room, own: &Key, (after, by): (i64, &[&Key])) -> String {
    let version = format!("{}", after + 1);
    let moving = rpm(room.folder.path(), &plain_spec("moving", &version, ""));
    let mut repo = repo_at(&[&moving], &room.out, after);
    let url = format!("file://{}", room.out.display());
    publish(Keys::sign(repo.args(["--url", &url]), by));
    let file = client_file(&room.out, ".repo");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\nrepo_gpgcheck=1\n"), "{text}");
    let served = format!("gpgkey={url}/localhost-archive-keyring.asc");
    assert!(text.contains(&served), "{text}");
    let alone = format!("gpgkey=file://{}", own.public.display());
    fs::write(&file, text.replace(&served, &alone)).unwrap();
    version
}

#[test]
fn dnf_moves_from_key_to_key() {
    let takes = [[true, true, false], [false, true, true]];
    rpm_client_moves("dnf", takes, |room, version, takes| {
        let package = format!("moving-{version}");
        if takes {
            run(&mut room.dnf(&["install", &package]));
        } else {
            clients_rpm::refused(&mut room.dnf(&["install", &package]), &["GPG", "signature"]);
        }
    });
}

/// A client that checks one signature checks that of the first key: a client with only the new key gets the
/// old one from the place in its file for clients.
#[test]
fn zypper_moves_from_key_to_key() {
    let takes = [[true, true, false], [false, false, true]];
    rpm_client_moves("zypper", takes, |room, version, takes| {
        // A system of its own each time: zypper remembers what it was told.
        let root = room.path("root");
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        run(room.zypper(&["addrepo"]).arg(client_file(&room.out, ".repo")));
        if takes {
            run(&mut room.zypper(&["refresh"]));
            let package = format!("moving={version}");
            let install = ["install", "--no-recommends", "--allow-unsigned-rpm", &package];
            run(&mut room.zypper(&install));
        } else {
            clients_rpm::refused(&mut room.zypper(&["refresh"]), &["ignature", "unknown key"]);
            let file = client_file(&room.out, ".repo");
            let text = fs::read_to_string(&file).unwrap();
            let (before, _) = text.split_once("gpgkey=").unwrap();
            let served = client_file(&room.out, KEYRING);
            fs::write(&file, format!("{before}gpgkey=file://{}\n", served.display())).unwrap();
            run(&mut room.zypper(&["removerepo", "localhost"]));
            run(room.zypper(&["addrepo"]).arg(file));
            run(&mut room.zypper(&["refresh"]));
        }
    });
}

/// Two keys, each with its passphrase in a file, and the key files.
fn with_passphrases(ring: &Ring) -> [(PathBuf, PathBuf); 2] {
    ["one", "two"].map(|name| {
        let (user, word) = (format!("{name} <{name}@example.org>"), format!("the {name}"));
        let make = ["--quick-generate-key", &user, "ed25519", "sign", "never"];
        run(ring
            .gpg("20230101")
            .args(["--pinentry-mode", "loopback", "--passphrase", &word])
            .args(make));
        let secret = ring.home().join(format!("{name}.secret"));
        run(ring
            .gpg("20230101")
            .args(["--pinentry-mode", "loopback", "--passphrase", &word, "--armor", "--output"])
            .arg(&secret)
            .args(["--export-secret-keys", &user]));
        let file = ring.home().join(format!("{name}.passphrase"));
        fs::write(&file, format!("{word}\n")).unwrap();
        (secret, file)
    })
}

#[test]
fn each_key_has_its_passphrase() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let (room, ring) = (tempfile::tempdir().unwrap(), Ring::new());
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let [first, second] = with_passphrases(&ring);
    let out = room.path().join("out");
    let keys: [&Path; 2] = [&first.0, &second.0];
    publish(&mut signed_by_files(&one, &out, keys, &[&first.1, &second.1]));
    let three = [first.1.as_path(), &first.1, &second.1];
    let cases: [(&[&Path], &str); 4] = [
        (&[&second.1, &first.1], "does not open with the passphrase"),
        (&[&first.1], "two.secret: OpenPGP key: does not open with the passphrase"),
        (&[], "needs a passphrase"),
        (&three, "3 passphrases are given for 2 keys"),
    ];
    for (files, why) in cases {
        let (said, _) = refused(&mut signed_by_files(&one, &out, keys, files));
        assert!(said.contains(why), "{why}: {said}");
    }
}

fn signed_by_files(package: &Path, out: &Path, keys: [&Path; 2], passphrases: &[&Path]) -> Command {
    let mut repo = repo(&[package], out);
    for key in keys {
        repo.arg("--sign-key").arg(key);
    }
    for file in passphrases {
        repo.arg("--sign-passphrase-file").arg(file);
    }
    repo
}

#[test]
fn a_file_of_two_keys_and_a_name_of_two_are_asked_about() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let (room, ring) = (tempfile::tempdir().unwrap(), Ring::new());
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let out = room.path().join("out");
    let names = ["first", "second"];
    let made = names.map(|name| ring.key(name, "ed25519", "sign", "never"));
    let joined = room.path().join("joined.secret");
    let both = ring.export(&["--export-secret-keys", &made[0], &made[1]], "both.secret");
    let each = [0, 1].map(|n| {
        fs::read(ring.export(&["--export-secret-keys", &made[n]], &format!("{n}.secret"))).unwrap()
    });
    fs::write(&joined, each.concat()).unwrap();
    let ways: [[&str; 2]; 3] = [
        ["--sign-key", both.to_str().unwrap()],
        ["--sign-key", joined.to_str().unwrap()],
        ["--gpg-key-id", "example.org"],
    ];
    for way in ways {
        let (said, code) = refused(repo(&[&one], &out).args(way).env("GNUPGHOME", ring.home()));
        assert_eq!(code, 64, "{said}");
        for part in made.iter().map(String::as_str).chain(names).chain(["2 keys", "one of them"]) {
            assert!(said.contains(part), "{way:?}: {part}: {said}");
        }
        assert!(!out.exists() || !out.join("dists").exists());
    }
    // One of them by its fingerprint.
    publish(repo(&[&one], &out).args(["--gpg-key-id", &made[1]]).env("GNUPGHOME", ring.home()));
}

#[test]
fn two_keys_that_cannot_both_sign_are_refused() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let (keys, ring) = (Keys::of(room.path()), Ring::new());
    let out = room.path().join("out");
    let twice = [&keys.new, &keys.new];
    let (said, code) = refused(Keys::sign(&mut repo(&[&one], &out), &twice));
    assert!(code == 64 && said.contains("is given twice"), "{said}");
    // One that is over by then, which is named.
    let over = ring.key("over", "ed25519", "sign", "20230301T000000");
    let secret = ring.export(&["--export-secret-keys", &over], "over.secret");
    let mut repo = repo(&[&one], &out);
    Keys::sign(&mut repo, &[&keys.new]).arg("--sign-key").arg(&secret);
    let (said, _) = refused(&mut repo);
    assert!(said.contains("expired") && said.contains(&over), "{said}");
    assert!(!out.join("dists").exists());
    // Both sign the indexes and the receipt of a build.
    let mut build = rockpack();
    build.args(["build", "--artifacts"]).arg(support::example::shards());
    build.args(["--version", "7.1.0", "--out"]).arg(room.path().join("packages"));
    publish(Keys::sign(build.arg("--repo").arg(&out), &keys.both()));
    let said = verify_by(&out, &client_file(&out, KEYRING));
    assert!(said.contains("all checks passed"), "{said}");
    for key in keys.both() {
        let receipt = room.path().join("packages/packages.json");
        let mut gpg = Command::new("gpg");
        gpg.env("GNUPGHOME", &key.home).arg("--verify");
        // The signature of the other key cannot be checked.
        let said = told(gpg.arg(receipt.with_extension("json.asc")).arg(&receipt));
        assert_eq!(said.matches("Good signature").count(), 1, "{said}");
    }
}
