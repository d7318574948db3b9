//! Keys with a history: certified by others, expired, with user ids taken back.

use std::path::{Path, PathBuf};
use std::process::Command;

use support::gpg_keys::{end_agents, fill_home, stretch_little};
use support::repo_fixture::{EPOCH, client_file, deb, publish, refused, repo_at};
use support::tools::{need, run, succeed};

/// A keyring of gpg whose keys have no passphrase.
pub struct Ring {
    home: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl Drop for Ring {
    fn drop(&mut self) {
        end_agents(self.home());
    }
}

impl Ring {
    pub fn new() -> Self {
        let ring = Self::of(tempfile::tempdir().unwrap());
        run(Command::new("chmod").arg("700").arg(ring.home()));
        stretch_little(ring.home());
        ring
    }

    fn of(folder: tempfile::TempDir) -> Self {
        Self { home: folder.path().to_owned(), _folder: Some(folder) }
    }

    /// The ring that `make` makes of an empty one, which it does once: the ring is kept between runs under
    /// `name`, which has to say what is in it. RSA keys take a good part of a second.
    pub fn with(name: &str, make: impl FnOnce(&Self)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fill_home(folder.path(), &format!("ring-{name}"), |home| {
            stretch_little(home);
            make(&Self { home: home.to_owned(), _folder: None });
        });
        Self::of(folder)
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    /// gpg at the start of a day.
    pub fn gpg(&self, day: &str) -> Command {
        let mut gpg = Command::new("gpg");
        gpg.env("GNUPGHOME", self.home()).args(["--batch", "--quiet", "--yes"]);
        gpg.args(["--passphrase", "", "--faked-system-time", &format!("{day}T000000")]);
        gpg
    }

    /// Makes a key and says its fingerprint.
    pub fn key(&self, name: &str, algorithm: &str, usage: &str, until: &str) -> String {
        let user = format!("{name} <{name}@example.org>");
        run(self.gpg("20230101").args(["--quick-generate-key", &user, algorithm, usage, until]));
        self.fingerprint(name)
    }

    /// The fingerprint of the key that is called `name`.
    pub fn fingerprint(&self, name: &str) -> String {
        let shown = succeed(self.gpg("20230101").args(["--with-colons", "--list-keys", name]));
        let fingerprint = shown.lines().find_map(|line| line.strip_prefix("fpr:")).unwrap();
        fingerprint.trim_matches(':').to_owned()
    }

    pub fn export(&self, options: &[&str], file: &str) -> PathBuf {
        let file = self.home().join(file);
        run(self.gpg("20230101").arg("--output").arg(&file).arg("--armor").args(options));
        file
    }
}

/// A folder with a package to publish, and a keyring.
fn begin() -> (tempfile::TempDir, PathBuf, Ring) {
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    (room, one, Ring::new())
}

/// gpg's word on what was published, with the key that was published, at that time.
fn gpg_agrees(out: &Path) {
    let ring = Ring::new();
    let gpg = || {
        let mut gpg = ring.gpg("20231115");
        gpg.args(["--no-auto-check-trustdb"]);
        gpg
    };
    run(gpg().arg("--import").arg(client_file(out, "archive-keyring.asc")));
    run(gpg().arg("--verify").arg(out.join("dists/stable/InRelease")));
}

#[test]
fn a_key_that_others_certified_signs() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let (room, one, ring) = begin();
    let own = ring.key("own", "ed25519", "sign", "never");
    ring.key("other", "ed25519", "cert", "never");
    // Newer than what the key says itself, and without a word on what it may do.
    run(ring.gpg("20230201").args(["--local-user", "other", "--quick-sign-key", &own]));
    let packets = ring.export(&["--export-secret-keys", &own], "own.secret");
    let shown = succeed(Command::new("gpg").arg("--list-packets").arg(&packets));
    assert_eq!(shown.matches(":signature packet:").count(), 2, "{shown}");
    let out = room.path().join("out");
    publish(repo_at(&[&one], &out, 0).arg("--sign-key").arg(&packets));
    gpg_agrees(&out);
}

#[test]
fn no_subkey_outlives_its_primary_key() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let (room, one, ring) = begin();
    let own = ring.key("own", "ed25519", "cert", "20240101T000000");
    run(ring.gpg("20230102").args(["--quick-add-key", &own, "ed25519", "sign", "never"]));
    let secret = ring.export(&["--export-secret-keys", &own], "own.secret");
    let out = room.path().join("out");
    publish(repo_at(&[&one], &out, 0).arg("--sign-key").arg(&secret));
    gpg_agrees(&out);
    // 2024-01-01 in seconds since 1970.
    let end = 1_704_067_200 - EPOCH;
    publish(repo_at(&[&one], &out, end - 1).arg("--sign-key").arg(&secret));
    let (said, _) = refused(repo_at(&[&one], &out, end).arg("--sign-key").arg(&secret));
    assert!(said.contains("expired"), "{said}");
}

#[test]
fn a_user_id_that_was_taken_back_says_nothing_of_the_key() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let (room, one, ring) = begin();
    let own = ring.key("own", "ed25519", "sign", "never");
    let old = "old <old@example.org>";
    run(ring.gpg("20230102").args(["--quick-add-uid", &own, old]));
    run(ring.gpg("20230103").args(["--quick-revoke-uid", &own, old]));
    let secret = ring.export(&["--export-secret-keys", &own], "own.secret");
    let out = room.path().join("out");
    publish(repo_at(&[&one], &out, 0).arg("--sign-key").arg(&secret));
    gpg_agrees(&out);
}
