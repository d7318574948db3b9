//! An `.rpm` that is only a header, with tags of any position and content.

use sha2::{Digest as _, Sha256};

/// A tag: number, type, count, and bytes.
pub type RawTag = (u32, u32, usize, Vec<u8>);

/// A tag of texts, each with its NUL.
pub fn texts(tag: u32, texts: impl IntoIterator<Item = String>) -> RawTag {
    let (mut count, mut bytes) = (0, Vec::new());
    for text in texts {
        count += 1;
        bytes.extend([text.as_bytes(), b"\0"].concat());
    }
    (tag, 8, count, bytes)
}

/// A tag of one text.
pub fn text(tag: u32, text: &str) -> RawTag {
    (tag, 6, 1, [text.as_bytes(), b"\0"].concat())
}

/// A tag of 32-bit numbers.
pub fn numbers(tag: u32, numbers: impl IntoIterator<Item = u32>) -> RawTag {
    let bytes: Vec<u8> = numbers.into_iter().flat_map(u32::to_be_bytes).collect();
    (tag, 4, bytes.len() / 4, bytes)
}

/// A header of tags, stored one after the other.
pub fn header(tags: &[RawTag]) -> Vec<u8> {
    let (mut rows, mut data) = (Vec::new(), Vec::new());
    for (tag, kind, count, bytes) in tags {
        let width = [1, 1, 1, 2, 4, 8].get(*kind as usize).copied().unwrap_or(1);
        data.resize(data.len().next_multiple_of(width), 0);
        rows.push([
            *tag,
            *kind,
            u32::try_from(data.len()).unwrap(),
            u32::try_from(*count).unwrap(),
        ]);
        data.extend(bytes);
    }
    header_of(&rows, &data)
}

/// A header of rows (tag, type, offset, count) and data.
pub fn header_of(rows: &[[u32; 4]], data: &[u8]) -> Vec<u8> {
    let lengths = [rows.len(), data.len()].map(|len| u32::try_from(len).unwrap());
    let words: Vec<u8> = lengths
        .into_iter()
        .chain(rows.iter().copied().flatten())
        .flat_map(u32::to_be_bytes)
        .collect();
    [&[0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0], &words[..], data].concat()
}

/// A package with this header and no payload; its signature states the header's digest.
pub fn package(header: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xed, 0xab, 0xee, 0xdb, 3];
    bytes.resize(96, 0);
    // The signature type: a header.
    bytes[79] = 5;
    bytes.extend(self::header(&[text(273, &crate::hex(&Sha256::digest(header)))]));
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    [&bytes, header].concat()
}
