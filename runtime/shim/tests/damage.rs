//! Bad input: markers, wrappers, archives and rows; and a standard error that takes no lines.

use std::fs;

use crate::archives::{Draft, code};
use crate::fixtures::{
    ONE_WRAPPER, World, assert_one_line, bundle, bundle_of, bundles, contents, grew, wrappers,
};

const OPEN: &str = "open - @/lib/x.so";

/// What the runtime prints about a HIPK wrapper that it gets as it is.
const PASSED: &str = "A register 0 passed x.so 4b504948 1 0\nA function 0\nA unregister 0\n\
                      A exit 0 bundles\n";

#[test]
fn a_wrapper_whose_marker_is_damaged_is_passed_on() {
    let world = World::new(&["gfx1100"]);
    let bad: [&[u8]; 9] = [
        b"\x80",
        b"\x93abc",
        b"\xc1",
        // It ends before memory that cannot be read.
        b"\x82\xabkernel_name",
        b"\x81\xabkernel_name\xa1x",
        b"\x82\xabkernel_name\xa1x\xb2kpack_search_paths\x90",
        b"\x82\xabkernel_name\xda\x80\x00x",
        b"\x82\xabkernel_name\xdb\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
    ];
    for marker in bad {
        fs::write(world.path().join("marker"), marker).unwrap();
        world.library("x.so", &[ONE_WRAPPER]);
        let (out, errors) = world.told(&[OPEN]);
        assert_eq!(out, PASSED, "{marker:?}");
        assert_one_line(&errors, &["x.so"]);
    }
}

#[test]
fn a_wrapper_without_a_marker_is_passed_on() {
    let world = World::new(&["gfx1100"]);
    world.library("x.so", &["-DWRAPPERS={HIPK, 1, 0, 0}"]);
    let (out, errors) = world.told(&[OPEN]);
    assert_eq!(out, PASSED);
    assert_one_line(&errors, &["x.so"]);
}

#[test]
fn ordinary_and_unknown_wrappers_are_passed_on() {
    let world = World::new(&["gfx1100"]);
    let wrappers = "-DWRAPPERS={HIPF, 1, &bundle, 0}, {0x12345678, 3, marker, 5}";
    world.library("x.so", &[wrappers]);
    let (out, errors) = world.told(&[OPEN]);
    let content = bundle_of(&[("gfx900", b"own device code\0")]);
    let expected = format!(
        "A register 0 passed x.so 48495046 1 0 {content}\nA function 0\n\
         A register 1 passed x.so 12345678 3 5\nA function 1\n\
         A unregister 0\nA unregister 1\nA exit 0 bundles\n"
    );
    assert_eq!(out, expected);
    // At most the unknown one is worth a line.
    assert!(errors.lines().count() <= 1, "{errors}");
}

#[test]
fn a_damaged_archive_leaves_the_others() {
    let world = World::new(&["gfx1030"]);
    world.library("x.so", &[]);
    let whole = Draft::zstd(&["gfx1100"], &contents("gfx1100")).bytes();
    let mut version = whole.clone();
    version[4] = 2;
    let mut table = whole.clone();
    let at = usize::try_from(u64::from_le_bytes(whole[8..16].try_into().unwrap())).unwrap();
    table[at] = 0xc1;
    let truncated = whole[..whole.len() - 1].to_vec();
    let start = whole[..20].to_vec();
    for damaged in [b"no archive at all".to_vec(), version, table, truncated, start, Vec::new()] {
        fs::write(world.archive("gfx1100"), damaged).unwrap();
        let (out, errors) = world.told(&[OPEN]);
        assert_eq!(bundles(&out), [bundle(&["gfx1030"], 0), bundle(&["gfx1030"], 1)]);
        assert_one_line(&errors, &["blas_gfx1100.kpack"]);
    }
    fs::write(world.archive("gfx1100"), whole).unwrap();
    let both = ["gfx1030", "gfx1100"];
    assert_eq!(bundles(&world.told(&[OPEN]).0), [bundle(&both, 0), bundle(&both, 1)]);
}

type Change = fn(&mut Draft);

