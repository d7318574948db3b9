//! rockpack turns ROCm build artifacts into distribution packages in one pass.
//!
//! docs/architecture.md describes the rooms below in the order of the work. [`pipeline`] is the line of
//! stages from artifacts to packages. `rockpack_base` is the common base of all rooms.
//!
//! This library is the inside of the program `rockpack`, for its tests, benchmarks and fuzz targets. It
//! promises nothing to other crates: a release may change any of it.

pub mod cache;
pub mod cli;
pub mod config;
pub mod dependencies;
pub mod emit;
pub mod files;
pub mod input;
pub mod inspect;
pub mod pack;
pub mod package;
pub mod pipeline;
pub mod plan;
pub mod receipt;
pub mod recombine;
pub mod repo;
pub mod report;
pub mod settings;
pub mod signing;
pub mod split;
pub mod verify;
