//! The output of programs that sign, and the published keys: only signatures that clients can check.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use support::gpg_keys::key;
use support::repo_fixture::{deb, publish, refused, repo, repo_at, verify_by};
use support::tools::{need, run};

use crate::key_lives::Ring;

/// A program of these lines of shell; `$1` says how to sign.
fn program(path: &Path, lines: &str) -> String {
    fs::write(path, format!("#!/bin/sh\nset -e\n{lines}\n")).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    format!("{} {{mode}}", path.display())
}

fn by(home: &Path) -> String {
    format!("GNUPGHOME={} gpg --batch --yes --armor --$1", home.display())
}

#[test]
fn signatures_that_clients_cannot_check_are_not_published() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let (own, other) = (key(room.path(), "own", "ed25519"), key(room.path(), "other", "ed25519"));
    let sign = by(&own.home);
    let empty =
        "printf -- '-----BEGIN PGP SIGNATURE-----\\n\\n=twTO\\n-----END PGP SIGNATURE-----\\n'";
    let head = "printf -- '-----BEGIN PGP SIGNED MESSAGE-----\\nHash: SHA512\\n\\nx\\n'";
    let cases = [
        (by(&other.home), "which clients do not get"),
        (format!("echo other | {sign}"), "is not a signature of the data it was given"),
        (format!("sed s/Date/date/ | {sign}"), "is not a signature of the data it was given"),
        (format!("cat >/dev/null; [ $1 = detach-sign ] || {head}; {empty}"), "wrote"),
        (format!("{sign}; echo trailing words"), "unexpected trailing data"),
        // One kind of signature instead of the other.
        (format!("set -- detach-sign --textmode; {sign} --textmode"), "wrote"),
    ];
    for (number, (lines, reason)) in cases.iter().enumerate() {
        let out = room.path().join(format!("out{number}"));
        let command = program(&room.path().join(format!("sign{number}")), lines);
        let options = ["--sign-command", &command, "--public-key", own.public.to_str().unwrap()];
        let (said, _) = refused(repo(&[&one], &out).args(options));
        assert!(said.contains(reason), "{lines}: {said}");
        assert!(!out.join("dists").exists() && !out.join("pool").exists(), "{lines}: {said}");
    }
    // What is around a good signature is left out, and the program sees no passphrase.
    let (out, seen) = (room.path().join("out"), room.path().join("seen"));
    let lines =
        format!("env >{}; {sign}; [ $1 = clear-sign ] || echo trailing words", seen.display());
    let command = program(&room.path().join("good"), &lines);
    let options = ["--sign-command", &command, "--public-key", own.public.to_str().unwrap()];
    publish(repo(&[&one], &out).args(options).env("ROCKPACK_SIGN_PASSPHRASE", "secret words"));
    for file in ["InRelease", "Release.gpg"] {
        let text = fs::read_to_string(out.join("dists/stable").join(file)).unwrap();
        assert!(!text.contains("trailing words"), "{text}");
    }
    assert!(verify_by(&out, &own.public).contains("2 good signatures"));
    let seen = fs::read_to_string(seen).unwrap();
    assert!(seen.contains("SOURCE_DATE_EPOCH") && !seen.contains("secret words"), "{seen}");
}

/// The public key that clients get may be older than the key.
#[test]
fn signatures_by_a_key_that_clients_know_as_expired_are_not_published() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let (room, ring) = (tempfile::tempdir().unwrap(), Ring::new());
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let own = ring.key("own", "ed25519", "sign", "20230201T000000");
    let before = ring.export(&["--export", &own], "before.public");
    run(ring.gpg("20230115").args(["--quick-set-expire", &own, "never"]));
    let after = ring.export(&["--export", &own], "after.public");
    let command = program(&room.path().join("sign"), &by(ring.home()));
    for (public, is_taken) in [(before, false), (after, true)] {
        let out = room.path().join(format!("{is_taken}"));
        let mut repo = repo(&[&one], &out);
        repo.args(["--sign-command", &command, "--public-key"]).arg(public);
        if is_taken {
            publish(&mut repo);
        } else {
            let (said, _) = refused(&mut repo);
            assert!(said.contains("the key expired on "), "{said}");
            assert!(!out.join("dists").exists());
        }
    }
}

#[test]
fn nothing_but_public_keys_is_published_of_the_files_of_keys() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let (own, next) = (key(room.path(), "own", "ed25519"), key(room.path(), "next", "ed25519"));
    let here = room.path();
    let [secret, public] = [&next.secret, &next.public].map(|f| fs::read_to_string(f).unwrap());
    let no_key =
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nwords\n-----END PGP PUBLIC KEY BLOCK-----\n";
    let cases = [
        (written(here, "both", &format!("{public}{secret}")), "contains the secret key"),
        (written(here, "renamed", &secret.replace("PRIVATE", "PUBLIC")), "contains the secret key"),
        (written(here, "secret", &secret), "contains the secret key"),
        (written(here, "words", no_key), "public key"),
    ];
    let command = program(&room.path().join("sign"), &by(&next.home));
    let as_public = ["--sign-command", &command, "--public-key"];
    let beside = ["--sign-key", own.secret.to_str().unwrap(), "--public-key"];
    for (name, (path, reason)) in cases.iter().enumerate() {
        for options in [as_public, beside] {
            let out = room.path().join(format!("refused{name}"));
            let (said, code) = refused(repo(&[&one], &out).args(options).arg(path));
            assert!(code == 64 && said.contains(reason), "{path}: {said}");
            assert!(!out.exists(), "{said}");
        }
    }
    let words = written(here, "around", &format!("internal words\n{public}\ninternal words\n"));
    for (name, options) in [("one", as_public), ("two", beside)] {
        let out = room.path().join(name);
        let key_package = ["--key-package", "1", "--set", "name=rocm"];
        publish(repo(&[&one], &out).args(options).arg(&words).args(key_package));
        let keyring = out.join("rocm-archive-keyring.asc");
        let text = fs::read_to_string(&keyring).unwrap();
        assert!(!text.contains("internal words"), "{text}");
        run(Command::new("gpg").args(["--batch", "--show-keys"]).arg(&keyring));
        assert!(verify_by(&out, &keyring).contains("passed"));
    }
}

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_secret_that_others_may_read_is_a_warning() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let own = key(room.path(), "own", "ed25519");
    let passphrase = room.path().join("passphrase");
    fs::write(&passphrase, "words").unwrap();
    for (after, modes, warned) in
        [(0, [0o600, 0o400], 0), (1, [0o640, 0o600], 1), (2, [0o644, 0o604], 2)]
    {
        for (file, mode) in [&own.secret, &passphrase].into_iter().zip(modes) {
            fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
        }
        let mut repo = repo_at(&[&one], &room.path().join("out"), after);
        repo.arg("--sign-key").arg(&own.secret).arg("--sign-passphrase-file").arg(&passphrase);
        let said = publish(&mut repo);
        assert_eq!(said.matches("R115").count(), warned, "{said}");
    }
}
