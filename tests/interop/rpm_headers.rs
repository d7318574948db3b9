//! Damaged headers of an `.rpm`: what rpm 4 or rpm 6 refuses, rockpack refuses too.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use md5::{Digest as _, Md5};
use rockpack_archive::rpm::{RpmFront, missing_digest};
use rockpack_core::content::Content;
use rpm::{Header, HeaderEntry, IndexData, IndexTag, Lead, PackageMetadata};
use sha1::Sha1;
use sha2::Sha256;
use support::bases;
use support::example::rockpack;
use support::headers::remade;
use support::packages::{Tree, emit_one, package};
use support::repo_fixture::{plain_spec, repo, rpm as built_by_rpm};
use support::tools::{need, need_root, run, told};
use support::{hex, raw_header};

/// The bytes at the beginning of each header that the flips change.
const FLIPPED: usize = 200;

/// Files for one run of rpm.
const FILES: usize = 1000;

/// The rpm of this machine, and that of a root of Debian sid, which sees the same files.
struct Judges {
    root: PathBuf,
    _room: tempfile::TempDir,
}

impl Judges {
    fn new() -> Self {
        need(&["mmdebstrap", "chroot", "rpm", "rpmbuild"]);
        need_root();
        let room = tempfile::tempdir().unwrap();
        let root = room.path().join("root");
        bases::copy(&bases::sid(), &root);
        fs::create_dir(root.join("files")).unwrap();
        Self { root, _room: room }
    }

