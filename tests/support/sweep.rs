//! Sweeps that take long: a sample of their cases runs at every change, and all cases where
//! `ROCKPACK_SWEEPS=all`, as `.ci/nightly` sets it. The sweeps of faults take hours: `ROCKPACK_SLICE=2/8`
//! leaves every eighth place of them, from the second one, so that eight runs together strike all.

use std::sync::OnceLock;

/// Whether every case is tried.
pub fn all() -> bool {
    std::env::var("ROCKPACK_SWEEPS").as_deref() == Ok("all")
}

/// Returns `sample`, or `everything` where every case is tried.
pub fn or_all<T>(sample: T, everything: T) -> T {
    if all() { everything } else { sample }
}

/// The part of each sweep that this run tries: (I, N) of `ROCKPACK_SLICE=I/N`, or (1, 1) for all of it.
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

/// Whether this run tries a part of each sweep.
pub fn is_sliced() -> bool {
    slice().1 > 1
}

/// Whether case number `at` of a sweep is in the slice of this run.
pub fn is_in_slice(at: usize) -> bool {
    let (index, of) = slice();
    at % of == index % of
}
