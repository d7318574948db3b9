//! `rockpack verify`, from outside.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests fail by panics")]

#[macro_use]
extern crate support;

mod artifacts;
mod contents;
mod databases;
mod debug_files;
mod documents;
mod fields;
mod folders;
mod foreign;
mod forged;
mod integrity;
mod packages;
mod partial;
mod receipt;
mod references;
mod shared_code;
mod shipped;
mod signed;
mod tampering;
mod trees;
mod twice;
mod wheels;

support::main!();
