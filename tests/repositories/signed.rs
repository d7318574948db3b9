//! Signing keys, and how clients get them.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::gpg_keys::{Key, key};
use support::repo_fixture::{
    client_file, deb, plain_spec, publish, refused, repo, repo_at, rpm, verify_by,
};
use support::tools::{need, run, succeed};
use tempfile::TempDir;

/// `rockpack repo` with a key in a file.
fn signed_at(packages: &[&Path], out: &Path, after: i64, by: &Key) -> Command {
    let mut repo = repo_at(packages, out, after);
    repo.arg("--sign-key").arg(&by.secret);
    repo
}

/// rpm with a database that has one key.
struct Trust(TempDir);

impl Trust {
    fn of(key: &Key) -> Self {
        let trust = Self(tempfile::tempdir().unwrap());
        run(trust.rpmkeys().arg("--import").arg(&key.public));
        trust
    }

    fn rpmkeys(&self) -> Command {
        let mut rpmkeys = Command::new("rpmkeys");
        rpmkeys.arg("--dbpath").arg(self.0.path());
        rpmkeys
    }

    /// A package is whole and signed by that key.
    #[track_caller]
    fn takes(&self, package: &Path) {
        let said = succeed(self.rpmkeys().arg("-Kv").arg(package));
        assert!(said.contains("Signature, key ID"), "{said}");
        assert!(!said.contains("NOKEY") && !said.contains("BAD"), "{said}");
    }
}

/// gpg's own word on `InRelease`, `Release.gpg` and the key that is served.
fn gpg_agrees(out: &Path) {
    let room = tempfile::tempdir().unwrap();
    run(Command::new("chmod").arg("700").arg(room.path()));
    let gpg = || {
        let mut gpg = Command::new("gpg");
        gpg.env("GNUPGHOME", room.path()).args(["--batch", "--quiet"]);
        gpg
    };
    run(gpg().arg("--import").arg(client_file(out, "archive-keyring.asc")));
    let suite = out.join("dists/stable");
    run(gpg().arg("--verify").arg(suite.join("InRelease")));
    run(gpg().arg("--verify").arg(suite.join("Release.gpg")).arg(suite.join("Release")));
}

