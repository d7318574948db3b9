//! Keys that speak of themselves in signatures which clients refuse.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::gpg_keys::key;
use support::repo_fixture::{
    client_file, deb, failed_checks, publish, refused, repo_at, verify_by,
};
use support::tools::{need, repository, run, succeed, told};

use crate::clients_apt::{Root, need_all};
use crate::key_lives::Ring;

/// The output without line breaks and frames.
fn in_one_line(said: &str) -> String {
    said.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// gpg on a day, signing keys by an algorithm.
fn by(ring: &Ring, day: &str, digest: &str) -> Command {
    let mut gpg = ring.gpg(day);
    gpg.args(["--cert-digest-algo", digest, "--allow-weak-digest-algos"]);
    gpg
}

/// A key whose user id is signed by an algorithm.
fn made_by(ring: &Ring, name: &str, digest: &str, usage: &str) -> String {
    let user = format!("{name} <{name}@example.org>");
    let make = ["--quick-generate-key", &user, "rsa2048", usage, "never"];
    run(by(ring, "20230101", digest).args(make));
    ring.fingerprint(name)
}

/// A ring with one such key, and its fingerprint.
fn ring_of_one(digest: &str) -> (Ring, String) {
    let ring = Ring::with(&format!("own-{digest}-sign"), |ring| {
        made_by(ring, "own", digest, "sign");
    });
    let own = ring.fingerprint("own");
    (ring, own)
}

/// Adds a subkey of RSA on the day after [`made_by`].
fn add_subkey(ring: &Ring, key: &str, usage: &str, digest: &str) {
    let add = ["--quick-add-key", key, "rsa2048", usage, "never"];
    run(by(ring, "20230102", digest).args(add));
}

/// Runs of `repo` that sign by a key of the ring, in each of the ways to do so, with their folders below
/// `room`.
fn ways(ring: &Ring, own: &str, room: &Path) -> [(Command, PathBuf); 3] {
    let one = deb(room, ("one", "1", "amd64"), "");
    let secret = ring.export(&["--export-secret-keys", own], "own.secret");
    let public = ring.export(&["--export", own], "own.public");
    let command = format!(
        "gpg --batch --yes --allow-weak-digest-algos --local-user {own} --armor --{{mode}}"
    );
    [0, 1, 2].map(|way| {
        let out = room.join(format!("out{way}"));
        let mut repo = repo_at(&[&one], &out, 0);
        match way {
            0 => repo.arg("--sign-key").arg(&secret),
            1 => repo.args(["--gpg-key-id", own]),
            _ => repo.args(["--sign-command", &command, "--public-key"]).arg(&public),
        };
        repo.env("GNUPGHOME", ring.home());
        (repo, out)
    })
}

/// The key is refused in every way to sign, for `fault`, and once `remedy` was run it signs.
#[track_caller]
fn is_refused_until(ring: &Ring, own: &str, fault: &str, remedy: &str) {
    let room = tempfile::tempdir().unwrap();
    for (mut repo, out) in ways(ring, own, room.path()) {
        let (said, code) = refused(&mut repo);
        let said = in_one_line(&said);
        assert_eq!(code, 64, "{said}");
        for part in [fault, own, &format!("`gpg {remedy}`"), "apt of Debian 13"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!out.join("dists").exists(), "{said}");
    }
    run(ring.gpg("20230201").args(remedy.split(' ')));
    signs(ring, own);
}

#[track_caller]
fn signs(ring: &Ring, own: &str) {
    let room = tempfile::tempdir().unwrap();
    for (mut repo, out) in ways(ring, own, room.path()) {
        let said = publish(&mut repo);
        assert!(!said.contains("R101"), "{said}");
        assert!(
            verify_by(&out, &client_file(&out, "archive-keyring.asc")).contains("checks passed")
        );
    }
}

#[test]
fn a_user_id_signed_by_a_broken_digest_is_refused_until_it_is_signed_anew() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let digests =
        [("SHA1", "SHA-1"), ("MD5", "MD5"), ("RIPEMD160", "RIPEMD-160"), ("SHA224", "SHA-224")];
    for (digest, name) in digests {
        let (ring, own) = ring_of_one(digest);
        let fault = format!("the key's signature of its own user id uses {name}:");
        // gpg itself passes over signatures by MD5.
        let allow = if digest == "MD5" { " --allow-weak-digest-algos" } else { "" };
        let remedy = format!("--cert-digest-algo SHA256{allow} --quick-set-expire {own} never");
        is_refused_until(&ring, &own, &fault, &remedy);
    }
    // The life of the key does not change.
    let ring = Ring::new();
    let make = ["--quick-generate-key", "own <own@example.org>", "ed25519", "sign"];
    run(by(&ring, "20230101", "SHA1").args(make).arg("20330301T000000"));
    let own = ring.fingerprint("own");
    let remedy = format!("--cert-digest-algo SHA256 --quick-set-expire {own} 20330301T000000");
    is_refused_until(&ring, &own, "uses SHA-1", &remedy);
    let shown = succeed(ring.gpg("20230301").args(["--list-keys", &own]));
    assert!(shown.contains("2033-03-01"), "{shown}");
}

