//! The dynamic linker's entries of a file, and its rewritten search paths: these keep the length of the file
//! and all other names.

use rockpack_package::dependencies::runpath::{rewrite, with_rpath};
use rockpack_core::content::Content;
use rockpack_elf::{ElfFile, FileHeader, Linking};
use rockpack_core::tree::TreePath;

pub fn run(bytes: &[u8]) {
    let content = Content::of_bytes(bytes);
    let Some(before) = linking(&content) else {
        return;
    };
    let (path, prefix) = (TreePath::new("lib/libx.so").unwrap(), TreePath::new("opt/x").unwrap());
    if let Some(Some(changed)) = super::read(with_rpath(&content, &path)) {
        assert_eq!(changed.len(), content.len());
    }
    let Some(rewriting) = super::read(rewrite(&content, &path, &prefix)) else {
        return;
    };
    let Some(written) = rewriting.content else {
        return;
    };
    assert_eq!(written.len(), content.len());
    if let Some(after) = linking(&written) {
        assert_eq!(after.needed, before.needed);
        assert_eq!(after.soname, before.soname);
    }
}

fn linking(content: &Content) -> Option<Linking> {
    let header = super::read(FileHeader::read(content))??;
    let file = super::read(ElfFile::with_header(content, header))?;
    super::read(Linking::read(&file))?
}
