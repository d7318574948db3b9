//! `rockpack wheel`, on wheels that Python writes and by what Python reads.

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

/// What is made of the fat wheel, once for all tests.
fn made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| Made::of(&fat(), &[]))
}
