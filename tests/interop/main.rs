//! Packages in distributions: installed, linted, debugged and signed, with dependencies compared with those
//! that the distributions' tools find.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests fail by panics")]

#[macro_use]
extern crate support;

mod code_files;
mod cycles;
mod dependencies;
mod install;
mod object_stores;
mod quality;
mod rpm_dependencies;
mod rpm_headers;
mod shlibdeps;
mod wheels;

support::main!();
