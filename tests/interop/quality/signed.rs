//! `rpm -K` accepts signed packages, with keys that gpg made; keys that cannot sign are refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::example::{Set, build_of, names, shards};
use support::gpg_keys::{end_agents, fill_home, stretch_little};
use support::tools;
use tempfile::TempDir;

const PASSPHRASE: &str = "se cret";
const VARIABLE: &str = "ROCKPACK_SIGN_PASSPHRASE";

/// The algorithm whose keys have their passphrase stretched by gpg's default.
const STRETCHED: &str = "rsa3072";

/// A GnuPG home with the key of `Packager`.
struct Keys(TempDir);

impl Keys {
    fn make(algorithm: &str, expires: &str) -> Self {
        Self::for_use(algorithm, ("sign", expires), &[])
    }

    /// A key for `usage`, made by gpg with further options.
    fn for_use(algorithm: &str, (usage, expires): (&str, &str), options: &[&str]) -> Self {
        let keys = Self(tempfile::tempdir().unwrap());
        let name = format!("little-{algorithm}-{usage}-{expires}{}", options.join(""));
        fill_home(keys.0.path(), &name, |home| {
            // One algorithm keeps the passphrase stretched as it is by default.
            if algorithm != STRETCHED {
                stretch_little(home);
            }
            fs::write(home.join("passphrase"), format!("{PASSPHRASE}\n")).unwrap();
            let mut make = gpg(home);
            make.args(options).args(["--quick-generate-key", "Packager <packager@example.org>"]);
            tools::run(make.args([algorithm, usage, expires]));
            export(home, "--export-secret-keys", "secret");
            export(home, "--export", "public");
        });
        keys
    }

