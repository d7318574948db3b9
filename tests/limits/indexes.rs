//! Small repository indexes that unpack to huge texts, or list huge numbers of entries.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};
use support::example::rockpack;

use crate::large_indexes::deflated;
use crate::{limited, text};

/// The memory of a run in MiB.
const MEMORY: u32 = 300;

/// The unpacked size of an index in bytes: most of the limit for such an index, and the whole part that is
/// read of a longer one.
const SHORT: usize = 31 << 20;

/// The unpacked size in bytes, and the memory in MiB, for cases that need less.
const SHORTER: usize = 6 << 20;
const LESS_MEMORY: u32 = 64;

const LONG: usize = 200 << 20;

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `head` and as many repetitions of `part` as fit into `len` bytes, compressed. A mebibyte of them is
/// compressed once.
fn packed(head: &str, part: &str, len: usize) -> Vec<u8> {
    let many = part.repeat((1 << 20) / part.len());
    let count = len / many.len();
    let mut sum = flate2::Crc::new();
    sum.update(head.as_bytes());
    (0..count).for_each(|_| sum.update(many.as_bytes()));
    let mut stream = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    stream.extend(deflated(head.as_bytes(), 6));
    stream.extend(deflated(many.as_bytes(), 6).repeat(count));
    // An empty final block, the checksum and the length.
    stream.extend([0x03, 0x00]);
    stream.extend([sum.sum(), sum.amount()].map(u32::to_le_bytes).concat());
    stream
}

/// The report of `verify` on a repository with a failed check.
fn said(root: &Path) -> String {
    said_with(MEMORY, root)
}

