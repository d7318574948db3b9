//! Long sweeps: every change runs a sample of their cases; `ROCKPACK_SWEEPS=all`, which `.ci/nightly` sets,
//! runs them all. The sweeps of faults take hours: `ROCKPACK_SLICE=2/8` runs every eighth place, starting
//! with the second, so that eight runs together cover all.

use std::sync::OnceLock;

/// Tells whether this run tries every case.
pub fn all() -> bool {
    std::env::var("ROCKPACK_SWEEPS").as_deref() == Ok("all")
}

/// Returns `everything` if this run tries every case, else `sample`.
pub fn or_all<T>(sample: T, everything: T) -> T {
    if all() { everything } else { sample }
}

/// The part of each sweep that this run tries: (I, N) from `ROCKPACK_SLICE=I/N`, or (1, 1) for the whole.
pub fn slice() -> (usize, usize) {
    static SLICE: OnceLock<(usize, usize)> = OnceLock::new();
    *SLICE.get_or_init(|| {
        let Ok(text) = std::env::var("ROCKPACK_SLICE") else { return (1, 1) };
        let numbers = text.split_once('/').map(|(index, of)| (index.parse(), of.parse()));
        match numbers {
            Some((Ok(index), Ok(of))) if 0 < index && index <= of => (index, of),
            _ => panic!("ROCKPACK_SLICE={text} is no slice: name it as I/N, with I from 1 to N"),
        }
    })
}

/// Tells whether this run tries only a part of each sweep.
pub fn is_sliced() -> bool {
    slice().1 > 1
}

/// Tells whether this run's slice contains case number `at` of a sweep.
pub fn is_in_slice(at: usize) -> bool {
    let (index, of) = slice();
    at % of == index % of
}
