//! Signatures that are good and do not count: of keys and signatures that have expired, were revoked, are
//! weak, or are of the future.

use std::fs;
use std::path::{Path, PathBuf};

use support::program::rockpack;
use support::repo_fixture::{EPOCH, deb, failed_checks, publish, repo_at, verify_by};
use support::tools::{need, run, told};

use crate::key_lives::Ring;

/// A repository whose suite is signed anew by gpg.
struct Suite {
    ring: Ring,
    out: PathBuf,
    _room: tempfile::TempDir,
}

impl Suite {
    fn new() -> Self {
        let (room, ring) = (tempfile::tempdir().unwrap(), Ring::new());
        let out = room.path().join("out");
        publish(&mut repo_at(&[&deb(room.path(), ("one", "1", "amd64"), "")], &out, 0));
        Self { ring, out, _room: room }
    }

    /// Signs by keys on a day, with further options of gpg.
    fn sign(&self, by: &[&str], day: &str, options: &[&str]) {
        let suite = self.out.join("dists/stable");
        for (how, file) in [("--clear-sign", "InRelease"), ("--detach-sign", "Release.gpg")] {
            let mut gpg = self.ring.gpg(day);
            for key in by {
                gpg.args(["--local-user", key]);
            }
            gpg.args(options).args(["--armor", "--output"]).arg(suite.join(file));
            run(gpg.arg(how).arg(suite.join("Release")));
        }
    }

    /// The current public key.
    fn public(&self, key: &str) -> PathBuf {
        self.ring.export(&["--export", key], &format!("{key}.public"))
    }

    /// Fails unless both signatures are named, and nothing else, for `fault`.
    #[track_caller]
    fn does_not_count(&self, key: &Path, fault: &str) {
        let said = verify_by(&self.out, key);
        assert_eq!(failed_checks(&said), ["V074"], "{said}");
        for file in ["InRelease", "Release.gpg"] {
            let line = said.lines().find(|line| line.contains(&format!("dists/stable/{file}:")));
            assert!(line.is_some_and(|line| line.contains(fault)), "{fault}: {said}");
        }
    }

    #[track_caller]
    fn counts(&self, key: &Path) {
        let said = verify_by(&self.out, key);
        assert!(said.contains("2 good signatures") && said.contains("passed"), "{said}");
    }
}

/// Has gpg revoke a key by the text that it wrote when it made the key. gpg has put a colon in front, so
/// that it is not used by accident.
fn revoke(ring: &Ring, key: &str) {
    let written = ring.home().join(format!("openpgp-revocs.d/{key}.rev"));
    let text = fs::read_to_string(&written).unwrap().replace("\n:-----", "\n-----");
    let file = ring.home().join("revocation");
    fs::write(&file, text).unwrap();
    run(ring.gpg("20231201").arg("--import").arg(file));
}

#[test]
fn keys_that_have_ended_do_not_count() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let suite = Suite::new();
    let lasting = suite.ring.key("lasting", "ed25519", "sign", "20900101T000000");
    let ended = suite.ring.key("ended", "ed25519", "sign", "20240101T000000");
    suite.sign(&[&ended], "20231115", &[]);
    let file = suite.public(&ended);
    let fault =
        "is by a key that clients refuse (the key expired on Mon, 01 Jan 2024 00:00:00 UTC)";
    suite.does_not_count(&file, fault);
    // At a time when it was alive, it does.
    let mut then = rockpack();
    then.arg("verify").arg(&suite.out).arg("--key").arg(&file);
    let said = told(then.env("SOURCE_DATE_EPOCH", (EPOCH + 86_400).to_string()));
    assert!(said.contains("2 good signatures"), "{said}");
    // A signature of another key that is trusted is enough.
    suite.sign(&[&ended, &lasting], "20231115", &[]);
    suite.does_not_count(&file, fault);
    suite.counts(&suite.public(&lasting));
    // A subkey ends by itself.
    let whole = suite.ring.key("whole", "ed25519", "cert", "never");
    let add = ["--quick-add-key", &whole, "ed25519", "sign", "20240101T000000"];
    run(suite.ring.gpg("20230102").args(add));
    suite.sign(&[&whole], "20231115", &[]);
    suite.does_not_count(&suite.public(&whole), "expired on Mon, 01 Jan 2024");
    suite.sign(&[&lasting], "20231115", &[]);
    revoke(&suite.ring, &lasting);
    suite.does_not_count(&suite.public(&lasting), "(the key is revoked)");
}

#[test]
fn signatures_that_have_ended_or_are_of_the_future_do_not_count() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let suite = Suite::new();
    let own = suite.ring.key("own", "ed25519", "sign", "never");
    let file = suite.public(&own);
    suite.sign(&[&own], "20231115", &["--default-sig-expire", "20240101T000000"]);
    suite.does_not_count(&file, "expired on Mon, 01 Jan 2024");
    suite.sign(&[&own], "20231115", &["--default-sig-expire", "20900101T000000"]);
    suite.counts(&file);
    suite.sign(&[&own], "20900101", &[]);
    // gpg signs the two files one after the other, maybe in two seconds.
    suite.does_not_count(&file, "is dated Sun, 01 Jan 2090 00:00:0");
    suite.sign(&[&own], "20231115", &["--cert-notation", "a@example.org=b"]);
    suite.counts(&file);
    suite.sign(&[&own], "20231115", &["--sig-notation", "!a@example.org=b"]);
    suite.does_not_count(&file, "critical notation");
}

#[test]
fn weak_keys_and_keys_of_the_future_do_not_count() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let suite = Suite::new();
    let weak = suite.ring.key("weak", "rsa1024", "sign", "never");
    suite.sign(&[&weak], "20231115", &[]);
    suite.does_not_count(&suite.public(&weak), "(the key is RSA with fewer than 2048 bits)");
    // The primary key is judged beside the subkey that signs.
    let whole = suite.ring.key("whole", "rsa1024", "cert", "never");
    run(suite.ring.gpg("20230102").args(["--quick-add-key", &whole, "ed25519", "sign", "never"]));
    suite.sign(&[&whole], "20231115", &[]);
    suite.does_not_count(&suite.public(&whole), "(the key is RSA with fewer than 2048 bits)");
    let user = "late <late@example.org>";
    let make = ["--quick-generate-key", user, "ed25519", "sign", "never"];
    run(suite.ring.gpg("20900101").args(make));
    let late = suite.ring.fingerprint("late");
    suite.sign(&[&late], "20900102", &[]);
    suite.does_not_count(&suite.public(&late), "is dated Mon, 02 Jan 2090");
}
