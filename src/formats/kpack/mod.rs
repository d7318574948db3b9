//! Kernel archives (`.kpack`): the code objects of a component's binaries for one base arch.

mod format;
mod reader;
mod writer;

pub use format::{
    BLOB_LIMIT, BLOB_START, FRAME_LIMIT, HEADER_LEN, HSACO, MAGIC, Row, Scheme, TOC_LIMIT, Toc,
    VERSION, key, split_key,
};
pub use reader::Reader;
pub use writer::write;