/// gpg ends with an error where it is to renew a signature of version 3.
#[test]
fn a_user_id_signed_in_version_3_is_refused_until_there_is_another() {
    need(&["gpg", "gpgconf", "dpkg-deb", "python3"]);
    let maker = Ring::with("own-rsa2048-sign", |ring| {
        ring.key("own", "rsa2048", "sign", "never");
    });
    let (own, ring) = (maker.fingerprint("own"), Ring::new());
    let secret = maker.export(&["--export-secret-keys", &own], "own.secret");
    let script = repository("tests/support/version_3_key.py");
    let made = run(Command::new("python3").arg(script).arg(secret)).stdout;
    let file = ring.home().join("version-3.secret");
    fs::write(&file, made).unwrap();
    run(ring.gpg("20230101").arg("--import").arg(&file));
    let room = tempfile::tempdir().unwrap();
    let remedy = format!("gpg --cert-digest-algo SHA256 --quick-add-uid {own} 'NAME <ADDRESS>'");
    for (mut repo, out) in ways(&ring, &own, room.path()) {
        let (said, code) = refused(&mut repo);
        let said = in_one_line(&said);
        assert!(code == 64 && !out.join("dists").exists(), "{said}");
        assert!(said.contains("user id is of version 3") && said.contains(&remedy), "{said}");
    }
    let add = ["--cert-digest-algo", "SHA256", "--quick-add-uid", &own, "NAME <ADDRESS>"];
    run(ring.gpg("20230201").args(add));
    signs(&ring, &own);
}

/// Clients judge the primary key as well as the subkey that signs.
#[test]
fn a_weak_primary_key_and_one_of_the_future_sign_nothing() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let good = key(room.path(), "good", "ed25519");
    let refused_for = |ring: &Ring, own: &str, fault: &str| {
        for (mut repo, out) in ways(ring, own, room.path()) {
            let (said, code) = refused(&mut repo);
            let said = in_one_line(&said);
            assert!(code == 64 && said.contains(fault), "{said}");
            assert!(!out.join("dists").exists());
        }
        // Beside another key it is a warning.
        let out = room.path().join(own);
        let mut repo = repo_at(&[&one], &out, 0);
        repo.arg("--sign-key").arg(&good.secret).arg("--public-key");
        let said = in_one_line(&publish(repo.arg(ring.home().join("own.public"))));
        assert!(said.contains("R101") && said.contains(fault), "{said}");
    };
    for (algorithm, fault) in
        [("rsa1024", "the key is RSA with fewer than 2048 bits"), ("dsa1024", "the key is of DSA")]
    {
        let ring = Ring::with(&format!("own-{algorithm}-rsa2048"), |ring| {
            let own = "own <own@example.org>";
            let make = ["--quick-generate-key", own, algorithm, "cert", "never"];
            run(by(ring, "20230101", "SHA256").args(make));
            // A day later: the clock of the first call runs on while it makes the key.
            add_subkey(ring, &ring.fingerprint("own"), "sign", "SHA256");
        });
        refused_for(&ring, &ring.fingerprint("own"), fault);
    }
    let ring = Ring::new();
    let make = ["--quick-generate-key", "own <own@example.org>", "ed25519", "sign", "never"];
    run(by(&ring, "20500101", "SHA256").args(make));
    let own = ring.fingerprint("own");
    refused_for(&ring, &own, "the key was made on Sat, 01 Jan 2050 00:00:00 UTC, more than a day");
}

