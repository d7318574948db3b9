//! Files that are cut off, and files with one changed bit.

use support::sweep::or_all;

use super::file;
use super::samples::{Damage, Sample, samples};
use crate::targets::TARGETS;

/// Full sweeps change every bit of files up to this length, and one bit of each byte of longer ones.
const EVERY_BIT: usize = 6350;

/// Samples change every bit of files up to this length, and one bit of this many bytes of longer ones.
const EVERY_BIT_OF_A_SAMPLE: usize = 256;
const BYTES_OF_A_SAMPLE: usize = 1500;

/// The step between the cut or changed places of a file, which a sample spreads evenly. The step is odd, so
/// that it reaches each bit of a byte, and each field in a table of words.
fn step(len: usize) -> usize {
    or_all(len.div_ceil(BYTES_OF_A_SAMPLE) | 1, 1)
}

/// The value read from damaged bytes; absent if they are refused.
fn read(sample: &Sample, damaged: &[u8]) -> Option<String> {
    match (sample.read)(damaged) {
        Ok(value) => Some(value),
        Err(error) => {
            assert_ne!(error.kind(), rockpack_core::error::Kind::Bug, "{}: {error}", sample.name);
            None
        }
    }
}

/// A file that is cut off is an error wherever the cut is, unless only its last line end is missing. A format
/// without an end may give the first part of the whole value.
#[test]
fn a_file_that_is_cut_off_says_nothing_else() {
    for sample in samples() {
        let whole = (sample.read)(&sample.bytes).unwrap();
        let (mut refused, count) = (0, sample.bytes.len());
        for end in (0..count).step_by(step(count)).chain(count.checked_sub(1)) {
            match read(&sample, &sample.bytes[..end]) {
                None => refused += 1,
                Some(value) => assert!(
                    is_left(&sample, end, &value, &whole),
                    "{} cut at {end} says\n{value}\nand whole\n{whole}",
                    sample.name
                ),
            }
        }
        note!("{}: {refused} lengths refused", sample.name);
        assert!(refused > 0, "{}", sample.name);
    }
}

/// Tells whether a sample cut at `end` may give `value`, if the whole file gives `whole`.
fn is_left(sample: &Sample, end: usize, value: &str, whole: &str) -> bool {
    match sample.damage {
        Damage::Noticed(_) | Damage::Said => &sample.bytes[end..] == b"\n" && value == whole,
        Damage::Items => {
            let rest = whole.strip_prefix(value);
            value.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'))
        }
        Damage::Lines => whole.starts_with(value),
    }
}

/// A file with one changed bit is an error, or gives the same value, if checksums cover it. Otherwise it
/// gives the value that the bit says, or an ordinary error.
#[test]
fn a_changed_bit_is_noticed_where_it_can_be() {
    for sample in samples() {
        let whole = (sample.read)(&sample.bytes).unwrap();
        let (mut tried, mut refused, mut same) = (0, 0, 0);
        let mut bytes = sample.bytes.clone();
        let every = bytes.len() <= or_all(EVERY_BIT_OF_A_SAMPLE, EVERY_BIT);
        for at in (0..bytes.len()).step_by(step(bytes.len())) {
            for bit in (0..8).filter(|bit| every || at % 8 == *bit) {
                bytes[at] ^= 1 << bit;
                tried += 1;
                match read(&sample, &bytes) {
                    None => refused += 1,
                    Some(value) if value == whole => same += 1,
                    Some(value) if matches!(sample.damage, Damage::Noticed(_)) => {
                        panic!("{}: bit {bit} of {at:#x} gives {value}\nnot {whole}", sample.name)
                    }
                    Some(_) => {}
                }
                bytes[at] ^= 1 << bit;
            }
        }
        let other = tried - refused - same;
        let counts = format!("{tried} bits, {refused} refused, {same} the same, {other} others");
        note!("{}: {counts}", sample.name);
        let least = match sample.damage {
            Damage::Noticed(percent) => percent * tried,
            _ => 1,
        };
        assert!(100 * refused >= least, "{}: {counts}", sample.name);
    }
}

/// A damaged repository state of either format is refused, or published as it reads and then published again.
#[test]
fn a_damaged_state_of_a_repository_is_refused_or_published() {
    for name in ["apt", "rpm"] {
        // The first byte tells which kind of state follows.
        feed_damaged("repo_state", &file(&format!("fuzz/seeds/repo_state/{name}")), 1);
    }
}

/// The archive is refused, or passed on unchanged.
#[test]
fn a_damaged_static_archive_is_refused_or_passed_on() {
    for name in ["fat", "plain"] {
        feed_damaged("static_archive", &file(&format!("fuzz/seeds/static_archive/{name}")), 0);
    }
}

/// Feeds `bytes` to a fuzz target, cut off at every place and with a bit of each byte changed, except for the
/// first `kept`; in a sample, at every [`step`].
fn feed_damaged(target: &str, bytes: &[u8], kept: usize) {
    let target = TARGETS.iter().find(|found| found.name == target).unwrap();
    let places = (kept..bytes.len()).step_by(step(bytes.len()));
    for end in places.clone() {
        target.feed(&bytes[..end]);
    }
    for at in places {
        let mut damaged = bytes.to_vec();
        damaged[at] ^= 1 << (at % 8);
        target.feed(&damaged);
    }
}
