//! Formats as written by rockpack and read by foreign readers.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests fail by panics")]

#[macro_use]
extern crate support;

mod changed;
mod gfx_features;
mod kpack;
mod large;
mod linking;
mod packages;
mod packages_hostile;
mod packages_rpmbuild;
mod packages_set;
mod versions;

support::main!();
