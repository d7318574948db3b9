//! What the program is made of, and what it says of what it makes.
#![allow(clippy::unwrap_used)] // a test that panics has failed

#[path = "../support/example.rs"]
mod example;
#[path = "../support/keys.rs"]
#[allow(dead_code, reason = "made for the tests of repositories")]
mod keys;
#[path = "../support/strace.rs"]
mod strace;
#[path = "../support/tools.rs"]
mod tools;

mod confined;
mod dependencies;
mod sbom;
