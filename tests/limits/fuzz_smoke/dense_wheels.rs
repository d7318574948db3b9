//! Dense wheels.

#![allow(clippy::cast_possible_truncation, reason = "counts of this file fit")]

use std::io::Write;

use crate::fuzz_smoke::dense::{LEN, numbered, text};

/// The inputs of a target that reads wheels.
pub fn inputs(target: &str) -> Vec<Vec<u8>> {
    if target == "zip" { zips() } else { wheel_texts() }
}

/// Archives with as many members as fit, all empty, and an archive with one large member.
fn zips() -> Vec<Vec<u8>> {
    let mut members = Vec::new();
    let mut directory = Vec::new();
    let mut count: u16 = 0;
    while members.len() + directory.len() < LEN {
        let name = format!("{count:04x}");
        zip_member(&mut members, &mut directory, &name, &[], 0);
        count += 1;
    }
    let many = ended(members, &directory, count);
    let (mut members, mut directory) = (Vec::new(), Vec::new());
    let mut deflated = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    deflated.write_all(&vec![0; 16 << 20]).unwrap();
    zip_member(&mut members, &mut directory, "zeros", &deflated.finish().unwrap(), 16 << 20);
    vec![many, ended(members, &directory, 1)]
}

/// Adds a member with a wrong checksum, which is noticed only after decoding.
fn zip_member(
    members: &mut Vec<u8>,
    directory: &mut Vec<u8>,
    name: &str,
    stored: &[u8],
    size: u32,
) {
    let local = (members.len() as u32).to_le_bytes();
    let method = u16::from(size > 0) * 8;
    let mut common = vec![20, 0, 0, 0];
    common.extend(method.to_le_bytes());
    common.extend([0; 8]);
    common.extend((stored.len() as u32).to_le_bytes());
    common.extend(size.to_le_bytes());
    common.extend((name.len() as u16).to_le_bytes());
    common.extend([0; 2]);
    members.extend(b"PK\x03\x04");
    members.extend(&common);
    members.extend(name.as_bytes());
    members.extend(stored);
    directory.extend(b"PK\x01\x02\x2d\x03");
    directory.extend(common);
    directory.extend([0; 10]);
    directory.extend(local);
    directory.extend(name.as_bytes());
}

fn ended(mut members: Vec<u8>, directory: &[u8], count: u16) -> Vec<u8> {
    let start = (members.len() as u32).to_le_bytes();
    members.extend(directory);
    members.extend(b"PK\x05\x06\0\0\0\0");
    members.extend([count, count].map(u16::to_le_bytes).concat());
    members.extend((directory.len() as u32).to_le_bytes());
    members.extend(start);
    members.extend([0; 2]);
    members
}

/// Texts with many rows, many fields, and tags that multiply.
fn wheel_texts() -> Vec<Vec<u8>> {
    let head = "Metadata-Version: 2.1\nName: a\nVersion: 1\n";
    let wheel = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n";
    let tags = vec!["a"; 300].join(".");
    vec![
        format!("\0a-1-{tags}-{tags}-{tags}.whl").into_bytes(),
        [b"\x01", &numbered("", ",,\n")[..]].concat(),
        [b"\x01", &text("\n")[..]].concat(),
        [b"\x01\"", &text("\"\"")[..], b"\",,"].concat(),
        [b"\x02", head.as_bytes(), &text("A:\n")].concat(),
        [b"\x02", head.as_bytes(), b"A:\n", &text(" \n")].concat(),
        [b"\x03", wheel.as_bytes(), &text("Tag:\n")].concat(),
    ]
}
