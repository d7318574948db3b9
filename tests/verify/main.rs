//! `rockpack verify`, from outside.
#![allow(clippy::unwrap_used)] // a test that panics has failed

#[path = "../support/tampered/mod.rs"]
mod tampered;
#[path = "../support/tools.rs"]
mod tools;

mod artifacts;
mod contents;
mod databases;
mod debug_files;
mod documents;
mod folders;
mod packages;
mod receipt;
mod references;
mod twice;
