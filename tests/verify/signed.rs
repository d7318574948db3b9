//! Signed receipts: an attacker without the key may make every digest and the receipt again, and is found.
//!
//! gpg signs here: the signature of any OpenPGP program counts.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use rockpack_core::run::Budget;
use rockpack_report::Silent;
use rockpack_signing::judge::CheckTime;
use rockpack_signing::{PublicKeys, Trust};
use rockpack_verify::{self as verify, Extent, Options};
use serde_json::Value;
use support::gpg_keys::{Key, key};
use support::program::{repository, rockpack};
use support::sweep;
use support::tampered::{self, Set, sha256};
use support::tools::{self, need};
use tempfile::TempDir;

use crate::tampering::loose::LooseDeb;

const META: &str = "rocm_7.1.0-1_amd64.deb";

/// The publisher's key, and the option that trusts it.
pub struct Signer {
    key: Key,
    public: String,
    _folder: TempDir,
}

impl Signer {
    pub fn new(name: &str) -> Self {
        need(&["gpg", "gpgconf"]);
        let folder = tempfile::tempdir().unwrap();
        let key = key(folder.path(), name, "ed25519");
        let public = key.public.to_str().unwrap().to_owned();
        Self { key, public, _folder: folder }
    }

    /// Writes `FILE.asc` next to a receipt.
    pub fn sign(&self, file: &Path) {
        let mut gpg = Command::new("gpg");
        gpg.env("GNUPGHOME", &self.key.home).args(["--batch", "--quiet", "--yes", "--armor"]);
        tools::run(gpg.arg("--detach-sign").arg(file));
    }

    /// The option that trusts the key.
    pub fn option(&self) -> [&str; 2] {
        ["--key", &self.public]
    }

    /// The checks of `path`, a part of its set, that fail in this process with the key; none if it is refused
    /// as a whole.
    pub fn failing(&self, path: &Path) -> Option<BTreeSet<&'static str>> {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let clock = i64::try_from(clock).unwrap();
        let keys = PublicKeys::read(&fs::read(&self.public).unwrap()).unwrap();
        let options = Options {
            installed: false,
            against: None,
            binaries: Vec::new(),
            wheels: Vec::new(),
            extent: Extent::Part,
            trust: Trust { keys, at: CheckTime { time: clock, clock }, strict: false },
            budget: Budget::unlimited(),
            sysfs: PathBuf::new(),
        };
        let report = verify::verify(&[path.to_owned()], &options, &Silent).ok()?;
        Some(report.problems.iter().map(|problem| problem.code().id()).collect())
    }

    /// Changes single bytes of the file at `path` all over it, each of which has to be found.
    pub fn finds_single_bytes(&self, path: &Path, changed: impl Fn(usize) -> Vec<u8>, len: usize) {
        let original = fs::read(path).unwrap();
        assert_eq!(self.failing(path), Some(BTreeSet::new()), "{}", path.display());
        for at in (0..len).step_by(len.div_ceil(sweep::or_all(40, 2000))) {
            fs::write(path, changed(at)).unwrap();
            let found = self.failing(path);
            assert_ne!(found, Some(BTreeSet::new()), "{} at {at}", path.display());
        }
        fs::write(path, original).unwrap();
    }
}

