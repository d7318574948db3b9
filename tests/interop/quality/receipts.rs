//! Signatures of receipts: gpg and sqv accept them, and they appear and disappear with their receipts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::example::{build_of, names, rockpack, shards};
use support::fat_wheels::{Made, fat};
use support::gpg_keys::{Key, key};
use support::tools::{have, need, run, said, told};

/// `rockpack build` of the example's `.deb` packages into `out`.
fn build(out: &Path, options: &[&str]) -> Command {
    let mut build = build_of(&shards(), out);
    build.args(["--format", "deb"]).args(options).env("SOURCE_DATE_EPOCH", "1700000000");
    build
}

fn secret(key: &Key) -> &str {
    key.secret.to_str().unwrap()
}

fn signature(receipt: &Path) -> PathBuf {
    receipt.with_extension("json.asc")
}

/// Asserts that gpg and sqv accept the signature of `receipt` by `key`, and not of other bytes.
#[track_caller]
fn is_signed(receipt: &Path, key: &Key) {
    let other = receipt.with_extension("other");
    fs::write(&other, [&fs::read(receipt).unwrap()[..], b"\n"].concat()).unwrap();
    let mut judges = vec![vec!["gpg", "--batch", "--verify"]];
    judges.extend(have(&["sqv"]).then(|| vec!["sqv", "--keyring", key.public.to_str().unwrap()]));
    for judge in judges {
        let judged = |file: &Path| {
            let mut command = Command::new(judge[0]);
            command.env("GNUPGHOME", &key.home);
            match judge[..] {
                // sqv takes several keyrings, so files come first.
                ["sqv", ..] => command.arg(signature(receipt)).arg(file).args(&judge[1..]),
                _ => command.args(&judge[1..]).arg(signature(receipt)).arg(file),
            };
            told(&mut command)
        };
        let good = judged(receipt);
        assert!(good.ends_with("exit status: 0\n"), "{judge:?}: {good}");
        assert!(!judged(&other).ends_with("exit status: 0\n"), "{judge:?}");
    }
    fs::remove_file(other).unwrap();
}

#[test]
fn the_signature_of_a_receipt_comes_and_goes_with_it() {
    need(&["gpg", "gpgconf"]);
    let room = tempfile::tempdir().unwrap();
    let own = key(room.path(), "own", "ed25519");
    let [one, other] = ["one", "other"].map(|name| room.path().join(name).join("packages.json"));
    for receipt in [&one, &other] {
        run(&mut build(receipt.parent().unwrap(), &["--sign-key", secret(&own)]));
        is_signed(receipt, &own);
    }
    assert_eq!(fs::read(signature(&one)).unwrap(), fs::read(signature(&other)).unwrap());
    // Another signer replaces it, and a build without a signer removes it.
    let out = one.parent().unwrap();
    let mut by_gpg = build(out, &["--gpg-key-id", "own@example.org"]);
    run(by_gpg.env("GNUPGHOME", &own.home));
    is_signed(&one, &own);
    let shown = said(&mut build(out, &[]));
    assert!(shown.contains("removed packages.json.asc of the earlier set"), "{shown}");
    assert!(!signature(&one).exists());
    // Another file with its name is neither replaced nor left next to a new receipt.
    fs::write(signature(&one), "notes").unwrap();
    for options in [&["--sign-key", secret(&own)][..], &[]] {
        let shown = told(&mut build(out, options));
        assert!(shown.contains("json.asc: is not an armored OpenPGP signature"), "{shown}");
    }
    // A signer that fails is refused before the build.
    let public = own.public.to_str().unwrap();
    let failing = ["--sign-command", "false {mode}", "--public-key", public];
    let shown = told(&mut build(&room.path().join("failed"), &failing));
    assert!(shown.contains("false failed") && !room.path().join("failed").exists(), "{shown}");
}

#[test]
fn parts_sign_themselves_and_verify_signs_the_joined_receipt() {
    need(&["gpg", "gpgconf"]);
    let room = tempfile::tempdir().unwrap();
    let own = key(room.path(), "own", "ed25519");
    let sign = ["--sign-key", secret(&own)];
    let (out, whole) = (room.path().join("parts"), room.path().join("whole"));
    run(&mut build(&whole, &sign));
    for index in [1, 2] {
        run(build(&out, &sign).args(["--partition", &format!("{index}/2")]));
        is_signed(&out.join(format!("packages-{index}-of-2.json")), &own);
    }
    let join = |file: &str, options: &[&str]| {
        let mut verify = rockpack();
        verify.arg("verify").arg(&out).arg("--join").arg(room.path().join(file)).args(options);
        verify.env("SOURCE_DATE_EPOCH", "1700000000");
        verify
    };
    // The second run finds what the first one wrote.
    for _ in 0..2 {
        let shown = said(&mut join("joined.json", &sign));
        assert!(shown.contains(", written with a signature"), "{shown}");
    }
    let joined = room.path().join("joined.json");
    is_signed(&joined, &own);
    assert_eq!(
        fs::read(signature(&joined)).unwrap(),
        fs::read(signature(&whole.join("packages.json"))).unwrap()
    );
    let shown = run(join("plain.json", &[]).arg("--json")).stdout;
    let shown: Value = serde_json::from_slice(&shown).unwrap();
    assert_eq!(shown["joined"]["signed"], false);
    assert!(!room.path().join("plain.json.asc").exists());
    // Neither file appears if one of them cannot.
    fs::write(room.path().join("taken.json"), "{}").unwrap();
    fs::write(room.path().join("beside.json.asc"), "notes").unwrap();
    for (file, options) in
        [("taken.json", &sign[..]), ("beside.json", &sign[..]), ("beside.json", &[][..])]
    {
        let shown = told(&mut join(file, options));
        assert!(shown.contains("already exists") || shown.contains("is there already"), "{shown}");
    }
    let left = names(room.path());
    assert!(!left.contains("taken.json.asc") && !left.contains("beside.json"), "{left:?}");
    let shown = told(rockpack().arg("verify").arg(&out).args(sign));
    assert!(shown.contains("only the receipt that --join writes is signed"), "{shown}");
    assert!(shown.contains("exit status: 64"), "{shown}");
}

#[test]
fn the_receipt_of_wheels_is_signed() {
    need(&["gpg", "gpgconf"]);
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let own = key(room.path(), "own", "ed25519");
    let made = Made::of(&fat(), &["--sign-key", secret(&own)]);
    is_signed(&made.out().join("wheels.json"), &own);
}
