//! Packages that rpm 6 refuses for their digests, and packages of format 6.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ::rpm::IndexData;
use rockpack_archive::rpm::RpmFront;
use rockpack_core::content::Content;
use support::example::rockpack;
use support::gpg_keys::key;
use support::headers::{remade, retagged, without_signature_tags};
use support::repo_fixture::{
    failed_checks, plain_spec, publish, refused, repo_at, rpm, verify, verify_by,
};
use support::tools::{need, need_root, run, succeed, told};
use support::{bases, python};

/// Packages, and what each lacks for rpm 6.
const LACKING: [(&str, Option<&str>); 3] =
    [("whole", None), ("headless", Some("header")), ("bare", Some("payload"))];

/// Tags of the digests of a payload.
const OF_PAYLOAD: [u32; 3] = [5092, 5093, 5097];

/// A package that lacks the digest of its header or of its payload.
fn lacking(folder: &Path, name: &str, digest: Option<&str>) -> PathBuf {
    let package = rpm(folder, &plain_spec(name, "1", ""));
    let bytes = fs::read(&package).unwrap();
    let changed = match digest {
        Some("header") => without_signature_tags(&bytes, &[273]),
        Some(_) => remade(
            &bytes,
            |tags| tags.into_iter().filter(|(tag, _)| !OF_PAYLOAD.contains(tag)).collect(),
            &[],
        ),
        None => bytes,
    };
    fs::write(&package, changed).unwrap();
    package
}

fn strictly_verified(out: &Path) -> String {
    told(rockpack().args(["verify", "--strict"]).arg(out))
}