#[test]
fn keys_in_files_in_gpg_and_behind_a_command_all_sign() {
    need(&["gpg", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let own = key(room.path(), "own", "ed25519");
    let command = "gpg --batch --yes --local-user own@example.org --armor --{mode}";
    let public = own.public.to_str().unwrap();
    let ways: [(&str, Vec<&str>); 3] = [
        ("file", vec!["--sign-key", own.secret.to_str().unwrap()]),
        ("gpg", vec!["--gpg-key-id", "own@example.org"]),
        ("command", vec!["--sign-command", command, "--public-key", public]),
    ];
    for (name, options) in ways {
        let out = room.path().join(name);
        publish(repo(&[&one], &out).args(options).env("GNUPGHOME", &own.home));
        gpg_agrees(&out);
        let said = verify_by(&out, &own.public);
        assert!(said.contains("2 good signatures") && said.contains("passed"), "{name}: {said}");
    }
}

/// Unsigned packages and those that another key signed; rpm's own word on what is served.
#[test]
fn packages_are_signed_and_signed_anew_by_whatever_signs() {
    need(&["gpg", "rpmbuild", "rpmkeys"]);
    let room = tempfile::tempdir().unwrap();
    let plain = rpm(&room.path().join("packages"), &plain_spec("plain", "1", ""));
    let before = key(room.path(), "before", "rsa3072");
    let signed = room.path().join("signed");
    let mut first = repo(&[&plain], &signed);
    publish(first.args(["--sign-packages", "--sign-key"]).arg(&before.secret));
    let place = "packages/p/plain-1-1.noarch.rpm";
    for algorithm in ["ed25519", "rsa4096"] {
        let own = key(room.path(), algorithm, algorithm);
        let user = format!("{algorithm}@example.org");
        let command = format!("gpg --batch --yes --local-user {user} --armor --{{mode}}");
        let public = own.public.to_str().unwrap();
        let trust = Trust::of(&own);
        let ways: [&[&str]; 3] = [
            &["--sign-key", own.secret.to_str().unwrap()],
            &["--gpg-key-id", &user],
            &["--sign-command", &command, "--public-key", public],
        ];
        for (number, options) in ways.iter().enumerate() {
            for from in [&plain, &signed.join(place)] {
                let out = room.path().join("out");
                let _ = fs::remove_dir_all(&out);
                let mut repo = repo(&[from], &out);
                repo.arg("--sign-packages").args(*options).env("GNUPGHOME", &own.home);
                publish(repo.args(["--url", "https://example.org/rocm"]));
                note!("{algorithm} {number}");
                trust.takes(&out.join(place));
                let text = fs::read_to_string(client_file(&out, ".repo")).unwrap();
                assert!(text.contains("\ngpgcheck=1\nrepo_gpgcheck=1\n"), "{text}");
                let said = verify_by(&out, &own.public);
                assert!(said.contains("passed"), "{said}");
            }
        }
    }
}

#[test]
fn what_cannot_sign_is_named_and_nothing_is_published() {
    need(&["gpg", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let own = key(room.path(), "own", "ed25519");
    let out = room.path().join("out");
    let public = own.public.to_str().unwrap();
    let failing = ["--sign-command", "false {mode}", "--public-key", public];
    let silent = ["--sign-command", "true {mode}", "--public-key", public];
    let endless = room.path().join("endless.asc");
    fs::File::create(&endless).unwrap().set_len((16 << 20) + 1).unwrap();
    let endless = endless.to_str().unwrap();
    let of_command = ["--sign-command", "true {mode}", "--public-key", endless];
    let beside = ["--sign-key", own.secret.to_str().unwrap(), "--public-key", endless];
    let too_long = "endless.asc: OpenPGP key: has more than 16777216 bytes";
    let cases: [(&[&str], &str); 9] = [
        (&["--sign-key", public], "has no secret part"),
        (&["--sign-key", one.to_str().unwrap()], "is not an OpenPGP key"),
        (&["--gpg-key-id", "nobody@example.org"], "gpg"),
        (&failing, "false failed"),
        (&silent, "wrote no armoured signature"),
        (&of_command, too_long),
        (&beside, too_long),
        (&["--key-package", "1"], "needs a key"),
        (&["--sign-packages"], "needs a key"),
    ];
    for (options, reason) in cases {
        let (said, _) = refused(repo(&[&one], &out).args(options).env("GNUPGHOME", room.path()));
        assert!(said.contains(reason), "{options:?}: {said}");
        assert!(!out.join("dists").exists() && !out.join("pool").exists(), "{options:?}");
    }
    // Signed once, it is not published without a signature.
    publish(repo(&[&one], &out).arg("--sign-key").arg(&own.secret));
    let (said, _) = refused(&mut repo_at(&[], &out, 1));
    assert!(said.contains("the repository is signed"), "{said}");
}

#[test]
fn a_key_package_brings_the_old_and_the_new_key() {
    need(&["gpg", "dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let plain = rpm(room.path(), &plain_spec("plain", "1", ""));
    let (old, new) = (key(room.path(), "old", "ed25519"), key(room.path(), "new", "ed25519"));
    let out = room.path().join("out");
    let packages: [&Path; 2] = [&one, &plain];
    publish_keys(&packages, &out, 0, [&old, &new], "2025.1");
    let before = support::repo_fixture::contents(&out);
    publish_keys(&packages, &out, 0, [&old, &new], "2025.1");
    assert_eq!(
        support::repo_fixture::contents(&out),
        before,
        "the same keys give the same package"
    );
    let package = "pool/main/r/rocm-archive-keyring/rocm-archive-keyring_2025.1_all.deb";
    run(Command::new("dpkg-deb").arg("-x").arg(out.join(package)).arg(room.path().join("tree")));
    let keyring = room.path().join("tree/usr/share/keyrings/rocm-archive-keyring.asc");
    assert_eq!(
        fs::read(&keyring).unwrap(),
        fs::read(out.join("rocm-archive-keyring.asc")).unwrap()
    );
    let shown = succeed(Command::new("gpg").args(["--batch", "--show-keys"]).arg(&keyring));
    assert!(shown.contains("old@example.org") && shown.contains("new@example.org"), "{shown}");
    let files = "packages/r/rocm-archive-keyring-2025.1-1.noarch.rpm";
    let files = succeed(Command::new("rpm").arg("-qlp").arg(out.join(files)));
    assert_eq!(files.trim(), "/etc/pki/rpm-gpg/RPM-GPG-KEY-rocm");
    // Who has that package goes on after the change.
    publish_keys(&packages, &out, 1, [&new, &old], "2025.2");
    assert!(verify_by(&out, &keyring).contains("all checks passed"));
}

fn publish_keys(packages: &[&Path], out: &Path, after: i64, [by, also]: [&Key; 2], version: &str) {
    let mut repo = signed_at(packages, out, after, by);
    repo.arg("--public-key").arg(&also.public).args([
        "--key-package",
        version,
        "--set",
        "name=rocm",
    ]);
    publish(&mut repo);
}

#[test]
fn a_key_package_makes_no_channel() {
    need(&["gpg", "dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let plain = rpm(room.path(), &plain_spec("plain", "1", ""));
    let own = key(room.path(), "own", "ed25519");
    let out = room.path().join("out");
    let (said, code) = refused(signed_at(&[], &out, 0, &own).args(["--key-package", "1"]));
    assert!(code == 64 && said.contains("there is nothing to publish"), "{said}");
    // It has to have a name.
    let (said, code) = refused(signed_at(&[&one], &out, 0, &own).args(["--key-package", "1"]));
    assert!(code == 64 && said.contains("needs a name") && !out.join("dists").exists(), "{said}");
    let name = ["--set", "name=rocm", "--key-package"];
    for (after, packages) in [(0, &[one.as_path()][..]), (1, &[])] {
        let version = after.to_string();
        publish(signed_at(packages, &out, after, &own).args(name).arg(&version));
        assert!(has_deb_of_key(&out, &version) && !out.join("repodata").exists(), "{after}");
    }
    // Not given packages, and not asked for.
    publish(signed_at(&[&one, &plain], &out, 2, &own).args(name).args(["2", "--rpm"]));
    assert!(has_rpm_of_key(&out, "2") && !has_deb_of_key(&out, "2"));
    publish(signed_at(&[&one], &out, 3, &own).args(["--key-package", "3"]));
    assert!(has_rpm_of_key(&out, "3") && has_deb_of_key(&out, "3"));
}

fn has_deb_of_key(out: &Path, version: &str) -> bool {
    let name = format!("rocm-archive-keyring_{version}_all.deb");
    out.join("pool/main/r/rocm-archive-keyring").join(name).exists()
}

fn has_rpm_of_key(out: &Path, version: &str) -> bool {
    out.join(format!("packages/r/rocm-archive-keyring-{version}-1.noarch.rpm")).exists()
}

/// Every package is the file that the index names, and rpm itself takes its signature.
fn packages_are_signed(out: &Path, by: &Key, names: &[&str]) {
    let said = verify_by(out, &by.public);
    assert!(said.contains("all checks passed"), "{said}");
    let trust = Trust::of(by);
    names.iter().for_each(|name| trust.takes(&out.join("packages").join(name)));
}

#[test]
fn a_key_package_beside_packages_that_are_signed_is_the_one_of_the_index() {
    need(&["gpg", "rpmbuild", "rpmkeys"]);
    let room = tempfile::tempdir().unwrap();
    let plain = rpm(room.path(), &plain_spec("plain", "1", ""));
    let own = key(room.path(), "own", "rsa3072");
    let names = ["p/plain-1-1.noarch.rpm", "r/rocm-archive-keyring-2025.1-1.noarch.rpm"];
    let ways = [["--sign-key", own.secret.to_str().unwrap()], ["--gpg-key-id", "own@example.org"]];
    for (number, way) in ways.into_iter().enumerate() {
        let out = room.path().join(format!("out{number}"));
        for (after, packages) in [(0, &[plain.as_path()][..]), (1, &[])] {
            let mut repo = repo_at(packages, &out, after);
            repo.args(["--sign-packages", "--set", "name=rocm", "--key-package", "2025.1"])
                .args(way);
            publish(repo.env("GNUPGHOME", &own.home));
            packages_are_signed(&out, &own, &names);
        }
    }
}

#[test]
fn a_package_that_would_come_back_signed_is_another_one() {
    need(&["gpg", "rpmbuild", "rpmkeys"]);
    let room = tempfile::tempdir().unwrap();
    let plain = rpm(room.path(), &plain_spec("plain", "1", ""));
    let rest = rpm(room.path(), &plain_spec("rest", "1", ""));
    let own = key(room.path(), "own", "ed25519");
    let out = room.path().join("out");
    publish(&mut signed_at(&[&plain, &rest], &out, 0, &own));
    // In one run, and in two.
    let options = ["--sign-packages", "--check", "--remove", "plain"];
    let (said, code) = refused(signed_at(&[&plain], &out, 1, &own).args(options));
    assert!(code == 2 && said.contains("has or had"), "{said}");
    publish(signed_at(&[], &out, 1, &own).args(["--remove", "plain"]));
    let (said, code) = refused(signed_at(&[&plain], &out, 2, &own).arg("--sign-packages"));
    assert!(code == 2 && said.contains("has or had"), "{said}");
    // As it was, it is the file that is still there.
    publish(&mut signed_at(&[&plain], &out, 3, &own));
    assert!(verify_by(&out, &own.public).contains("all checks passed"));
    // When nobody can have the index any more that named it, it may.
    publish(signed_at(&[], &out, 4, &own).args(["--remove", "plain", "--set", "generations=1"]));
    publish(signed_at(&[], &out, 4000, &own).args(["--set", "generations=1"]));
    publish(signed_at(&[&plain], &out, 4001, &own).arg("--sign-packages"));
    packages_are_signed(&out, &own, &["p/plain-1-1.noarch.rpm"]);
}

#[test]
fn a_key_package_is_named_as_the_repository_is() {
    need(&["gpg", "dpkg-deb", "rpm"]);
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let plain = rpm(room.path(), &plain_spec("plain", "1", ""));
    let own = key(room.path(), "own", "ed25519");
    let out = room.path().join("out");
    let url = "https://example.org/hip";
    publish(signed_at(&[&one], &out, 0, &own).args(["--set", "name=hip", "--url", url]));
    // A refused run makes nothing.
    refused(signed_at(&[], &out, 1, &own).args(["--key-package", "1", "--suite", "../x"]));
    assert!(!out.join(".rockpack/keyring").exists());
    // The rpm repository is new, and has the name of the other one.
    publish(signed_at(&[&plain], &out, 1, &own).args(["--key-package", "1", "--url", url]));
    let sources = fs::read_to_string(out.join("hip-stable.sources")).unwrap();
    let package = out.join("pool/main/h/hip-archive-keyring/hip-archive-keyring_1_all.deb");
    let files = succeed(Command::new("dpkg-deb").arg("--contents").arg(package));
    let path = "/usr/share/keyrings/hip-archive-keyring.asc";
    assert!(files.contains(&format!(".{path}\n")), "{files}");
    assert!(sources.contains(&format!("Signed-By: {path}\n")), "{sources}");
    assert!(!out.join("pool/main/r").exists());
    let package = out.join("packages/h/hip-archive-keyring-1-1.noarch.rpm");
    let files = succeed(Command::new("rpm").arg("-qlp").arg(package));
    assert_eq!(files.trim(), "/etc/pki/rpm-gpg/RPM-GPG-KEY-hip");
    let repo = fs::read_to_string(out.join("hip.repo")).unwrap();
    assert!(repo.contains(&format!("gpgkey={url}/hip-archive-keyring.asc\n")), "{repo}");
    assert!(verify_by(&out, &own.public).contains("all checks passed"));
}
