//! Host binaries with headers and tables that no linker writes: refused, or transformed without loss.

mod file;
mod headers;
mod symbols;
mod tables;
#[path = "../../../fuzz/src"]
mod fuzz {
    pub mod preserved;
}

use file::Patched;

/// A library with device code as BFD's linker writes it.
fn bfd_shared() -> Patched {
    Patched::new("bfd_shared")
}
