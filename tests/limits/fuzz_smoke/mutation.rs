//! Simple changes to inputs, in a fixed order.

use support::random::Random;

/// Numbers that readers often get wrong.
const NUMBERS: [u64; 10] =
    [0, 1, 2, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX >> 1];

/// Makes one change.
pub fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let range = random.range(bytes.len());
    match random.below(9) {
        0 => bytes.truncate(range.start),
        1 => drop(bytes.drain(range)),
        2 => {
            let copy = bytes[range].to_vec();
            let at = random.below(bytes.len() + 1);
            drop(bytes.splice(at..at, copy));
        }
        3 => {
            let part = &other[random.range(other.len())];
            drop(bytes.splice(range, part.iter().copied()));
        }
        4 => repeat(bytes, range, random),
        5 | 6 => number(bytes, range.start, random),
        _ => {
            if let Some(byte) = bytes.get_mut(range.start) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
}

/// Inserts copies of a range after it, enough for the cost of each to show.
fn repeat(bytes: &mut Vec<u8>, range: std::ops::Range<usize>, random: &mut Random) {
    let most = (super::LONGEST / 2).saturating_sub(bytes.len()) / range.len().max(1);
    let most = most.min(1 << random.below(16));
    let copies = bytes[range.clone()].repeat(random.below(most + 1));
    drop(bytes.splice(range.end..range.end, copies));
}

/// Overwrites 1 to 8 bytes with another number, or changes the number there slightly.
fn number(bytes: &mut [u8], at: usize, random: &mut Random) {
    let width = 1 << random.below(4);
    let at = at / width * width;
    let Some(place) = bytes.get_mut(at..at + width) else {
        return;
    };
    let mut old = [0; 8];
    old[..width].copy_from_slice(place);
    let new = match random.below(3) {
        0 => NUMBERS[random.below(NUMBERS.len())],
        1 => u64::MAX - NUMBERS[random.below(NUMBERS.len())],
        _ => u64::from_le_bytes(old).wrapping_add(random.below(17) as u64).wrapping_sub(8),
    };
    place.copy_from_slice(&new.to_le_bytes()[..width]);
}
