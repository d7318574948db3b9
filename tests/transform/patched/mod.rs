//! Host binaries with headers and tables that no linker writes: refused, or transformed without loss.

mod file;
mod headers;
mod symbols;
mod tables;
#[path = "../../../fuzz/src"]
mod fuzz {
    pub mod preserved;
}
