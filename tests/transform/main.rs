//! The transform of host binaries, judged by linkers, loaders and tools of distributions.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests fail by panics")]

#[macro_use]
extern crate support;

mod binary;
mod patched;
mod refusals;
mod runtime;
mod thinned;
mod tools;

support::main!();
