//! Compressed bundles: one that opens has the size that it declares, and decodes to the same bytes again.

use std::io::Read;

use rockpack_core::content::Content;
use rockpack_elf::ccob::{self, OpenedBundle};

pub fn run(data: &[u8]) {
    let Some(opened) = super::read(ccob::open(&Content::of_bytes(data))) else {
        return;
    };
    assert!(opened.extent <= data.len() as u64);
    let OpenedBundle { header, content, pinned, .. } = opened;
    assert_eq!(header.uncompressed_size, content.len());
    let read = || {
        let mut bytes = Vec::new();
        content.reader().read_to_end(&mut bytes).map(|_| bytes).expect("decodes")
    };
    let held = read();
    drop(pinned);
    assert_eq!(held, read());
}