fn said_with(memory: u32, root: &Path) -> String {
    let mut verify = rockpack();
    verify.arg("verify").arg(root);
    let output = limited(&verify, memory).output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

/// An rpm repository with one list of this kind.
fn with_list(kind: &str, list: &[u8]) -> tempfile::TempDir {
    let room = tempfile::tempdir().unwrap();
    let repodata = room.path().join("repodata");
    fs::create_dir_all(&repodata).unwrap();
    let repomd = format!(
        "<repomd><data type='{kind}'><checksum type='sha256'>{}</checksum>\
         <location href='repodata/{kind}.xml.gz'/></data></repomd>",
        hex(list)
    );
    fs::write(repodata.join(format!("{kind}.xml.gz")), list).unwrap();
    fs::write(repodata.join("repomd.xml"), repomd).unwrap();
    room
}

/// A suite with package lists for these architectures.
fn with_indexes(archs: &[&str], name: &str, list: &[u8]) -> tempfile::TempDir {
    let room = tempfile::tempdir().unwrap();
    let suite = room.path().join("dists/stable");
    let row = |arch: &&str| {
        let folder = format!("main/binary-{arch}");
        fs::create_dir_all(suite.join(&folder)).unwrap();
        fs::write(suite.join(&folder).join(name), list).unwrap();
        format!(" {} {} {folder}/{name}\n", hex(list), list.len())
    };
    let rows: String = archs.iter().map(row).collect();
    let release = format!(
        "Suite: stable\nCodename: stable\nDate: Thu, 01 Jan 2026 00:00:00 UTC\n\
         Architectures: {}\nComponents: main\nSHA256:\n{rows}",
        archs.join(" ")
    );
    fs::write(suite.join("Release"), release).unwrap();
    room
}

#[test]
fn one_package_of_a_list_is_bounded_too() {
    // Cut off at the end: long lists are read to the end.
    let (relations, cut) = ("more relations of packages than its bytes", "inside an element");
    let in_format = "<metadata><package><format>";
    for (kind, head, part, expected) in [
        (
            "primary",
            "<metadata><package><format><rpm:requires>",
            "<rpm:entry name='a'/>",
            relations,
        ),
        ("primary", in_format, "<file>/a</file>", cut),
        ("filelists", "<filelists><package pkgid='a'>", "<file>/a</file>", cut),
        ("other", "<otherdata><package pkgid='a'>", "<changelog date='1'/>", cut),
    ] {
        let room = with_list(kind, &packed(head, part, SHORTER));
        let said = said_with(LESS_MEMORY, room.path());
        assert!(said.contains(expected), "{kind} {part}: {said}");
    }
}

#[test]
fn one_package_of_an_index_is_bounded_too() {
    let of_package = "Filename: a\nArchitecture: all\n";
    let many = format!("{of_package}Depends: {}c\n\n", "b, ".repeat(1000));
    for field in ["Depends", "Provides", "Conflicts"] {
        let head = format!("{of_package}{field}: b");
        let room = with_indexes(&["all"], "Packages.gz", &packed(&head, ", b", 5 << 20));
        let said = said_with(LESS_MEMORY, room.path());
        assert!(said.contains("has a paragraph of "), "{field}: {said}");
    }
    let room = with_indexes(&["all"], "Packages.gz", &packed("", &many, SHORTER));
    let said_of_many = said_with(LESS_MEMORY, room.path());
    assert!(said_of_many.contains("more relations of packages than its bytes can describe"));
    // The next index gets only the memory that the first one leaves.
    let large = packed("", "A: a text that is not long\n\n", SHORT);
    let said = said(with_indexes(&["all", "amd64"], "Packages.gz", &large).path());
    assert!(said.contains("binary-amd64/Packages.gz: unpacks to"), "{said}");
}

/// The most relations for an index of this length, all different and all unmet.
#[test]
fn relations_as_many_as_may_be_are_held_in_short() {
    for field in ["Depends", "Provides"] {
        let mut text = String::new();
        for package in 0..10 {
            let relations: Vec<String> = (0..4_000)
                .map(|at| format!("name-of-a-package-{package}-{at} (= 1.0-1)"))
                .collect();
            let relations = relations.join(", ");
            text += &format!(
                "Package: p{package}\nVersion: 1\nArchitecture: all\nFilename: p{package}.deb\n\
                 {field}: {relations}\n\n"
            );
        }
        let room = with_indexes(&["all"], "Packages", text.as_bytes());
        let said = said_with(LESS_MEMORY, room.path());
        assert!(!said.contains("more relations"), "{field}: {said}");
        let told = said.matches("which no package").count();
        let expected = if field == "Depends" { 1000 } else { 0 };
        assert_eq!(told, expected, "{field}");
        let more = "V077 dependency-open: 39000 more, which are not listed";
        assert_eq!(said.contains(more), field == "Depends");
    }
}

/// The most packages for an index of this length, each with several faults, and the most for an rpm list.
#[test]
fn problems_as_many_as_an_index_has_lines_are_counted() {
    let digest = "0".repeat(64);
    let stanza = |at: usize| {
        format!(
            "Package: p{at}\nVersion: 1\nArchitecture: x{at}\nFilename: pool/p{at}.deb\nSHA256: {digest}\n\n"
        )
    };
    let index: String = (0..40_000).map(stanza).collect();
    let room = with_indexes(&["amd64"], "Packages", index.as_bytes());
    let element = |at: usize| {
        format!(
            "<package><name>p{at}</name><checksum type='sha256'>{at:064}</checksum>\
             <location href='packages/p{at}.rpm'/><url>{}</url></package>",
            "u".repeat(300)
        )
    };
    let list: String = (0..20_000).map(element).collect();
    let list = with_list("primary", &packed(&format!("<metadata>{list}</metadata>"), " ", 0));
    let of_suite = said_with(LESS_MEMORY * 2, room.path());
    let of_list = said_with(LESS_MEMORY * 2, list.path());
    for (said, code, more) in [
        (&of_suite, "V072 package-missing", 39_000),
        (&of_suite, "V078 index-inconsistent", 39_000),
        (&of_list, "V072 package-missing", 19_000),
    ] {
        // A line reports the number of further ones.
        assert_eq!(said.matches(&format!("failed: {code}: ")).count(), 1001, "{code}");
        assert!(said.contains(&format!("failed: {code}: {more} more, which")), "{code}");
    }
    assert!(of_suite.contains("\n80000 checks failed"), "{of_suite}");
}

#[test]
fn what_makes_others_valid_names_no_endless_files() {
    let rows: String = (0..101).map(|at| format!("<data type='{at}'/>")).collect();
    let room = tempfile::tempdir().unwrap();
    fs::create_dir(room.path().join("repodata")).unwrap();
    fs::write(room.path().join("repodata/repomd.xml"), format!("<repomd>{rows}</repomd>")).unwrap();
    assert!(said(room.path()).contains("names 101 lists"));
    let room = with_indexes(&["all"], "Packages", b"");
    let release = room.path().join("dists/stable/Release");
    let rows: String = (0..100_001).map(|at| format!(" 00 1 {at}\n")).collect();
    fs::write(&release, format!("SHA256:\n{rows}")).unwrap();
    assert!(said(room.path()).contains("lists more than 100000 files"));
    fs::write(&release, format!("A:{}", "\n b".repeat(6 << 20))).unwrap();
    assert!(said(room.path()).contains("more than the limit of 16777216"));
}

#[test]
fn lists_of_rpm_are_bounded_by_what_is_stored() {
    for (part, len, memory, expected) in [
        ("<a/>", LONG, MEMORY, "unpacks to"),
        ("<package><a/></package>", LONG, MEMORY, "unpacks to"),
        ("<a/>", SHORTER, LESS_MEMORY, "more elements and attributes"),
        ("<a x='' y='' z=''/>", SHORTER, LESS_MEMORY, "more elements and attributes"),
        ("<package></package>", SHORT, MEMORY, "more packages than its bytes can describe"),
    ] {
        let list = packed("<metadata>", part, len);
        assert!(list.len() < 2 << 20, "{}", list.len());
        let room = with_list("primary", &list);
        let said = said_with(memory, room.path());
        assert!(said.contains("primary.xml.gz") && said.contains(expected), "{part}: {said}");
    }
}

#[test]
fn indexes_of_apt_are_bounded_by_what_is_stored() {
    let packages = "more packages than its bytes can describe";
    for (part, len, memory, expected) in [
        ("A:\n\n", LONG, MEMORY, "unpacks to"),
        ("A:\n\n", SHORTER, LESS_MEMORY, packages),
        ("Filename: a\nArchitecture: all\n\n", SHORTER, LESS_MEMORY, packages),
    ] {
        let room = with_indexes(&["all"], "Packages.gz", &packed("", part, len));
        let said = said_with(memory, room.path());
        assert!(said.contains("Packages.gz") || said.contains("Packages"), "{part}: {said}");
        assert!(said.contains(expected), "{part}: {said}");
    }
}
