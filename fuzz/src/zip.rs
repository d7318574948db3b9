//! ZIP archives: members are inside the archive, do not overlap, and decode as their headers say. An archive
//! with copies of the stored members is read as the same.

use std::fs::{self, File};
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use rockpack_core::content::Content;
use rockpack_core::error::Error;
use rockpack_archive::zip::{DosTime, ZipMember, ZipReader, ZipWriter};

pub fn run(bytes: &[u8]) {
    let Some(zip) = super::read(ZipReader::open(Content::of_bytes(bytes))) else {
        return;
    };
    let mut places: Vec<_> = zip.members().iter().map(|member| member.stored.clone()).collect();
    places.sort_by_key(|place| place.start);
    assert!(places.windows(2).all(|pair| pair[0].end <= pair[1].start), "{places:?}");
    assert!(places.last().is_none_or(|last| last.end <= bytes.len() as u64), "{places:?}");
    let mut left = MOST;
    for member in zip.members() {
        left = left.saturating_sub(member.size);
        if left > 0 {
            decode(&zip, member);
        }
    }
    let copied = copied(&zip);
    let copy = ZipReader::open(copied).expect("what was written is read");
    let same = zip.members().iter().zip(copy.members());
    for (old, new) in same {
        assert_eq!((&old.name, old.method, old.size), (&new.name, new.method, new.size));
        let stored = [zip.stored(old).unwrap(), copy.stored(new).unwrap()];
        let [old, new] = stored.map(|stored| stored.sha256().unwrap());
        assert_eq!(old, new);
    }
    assert_eq!(copy.members().len(), zip.members().len());
}

/// Most bytes that are decoded from one input: more would run no other code.
const MOST: u64 = 32 << 20;

fn decode(zip: &ZipReader, member: &ZipMember) {
    let mut reader = match zip.reader(member) {
        Ok(reader) => reader,
        Err(error) => return super::refuse_bug(&error),
    };
    let mut window = vec![0; 64 << 10];
    let mut count = 0;
    loop {
        match reader.read(&mut window) {
            Ok(0) => return assert_eq!(count, member.size),
            Ok(len) => count += len as u64,
            Err(error) => return refuse_bug(error),
        }
        assert!(count <= member.size, "more than its header says");
    }
}

fn refuse_bug(error: io::Error) {
    let error = error.downcast::<Error>().expect("says what is wrong with the archive");
    super::refuse_bug(&error);
}

/// Copies the members into an archive of our own.
fn copied(zip: &ZipReader) -> Content {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("rockpack-fuzz-{}-{number}.zip", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut writer = ZipWriter::new(File::create(&path).unwrap(), &path, DosTime::new(0));
    for member in zip.members() {
        writer.copy(member, 0o644, &zip.stored(member).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    Content::of_bytes(bytes)
}