fn unproved(run: &tampered::Run) -> Vec<String> {
    let report: Value = serde_json::from_str(&run.text).unwrap();
    let all = report["unproved"].as_array().cloned().unwrap_or_default();
    all.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

#[test]
fn v107_and_v108_a_set_needs_a_receipt_that_the_key_signed() {
    let (own, other) = (Signer::new("own"), Signer::new("other"));
    let set = Set::of_both_formats();
    let receipt = set.path("packages.json");
    own.sign(&receipt);
    let signature = fs::read(set.path("packages.json.asc")).unwrap();
    let run = set.verify(&own.option());
    run.fired(&[]);
    assert_eq!(unproved(&run), [""; 0]);
    assert!(run.text.contains("\"signatures\": 1"), "{}", run.text);
    let run = set.verify(&[]);
    run.fired(&[]);
    assert_eq!(unproved(&run), ["origin", "scripts", "relations"]);
    assert!(set.verify_text().contains("not proved: the origin, scripts and relations (no good"));
    set.verify(&other.option()).fired(&["V108"]);
    // Packages that are named have the receipt of their folder.
    let packages = set.packages();
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    set.verify_paths(&packages, &own.option()).fired(&[]);
    let part = ["--partial", "--key", &own.public];
    set.verify_paths(&packages[..1], &part).fired(&[]);
    let run = set.verify_paths(&packages[..1], &own.option());
    assert!(run.codes().contains(&"V003".to_owned()), "{}", run.text);
    assert!(run.text.contains("\"may_be_part\": true"), "{}", run.text);
    // The signature of other bytes.
    set.edit_receipt(|receipt| receipt.left_out.push("/opt/rocm-7.1/other".to_owned()));
    set.verify(&own.option()).fired(&["V108"]);
    set.fresh_receipt();
    fs::write(set.path("packages.json.asc"), "no signature").unwrap();
    set.verify(&own.option()).fired(&["V108"]);
    fs::write(set.path("packages.json.asc"), signature).unwrap();
    fs::remove_file(set.path(META)).unwrap();
    set.verify(&own.option()).fired(&["V003"]);
    fs::remove_file(set.path("packages.json.asc")).unwrap();
    set.verify(&part).fired(&["V107"]);
    set.remove_receipt();
    let run = set.verify(&part);
    run.fired(&["V107"]);
    assert_eq!(unproved(&run), ["origin", "scripts", "relations", "completeness"]);
    let text = set.verify_text();
    assert!(text.contains("not proved: that no package is missing"), "{text}");
}

/// Anyone can change the part of a signature that it does not cover, and some programs leave it empty.
#[test]
fn the_unsigned_part_of_a_signature_need_not_name_the_key() {
    need(&["base64"]);
    let own = Signer::new("own");
    let set = Set::of_debs();
    let (receipt, signature) = (set.path("packages.json"), set.path("packages.json.asc"));
    own.sign(&receipt);
    let binary = set.path("signature");
    let mut gpg = Command::new("gpg");
    gpg.env("GNUPGHOME", &own.key.home).arg("--output").arg(&binary);
    tools::run(gpg.arg("--dearmor").arg(&signature));
    // A packet with a length of one byte; in it, the lengths of both parts are before them (RFC 9580, 5.2.3).
    let packet = fs::read(&binary).unwrap();
    let body = &packet[2..];
    let length = |at: usize| usize::from(u16::from_be_bytes([body[at], body[at + 1]]));
    let unsigned = 6 + length(4);
    let rest = &body[unsigned + 2 + length(unsigned)..];
    let body = [&body[..unsigned], &[0, 0], rest].concat();
    let head = [packet[0], u8::try_from(body.len()).unwrap()];
    fs::write(&binary, [&head[..], &body].concat()).unwrap();
    let text = tools::run(Command::new("base64").arg(&binary)).stdout;
    let text = String::from_utf8(text).unwrap();
    let [begin, end] = ["BEGIN", "END"].map(|side| format!("-----{side} PGP SIGNATURE-----\n"));
    fs::write(&signature, format!("{begin}\n{text}{end}")).unwrap();
    fs::remove_file(&binary).unwrap();
    set.verify(&own.option()).fired(&[]);
}

#[test]
fn a_key_without_anything_signed_is_wrong_usage() {
    let own = Signer::new("own");
    let prefix = tempfile::tempdir().unwrap();
    fs::write(prefix.path().join("file"), "text").unwrap();
    let arguments = ["--installed", "--key", &own.public];
    let run = tampered::verify(&[prefix.path().to_str().unwrap()], &arguments);
    assert_eq!(run.status, 64, "{}", run.text);
}

/// An attack on a set, by an attacker who makes every digest again.
type Attack = (&'static str, fn(&Set));

const ATTACKS: [Attack; 7] = [
    ("a script", |set| {
        set.edit(META, |root| {
            let script = root.join("DEBIAN/postinst");
            fs::write(&script, "#!/bin/sh\nother\n").unwrap();
            fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
        });
    }),
    ("a relation", |set| set.edit_control(META, "Suggests", "other")),
    ("a field", |set| set.edit_control(META, "Essential", "yes")),
    ("a path", |set| {
        set.edit(META, |root| {
            fs::create_dir_all(root.join("etc/cron.d")).unwrap();
            fs::write(root.join("etc/cron.d/other"), "* * * * * root other\n").unwrap();
        });
    }),
    ("a mode", |set| {
        set.edit(META, |root| {
            let doc = root.join("usr/share/doc/rocm/copyright");
            fs::set_permissions(doc, fs::Permissions::from_mode(0o666)).unwrap();
        });
    }),
    ("a time", |set| {
        let mut package = fs::read(set.path(META)).unwrap();
        // Of the first member of ar.
        package[24] ^= 1;
        fs::write(set.path(META), &package).unwrap();
        set.edit_receipt(|receipt| {
            let mut records = receipt.packages.iter_mut();
            records.find(|record| record.file_name == META).unwrap().sha256 = sha256(&package);
        });
    }),
    ("the receipt", |set| {
        set.edit_receipt(|receipt| receipt.left_out.push("/opt/rocm-7.1/lib/other".to_owned()));
    }),
];

#[test]
fn attackers_who_make_every_digest_again_are_found() {
    need(&["dpkg-deb"]);
    let own = Signer::new("own");
    for (name, attack) in ATTACKS {
        let set = Set::of_debs();
        own.sign(&set.path("packages.json"));
        attack(&set);
        let package = set.path(META);
        assert_eq!(own.failing(&package), Some(["V108"].into()), "{name}");
        // Only the signature tells: without the key, packages and receipt agree.
        set.fires(&[], &[]);
        set.fresh_receipt();
        let codes: &[&str] = if name == "the receipt" { &[] } else { &["V002"] };
        assert_eq!(own.failing(&package), Some(codes.iter().copied().collect()), "{name}");
    }
}

/// A folder of packages that looks like a repository is none: its packages would not be read.
#[test]
fn v070_and_v076_a_set_is_no_repository() {
    let (own, set) = (Signer::new("own"), Set::of_debs());
    own.sign(&set.path("packages.json"));
    fs::create_dir(set.path("dists")).unwrap();
    set.verify(&own.option()).fired(&["V070", "V076"]);
}

#[test]
fn single_bytes_of_signed_packages_are_found() {
    need(&["dpkg-deb"]);
    let own = Signer::new("own");
    let set = Set::of_both_formats();
    own.sign(&set.path("packages.json"));
    let kernels = set.path(&set.kernels("gfx110x"));
    for package in [&kernels, &set.path("rocm-blas-gfx110x-7.1.0-1.x86_64.rpm")] {
        let original = fs::read(package).unwrap();
        let len = original.len();
        let changed = |at: usize| {
            let mut bytes = original.clone();
            bytes[at] ^= 0x20;
            bytes
        };
        own.finds_single_bytes(package, changed, len);
    }
    // A kernel archive, in a package whose own digests agree with it.
    let archive = "opt/rocm-7.1/lib/.kpack/blas_lib_gfx1101.kpack";
    let loose = LooseDeb::read(&kernels);
    let content = loose.content(archive).to_vec();
    let again = set.path("again.deb");
    let changed = |at: usize| {
        let mut bytes = content.clone();
        bytes[at] ^= 0x20;
        loose.with(archive, &bytes).write(&again);
        fs::read(&again).unwrap()
    };
    own.finds_single_bytes(&kernels, changed, content.len());
}

#[test]
fn every_part_has_a_signature() {
    let own = Signer::new("own");
    let out = tempfile::tempdir().unwrap();
    for part in ["1/2", "2/2"] {
        let mut build = rockpack();
        build.current_dir(repository("")).args(["build", "--version", "7.1.0", "--format", "deb"]);
        build.args(["--artifacts", "examples/shards/gfx1151-build", "--partition", part]);
        tools::run(build.arg("--out").arg(out.path()));
    }
    let file = |part: u32| out.path().join(format!("packages-{part}-of-2.json"));
    own.sign(&file(1));
    own.sign(&file(2));
    let folder = [out.path().to_str().unwrap()];
    tampered::verify(&folder, &own.option()).fired(&[]);
    fs::remove_file(file(2).with_extension("json.asc")).unwrap();
    let run = tampered::verify(&folder, &own.option());
    run.fired(&["V107"]);
    assert!(run.text.contains("packages-2-of-2.json"), "{}", run.text);
}