#[test]
fn a_subkey_bound_by_a_broken_digest_is_refused_until_there_is_another() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    for (usage, digest, name) in
        [("cert", "SHA224", "SHA-224"), ("sign", "RIPEMD160", "RIPEMD-160")]
    {
        let ring = Ring::with(&format!("own-{usage}-bound-{digest}"), |ring| {
            add_subkey(ring, &made_by(ring, "own", "SHA256", usage), "sign", digest);
        });
        let own = ring.fingerprint("own");
        let remedy = format!("--cert-digest-algo SHA256 --quick-add-key {own} rsa4096 sign");
        is_refused_until(&ring, &own, &format!("uses {name}:"), &remedy);
    }
}

#[test]
fn what_clients_do_not_look_at_or_take_is_no_fault() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    for digest in ["SHA256", "SHA384", "SHA512"] {
        let (ring, own) = ring_of_one(digest);
        signs(&ring, &own);
    }
    let ring = Ring::new();
    let own = ring.key("own", "ed25519", "sign", "never");
    let add = ["--quick-add-key", &own, "cv25519", "encr", "never"];
    run(by(&ring, "20230102", "SHA1").args(add));
    signs(&ring, &own);
    let (ring, own) = ring_of_one("SHA256");
    // A subkey that does not sign, another user id, and one that was taken back.
    add_subkey(&ring, &own, "encr", "SHA1");
    run(by(&ring, "20230103", "SHA1").args(["--quick-add-uid", &own, "two <two@example.org>"]));
    signs(&ring, &own);
    // A signature of another key over it.
    made_by(&ring, "other", "SHA256", "cert");
    run(by(&ring, "20230104", "SHA224").args(["--local-user", "other", "--quick-sign-key", &own]));
    signs(&ring, &own);
}

#[test]
fn beside_the_key_that_signs_it_is_a_warning() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let own = key(room.path(), "own", "ed25519");
    let ring = Ring::with("old-SHA1-new-SHA256", |ring| {
        made_by(ring, "old", "SHA1", "sign");
        made_by(ring, "new", "SHA256", "sign");
    });
    let [weak, strong] = ["old", "new"].map(|name| ring.fingerprint(name));
    let [weak_file, strong_file] = [(&weak, "weak"), (&strong, "strong")]
        .map(|(key, name)| ring.export(&["--export", key], &format!("{name}.public")));
    let out = room.path().join("out");
    let said = in_one_line(&publish_beside(&one, &out, 0, &own.secret, &weak_file));
    assert!(said.contains("R101") && said.contains(&weak) && said.contains("SHA-1"), "{said}");
    assert!(!publish_beside(&one, &out, 1, &own.secret, &strong_file).contains("R101"));
    // Both in one file, in one block and in two.
    let both = ring.export(&["--export", &weak, &strong], "both.public");
    let joined = ring.home().join("joined.public");
    let texts = [&strong_file, &weak_file].map(|file| fs::read(file).unwrap());
    fs::write(&joined, texts.concat()).unwrap();
    for (after, file) in [(2, &both), (3, &joined)] {
        assert!(publish_beside(&one, &out, after, &own.secret, file).contains("R101"));
        // Behind a command, the one that signs decides.
        for (by, is_taken) in [(&strong, true), (&weak, false)] {
            let command = format!("gpg --batch --yes --local-user {by} --armor --{{mode}}");
            let out = room.path().join(format!("{after}{is_taken}"));
            let mut repo = repo_at(&[&one], &out, 0);
            repo.args(["--sign-command", &command, "--public-key"]).arg(file);
            repo.env("GNUPGHOME", ring.home());
            let said = if is_taken { publish(&mut repo) } else { refused(&mut repo).0 };
            assert!(said.contains("R101") && said.contains("SHA-1"), "{said}");
        }
    }
}

