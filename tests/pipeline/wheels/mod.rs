//! `rockpack wheel`, on wheels that Python writes, judged by Python's readers.

mod again;
mod damaged;
mod findings;
mod groups;
mod loaded;
mod lossless;
mod metadata;
mod output;
mod refused;
mod reproducible;

use std::sync::OnceLock;

use support::fat_wheels::{Made, fat};

/// The split of the fat wheel, made once for all tests.
fn made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| Made::of(&fat(), &[]))
}
