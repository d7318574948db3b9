//! SPDX documents: an accepted one survives being written, and has one maker.

use rockpack_archive::spdx::{Document, is_made_by};

pub fn run(bytes: &[u8]) {
    let Ok(document) = Document::read(bytes) else {
        return;
    };
    let mut written = Vec::new();
    document.write(&mut written).unwrap();
    assert_eq!(Document::read(&written[..]).unwrap(), document);
    let [before, after] = [bytes, &written].map(|bytes| is_made_by("rockpack", bytes).unwrap());
    assert_eq!(before, after);
}
