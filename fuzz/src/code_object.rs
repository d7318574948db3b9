//! The header, the kernels and the metadata of a code object.

use rockpack::content::Content;
use rockpack::formats::{amdgpu_metadata, code_object};

pub fn run(data: &[u8]) {
    let content = Content::of_bytes(data);
    let header = code_object::read_header(&content);
    if code_object::kernel_names(&content).is_ok() {
        assert!(header.is_ok());
    }
    let _ = amdgpu_metadata::read(&content);
}
