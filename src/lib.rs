//! rockpack turns ROCm build artifacts into distribution packages in one pass.
//!
//! ```text
//! artifacts ─ artifact::scan ─ split ─ recombine ─ plan ─ pack ─ emit ─► .deb, .rpm, packages.json
//!                                                                  verify ◄─ the finished output
//! ```
//!
//! Each stage is a function from the previous stage's value to its own; nothing reaches back.

pub mod artifact;
pub mod config;
pub mod content;
pub mod database;
pub mod emit;
pub mod error;
pub mod formats;
pub mod gfx;
pub mod host_binary;
pub mod pack;
pub mod plan;
pub mod receipt;
pub mod recombine;
pub mod report;
pub mod split;
pub mod tree;