/// Mirrors of old packages are possible, and told of.
#[test]
fn packages_without_a_digest_are_named() {
    need(&["gpg", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let own = key(room.path(), "own", "rsa3072");
    for (name, digest) in LACKING {
        let package = lacking(&room.path().join("packages"), name, digest);
        let out = room.path().join(name);
        let said = publish(&mut repo_at(&[&package], &out, 0));
        let (verified, strict) = (verify(&out), strictly_verified(&out));
        assert!(succeed(rockpack().arg("inspect").arg(&package)).contains("/usr/share/example/"));
        assert!(verified.contains("all checks passed"), "{verified}");
        let Some(digest) = digest else {
            assert!(!said.contains("R135") && !verified.contains("V106"), "{said}{verified}");
            assert!(strict.ends_with("exit status: 0\n"), "{strict}");
            continue;
        };
        let what = format!("1 package without a SHA-256 of the {digest} (packages/");
        assert!(said.contains("R135") && said.contains(&what), "{said}");
        let warning = format!("warning: V106 rpm-without-digest: repodata/repomd.xml: {what}");
        assert!(verified.contains(&warning), "{verified}");
        assert_eq!(failed_checks(&strict), ["V106"]);
        assert!(strict.ends_with("exit status: 1\n"), "{strict}");
        let alone = told(rockpack().arg("verify").arg(&package));
        assert_eq!(failed_checks(&alone), ["V103"], "{alone}");
        assert!(alone.contains(&format!("states no SHA-256 of the {digest}")), "{alone}");
        // Later publications have it, too, and strict ones do not begin.
        assert!(publish(&mut repo_at(&[], &out, 1)).contains("R135"));
        let strict = room.path().join("strict");
        let (refusal, _) = refused(repo_at(&[&package], &strict, 0).arg("--strict"));
        assert!(refusal.contains("R135") && !strict.join("repodata").exists(), "{refusal}");
        let signed = room.path().join(format!("{name}-signed"));
        let mut repo = repo_at(&[&package], &signed, 0);
        repo.args(["--sign-packages", "--sign-key"]).arg(&own.secret);
        let said = publish(&mut repo);
        let is_left = digest == "payload";
        assert_eq!(said.contains("a signature cannot add it"), is_left, "{said}");
        assert_eq!(said.contains("R135"), is_left, "{said}");
        assert_eq!(verify_by(&signed, &own.public).contains("V106"), is_left);
    }
}

/// SHA-512 and SHA3-256 of format 6 count, and that before compression. rpm does not read the algorithm.
#[test]
fn digests_of_payloads_by_other_algorithms() {
    need(&["rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let package = rpm(room.path(), &plain_spec("other", "1", ""));
    let bytes = fs::read(&package).unwrap();
    let digest = IndexData::StringTag("00".repeat(64));
    let header = RpmFront::read(&Content::of_bytes(&bytes[..])).unwrap().header;
    let payload = Content::of_bytes(&bytes[usize::try_from(header.end).unwrap()..]);
    let sha256 = IndexData::StringArray(vec![payload.digest().unwrap().to_string()]);
    let sha512 = IndexData::Int32(vec![10]);
    for (tag, data) in [(5121, digest.clone()), (5123, digest), (5097, sha256), (5093, sha512)] {
        let lost: &[u32] = if tag == 5093 { &[5093] } else { &OF_PAYLOAD };
        let out = room.path().join(format!("repo-{tag}"));
        let changed = remade(
            &bytes,
            |tags| {
                let kept = tags.into_iter().filter(|(tag, _)| !lost.contains(tag));
                kept.chain([(tag, data)]).collect()
            },
            &[],
        );
        fs::write(&package, changed).unwrap();
        let said = publish(&mut repo_at(&[&package], &out, 0));
        assert!(!said.contains("R135"), "{tag} {said}");
        let alone = told(rockpack().arg("verify").arg(&package));
        assert!(alone.contains("all checks passed"), "{tag} {alone}");
    }
}

/// rpm refuses a package whose payload has none of the stated digests.
#[test]
fn damaged_payloads_are_not_published() {
    need(&["rpm", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let (folder, out) = (room.path().join("packages"), room.path().join("repo"));
    let good = rpm(&folder, &plain_spec("good", "1", ""));
    let damaged = rpm(&folder, &plain_spec("damaged", "1", ""));
    damage(&damaged, &damaged);
    assert!(told(Command::new("rpm").arg("-K").arg(&damaged)).contains("DIGESTS NOT OK"));
    let wrong = "the payload's SHA-256 differs from the header's";
    let (refusal, _) = refused(&mut repo_at(&[&folder], &out, 0));
    assert!(refusal.contains(wrong) && !out.join("repodata").exists(), "{refusal}");
    let (left, code) = refused(repo_at(&[&folder], &out, 0).arg("--skip-bad"));
    assert!(left.contains("R058") && left.contains(wrong) && code == 1, "{left}");
    assert_eq!(fs::read_dir(out.join("packages")).unwrap().count(), 1);
    // Another tool published it.
    damage(&good, &out.join("packages/g/good-1-1.noarch.rpm"));
    assert!(verify(&out).contains(wrong));
}

/// Writes a package with a changed bit in its payload.
fn damage(package: &Path, to: &Path) {
    let mut bytes = fs::read(package).unwrap();
    let at = bytes.len() - 60;
    bytes[at] ^= 1;
    fs::write(to, bytes).unwrap();
}

/// rpm writes no compressor for a payload without compression, and reads it as gzip reads it.
#[test]
fn payloads_without_compression_are_read() {
    need(&["rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let package = rpm(room.path(), &plain_spec("raw", "1", "%define _binary_payload w.ufdio"));
    assert!(succeed(rockpack().arg("inspect").arg(&package)).contains("/usr/share/example/raw"));
    let alone = told(rockpack().arg("verify").arg(&package));
    assert!(alone.contains("all checks passed"), "{alone}");
}

/// rpm 4 does not know the tag of the signature; the one that `--sign-packages` makes is read by both.
#[test]
fn signatures_that_rpm_4_does_not_see_are_named() {
    need(&["gpg", "python3", "rpm", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let own = key(room.path(), "own", "rsa3072");
    let package = rpm(room.path(), &plain_spec("six", "1", ""));
    let plain = fs::read(&package).unwrap();
    let seen = |file: &Path| told(Command::new("rpm").arg("-K").arg(file));
    let out = room.path().join("plain");
    assert!(!publish(&mut repo_at(&[&package], &out, 0)).contains("R136"));
    let signature = IndexData::StringArray(vec!["iQ==".to_owned()]);
    let sha3 = sha3_of_header(&retagged(&plain, &[], &[]), room.path());
    let tags = [(278, signature), (279, IndexData::StringTag(sha3.clone()))];
    fs::write(&package, retagged(&plain, &[], &tags)).unwrap();
    assert!(seen(&package).contains("digests OK"), "{}", seen(&package));
    let out = room.path().join("six");
    let said = publish(&mut repo_at(&[&package], &out, 0));
    let told = "R136 packages-signed-for-rpm-6: rpm: 1 package whose only signature is of format 6";
    assert!(said.contains(told) && said.contains("need a new release number"), "{said}");
    assert!(publish(&mut repo_at(&[], &out, 1)).contains(told));
    let out = room.path().join("signed");
    let mut repo = repo_at(&[&package], &out, 0);
    repo.args(["--sign-packages", "--sign-key"]).arg(&own.secret);
    assert!(!publish(&mut repo).contains("R136"));
    let published = out.join("packages/s/six-1-1.noarch.rpm");
    assert!(seen(&published).contains("SIGNATURES NOT OK"), "{}", seen(&published));
    // The digest of rpm 6 stays.
    let bytes = fs::read(&published).unwrap();
    assert!(bytes.windows(64).any(|part| part == sha3.as_bytes()));
}

fn sha3_of_header(package: &[u8], room: &Path) -> String {
    let header = RpmFront::read(&Content::of_bytes(package)).unwrap().header;
    let (start, end) =
        (usize::try_from(header.start).unwrap(), usize::try_from(header.end).unwrap());
    let file = room.join("header");
    fs::write(&file, &package[start..end]).unwrap();
    let code =
        "import hashlib, sys; print(hashlib.sha3_256(open(sys.argv[1], 'rb').read()).hexdigest())";
    python::run(code, &[file.to_str().unwrap()], "").unwrap().trim().to_owned()
}

/// Hard-linked files, a link and a file by itself.
const LINKED: &str = "\
Name: linked
Version: 1
Release: 1
Summary: x
License: MIT
BuildArch: noarch
%description
x
%install
mkdir -p %{buildroot}/opt/linked/d
echo text > %{buildroot}/opt/linked/a
ln %{buildroot}/opt/linked/a %{buildroot}/opt/linked/b
ln %{buildroot}/opt/linked/a %{buildroot}/opt/linked/d/c
echo other > %{buildroot}/opt/linked/e
ln -s a %{buildroot}/opt/linked/f
%files
/opt/linked
";

/// `inspect` shows the names of one file, and `verify` finds nothing.
fn has_shown_links(package: &Path) {
    let shown = succeed(rockpack().arg("inspect").arg(package));
    assert_eq!(shown.matches("/opt/linked/d/c (hard link)").count(), 2, "{shown}");
    for path in ["/opt/linked/a -> ", "/opt/linked/b -> ", "/opt/linked/e", "/opt/linked/f -> a"] {
        assert!(shown.contains(path), "{path}: {shown}");
    }
    let said = told(rockpack().arg("verify").arg(package));
    assert!(said.contains("all checks passed"), "{said}");
}

#[test]
fn hard_links_are_shown() {
    need(&["rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let package = rpm(room.path(), LINKED);
    has_shown_links(&package);
}

#[test]
fn rpm_6_agrees() {
    need(&["mmdebstrap", "chroot", "gpg", "rpmbuild"]);
    need_root();
    let room = tempfile::tempdir().unwrap();
    let root = room.path().join("root");
    bases::copy(&bases::sid(), &root);
    let inside = |words: &[&str]| {
        let mut command = Command::new("chroot");
        command.arg(&root).args(words).env_clear().env("PATH", "/usr/sbin:/usr/bin");
        command
    };
    let is_refused = |package: &Path| {
        fs::copy(package, root.join("x.rpm")).unwrap();
        let said = told(&mut inside(&["rpm", "-i", "--test", "--nodeps", "/x.rpm"]));
        let is_refused = said.contains("does not verify: no digest");
        assert_eq!(is_refused, !said.ends_with("exit status: 0\n"), "{said}");
        is_refused
    };
    let own = key(room.path(), "own", "rsa3072");
    for (name, digest) in LACKING {
        let package = lacking(room.path(), name, digest);
        assert_eq!(is_refused(&package), digest.is_some(), "{name}");
        let out = room.path().join(name);
        let mut repo = repo_at(&[&package], &out, 0);
        publish(repo.args(["--sign-packages", "--sign-key"]).arg(&own.secret));
        let published = out.join(format!("packages/{}/{name}-1-1.noarch.rpm", &name[..1]));
        assert_eq!(is_refused(&published), digest == Some("payload"), "{name}");
    }
    // A package of format 6, which stays one when it is signed.
    fs::write(root.join("linked.spec"), LINKED).unwrap();
    run(&mut inside(&["rpmbuild", "-bb", "--quiet", "--define", "_rpmdir /out", "/linked.spec"]));
    let package = root.join("out/noarch/linked-1-1.noarch.rpm");
    let query = ["rpm", "-qp", "--qf", "%{rpmformat}", "/out/noarch/linked-1-1.noarch.rpm"];
    assert_eq!(succeed(&mut inside(&query)), "6");
    has_shown_links(&package);
    let out = room.path().join("linked");
    let mut repo = repo_at(&[&package], &out, 0);
    publish(repo.args(["--sign-packages", "--sign-key"]).arg(&own.secret));
    let published = out.join("packages/l/linked-1-1.noarch.rpm");
    assert!(!is_refused(&published));
    fs::copy(&own.public, root.join("key.asc")).unwrap();
    run(&mut inside(&["rpmkeys", "--import", "/key.asc"]));
    let checked = succeed(&mut inside(&["rpmkeys", "-Kv", "/x.rpm"]));
    for part in ["Header SHA3-256 digest: OK", "Header SHA256 digest: OK", "RSA/SHA256 signature"] {
        assert!(checked.contains(part), "{part}: {checked}");
    }
    has_shown_links(&published);
}
