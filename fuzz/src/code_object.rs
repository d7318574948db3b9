//! The header, the kernels and the metadata of a code object, and the archs of a file of AOTriton.

use rockpack_core::content::Content;
use rockpack_split::aks2;
use rockpack_elf::amdgpu_metadata;
use rockpack_elf::code_object;

pub fn run(data: &[u8]) {
    let content = Content::of_bytes(data);
    let header = super::read(code_object::read_header(&content));
    if super::read(code_object::kernel_names(&content)).is_some() {
        assert!(header.is_some());
    }
    super::read(amdgpu_metadata::read(&content));
    super::read(aks2::archs(&content, &[]));
}
