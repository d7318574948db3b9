//! Files that were cut off, and files with one bit changed.

use support::sweep::or_all;

use super::file;
use super::samples::{Damage, Sample, samples};
use crate::targets::TARGETS;

/// In a sweep of all, files up to this length are tried with every bit changed; of longer ones one bit
/// of each byte.
const EVERY_BIT: usize = 6350;

/// A sample has shorter files so, and of longer ones one bit of so many bytes at most.
const EVERY_BIT_OF_A_SAMPLE: usize = 256;
const BYTES_OF_A_SAMPLE: usize = 1500;

/// So many places of a file are cut or changed in a sample, which lie evenly over all of it. The step
/// from one to the next is odd, so that each bit of a byte has its turn, and each place in a table of
/// words.
fn step(len: usize) -> usize {
    or_all(len.div_ceil(BYTES_OF_A_SAMPLE) | 1, 1)
}

/// What is read of damaged bytes, as far as it is read.
fn read(sample: &Sample, damaged: &[u8]) -> Option<String> {
    match (sample.read)(damaged) {
        Ok(value) => Some(value),
        Err(error) => {
            assert_ne!(error.kind(), rockpack_base::error::Kind::Bug, "{}: {error}", sample.name);
            None
        }
    }
}

/// A file that was cut off anywhere is an error, but where only the end of its last line is missing.
/// Of a format without an end it may say the beginning of what the whole says.
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

/// Whether a sample that ends at `end` may say `value`, where the whole says `whole`.
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

/// With one bit changed it is an error, or says the same, where checksums are; otherwise it says
/// what the bit says, and never fails otherwise.
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

/// The state of a repository of each format, cut off or with a bit changed: refused, or published as
/// it says, and then published again.
#[test]
fn a_damaged_state_of_a_repository_is_refused_or_published() {
    for name in ["apt", "rpm"] {
        // The first byte says what kind of state follows.
        feed_damaged("repo_state", &file(&format!("fuzz/seeds/repo_state/{name}")), 1);
    }
}

/// A static archive: refused, or passed on as it is.
#[test]
fn a_damaged_static_archive_is_refused_or_passed_on() {
    for name in ["fat", "plain"] {
        feed_damaged("static_archive", &file(&format!("fuzz/seeds/static_archive/{name}")), 0);
    }
}

/// Gives `bytes` to a target of the fuzzer, cut off anywhere and with a bit of each byte changed,
/// but for the first `kept`; in a sample, at every [`step`].
fn feed_damaged(target: &str, bytes: &[u8], kept: usize) {
    let target = TARGETS.iter().find(|found| found.name == target).unwrap();
    let places = || (kept..bytes.len()).step_by(step(bytes.len()));
    for end in places() {
        target.feed(&bytes[..end]);
    }
    for at in places() {
        let mut damaged = bytes.to_vec();
        damaged[at] ^= 1 << (at % 8);
        target.feed(&damaged);
    }
}
