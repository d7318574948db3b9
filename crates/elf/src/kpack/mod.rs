//! Kernel archives (`.kpack`): the code objects of a component's binaries for one base arch.
//!
//! [`rockpack_kpack::archive`] defines their layout, names and numbers, and reads them as leniently as a
//! loader. This module writes them, and reads them as strictly as a tool must that rewrites them.

#[cfg(test)]
mod agreement_tests;
mod reader;
mod toc;
mod writer;

pub use reader::KpackReader;
pub use rockpack_kpack::archive::{
    BLOB_LIMIT, BLOB_START, FRAME_LIMIT, HSACO, MAGIC, Scheme, TOC_LIMIT, VERSION, key, split_key,
};
pub use toc::{Toc, TocRow};
pub use writer::write;
