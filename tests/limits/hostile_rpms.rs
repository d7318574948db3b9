//! Like `hostile_packages.rs`, for an `.rpm`: names, folders and file types that no rpmbuild writes, with
//! correct digests.

use std::fs;
use std::path::{Path, PathBuf};

use rockpack_archive::rpm::RpmFront;
use rockpack_core::content::{Content, hex};
use rpm::IndexData;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use support::example::rockpack;
use support::headers::{Tagged, remade};
use support::tools::{need, succeed};

use crate::hostile_packages::{openers, rpm};
use crate::two_readings::built;
use crate::{inspect, text};

const MODES: u32 = 1030;
const BASE_NAMES: u32 = 1117;
const FOLDERS: u32 = 1118;
/// The base name of the file whose index in the lists the tests look up.
const NAME: &str = "text";

/// The `.rpm` of a build after `change` of a tag, which also gets the index of the file `text`.
fn changed(folder: &Path, tag: u32, change: impl Fn(&mut IndexData, usize)) -> PathBuf {
    let change = |mut tags: Vec<Tagged>| {
        let place = tags.iter().find_map(|(tag, data)| match data {
            IndexData::StringArray(names) if *tag == BASE_NAMES => {
                names.iter().position(|name| name == NAME)
            }
            _ => None,
        });
        tags.iter_mut()
            .filter(|(found, _)| *found == tag)
            .for_each(|(_, data)| change(data, place.unwrap()));
        tags
    };
    built(folder, |bytes| remade(bytes, change, &[]))
}

fn named(folder: &Path, name: &str) -> PathBuf {
    changed(folder, BASE_NAMES, |names, at| {
        let IndexData::StringArray(names) = names else { panic!("{names:?}") };
        name.clone_into(&mut names[at]);
    })
}

/// Fails unless every reader of packages' content refuses it, and none prints its control characters.
fn refused(package: &Path, expected: &[&str]) {
    let room = tempfile::tempdir().unwrap();
    for mut command in openers(package, room.path()) {
        let output = command.output().unwrap();
        let said = text(&output);
        assert_ne!(output.status.code(), Some(0), "{command:?}: {said}");
        for part in expected {
            assert!(said.contains(part), "{command:?}: {part}: {said}");
        }
        assert!(!said.contains('\u{1b}') && !said.contains("a\nb"), "{command:?}: {said}");
        assert!(!said.contains("a bug in rockpack"), "{command:?}: {said}");
    }
    assert!(!room.path().join("objects").exists());
    is_listed_or_no_text(package, room.path());
}

/// Fails unless `repo` lists the header's content, as createrepo_c does, or refuses text that a list cannot
/// hold.
fn is_listed_or_no_text(package: &Path, room: &Path) {
    let mut repo = rockpack();
    let output =
        repo.arg("repo").arg(package).arg("--out").arg(room.join("repo")).output().unwrap();
    let said = text(&output);
    let no_text = said.contains("has characters that XML lacks") || said.contains("invalid UTF-8");
    assert_eq!(output.status.code(), Some(if no_text { 2 } else { 0 }), "{said}");
}

#[test]
fn names_in_an_rpm_that_lead_out_or_are_no_text_are_refused() {
    let room = tempfile::tempdir().unwrap();
    for name in ["..", ".", "", "a/../../b", "a//b", "a\nb", "\u{1b}[2J", "\u{7f}", "c1\u{9b}2J"] {
        let shown = name.escape_debug().to_string();
        let package = named(room.path(), name);
        refused(&package, &[".rpm: rpm: at offset", "has the path `/opt/rocm-1.0/lib/", &shown]);
    }
}

/// rpm itself accepts any bytes as a name.
#[test]
fn names_in_an_rpm_that_are_not_utf8_are_refused() {
    let room = tempfile::tempdir().unwrap();
    let package = named(room.path(), "QQQQ");
    let bytes = fs::read(&package).unwrap();
    let header = RpmFront::read(&Content::of_bytes(bytes.clone())).unwrap().header;
    let header = usize::try_from(header.start).unwrap()..usize::try_from(header.end).unwrap();
    let before = digests(&bytes[header.clone()]);
    let mut bytes = replaced(&bytes, b"QQQQ", b"QQ\xffQ");
    let after = digests(&bytes[header]);
    for (before, after) in before.iter().zip(after) {
        bytes = replaced(&bytes, before.as_bytes(), after.as_bytes());
    }
    fs::write(&package, bytes).unwrap();
    refused(&package, &[".rpm", "UTF-8"]);
}

fn digests(header: &[u8]) -> [String; 2] {
    [hex(&Sha1::digest(header)), hex(&Sha256::digest(header))]
}

/// Replaces `from`, which must occur once in `bytes`.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let places: Vec<usize> = bytes
        .windows(from.len())
        .enumerate()
        .filter(|(_, window)| *window == from)
        .map(|(at, _)| at)
        .collect();
    let [at] = places[..] else { panic!("{places:?}") };
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

#[test]
fn folders_in_an_rpm_that_are_no_paths_from_the_root_are_refused() {
    let room = tempfile::tempdir().unwrap();
    for (folder, said) in [
        ("opt/", "has a file in no directory"),
        ("", "has a file in no directory"),
        ("/opt", "has a file in no directory"),
        ("//", "has the path `//"),
        ("/../", "has the path `/../"),
        ("/opt/../", "has the path `/opt/../"),
        ("/a\nb/", "has the path `/a\\nb/"),
        ("/\u{1b}[2J/", "has the path `/\\u{1b}[2J/"),
    ] {
        let package = changed(room.path(), FOLDERS, |folders, _| {
            let IndexData::StringArray(folders) = folders else { panic!("{folders:?}") };
            folders.iter_mut().for_each(|old| folder.clone_into(old));
        });
        refused(&package, &[".rpm: rpm: at offset", said]);
    }
}

#[test]
fn files_of_an_rpm_that_are_none_are_refused() {
    let room = tempfile::tempdir().unwrap();
    for kind in [0o020_000_u16, 0o060_000, 0o010_000, 0o140_000, 0o170_000, 0] {
        let mode = kind | 0o644;
        let package = changed(room.path(), MODES, |modes, at| {
            let IndexData::Int16(modes) = modes else { panic!("{modes:?}") };
            modes[at] = mode;
        });
        let said = format!("/opt/rocm-1.0/lib/text of mode {mode:o} is not supported");
        refused(&package, &[".rpm", "rpm header", &said]);
    }
}

#[test]
fn setuid_files_of_an_rpm_are_shown() {
    need(&["rpmbuild"]);
    let room = tempfile::tempdir().unwrap();
    let package = rpm(
        room.path(),
        "Name: odd\nVersion: 1\nRelease: 1\nSummary: x\nLicense: x\nBuildArch: noarch\n\
         %description\nx\n%install\nmkdir -p %{buildroot}/opt\necho x >%{buildroot}/opt/su\n\
         %files\n%attr(4755, root, root) /opt/su\n",
    );
    let shown = succeed(&mut inspect(&package));
    let line = shown.lines().find(|line| line.contains("/opt/su")).unwrap();
    assert!(line.contains("4755") || line.contains("rws"), "{shown}");
}
