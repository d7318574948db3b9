//! Input whose records or tables take more than `--memory` leaves for them.

use std::process::Command;

use crate::{Input, STAGE, limited, refusal};

/// The least memory that a build can have, in MiB, and what it may take beyond.
const BUDGET: u32 = 512;
const BESIDE: u32 = 256;

/// A build in little memory says so of `input`, which needs more.
fn refused_for(input: &Input, expected: &str) {
    let mut build = input.build();
    build.args(["--format", "deb", "--compression", "xz", "--preset", "fast", "--jobs", "1"]);
    build.args(["--memory", &format!("{BUDGET}M")]);
    let said = refusal(&mut limited(&build, BUDGET + BESIDE));
    assert!(said.contains(expected) && said.contains("--memory"), "{said}");
    assert!(!input.out().exists(), "{said}");
}

#[test]
fn more_files_than_the_memory_is_for_are_refused() {
    const FILES: u32 = 100_000;
    let packed = Input::handmade(|archive| {
        (0..FILES).for_each(|n| archive.file(&format!("{STAGE}/share/{n}"), b""));
    });
    refused_for(&packed, "too many to be remembered");
    let folder = Input::folder();
    let script = format!("cd \"$1\" && seq {FILES} | xargs touch");
    let made = Command::new("sh").args(["-c", &script, "sh"]).arg(folder.stage()).status();
    assert!(made.unwrap().success());
    refused_for(&folder, "too many to be remembered");
}

/// A table of contents of values of one byte each.
#[test]
fn tables_larger_than_the_memory_is_for_are_refused() {
    const VALUES: u32 = 10_000_000;
    let mut archive = b"KPAK".to_vec();
    archive.extend(1u32.to_le_bytes());
    archive.extend(64u64.to_le_bytes());
    archive.resize(64, 0);
    // A map of one text and an array.
    archive.extend([0x81, 0xa1, b'x', 0xdd]);
    archive.extend(VALUES.to_be_bytes());
    archive.resize(archive.len() + VALUES as usize, 0xc0);
    let path = format!("{STAGE}/lib/.kpack/a.kpack");
    let input = Input::handmade(|members| members.file(&path, &archive));
    refused_for(&input, "kernel archive TOC of 10000008 bytes is more than");
}
