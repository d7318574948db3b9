//! rockpack turns ROCm build artifacts into distribution packages in one pass.
//!
//! docs/architecture.md describes the crates that it uses. [`pipeline`] runs the stages from artifacts to packages.
//!
//! This library is the implementation of the program `rockpack`, for its tests, benchmarks and fuzz targets. It has no
//! stable API: a release may change any of it.

pub mod cli;
pub mod inspect;
pub mod pipeline;
pub mod report;
pub mod settings;
pub mod thin;
