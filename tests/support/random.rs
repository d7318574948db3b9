//! Numbers that look random, in an order that a seed determines.

use std::ops::Range;

/// The SplitMix64 generator.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `limit`; zero if `limit` is zero.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % (limit as u64).max(1)).unwrap()
    }

    /// A range within `len` bytes, usually a short one.
    pub fn range(&mut self, len: usize) -> Range<usize> {
        let start = self.below(len);
        let most = len.saturating_sub(start).min(1 << self.below(12));
        start..start + self.below(most + 1)
    }
}