/// Rows that lie about their size or place, also by terabytes.
#[test]
fn a_damaged_row_leaves_the_others() {
    let cases: [(bool, Change); 8] = [
        (false, |draft| draft.rows[0].3 = 30_015.into()),
        (false, |draft| draft.rows[0].3 = 30_017.into()),
        (false, |draft| draft.rows[0].3 = u32::MAX.into()),
        (false, |draft| draft.rows[0].3 = (1_u64 << 40).into()),
        (false, |draft| draft.blob[8] ^= 0x55),
        (true, |draft| draft.blobs[0].1 = 1 << 40),
        (true, |draft| draft.blobs[0].1 = (4 << 30) + 1),
        (true, |draft| draft.blobs[0].0 = u64::MAX),
    ];
    let world = World::new(&["gfx1030"]);
    world.library("x.so", &[]);
    for (number, (is_stored, change)) in cases.into_iter().enumerate() {
        let make = if is_stored { Draft::stored } else { Draft::zstd };
        let mut draft = make(&["gfx1100"], &contents("gfx1100"));
        change(&mut draft);
        draft.write(world.archive("gfx1100"));
        let (out, errors) = world.told(&[OPEN]);
        let expected = [bundle(&["gfx1030"], 0), bundle(&["gfx1030", "gfx1100"], 1)];
        assert_eq!(bundles(&out), expected, "case {number}: {errors}");
        assert_one_line(&errors, &["blas_gfx1100.kpack"]);
    }
}

#[test]
fn a_standard_error_that_takes_no_line_does_not_end_the_process() {
    let world = World::new(&[]);
    world.library("x.so", &[]);
    for how in ["stderr closed", "stderr unread"] {
        let (out, errors) = world.told(&[how, OPEN]);
        assert_eq!(bundles(&out), [bundle(&[], 0), bundle(&[], 1)], "{how}");
        assert!(out.ends_with("A exit 2 bundles\n") && errors.is_empty(), "{how}: {out}{errors}");
    }
}

/// A zstd frame of so many MiB of zeros: blocks of 128 KiB that repeat one byte.
fn zeros(mib: u32) -> Vec<u8> {
    let mut frame = 0xfd2f_b528_u32.to_le_bytes().to_vec();
    // One segment, whose size has four bytes.
    frame.push(0xa0);
    frame.extend((mib << 20).to_le_bytes());
    for block in 1..=mib * 8 {
        let header = (128_u32 << 13) + 2 + u32::from(block == mib * 8);
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

/// The targets of [`of_zeros`].
const TARGETS: [&str; 5] = ["gfx1030", "gfx1031", "gfx1032", "gfx1100", "gfx1101"];

/// An archive in which each of five code objects of a wrapper has so many MiB.
fn of_zeros(mib: u32) -> Draft {
    let mut draft = Draft::zstd(&TARGETS, &[Vec::new()]);
    let frame = zeros(mib);
    draft.blob = (TARGETS.len() as u32).to_le_bytes().to_vec();
    for (number, row) in draft.rows.iter_mut().enumerate() {
        draft.blob.extend((frame.len() as u32).to_le_bytes());
        draft.blob.extend(&frame);
        row.2 = number.into();
        row.3 = (mib << 20).into();
    }
    draft
}

/// An archive of 160 KiB, whose rows tell the truth: 5 GiB.
#[test]
fn a_wrapper_of_too_much_code_is_passed_on() {
    let world = World::new(&[]);
    world.library("x.so", &[ONE_WRAPPER]);
    of_zeros(1).write(world.archive("gfx1100"));
    let (out, errors) = world.told(&[OPEN]);
    let content = vec![0_u8; 1 << 20];
    let expected = bundle_of(&TARGETS.map(|target| (target, content.as_slice())));
    assert_eq!((bundles(&out), errors.as_str()), (vec![expected.as_str()], ""));
    of_zeros(1024).write(world.archive("gfx1100"));
    let (out, errors) = world.told(&["private", OPEN, "private"]);
    let calls = out.lines().filter(|line| !line.starts_with("private "));
    let calls: String = calls.map(|line| format!("{line}\n")).collect();
    assert_eq!(calls, PASSED);
    assert!(grew(&out, "private") < 512, "{out}");
    assert_one_line(&errors, &["lib/x.so#0"]);
}

#[test]
fn many_faults_make_few_lines() {
    const COUNT: usize = 300;
    let world = World::new(&["gfx1100"]);
    fs::write(world.path().join("marker"), b"\x80").unwrap();
    world.library("x.so", &[&wrappers(COUNT)]);
    let (out, errors) = world.told(&[OPEN]);
    assert_eq!(out.matches(" passed x.so 4b504948 1 ").count(), COUNT, "{errors}");
    assert_one_line(&errors, &["x.so"]);
    // Each row has a text of its own.
    let world = World::new(&["gfx1030"]);
    let contents: Vec<Vec<u8>> = (0..COUNT as u32).map(|seed| code(seed, 64)).collect();
    let mut draft = Draft::zstd(&["gfx1100"], &contents);
    draft.rows.iter_mut().for_each(|row| row.3 = (1_u64 << 40).into());
    draft.write(world.archive("gfx1100"));
    world.library("x.so", &[&wrappers(COUNT)]);
    let (out, errors) = world.told(&[OPEN]);
    assert_eq!(bundles(&out).len(), COUNT, "{errors}");
    assert!((1..=64).contains(&errors.lines().count()), "{errors}");
}
