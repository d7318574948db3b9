//! The header, the kernels and the metadata of a code object.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rockpack::content::Content;
use rockpack::formats::{amdgpu_metadata, code_object};

fuzz_target!(|data: &[u8]| {
    let content = Content::of_bytes(data);
    let header = code_object::read_header(&content);
    if code_object::kernel_names(&content).is_ok() {
        assert!(header.is_ok());
    }
    let _ = amdgpu_metadata::read(&content);
});