fn publish_beside(package: &Path, out: &Path, after: i64, key: &Path, also: &Path) -> String {
    let mut repo = repo_at(&[package], out, after);
    publish(repo.arg("--sign-key").arg(key).arg("--public-key").arg(also))
}

/// The signatures that a signing program writes must not use a broken digest either.
#[test]
fn a_command_that_signs_by_a_broken_digest_is_refused() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let own = key(room.path(), "own", "rsa3072");
    for (digest, is_taken) in [("SHA1", false), ("SHA224", false), ("SHA384", true)] {
        let out = room.path().join(digest);
        let command = format!("gpg --batch --yes --digest-algo {digest} --armor --{{mode}}");
        let mut repo = repo_at(&[&one], &out, 0);
        repo.args(["--sign-command", &command, "--public-key"]).arg(&own.public);
        repo.env("GNUPGHOME", &own.home);
        if is_taken {
            publish(&mut repo);
        } else {
            let said = in_one_line(&refused(&mut repo).0);
            assert!(said.contains("the signature that gpg wrote uses SHA-"), "{said}");
            assert!(!out.join("dists").exists());
        }
    }
}

/// A signature of version 3, of which nothing else is looked at.
const VERSION_3: &str = "\
-----BEGIN PGP SIGNATURE-----

iBYDBQBjsM0AAQIDBAUGBwgBCAAAAAEB
=KOAv
-----END PGP SIGNATURE-----
";

/// gpg before 2.1 may write these.
#[test]
fn a_command_that_signs_in_version_3_is_refused() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let own = key(room.path(), "own", "rsa3072");
    let signature = room.path().join("signature");
    fs::write(&signature, VERSION_3).unwrap();
    let script = room.path().join("script");
    fs::write(&script, format!("cat '{}'\n", signature.display())).unwrap();
    let command = format!("sh {} {{mode}}", script.display());
    let out = room.path().join("out");
    let mut repo = repo_at(&[&one], &out, 0);
    repo.args(["--sign-command", &command, "--public-key"]).arg(&own.public);
    let said = in_one_line(&refused(&mut repo).0);
    assert!(said.contains("the signature that sh wrote is of version 3"), "{said}");
    assert!(said.contains("--no-force-v3-sigs") && !said.contains("--digest-algo"), "{said}");
}

/// A weak key, a good one, one whose subkey is bound weakly, and one with weak signatures that do not count.
fn ring_of_four() -> Ring {
    Ring::with("weak-good-bound-mixed", |ring| {
        made_by(ring, "weak", "SHA1", "sign");
        made_by(ring, "good", "SHA256", "sign");
        add_subkey(ring, &made_by(ring, "bound", "SHA256", "cert"), "sign", "SHA224");
        let mixed = made_by(ring, "mixed", "SHA256", "sign");
        add_subkey(ring, &mixed, "encr", "SHA1");
        let add = ["--quick-add-uid", &mixed, "two <two@example.org>"];
        run(by(ring, "20230103", "SHA1").args(add));
    })
}

