//! What every crate of rockpack stands on: errors, the limits of a run, content, targets, trees, compression
//! and package formats.
//!
//! Nothing here reads artifacts, packages or settings, though `gfx` and `tree` define the words that artifact
//! names are made of.

pub mod checked_json;
pub mod compression;
pub mod content;
pub mod error;
pub mod gfx;
pub mod hold;
pub mod named;
pub mod once;
pub mod package_format;
pub mod run;
pub mod tree;
mod zstd_frame;
pub mod zstd_stream;
