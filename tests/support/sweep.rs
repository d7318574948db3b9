//! Sweeps that take long: a sample of them runs at every change, and all of them where
//! `ROCKPACK_SWEEPS=all`, as `.ci/nightly` sets it.

/// Whether everything is tried.
pub fn all() -> bool {
    std::env::var("ROCKPACK_SWEEPS").as_deref() == Ok("all")
}

/// `sample` of what could be tried, or `everything`.
pub fn or_all<T>(sample: T, everything: T) -> T {
    if all() { everything } else { sample }
}
