//! Kernel archives: their bytes, what the pack stage puts into them, and what loaders find.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

mod format;
mod loader;
mod pack;
#[path = "../support/kpack.rs"]
mod support;
#[path = "../support/tools.rs"]
mod tools;
