//! Host binaries with headers and tables that say what no linker writes: refused, or transformed
//! without loss.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

mod file;
mod headers;
mod symbols;
mod tables;
#[path = "../../fuzz/src"]
mod fuzz {
    pub mod preserved;
}
#[path = "../support/mod.rs"]
mod support;
