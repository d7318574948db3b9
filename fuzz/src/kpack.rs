//! Kernel archives: opening and reading refuse or succeed, never panic, and an archive that was read survives
//! being written. A loader reads an archive as the packer does.

use std::io::Read;

use rockpack_kpack::archive::Archive;
use rockpack_core::content::Content;
use rockpack_elf::kpack::{KpackReader, write};

/// Longest code object that is decoded: a few bytes of zstd can announce gigabytes.
const OBJECT_LIMIT: u64 = 1 << 20;

pub fn run(bytes: &[u8]) {
    let loaded = Archive::open(bytes);
    let Some(reader) = super::read(KpackReader::open(Content::of_bytes(bytes))) else {
        return;
    };
    agree(&reader, &loaded.unwrap());
    let count = u32::try_from(reader.len()).unwrap();
    for ordinal in 0..count {
        let object = reader.code_object(ordinal).unwrap();
        if object.len() > OBJECT_LIMIT {
            continue;
        }
        let mut decoded = Vec::new();
        if object.reader().read_to_end(&mut decoded).is_ok() {
            assert_eq!(decoded.len() as u64, object.len());
        }
    }
    let frames: Vec<Content> = (0..count).map(|n| reader.frame(n).unwrap()).collect();
    let Some(written) = super::read(write(reader.toc(), &frames)) else {
        return;
    };
    let again = KpackReader::open(written).unwrap();
    // Metadata may hold NaN, which does not equal itself.
    if reader.toc() == reader.toc() {
        assert_eq!(again.toc(), reader.toc());
    }
}

fn agree(reader: &KpackReader, loaded: &Archive) {
    assert_eq!(loaded.scheme(), reader.toc().scheme);
    assert_eq!(loaded.count(), reader.len());
    for (key, targets) in &reader.toc().rows {
        for (target, row) in targets {
            let found = loaded.row(key.as_bytes(), target.as_bytes()).unwrap();
            assert_eq!(found.ordinal, row.ordinal);
            assert!(found.original_size.is_none_or(|size| size == row.original_size));
            assert_eq!(
                loaded.stored(row.ordinal).unwrap().size,
                reader.frame(row.ordinal).unwrap().len()
            );
        }
    }
}
