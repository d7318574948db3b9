//! Content is a rope: from any mix of sources, it reads as one run of bytes.

use std::io::{Read, Write};

use super::*;
use crate::error::Kind;
use crate::run::{Budget, Limits};

#[derive(Debug)]
struct Counting(u64);

impl StreamSource for Counting {
    fn len(&self) -> u64 {
        self.0
    }
    fn open(&self) -> Result<Box<dyn Read + Send>> {
        let bytes: Vec<u8> = (0..self.0).map(|n| (n % 251) as u8).collect();
        Ok(Box::new(std::io::Cursor::new(bytes)))
    }
    fn place(&self) -> Place {
        Place::default()
    }
}

fn all(content: &Content) -> Vec<u8> {
    let mut bytes = Vec::new();
    content.reader().read_to_end(&mut bytes).unwrap();
    bytes
}

fn rope() -> (Content, Vec<u8>, tempfile::TempPath) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"0123456789").unwrap();
    let path = file.into_temp_path();
    let parts = [
        Content::open(&path, &Budget::unlimited()).unwrap().slice(2..8).unwrap(),
        Content::zeros(3),
        Content::of_bytes(*b"heap"),
        Content::default().decoded(Arc::new(Counting(20))).slice(5..9).unwrap(),
    ];
    (Content::concat(&parts), b"234567\0\0\0heap\x05\x06\x07\x08".to_vec(), path)
}

#[test]
fn slices_of_a_rope_are_slices_of_its_bytes() {
    let (content, bytes, _file) = rope();
    assert_eq!(all(&content), bytes);
    for start in 0..=bytes.len() {
        for end in start..=bytes.len() {
            let part = content.slice(start as u64..end as u64).unwrap();
            assert_eq!(all(&part), &bytes[start..end]);
            let mut buffer = vec![0; end - start];
            content.read_at(start as u64, &mut buffer).unwrap();
            assert_eq!(buffer, &bytes[start..end]);
        }
    }
}

#[test]
fn a_reader_passes_over_bytes_of_every_kind() {
    let (rope, bytes, _file) = rope();
    let no_room = Budget::new(Limits { held: 0, ..Limits::default() });
    let stream = Content::default().within(&no_room).decoded(Arc::new(Counting(300)));
    let content = Content::concat(&[rope.clone(), stream.clone(), rope]);
    let bytes = [&bytes[..], &all(&stream), &bytes].concat();
    for first in 0..bytes.len() {
        for skip in [0, 1, 5, 17, 200, bytes.len() - first] {
            let mut reader = content.reader();
            reader.read_window(&mut vec![0; first]).unwrap();
            let skipped = usize::try_from(reader.skip(skip as u64).unwrap()).unwrap();
            assert_eq!(skipped, skip.min(bytes.len() - first));
            let mut next = [0; 2];
            let len = reader.read_window(&mut next).unwrap();
            assert_eq!(next[..len], bytes[first + skipped..][..len], "{first} {skip}");
            let left = bytes.len() - first - skipped - len;
            assert_eq!(reader.skip(1 << 40).unwrap(), left as u64);
        }
    }
}

#[test]
fn a_patch_replaces_bytes_in_place() {
    let (content, mut bytes, _file) = rope();
    bytes[4..12].copy_from_slice(b"PATCHED!");
    assert_eq!(all(&content.patched(4, *b"PATCHED!").unwrap()), bytes);
    assert!(content.patched(bytes.len() as u64 - 1, *b"xx").is_err());
}

#[test]
fn reading_outside_is_an_error_with_the_place() {
    let (content, bytes, _file) = rope();
    let error = content.read_at(bytes.len() as u64 - 1, &mut [0; 2]).unwrap_err();
    assert_eq!(error.kind(), Kind::Truncated);
    assert!(content.slice(Range { start: 3, end: 2 }).is_err());
    assert!(content.slice(0..u64::MAX).is_err());
    assert_eq!(content.place(1).offset, Some(3));
}

#[test]
fn a_file_that_changes_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("input");
    std::fs::write(&path, b"before").unwrap();
    let content = Content::open(&path, &Budget::unlimited()).unwrap();
    std::fs::write(&path, b"aft").unwrap();
    let error = content.read_at(0, &mut [0; 6]).unwrap_err();
    assert_eq!(
        (error.kind(), error.place().file.as_deref()),
        (Kind::Changed, Some(path.as_path()))
    );
}
