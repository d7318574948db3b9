//! Small indexes of a repository that unpack to very much, or list very much.

use std::fs;
use std::io::Write;
use std::path::Path;

use sha2::{Digest, Sha256};
use support::example::rockpack;

use crate::{limited, text};

/// Memory that a run may have, in MiB.
const MEMORY: u32 = 300;

/// Bytes of what is packed: most of what the unpacked form of such an index may have, and all that
/// is read of a longer one.
const SHORT: usize = 31 << 20;
const LONG: usize = 200 << 20;

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `head`, then `part` again and again, `len` bytes together; packed.
fn packed(head: &str, part: &str, len: usize) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(head.as_bytes()).unwrap();
    let many = part.repeat((1 << 20) / part.len());
    (0..len / many.len()).for_each(|_| encoder.write_all(many.as_bytes()).unwrap());
    encoder.finish().unwrap()
}

/// What `verify` says of the repository, where a check fails.
fn said(root: &Path) -> String {
    let mut verify = rockpack();
    verify.arg("verify").arg(root);
    let output = limited(&verify, MEMORY).output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

#[test]
fn lists_of_rpm_are_bounded_by_what_is_stored() {
    for (part, len, expected) in [
        ("<a/>", LONG, "unpacks to"),
        ("<package><a/></package>", LONG, "unpacks to"),
        ("<a/>", SHORT, "more elements and attributes"),
        ("<a x='' y='' z=''/>", SHORT, "more elements and attributes"),
        ("<package></package>", SHORT, "more packages than its bytes can describe"),
    ] {
        let room = tempfile::tempdir().unwrap();
        let repodata = room.path().join("repodata");
        fs::create_dir_all(&repodata).unwrap();
        let list = packed("<metadata>", part, len);
        assert!(list.len() < 2 << 20, "{}", list.len());
        let repomd = format!(
            "<repomd><data type='primary'><checksum type='sha256'>{}</checksum>\
             <location href='repodata/primary.xml.gz'/></data></repomd>",
            hex(&list)
        );
        fs::write(repodata.join("primary.xml.gz"), list).unwrap();
        fs::write(repodata.join("repomd.xml"), repomd).unwrap();
        let said = said(room.path());
        assert!(said.contains("primary.xml.gz") && said.contains(expected), "{part}: {said}");
    }
}

#[test]
fn indexes_of_apt_are_bounded_by_what_is_stored() {
    for (part, len, expected) in [
        ("A:\n\n", LONG, "unpacks to"),
        ("A:\n\n", SHORT, "more packages than its bytes can describe"),
        ("Filename: a\nArchitecture: all\n\n", SHORT, "more packages than its bytes can describe"),
    ] {
        let room = tempfile::tempdir().unwrap();
        let binary = room.path().join("dists/stable/main/binary-all");
        fs::create_dir_all(&binary).unwrap();
        let list = packed("", part, len);
        let release = format!(
            "Suite: stable\nCodename: stable\nDate: Thu, 01 Jan 2026 00:00:00 UTC\n\
             Architectures: all\nComponents: main\nSHA256:\n {} {} main/binary-all/Packages.gz\n",
            hex(&list),
            list.len()
        );
        fs::write(binary.join("Packages.gz"), list).unwrap();
        fs::write(room.path().join("dists/stable/Release"), release).unwrap();
        let said = said(room.path());
        assert!(said.contains("Packages.gz") || said.contains("Packages"), "{part}: {said}");
        assert!(said.contains(expected), "{part}: {said}");
    }
}
