//! Cut and damaged packages are errors, never panics, and never accepted as whole.

use std::io::Read;
use std::path::PathBuf;

use md5::Digest as _;
use rockpack_archive::package_file::PackageReader;
use rockpack_archive::payload::Digest;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use support::packages::{Tree, emit_one, package};

fn samples(out: &std::path::Path) -> [Vec<u8>; 2] {
    let tree = Tree::default()
        .deb_directory("opt")
        .directory("opt/x")
        .text("opt/x/file", "some content\n")
        .link("opt/x/link", "file");
    let (deb, rpm) = emit_one(out, &package("a", tree.entries()));
    [deb, rpm].map(|path: PathBuf| std::fs::read(path).unwrap())
}

/// Reads the whole package, and compares the content with the stated digests as verification does.
fn read_whole(bytes: Vec<u8>) -> Result<usize> {
    let reader = PackageReader::open(Content::of_bytes(bytes))?;
    let mut count = 0;
    reader.visit(&mut |read, content| {
        count += 1;
        let mut bytes = Vec::new();
        content.take(1 << 20).read_to_end(&mut bytes).map_err(|e| Error::io("", "read", e))?;
        let same = match read.declared {
            Some(Digest::Md5(sum)) => md5::Md5::digest(&bytes)[..] == sum,
            Some(Digest::Sha256(sum)) => sha2::Sha256::digest(&bytes)[..] == sum,
            None => !read.entry.is_file(),
        };
        if same { Ok(()) } else { Err(Error::malformed("content differs from its digest")) }
    })?;
    Ok(count)
}

#[test]
fn every_cut_is_an_error() {
    let out = tempfile::tempdir().unwrap();
    for bytes in samples(out.path()) {
        read_whole(bytes.clone()).unwrap();
        for len in 0..bytes.len() {
            assert!(read_whole(bytes[..len].to_vec()).is_err(), "cut to {len} of {}", bytes.len());
        }
    }
}

#[test]
fn anything_behind_the_end_is_an_error() {
    let out = tempfile::tempdir().unwrap();
    for bytes in samples(out.path()) {
        for tail in [&b"\0"[..], b"\n", b"garbage, of some length"] {
            let longer = [&bytes[..], tail].concat();
            assert!(read_whole(longer).is_err(), "{tail:?}");
        }
    }
}

/// A damaged byte in an rpm's header or payload is always noticed. One in the lead, in the reserved space, or
/// in parts of a .deb without a digest may pass.
#[test]
fn damage_never_panics_and_is_seen_where_digests_are() {
    let out = tempfile::tempdir().unwrap();
    let [deb, rpm] = samples(out.path());
    for at in 0..deb.len() {
        let mut bytes = deb.clone();
        bytes[at] ^= 0x41;
        let _ = read_whole(bytes);
    }
    let header = 96 + 16 + 6 * 16 + 4260 + 4;
    assert_eq!(rpm[header..header + 3], [0x8e, 0xad, 0xe8], "where the header begins");
    for at in 0..rpm.len() {
        let mut bytes = rpm.clone();
        bytes[at] ^= 0x81;
        let result = read_whole(bytes);
        assert!(at < header || result.is_err(), "damage at {at} was not seen");
    }
}
