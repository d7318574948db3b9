//! Packages without signatures beside those that are signed.

use std::fs;
use std::path::Path;
use std::process::Command;

use ::rpm::IndexData;
use support::gpg_keys::key;
use support::headers::retagged;
use support::repo_fixture::{
    client_file, deb, plain_spec, publish, repo_at, rpm, verify, verify_by,
};
use support::tools::need;

const URL: [&str; 2] = ["--url", "https://example.org/rocm"];

/// The rule for unsigned packages in the `.repo` file.
fn gpgcheck(out: &Path) -> bool {
    fs::read_to_string(client_file(out, ".repo")).unwrap().contains("\ngpgcheck=1\n")
}

#[test]
fn packages_that_stay_unsigned_are_counted() {
    need(&["gpg", "dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let own = key(room.path(), "own", "ed25519");
    let out = room.path().join("out");
    let packages = ["plain", "other"]
        .map(|name| rpm(&room.path().join("packages"), &plain_spec(name, "1", "")));
    let given: Vec<&Path> = packages.iter().map(|path| path.as_path()).collect();
    let by = &own.secret;
    let both = "2 of 2 packages are unsigned";
    // Nobody asked for signatures, and clients with rpm 6 do.
    let said = publish(&mut signed_at(&given, &out, 0, by));
    assert!(said.contains("R102") && said.contains(both) && !gpgcheck(&out), "{said}");
    assert!(said.contains("rpm 6 refuses unsigned packages"), "{said}");
    // Without signed indexes, another finding says that there are none.
    let bare = room.path().join("bare");
    assert!(!publish(&mut repo_at(&given, &bare, 0)).contains("R102"));
    for (after, packages, more) in
        [(1, &[][..], &[][..]), (2, &given, &[]), (3, &given, &["--check"])]
    {
        let said = publish(signed_at(packages, &out, after, by).arg("--sign-packages").args(more));
        assert!(said.contains("R102") && said.contains(both), "{after}: {said}");
        assert!(said.contains("0 added") && said.contains("new release number"), "{said}");
        assert!(said.contains("packages/p/plain-1-1.noarch.rpm") && !gpgcheck(&out), "{said}");
    }
    // One of them anew; the finding stays while unsigned ones do.
    let anew = rpm(room.path(), &plain_spec("plain", "2", ""));
    let said = publish(signed_at(&[&anew], &out, 4, by).arg("--sign-packages"));
    assert!(said.contains("R102") && said.contains("2 of 3 packages are unsigned"), "{said}");
    // A run that adds to them is told, too.
    assert!(publish(&mut signed_at(&[], &out, 5, by)).contains("R102"));
    let anew = rpm(room.path(), &plain_spec("other", "2", ""));
    let said = publish(signed_at(&[&anew], &out, 6, by).args(["--sign-packages", "--keep", "1"]));
    assert!(!said.contains("R102") && gpgcheck(&out), "{said}");
    assert!(verify_by(&out, &own.public).contains("all checks passed"));
    // No .deb has a signature of its own.
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    assert!(!publish(signed_at(&[&one], &out, 7, by).arg("--sign-packages")).contains("R102"));
}

/// rpm 3 signed header and payload together.
#[test]
fn packages_that_are_signed_as_a_whole_are_signed() {
    need(&["gpg", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let own = key(room.path(), "own", "ed25519");
    let out = room.path().join("out");
    let package = rpm(room.path(), &plain_spec("old", "1", ""));
    let signature = IndexData::Bin(vec![0x88, 0]);
    let signed = retagged(&fs::read(&package).unwrap(), &[], &[(1005, signature)]);
    fs::write(&package, signed).unwrap();
    let said = publish(&mut signed_at(&[&package], &out, 0, &own.secret));
    assert!(!said.contains("R102") && !said.contains("R136") && gpgcheck(&out), "{said}");
    assert!(verify(&out).contains("all checks passed"));
    // Keys check the signature of the header, and there is none.
    let said = verify_by(&out, &own.public);
    assert!(said.contains("V074") && said.contains("has no signature of its header"), "{said}");
}

fn signed_at(packages: &[&Path], out: &Path, after: i64, key: &Path) -> Command {
    let mut repo = repo_at(packages, out, after);
    repo.arg("--sign-key").arg(key).args(URL);
    repo
}

/// rpm before 4.16 refuses all signatures by Ed25519.
#[test]
fn packages_signed_by_ed25519_are_told_of() {
    need(&["gpg", "dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let plain = rpm(room.path(), &plain_spec("plain", "1", ""));
    for (name, algorithm, is_told) in [("own", "ed25519", true), ("own", "rsa3072", false)] {
        let keys = room.path().join(algorithm);
        fs::create_dir(&keys).unwrap();
        let own = key(&keys, name, algorithm);
        let command = "gpg --batch --yes --armor --{mode}";
        let public = own.public.to_str().unwrap();
        let ways: [&[&str]; 3] = [
            &["--sign-key", own.secret.to_str().unwrap()],
            &["--gpg-key-id", "own@example.org"],
            &["--sign-command", command, "--public-key", public],
        ];
        for (number, way) in ways.into_iter().enumerate() {
            for (kind, package, more, is_told) in [
                ("signed", &plain, &["--sign-packages"][..], is_told),
                // Indexes by Ed25519 are taken by everybody, and a .deb has no signature.
                ("indexes", &plain, &[], false),
                ("deb", &one, &["--sign-packages"], false),
            ] {
                let out = room.path().join(format!("{algorithm}-{number}-{kind}"));
                let mut repo = repo_at(&[package], &out, 0);
                let said = publish(repo.args(way).args(more).env("GNUPGHOME", &own.home));
                assert_eq!(said.contains("R103"), is_told, "{said}");
                assert!(!is_told || said.contains("4.16"), "{said}");
            }
        }
    }
}

/// A build signs its packages, and joins those that are there.
#[test]
fn a_signed_build_beside_unsigned_packages_is_told() {
    need(&["gpg", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let own = key(room.path(), "own", "ed25519");
    let build = |out: &Path| {
        let mut build = support::example::rockpack();
        build.args(["build", "--artifacts"]).arg(support::example::shards());
        build.args(["--version", "7.1.0", "--format", "rpm", "--out"]);
        build.arg(room.path().join("built")).arg("--repo").arg(out);
        build.arg("--sign-key").arg(&own.secret);
        build.args(["--repo-set", "url=https://example.org/rocm"]);
        publish(&mut build)
    };
    let alone = room.path().join("alone");
    assert!(!build(&alone).contains("R102") && gpgcheck(&alone));
    let out = room.path().join("out");
    let plain = rpm(room.path(), &plain_spec("plain", "1", ""));
    publish(repo_at(&[&plain], &out, 0).arg("--sign-key").arg(&own.secret));
    let said = build(&out);
    assert!(said.contains("R102") && said.contains("1 of ") && !gpgcheck(&out), "{said}");
}
