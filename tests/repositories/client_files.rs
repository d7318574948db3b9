//! Files for clients, which nobody signs, and suites in other folders than their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::rockpack;
use support::gpg_keys::{Key, key};
use support::repo_fixture::{
    EPOCH, client_file, deb, failed_checks, plain_spec, publish, refused, repo, repo_at, rpm,
    verify, verify_by,
};
use support::tools::{need, succeed, told};

use crate::key_lives::Ring;

/// One change of a repository at a time, undone before the next.
#[test]
fn what_leads_clients_astray_is_named() {
    need(&["gpg", "gpgconf", "dpkg-deb", "rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let (packages, out) = (room.path().join("packages"), room.path().join("repo"));
    deb(&packages, ("one", "1", "amd64"), "");
    rpm(&packages, &plain_spec("plain", "1", ""));
    let [own, other] = ["own", "other"].map(|name| key(room.path(), name, "ed25519"));
    let url = "https://repo.example/rocm";
    let mut repo = repo(&[&packages], &out);
    repo.args(["--url", url, "--set", "origin=GPUs, Inc", "--set", "pin=990", "--sign-key"]);
    publish(repo.arg(&own.secret));
    let names: Vec<String> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .map(|name| name.into_string().unwrap())
        .collect();
    let named = |ending: &str| {
        names.iter().find(|name| name.ends_with(ending)).unwrap_or_else(|| panic!("{names:?}"))
    };
    let [sources, dnf, keyring] = [".sources", ".repo", "-archive-keyring.asc"].map(named);
    let preferences = named(".pref");
    assert_passes(&out, &own.public);
    let changes: [(&str, &str, &str, &str); 8] = [
        (sources, "Types: deb", "Types: deb\nTrusted:\n yes", "sets `trusted: yes`"),
        (sources, "Types: deb", "Types: deb\nTrusted: on", "sets `trusted: on`"),
        (sources, "Types: deb", "Types: deb\nCheck-Date: disable", "sets `check-date: disable`"),
        (sources, url, "https://evil.example/rocm", "was changed or removed since"),
        (dnf, "enabled=1", "enabled=1\nsslverify=\n 0", "sets `sslverify: 0`"),
        (dnf, "repo_gpgcheck=1", "repo_gpgcheck=\n off", "sets `repo_gpgcheck: off`"),
        (dnf, "repo_gpgcheck=1", "repo_gpgcheck=0", "sets `repo_gpgcheck: 0`"),
        (preferences, "o=GPUs? Inc", "o=Debian", "was changed or removed since"),
    ];
    for (name, before, after, part) in changes {
        let text = fs::read_to_string(out.join(name)).unwrap();
        assert!(text.contains(before), "{text}");
        fs::write(out.join(name), text.replace(before, after)).unwrap();
        let said = verify(&out);
        assert_eq!(failed_checks(&said), ["V104"], "{said}");
        assert!(said.contains(&format!("{name}: {part}")), "{part}: {said}");
        fs::write(out.join(name), text).unwrap();
    }
    // A file that says what it may say, and not what the publication wrote.
    for name in [sources, dnf, preferences, keyring] {
        let text = fs::read(out.join(name)).unwrap();
        fs::write(out.join(name), [&text[..], b"# more\n"].concat()).unwrap();
        let changed = verify(&out);
        fs::remove_file(out.join(name)).unwrap();
        for said in [changed, verify(&out)] {
            assert_eq!(failed_checks(&said), ["V104"], "{said}");
            assert!(said.contains(&format!("{name}: was changed or removed since")), "{said}");
        }
        fs::write(out.join(name), text).unwrap();
    }
    // What users may add to a copy.
    fs::remove_dir_all(out.join(".rockpack")).unwrap();
    for (name, before, after) in [
        (sources, "Types: deb", "# ours\nTypes: deb\nEnabled: no\nLanguages: none\nTrusted: No"),
        (dnf, "enabled=1", "enabled=0\npriority=10\nsslverify=true\nmetadata_expire=6h"),
        (dnf, "repo_gpgcheck=1", "repo_gpgcheck=True"),
        (preferences, "Package: *", "Explanation: ours\nPackage: rocm-*"),
        (preferences, "990", "100"),
    ] {
        let text = fs::read_to_string(out.join(name)).unwrap();
        assert!(text.contains(before), "{text}");
        fs::write(out.join(name), text.replace(before, after)).unwrap();
        assert_passes(&out, &own.public);
        fs::write(out.join(name), text).unwrap();
    }
    let text = fs::read(out.join(keyring)).unwrap();
    fs::copy(&other.public, out.join(keyring)).unwrap();
    let parts = ["has no valid key that signed an index", "in addition to those given"];
    for (said, part) in [verify(&out), verify_by(&out, &own.public)].into_iter().zip(parts) {
        assert_eq!(failed_checks(&said), ["V104"], "{said}");
        assert!(said.contains(part), "{said}");
    }
    // A key beside the right one.
    let both = [&text[..], &fs::read(&other.public).unwrap()].concat();
    fs::write(out.join(keyring), both).unwrap();
    assert!(failed_checks(&verify(&out)).is_empty());
    let said = verify_by(&out, &own.public);
    assert_eq!(failed_checks(&said), ["V104"], "{said}");
    assert!(
        said.contains("has the key ") && said.contains(" in addition to those given"),
        "{said}"
    );
    let mut by_both = rockpack();
    by_both.arg("verify").arg(&out).arg("--key").arg(&own.public).arg("--key").arg(&other.public);
    assert!(failed_checks(&told(&mut by_both)).is_empty());
    fs::write(out.join(keyring), text).unwrap();
    // Keys in the place of the name of a keyring.
    let text = fs::read_to_string(out.join(sources)).unwrap();
    fs::write(out.join(sources), with_keys_inside(&text, &[&own.public])).unwrap();
    assert!(failed_checks(&verify_by(&out, &own.public)).is_empty());
    for (keys, part) in [
        (&[&*other.public][..], "in addition to those given"),
        (&[&*own.public, &*other.public], "in addition to those given"),
    ] {
        fs::write(out.join(sources), with_keys_inside(&text, keys)).unwrap();
        let said = verify_by(&out, &own.public);
        assert_eq!(failed_checks(&said), ["V104"], "{said}");
        assert!(said.contains(&format!("{sources}: has ")) && said.contains(part), "{said}");
    }
    fs::write(out.join(sources), text).unwrap();
    assert_passes(&out, &own.public);
    fs::remove_file(out.join(sources)).unwrap();
    fs::rename(out.join("dists/stable"), out.join("dists/testing")).unwrap();
    let said = verify_by(&out, &own.public);
    assert!(failed_checks(&said).contains(&"V078".to_owned()), "{said}");
    assert!(said.contains("is in the folder of the suite testing"), "{said}");
}

/// Options by which clients take unsigned packages, in a repository without states. All packages are signed.
#[test]
fn options_that_switch_checks_off_are_named_without_a_state() {
    let vendor = Vendor::new();
    let options = ["--url", "https://example.org/rocm", "--set", "name=own", "--sign-packages"];
    let (out, _) = vendor.publish("out", 0, &options);
    fs::remove_dir_all(out.join(".rockpack")).unwrap();
    let cases: [(&str, &str, &str, &str); 4] = [
        ("own.repo", "\ngpgcheck=1", "\ngpgcheck=0", "sets `gpgcheck: 0`"),
        ("own.repo", "\ngpgcheck=1", "\ngpgcheck=1\ngpgcheck=off", "sets `gpgcheck: off`"),
        ("own.repo", "enabled=1", "pkg_gpgcheck=0", "sets `pkg_gpgcheck: 0`"),
        ("own.list", "", "deb [trusted=yes] https://example.org/rocm stable main", "sets `trusted"),
    ];
    for (name, before, after, part) in cases {
        let file = out.join(name);
        let text = fs::read_to_string(&file).unwrap_or_default();
        assert!(text.contains(before), "{before}: {text}");
        fs::write(&file, text.replacen(before, after, 1)).unwrap();
        let said = verify(&out);
        assert_eq!(failed_checks(&said), ["V104"], "{name}: {after}: {said}");
        assert!(said.contains(part), "{name}: {after}: {part}: {said}");
        fs::write(&file, &text).unwrap();
        if text.is_empty() {
            fs::remove_file(file).unwrap();
        }
    }
    let line = "deb [arch=amd64 signed-by=/usr/share/keyrings/own-archive-keyring.asc] \
                https://example.org/rocm/ stable main # ours\n";
    for (name, text) in [("own.list", line), ("files.list", "debian/rules\nout of debug\n")] {
        fs::write(out.join(name), text).unwrap();
        assert_passes(&out, &vendor.key.public);
    }
}

/// gpg refuses a wrong checksum of armour. It may be absent.
#[test]
fn armour_with_a_wrong_checksum_is_refused() {
    let vendor = Vendor::new();
    let url = ["--url", "https://example.org/rocm", "--set", "name=own"];
    let (out, _) = vendor.publish("out", 0, &url);
    fs::remove_dir_all(out.join(".rockpack")).unwrap();
    let gpg = |arguments: &[&str]| {
        let mut gpg = Command::new("gpg");
        gpg.env("GNUPGHOME", &vendor.key.home).args(["--batch", "--quiet"]).args(arguments);
        gpg.current_dir(&out).output().unwrap().status.success()
    };
    for (file, text, code) in [
        ("dists/stable/InRelease", None, "V074"),
        ("dists/stable/Release.gpg", Some("dists/stable/Release"), "V074"),
        ("repodata/repomd.xml.asc", Some("repodata/repomd.xml"), "V074"),
        ("own-archive-keyring.asc", None, "V104"),
    ] {
        let way = if code == "V104" { "--show-keys" } else { "--verify" };
        let words = [Some(way), Some(file), text].into_iter().flatten().collect::<Vec<_>>();
        let good = fs::read_to_string(out.join(file)).unwrap();
        let sum = good.lines().find(|line| line.len() == 5 && line.starts_with('=')).unwrap();
        let first = if sum.starts_with("=A") { 'B' } else { 'A' };
        assert!(gpg(&words), "{file}");
        let other = format!("={first}{}\n", &sum[2..]);
        for (end, is_right) in [(other, false), (String::new(), true)] {
            fs::write(out.join(file), good.replace(&format!("{sum}\n"), &end)).unwrap();
            assert!(is_right || !gpg(&words), "{file}: {end}");
            for said in [verify(&out), verify_by(&out, &vendor.key.public)] {
                let expected = if is_right { &[][..] } else { &[code] };
                assert_eq!(failed_checks(&said), expected, "{file}: {said}");
            }
        }
        fs::write(out.join(file), good).unwrap();
    }
    // gpg computes the digest that the text names, and no other.
    let file = out.join("dists/stable/InRelease");
    let good = fs::read_to_string(&file).unwrap();
    let digest = good.lines().find(|line| line.starts_with("Hash: ")).unwrap();
    fs::write(&file, good.replacen(digest, "Hash: SHA1", 1)).unwrap();
    assert!(!gpg(&["--verify", "dists/stable/InRelease"]));
    assert_eq!(failed_checks(&verify(&out)), ["V074"]);
}

/// Keys in a keyring count as those of `--key` do.
#[test]
fn keyrings_of_keys_that_do_not_count_are_named() {
    need(&["gpg", "gpgconf", "dpkg-deb"]);
    let (room, ring) = (tempfile::tempdir().unwrap(), Ring::new());
    let one = deb(room.path(), ("one", "1", "amd64"), "");
    let ended = ring.key("ended", "ed25519", "sign", "20240101T000000");
    let secret = ring.export(&["--export-secret-keys", &ended], "ended.secret");
    let out = room.path().join("out");
    let url = ["--url", "https://example.org/rocm", "--set", "name=own"];
    publish(repo(&[&one], &out).args(url).arg("--sign-key").arg(&secret));
    fs::remove_dir_all(out.join(".rockpack")).unwrap();
    let named = "own-archive-keyring.asc: has no valid key that signed an index";
    let said = verify(&out);
    assert_eq!(failed_checks(&said), ["V104"], "{said}");
    assert!(said.contains(named), "{said}");
    let mut then = rockpack();
    then.arg("verify").arg(&out).env("SOURCE_DATE_EPOCH", (EPOCH + 86_400).to_string());
    assert!(failed_checks(&told(&mut then)).is_empty());
    // The same key in forms that apt or rpm refuses.
    let good = fs::read_to_string(out.join("own-archive-keyring.asc")).unwrap();
    for (text, part) in [
        (format!("keys:\n{good}"), "is not read by all clients"),
        (good.replace('\n', "\r\n"), "is not read by all clients"),
        (String::new(), "is not read by all clients"),
        (fs::read_to_string(&secret).unwrap(), "is not read by all clients"),
    ] {
        fs::write(out.join("own-archive-keyring.asc"), text).unwrap();
        let mut then = rockpack();
        then.arg("verify").arg(&out).env("SOURCE_DATE_EPOCH", (EPOCH + 86_400).to_string());
        let said = told(&mut then);
        assert_eq!(failed_checks(&said), ["V104"], "{said}");
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// Repositories with both kinds of packages, signed by one key.
struct Vendor {
    key: Key,
    room: tempfile::TempDir,
}

impl Vendor {
    fn new() -> Self {
        need(&["gpg", "gpgconf", "dpkg-deb", "rpmbuild", "rpm"]);
        let room = tempfile::tempdir().unwrap();
        deb(&room.path().join("packages"), ("one", "1", "amd64"), "");
        rpm(&room.path().join("packages"), &plain_spec("plain", "1", ""));
        let key = key(room.path(), "own", "ed25519");
        Self { key, room }
    }

    fn repo(&self, out: &str, after: i64, options: &[&str]) -> (Command, PathBuf) {
        let out = self.room.path().join(out);
        let mut repo = repo_at(&[&self.room.path().join("packages")], &out, after);
        repo.arg("--sign-key").arg(&self.key.secret).args(options);
        (repo, out)
    }

    /// Publishes, and returns the folder with the names of the files at its top.
    fn publish(&self, out: &str, after: i64, options: &[&str]) -> (PathBuf, Vec<String>) {
        let (mut repo, out) = self.repo(out, after, options);
        publish(&mut repo);
        assert_passes(&out, &self.key.public);
        let entries = fs::read_dir(&out).unwrap().map(Result::unwrap);
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        let mut names: Vec<_> =
            files.map(|entry| entry.file_name().into_string().unwrap()).collect();
        // The page of a repository has the same name everywhere.
        names.retain(|name| name != "index.html");
        names.sort();
        (out, names)
    }
}

/// The file that the key package for rpm installs.
fn installed_key(package: &Path) -> String {
    succeed(Command::new("rpm").arg("-qlp").arg(package)).trim().to_owned()
}

#[test]
fn no_two_vendors_share_names() {
    let vendor = Vendor::new();
    let name = "packages-example-org";
    let expected =
        ["-archive-keyring.asc", "-stable.sources", ".repo"].map(|end| format!("{name}{end}"));
    let url = ["--url", "https://user@Packages.Example.org:8443/rocm"];
    let (out, names) = vendor.publish("named", 0, &[&url[..], &["--key-package", "1"]].concat());
    assert_eq!(names, expected);
    let package = out.join(format!("packages/p/{name}-archive-keyring-1-1.noarch.rpm"));
    assert_eq!(installed_key(&package), format!("/etc/pki/rpm-gpg/RPM-GPG-KEY-{name}"));
    assert!(fs::read_to_string(out.join(&names[2])).unwrap().starts_with(&format!("[{name}]\n")));
    // Clients have the files of the first address.
    let (_, names) = vendor.publish("named", 1, &["--url", "https://mirror.example/rocm"]);
    assert_eq!(names, expected);
    // The keys alone have no vendor's name, and are not for packages.
    let (out, names) = vendor.publish("unnamed", 0, &[]);
    assert_eq!(names, ["archive-keyring.asc"]);
    let (mut repo, _) = vendor.repo("unnamed", 1, &["--key-package", "1"]);
    let (said, code) = refused(&mut repo);
    assert!(code == 64 && said.contains("needs a name") && said.contains("--url"), "{said}");
    assert!(!out.join("pool/main/a").exists());
}

/// Channels that are added later have files of the same name.
#[test]
fn files_of_new_channels_are_called_like_the_others() {
    let vendor = Vendor::new();
    let url = ["--set", "name=rocm", "--url", "https://example.org/rocm"];
    let (_, names) = vendor.publish("deb", 0, &[&url[..], &["--deb"]].concat());
    let (_, more) = vendor.publish("deb", 1, &[&url[2..], &["--suite", "testing"]].concat());
    let [keyring, sources] = ["rocm-archive-keyring.asc", "rocm-stable.sources"];
    assert_eq!(names, [keyring, sources]);
    assert_eq!(more, [keyring, sources, "rocm-testing.sources", "rocm.repo"]);
}

#[test]
fn pins_are_remembered_and_for_this_repository() {
    let vendor = Vendor::new();
    let url = ["--url", "https://example.org:8443/rocm"];
    let priorities = |(out, names): (PathBuf, Vec<String>)| {
        let exists = names.iter().any(|name| name.ends_with(".pref"));
        let repo = fs::read_to_string(client_file(&out, ".repo")).unwrap();
        let line = repo.lines().find(|line| line.starts_with("priority=")).map(str::to_owned);
        (exists.then(|| fs::read_to_string(client_file(&out, ".pref")).unwrap()), line)
    };
    assert_eq!(priorities(vendor.publish("out", 0, &url)), (None, None));
    for (after, pin, line) in [(1, "1001", "priority=50"), (2, "500", "priority=99")] {
        let text = format!("Package: *\nPin: origin \"example.org\"\nPin-Priority: {pin}\n");
        let pinned = (Some(text), Some(line.to_owned()));
        assert_eq!(
            priorities(vendor.publish("out", after, &["--set", &format!("pin={pin}")])),
            pinned
        );
        assert_eq!(priorities(vendor.publish("out", after, &[])), pinned);
    }
    let (mut repo, _) = vendor.repo("out", 3, &["--url=https://example.org/a,b"]);
    assert_eq!(refused(&mut repo).1, 64);
}

fn assert_passes(out: &Path, key: &Path) {
    for said in [verify(out), verify_by(out, key)] {
        assert!(failed_checks(&said).is_empty(), "{said}");
    }
}

fn with_keys_inside(sources: &str, keys: &[&Path]) -> String {
    let block: String = keys
        .iter()
        .map(|key| fs::read_to_string(key).unwrap())
        .map(|keys| keys.replace("\n\n", "\n.\n").replace('\n', "\n "))
        .collect();
    let line = sources.lines().find(|line| line.starts_with("Signed-By: ")).unwrap();
    sources.replace(line, &format!("Signed-By:\n {}", block.trim_end()))
}