/// The keys that are refused are those that apt of Debian 13 refuses.
#[test]
fn apt_of_debian_13_agrees() {
    need_all();
    let root = Root::of("trixie");
    let ring = ring_of_four();
    let [weak, bound, mixed] = ["weak", "bound", "mixed"].map(|name| ring.fingerprint(name));
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("rocm-one", "1", "amd64"), "");
    let good = key(room.path(), "good", "ed25519");
    let out: PathBuf = root.folder.join("srv/repository");
    fs::create_dir_all(&out).unwrap();
    let mut repo = repo_at(&[&one], &out, 0);
    repo.args(["--url", "file:/srv/repository", "--sign-key"]).arg(&good.secret);
    publish(&mut repo);
    let said = told_of_key(&root, &ring, &weak);
    assert!(said.contains("SHA1 is not considered secure") && !said.ends_with("status: 0\n"));
    run(ring
        .gpg("20230201")
        .args(["--cert-digest-algo", "SHA256", "--quick-set-expire"])
        .args([weak.as_str(), "never"]));
    let said = told_of_key(&root, &ring, &weak);
    assert!(said.ends_with("exit status: 0\n"), "{said}");
    assert!(told_of_key(&root, &ring, &bound).contains("SHA224 is not considered secure"));
    // apt accepts keys without a fault.
    let said = told_of_key(&root, &ring, &mixed);
    assert!(said.ends_with("exit status: 0\n"), "{said}");
}

/// Signs the repository by a key, and returns the output of apt.
fn told_of_key(root: &Root, ring: &Ring, own: &str) -> String {
    let out = root.folder.join("srv/repository");
    let suite = out.join("dists/stable");
    let keyring = client_file(&out, "archive-keyring.asc");
    fs::copy(ring.export(&["--export", own], "own.public"), keyring).unwrap();
    run(ring.gpg("20231115").args(["--local-user", own, "--armor", "--clear-sign"]).args([
        "--output".as_ref(),
        suite.join("InRelease").as_os_str(),
        suite.join("Release").as_os_str(),
    ]));
    root.trust(&out);
    told(&mut root.apt(&["update"]))
}

/// `verify` reads a repository of another tool as clients do.
#[test]
fn verify_names_what_is_good_and_refused_by_clients() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let (room, ring) = (tempfile::tempdir().unwrap(), ring_of_four());
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let [weak, good, bound] = ["weak", "good", "bound"].map(|name| ring.fingerprint(name));
    let files = [&weak, &good, &bound].map(|key| ring.export(&["--export", key], &key[..8]));
    let secret = ring.export(&["--export-secret-keys", &good], "good.secret");
    let out = room.path().join("out");
    publish(repo_at(&[&one], &out, 0).arg("--sign-key").arg(&secret));
    let suite = out.join("dists/stable");
    let signed = |by: &[&String], digest: &str, key: &Path| {
        for (how, file) in [("--clear-sign", "InRelease"), ("--detach-sign", "Release.gpg")] {
            let mut gpg = ring.gpg("20231115");
            for key in by {
                gpg.args(["--local-user", key]);
            }
            gpg.args(["--digest-algo", digest, "--armor", "--output"]).arg(suite.join(file));
            run(gpg.arg(how).arg(suite.join("Release")));
        }
        verify_by(&out, key)
    };
    let cases: [(&[&String], &str, &Path, &str); 6] = [
        (&[&good], "SHA512", &files[1], ""),
        (
            &[&weak],
            "SHA512",
            &files[0],
            "is by a key that clients refuse (the key's signature of its own user id uses SHA-1)",
        ),
        (
            &[&bound],
            "SHA512",
            &files[2],
            "is by a key that clients refuse (the signature that binds its subkey",
        ),
        (&[&good], "SHA1", &files[1], "uses SHA-1"),
        // Another signature by a trusted key is enough.
        (&[&weak, &good], "SHA512", &files[1], ""),
        (
            &[&weak, &good],
            "SHA512",
            &files[0],
            "is by a key that clients refuse (the key's signature of its own user id",
        ),
    ];
    for (by, digest, key, fault) in cases {
        let said = signed(by, digest, key);
        if fault.is_empty() {
            assert!(said.contains("2 good signatures") && said.contains("passed"), "{said}");
            continue;
        }
        // The keyring has both keys, if there are two.
        let codes = if by.len() == 1 { &["V074", "V104"][..] } else { &["V074"] };
        assert_eq!(failed_checks(&said), codes, "{said}");
        for file in ["InRelease", "Release.gpg"] {
            let part = format!("dists/stable/{file}: has a signature that {fault}");
            assert!(said.contains(&part), "{file}: {said}");
        }
        assert!(said.contains("apt of Debian 13"), "{said}");
    }
}
