//! Tests of the library by libraries and programs that register with it, and by stand-ins for HIP runtimes.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests fail by panics")]

#[path = "../../tests/archives.rs"]
mod archives;
mod bundles;
mod damage;
mod exported;
mod fixtures;
mod lifetime;
mod machines;
mod privileged;
mod processes;
mod runtimes;