    /// The key's fingerprint according to gpg.
    fn fingerprint(&self) -> String {
        let list = tools::succeed(self.gpg().args(["--with-colons", "--list-keys"]));
        let fingerprint = list.lines().find_map(|line| line.strip_prefix("fpr:")).unwrap();
        fingerprint.trim_matches(':').to_owned()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn gpg(&self) -> Command {
        gpg(self.0.path())
    }

    fn export(&self, how: &str, name: &str) {
        export(self.0.path(), how, name);
    }
}

fn gpg(home: &Path) -> Command {
    let mut command = Command::new("gpg");
    command.arg("--homedir").arg(home).args(["--quiet", "--batch", "--yes"]);
    command.args(["--pinentry-mode", "loopback", "--passphrase", PASSPHRASE]);
    command
}

fn export(home: &Path, how: &str, name: &str) {
    tools::run(gpg(home).args(["--armor", how]).arg("--output").arg(home.join(name)));
}

impl Drop for Keys {
    fn drop(&mut self) {
        end_agents(self.0.path());
    }
}

/// The output of `rpm -K` with a separate database that has the keys of `keys`.
fn checked(keys: Option<&Keys>, package: &Path) -> String {
    let database = tempfile::tempdir().unwrap();
    tools::run(rpm(database.path()).arg("--initdb"));
    if let Some(keys) = keys {
        tools::run(rpm(database.path()).arg("--import").arg(keys.path("public")));
    }
    tools::told(rpm(database.path()).arg("-K").arg(package))
}

fn rpm(database: &Path) -> Command {
    let mut command = Command::new("rpm");
    command.arg("--dbpath").arg(database);
    command
}

fn with_passphrase(keys: &Keys) -> Set {
    let passphrase = keys.path("passphrase");
    Set::with(&[
        "--sign-key",
        keys.path("secret").to_str().unwrap(),
        "--sign-passphrase-file",
        passphrase.to_str().unwrap(),
    ])
}

fn rpms(set: &Set) -> Vec<PathBuf> {
    names(&set.out()).iter().filter(|name| name.ends_with(".rpm")).map(|n| set.file(n)).collect()
}

#[test]
fn rpm_takes_the_signature_of_every_package() {
    tools::need(&["gpg", "gpgconf", "rpm"]);
    for (algorithm, shown) in [(STRETCHED, "RSA/SHA256"), ("ed25519", "EdDSA/SHA256")] {
        let keys = Keys::make(algorithm, "never");
        let set = with_passphrase(&keys);
        for package in rpms(&set) {
            let told = checked(Some(&keys), &package);
            assert!(told.contains("digests signatures OK"), "{algorithm}: {told}");
        }
        let package = set.rpm("rocm-blas");
        let told = checked(None, &package);
        assert!(told.contains("SIGNATURES NOT OK"), "without the key: {told}");
        let header = tools::told(Command::new("rpm").args(["-qpi"]).arg(&package));
        assert!(header.contains(shown), "{algorithm}: {header}");
        // The signature covers the header.
        let mut bytes = fs::read(&package).unwrap();
        let at = bytes.windows(9).position(|window| window == b"libraries").unwrap();
        bytes[at] = b'L';
        let damaged = set.scratch("damaged.rpm");
        fs::write(&damaged, bytes).unwrap();
        let told = checked(Some(&keys), &damaged);
        assert!(told.contains("DIGESTS SIGNATURES NOT OK"), "{told}");
    }
}

#[test]
fn a_signature_changes_nothing_else_and_is_the_same_again() {
    tools::need(&["gpg", "gpgconf", "rpm"]);
    let keys = Keys::make("ed25519", "never");
    let (one, other) = (with_passphrase(&keys), with_passphrase(&keys));
    let plain = Set::build();
    for package in ["rocm-blas", "rocm-blas-gfx110x", "rocm"] {
        let [one, other, plain] =
            [&one, &other, &plain].map(|set| fs::read(set.rpm(package)).unwrap());
        assert!(one == other, "{package}");
        assert_eq!(one.len(), plain.len(), "{package}");
        let at = header_offset(&plain);
        assert_eq!(header_offset(&one), at);
        assert!(one[at..] == plain[at..] && one[..at] != plain[..at], "{package}");
    }
}

fn header_offset(package: &[u8]) -> usize {
    let magic = b"\x8e\xad\xe8\x01";
    let starts = package.windows(4).enumerate().filter(|(_, window)| window == magic);
    starts.map(|(at, _)| at).nth(1).unwrap()
}

/// Runs a build with options for signing, which must fail and leave no output folder; returns the error.
fn refused(options: &[&str], passphrase: Option<&str>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut build = build_of(&shards(), &out);
    build.args(options).env_remove(VARIABLE);
    if let Some(passphrase) = passphrase {
        build.env(VARIABLE, passphrase);
    }
    let Output { status, stdout, stderr } = build.output().unwrap();
    assert!(matches!(status.code(), Some(2 | 64)), "{options:?}: {status}");
    assert!(stdout.is_empty() && !out.exists(), "{options:?}");
    String::from_utf8(stderr).unwrap()
}

#[test]
fn keys_that_cannot_sign_are_refused_before_anything_is_written() {
    tools::need(&["gpg", "gpgconf"]);
    let keys = Keys::make("ed25519", "never");
    assert!(refused_key(&keys, "public", None).contains("has no secret part"));
    assert!(refused_key(&keys, "secret", None).contains("needs a passphrase"));
    assert!(refused_key(&keys, "nowhere", None).contains("cannot open"));
    fs::write(keys.path("text"), "no key").unwrap();
    assert!(refused_key(&keys, "text", None).contains("is not an OpenPGP key"));
    let secret = fs::read(keys.path("secret")).unwrap();
    fs::write(keys.path("cut"), &secret[..secret.len() / 2]).unwrap();
    assert!(refused_key(&keys, "cut", Some(PASSPHRASE)).contains("OpenPGP key"));
    let wrong = refused_key(&keys, "secret", Some("another secret"));
    assert!(wrong.contains("does not open"), "{wrong}");
    assert!(!wrong.contains("another secret"), "a passphrase is never shown: {wrong}");
    // Only the modulus counts, without its framing.
    for algorithm in ["rsa1024", "rsa2016"] {
        let keys = Keys::make(algorithm, "never");
        let small = keys.path("secret");
        let told = refused(&["--sign-key", small.to_str().unwrap()], Some(PASSPHRASE));
        assert!(told.contains("fewer than 2048 bits"), "{algorithm}: {told}");
    }
}

fn refused_key(keys: &Keys, name: &str, passphrase: Option<&str>) -> String {
    refused(&["--sign-key", keys.path(name).to_str().unwrap()], passphrase)
}

/// A package states as the time of its signature the date of its content, or SOURCE_DATE_EPOCH.
#[test]
fn keys_that_may_not_sign_are_refused_before_anything_is_written() {
    tools::need(&["gpg", "gpgconf"]);
    let told = |keys: &Keys, file: &str| {
        let key = keys.path(file).to_str().unwrap().to_owned();
        let told = refused(&["--sign-key", &key], Some(PASSPHRASE));
        told.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let in_2023 = ["--faked-system-time", "20230101T000000"];
    let expired = Keys::for_use("ed25519", ("sign", "2023-12-31"), &in_2023);
    let why = "the key is expired at the time of the signature";
    let shown = told(&expired, "secret");
    assert!(shown.contains(why) && shown.contains("SOURCE_DATE_EPOCH"), "{shown}");

    let certifies = Keys::for_use("ed25519", ("cert", "never"), &[]);
    let shown = told(&certifies, "secret");
    assert!(shown.contains("no part of the key in the file may sign"), "{shown}");
    // A subkey for encryption does not change that.
    let fingerprint = certifies.fingerprint();
    let mut add = certifies.gpg();
    tools::run(add.args(["--quick-add-key", &fingerprint, "cv25519", "encr", "never"]));
    certifies.export("--export-secret-keys", "with-subkey");
    let shown = told(&certifies, "with-subkey");
    assert!(shown.contains("no part of the key in the file may sign"), "{shown}");

    // gpg writes a revocation with every key, with a colon in front to prevent accidental use.
    let revoked = Keys::make("ed25519", "never");
    let place = format!("openpgp-revocs.d/{}.rev", revoked.fingerprint());
    let text = fs::read_to_string(revoked.path(&place)).unwrap();
    fs::write(revoked.path("revocation"), text.replace("\n:-----", "\n-----")).unwrap();
    tools::run(revoked.gpg().arg("--import").arg(revoked.path("revocation")));
    revoked.export("--export-secret-keys", "secret");
    let shown = told(&revoked, "secret");
    assert!(shown.contains("the key is revoked"), "{shown}");
}

#[test]
fn the_environment_brings_a_passphrase_and_a_subkey_signs_for_an_absent_primary_key() {
    tools::need(&["gpg", "gpgconf", "rpm"]);
    let keys = Keys::make("rsa3072", "never");
    stretch_little(keys.0.path());
    let fingerprint = keys.fingerprint();
    tools::run(keys.gpg().args(["--quick-add-key", &fingerprint, "ed25519", "sign", "never"]));
    keys.export("--export-secret-subkeys", "secret");
    keys.export("--export", "public");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut build = build_of(&shards(), &out);
    build.args(["--format", "rpm", "--sign-key"]).arg(keys.path("secret"));
    tools::run(build.env(VARIABLE, PASSPHRASE));
    let package = out.join("rocm-7.1.0-1.x86_64.rpm");
    let told = checked(Some(&keys), &package);
    assert!(told.contains("digests signatures OK"), "{told}");
    let header = tools::told(Command::new("rpm").args(["-qpi"]).arg(&package));
    assert!(header.contains("EdDSA/SHA256"), "the subkey: {header}");
}
