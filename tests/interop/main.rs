//! Packages in the hands of distributions: installed, linted, debugged, signed, and their dependencies
//! beside those that the tools of distributions find.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests fail by panics")]

#[macro_use]
extern crate support;

mod cycles;
mod dependencies;
mod install;
mod quality;
mod rpm_dependencies;
mod shlibdeps;
mod wheels;

support::main!();
