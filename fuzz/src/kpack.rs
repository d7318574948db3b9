//! Kernel archives: opening and reading must refuse or succeed, never panic, and what was read
//! must survive being written.

use std::io::Read;

use rockpack::content::Content;
use rockpack::formats::kpack::{Reader, write};

/// Longest code object that is decoded: a few bytes of zstd can announce gigabytes.
const OBJECT_LIMIT: u64 = 1 << 20;

pub fn run(bytes: &[u8]) {
    let Some(reader) = super::read(Reader::open(Content::of_bytes(bytes))) else {
        return;
    };
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
    let again = Reader::open(written).unwrap();
    // Metadata may hold NaN, which does not equal itself.
    if reader.toc() == reader.toc() {
        assert_eq!(again.toc(), reader.toc());
    }
}