    /// A program in the root.
    fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("chroot");
        command.arg(&self.root).arg(program).env_clear().env("PATH", "/usr/sbin:/usr/bin");
        command
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.root.join("files").join(name), bytes).unwrap();
    }

    /// The names of the files that one of the two refuses to check or to read.
    fn refused(&self, names: &[String]) -> BTreeSet<String> {
        let mut refused = BTreeSet::new();
        for names in names.chunks(FILES) {
            for said in self.runs("-K", names) {
                let good = said.lines().filter_map(|line| line.strip_suffix(": digests OK"));
                let good: BTreeSet<&str> = good.map(base_name).collect();
                refused.extend(names.iter().filter(|name| !good.contains(name.as_str())).cloned());
            }
            for said in self.runs("-qp", names) {
                let bad: BTreeSet<&str> = errors(&said).map(|(name, _)| name).collect();
                refused.extend(names.iter().filter(|name| bad.contains(name.as_str())).cloned());
            }
        }
        refused
    }

    /// The judgements of the two about files.
    fn runs(&self, how: &str, names: &[String]) -> [String; 2] {
        let files = self.root.join("files");
        let mut outside = Command::new("rpm");
        outside.arg(how).args(names.iter().map(|name| files.join(name))).env("LC_ALL", "C");
        let mut inside = self.inside("rpm");
        inside.arg(how).args(names.iter().map(|name| format!("/files/{name}")));
        [outside, inside].map(|mut command| {
            let Output { stdout, stderr, .. } = command.output().unwrap();
            // The last line of the first may have no end.
            String::from_utf8_lossy(&[&stdout[..], b"\n", &stderr].concat()).into_owned()
        })
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The files that rpm reports as wrong, with its messages.
fn errors(said: &str) -> impl Iterator<Item = (&str, &str)> {
    let errors = said.lines().filter_map(|line| line.strip_prefix("error: ")?.split_once(": "));
    errors.map(|(path, message)| (base_name(path), message))
}

/// One package of rockpack, one of rpm 4, and one of format 6 by rpm 6.
fn samples(judges: &Judges) -> [Vec<u8>; 3] {
    let room = tempfile::tempdir().unwrap();
    let tree = Tree::default().deb_directory("opt").text("opt/a", "a\n");
    let (_, own) = emit_one(room.path(), &package("a", tree.entries()));
    let four = built_by_rpm(room.path(), &plain_spec("four", "1", ""));
    fs::write(judges.root.join("six.spec"), plain_spec("six", "1", "")).unwrap();
    let mut six = judges.inside("rpmbuild");
    run(six.args(["-bb", "--quiet", "--define", "_rpmdir /out", "/six.spec"]));
    let six = judges.root.join("out/noarch/six-1-1.noarch.rpm");
    [own, four, six].map(|path| fs::read(path).unwrap())
}

/// The places of both headers.
fn headers(package: &[u8]) -> [Range<usize>; 2] {
    let front = RpmFront::read(&Content::of_bytes(package)).unwrap();
    let Range { start, end } = front.header;
    let [start, end] = [start, end].map(|at| usize::try_from(at).unwrap());
    [96..start, start..end]
}

/// Whether rockpack refuses a package, or says that it lacks a digest.
fn is_noticed(package: &[u8]) -> bool {
    let content = Content::of_bytes(package);
    let read = RpmFront::read(&content).and_then(|front| front.digest(&content).map(|_| front));
    read.map_or(true, |front| missing_digest(&front.metadata).is_some())
}

#[test]
fn every_flip_that_rpm_notices_is_noticed() {
    let judges = Judges::new();
    for (sample, bytes) in samples(&judges).iter().enumerate() {
        let payload = (headers(bytes)[1].end..bytes.len()).step_by(10);
        let begins = headers(bytes).map(|header| header.start..header.start + FLIPPED);
        let places = (0..96).chain(begins.into_iter().flatten()).chain(payload);
        let (mut names, mut noticed) = (Vec::new(), BTreeSet::new());
        for at in places {
            for mask in (0..8).map(|bit| 1 << bit).chain([0xff]) {
                let name = format!("{sample}-{at}-{mask}.rpm");
                let mut changed = bytes.clone();
                changed[at] ^= mask;
                if is_noticed(&changed) {
                    noticed.insert(name.clone());
                }
                judges.write(&name, &changed);
                names.push(name);
            }
        }
        let refused = judges.refused(&names);
        let missed: Vec<_> = refused.difference(&noticed).collect();
        assert!(missed.is_empty(), "{missed:?}");
        assert!(refused.len() > names.len() / 2, "rpm refuses {} flips", refused.len());
        // Some flips make a tag one that is there already, of which rpm reads the last.
        let alone: Vec<_> = noticed.difference(&refused).collect();
        assert!(alone.len() < 10, "{alone:?}");
    }
}

/// Writes 32-bit words at a place.
fn put(bytes: &mut [u8], at: usize, words: &[u32]) {
    for (index, word) in words.iter().enumerate() {
        bytes[at + 4 * index..][..4].copy_from_slice(&word.to_be_bytes());
    }
}

fn get(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// A change of a header in a package, whose first byte and region are at these places.
type Change = fn(&mut Vec<u8>, usize, usize);

/// Damage that both refuse.
const DAMAGE: [(&str, Change); 16] = [
    ("reserved", |bytes, start, _| bytes[start + 5] = 1),
    ("version", |bytes, start, _| bytes[start + 3] = 2),
    ("region-type", |bytes, start, _| put(bytes, start + 20, &[6])),
    ("region-count", |bytes, start, _| put(bytes, start + 28, &[32])),
    ("region-tag", |bytes, start, _| put(bytes, start + 16, &[61])),
    ("trailer-tag", |bytes, _, end| put(bytes, end, &[64])),
    ("trailer-type", |bytes, _, end| put(bytes, end + 4, &[4])),
    ("trailer-positive", |bytes, _, end| {
        let size = get(bytes, end + 8).wrapping_neg();
        put(bytes, end + 8, &[size]);
    }),
    ("trailer-more", |bytes, _, end| {
        let size = get(bytes, end + 8).wrapping_sub(16);
        put(bytes, end + 8, &[size]);
    }),
    ("region-later", |bytes, start, _| swap(bytes, start + 16)),
    ("order", |bytes, start, _| swap(bytes, start + 32)),
    ("tag-99", |bytes, start, _| put(bytes, start + 32, &[99])),
    ("tag-negative", |bytes, start, _| put(bytes, start + 32, &[1 << 31 | 60_000])),
    ("type-0", |bytes, start, _| put(bytes, start + 36, &[0])),
    ("type-10", |bytes, start, _| put(bytes, start + 36, &[10])),
    ("count-0", |bytes, start, _| put(bytes, start + 44, &[0])),
];

/// Changes that neither refuses, in the header and its signature.
const HARMLESS: [(&str, Change); 2] = [
    ("unchanged", |_, _, _| {}),
    ("unknown-tag", |bytes, start, _| {
        // The last but one: a digest of the payload's content, or the size of it.
        let count = usize::try_from(get(bytes, start + 8)).unwrap();
        put(bytes, start + 16 * count, &[60_000]);
    }),
];

/// Exchanges two entries of a header.
fn swap(bytes: &mut [u8], at: usize) {
    let (first, second) = bytes[at..at + 32].split_at_mut(16);
    first.swap_with_slice(second);
}

/// States the digests of a changed header.
fn seal(bytes: &mut [u8], [signature, header]: &[Range<usize>; 2]) {
    let digests = [
        (269, hex(&Sha1::digest(&bytes[header.clone()])).into_bytes()),
        (273, hex(&Sha256::digest(&bytes[header.clone()])).into_bytes()),
        (1004, Md5::digest(&bytes[header.start..]).to_vec()),
    ];
    let count = usize::try_from(get(bytes, signature.start + 8)).unwrap();
    let data = signature.start + 16 + 16 * count;
    for entry in 0..count {
        let at = signature.start + 16 + 16 * entry;
        let found = digests.iter().find(|(tag, _)| *tag == get(bytes, at));
        if let Some((_, digest)) = found {
            let at = data + usize::try_from(get(bytes, at + 8)).unwrap();
            bytes[at..at + digest.len()].copy_from_slice(digest);
        }
    }
}

/// The package after a change of one of its headers, with the digests of the result.
fn changed(package: &[u8], which: usize, change: Change) -> Vec<u8> {
    let places = headers(package);
    let start = places[which].start;
    let data = start + 16 + 16 * usize::try_from(get(package, start + 8)).unwrap();
    let end = data + usize::try_from(get(package, start + 24)).unwrap();
    let mut bytes = package.to_vec();
    change(&mut bytes, start, end);
    if which == 1 {
        seal(&mut bytes, &places);
    }
    bytes
}

#[test]
fn structures_that_rpm_refuses_are_refused_by_every_command() {
    let judges = Judges::new();
    let [_, sample, _] = samples(&judges);
    let (mut names, mut harmless) = (Vec::new(), Vec::new());
    for which in 0..2 {
        for (name, change) in DAMAGE {
            let name = format!("{name}-{which}.rpm");
            let bytes = changed(&sample, which, change);
            assert!(RpmFront::read(&Content::of_bytes(&bytes[..])).is_err(), "{name}");
            judges.write(&name, &bytes);
            names.push(name);
        }
        for (name, change) in HARMLESS {
            let name = format!("{name}-{which}.rpm");
            let bytes = changed(&sample, which, change);
            RpmFront::read(&Content::of_bytes(&bytes[..])).unwrap();
            judges.write(&name, &bytes);
            harmless.push(name);
        }
    }
    assert_eq!(judges.refused(&names), names.iter().cloned().collect());
    assert_eq!(judges.refused(&harmless), BTreeSet::new());
    let file = judges.root.join("files").join(&names[0]);
    is_refused_by_commands(&file);
}

fn is_refused_by_commands(file: &Path) {
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("repo");
    let mut commands = [rockpack(), rockpack(), repo(&[file], &out)];
    commands[0].arg("inspect").arg(file);
    commands[1].arg("verify").arg(file);
    for mut command in commands {
        let said = told(&mut command);
        assert!(said.contains("has no header magic"), "{command:?}: {said}");
        assert!(!said.ends_with("exit status: 0\n"), "{command:?}: {said}");
    }
    assert!(!out.join("repodata").exists());
}

/// rpm counts the values for files when it installs.
#[test]
fn tags_of_files_have_a_value_for_each() {
    need(&["rpm", "rpmbuild"]);
    need_root();
    let room = tempfile::tempdir().unwrap();
    let sample = fs::read(built_by_rpm(room.path(), &plain_spec("one", "1", ""))).unwrap();
    let path = room.path().join("changed.rpm");
    for (tag, [one, two]) in values_of_files() {
        for (data, is_good) in [(one, true), (two, false)] {
            let bytes = remade(
                &sample,
                |tags| {
                    let kept = tags.into_iter().filter(|(it, _)| *it != tag);
                    kept.chain([(tag, data)]).collect()
                },
                &[],
            );
            fs::write(&path, &bytes).unwrap();
            let mut rpm = Command::new("rpm");
            rpm.args(["-i", "--test", "--nodeps", "--root"]).arg(room.path()).arg(&path);
            let said = told(&mut rpm);
            assert_eq!(said.ends_with("exit status: 0\n"), is_good, "{tag} {said}");
            let read = RpmFront::read(&Content::of_bytes(&bytes[..]));
            assert_eq!(read.is_ok(), is_good, "{tag} {read:?}");
        }
    }
}

/// Values for one file and for two, of tags that rpm counts.
fn values_of_files() -> [(u32, [IndexData; 2]); 4] {
    let both = |of: fn(usize) -> IndexData| [of(1), of(2)];
    [
        (1028, both(|count| IndexData::Int32(vec![10; count]))),
        (1033, both(|count| IndexData::Int16(vec![0; count]))),
        (1039, both(|count| IndexData::StringArray(vec!["root".to_owned(); count]))),
        (5010, both(|count| IndexData::StringArray(vec![String::new(); count]))),
    ]
}

/// One value of each type of tags.
fn values() -> [IndexData; 9] {
    let text = || "a".to_owned();
    [
        IndexData::Char(vec![1]),
        IndexData::Int8(vec![1]),
        IndexData::Int16(vec![1]),
        IndexData::Int32(vec![1]),
        IndexData::Int64(vec![1]),
        IndexData::StringTag(text()),
        IndexData::Bin(vec![1]),
        IndexData::StringArray(vec![text()]),
        IndexData::I18NString(vec![text()]),
    ]
}

/// All tags except those of signatures and of the payload's digests, whose types rpm checks later.
#[test]
fn types_of_tags_are_those_of_rpm() {
    let judges = Judges::new();
    let tags = (100..257).chain(281..1300).chain(5000..5200);
    let (mut names, mut refused) = (Vec::new(), BTreeSet::new());
    for tag in tags.filter(|tag| !matches!(tag, 5092 | 5121..=5124)) {
        for (kind, data) in values().into_iter().enumerate() {
            let name = format!("{tag}-{}.rpm", kind + 1);
            let bytes = raw_header::package(&header_of(HeaderEntry::new(tag, data)));
            let error = RpmFront::read(&Content::of_bytes(&bytes[..])).map(drop).err();
            if error.is_some_and(|error| error.to_string().contains("rpm does not take")) {
                refused.insert(name.clone());
            }
            judges.write(&name, &bytes);
            names.push(name);
        }
    }
    let mut judged = BTreeSet::new();
    for names in names.chunks(FILES) {
        for said in judges.runs("-K", names) {
            let bad = errors(&said).filter(|(_, message)| message.contains("]: BAD"));
            judged.extend(bad.map(|(name, _)| name.to_owned()));
        }
    }
    assert!(judged.len() > 1000, "{}", judged.len());
    let differing: Vec<_> = judged.symmetric_difference(&refused).collect();
    assert!(differing.is_empty(), "{differing:?}");
}

/// The bytes of a header with one tag.
fn header_of(entry: HeaderEntry) -> Vec<u8> {
    let metadata = PackageMetadata {
        lead: Lead::new("x"),
        signature: Header::new_empty(),
        header: Header::from_entries([entry], IndexTag::RPMTAG_HEADERIMMUTABLE),
    };
    metadata.header_bytes().unwrap()
}
