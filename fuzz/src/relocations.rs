//! The dynamic section and the relocations of a host binary, in all three encodings: each place is inside the
//! file, and there are no more of them than the file has room for.

use rockpack_core::content::Content;
use rockpack_elf::{Dynamic, ElfFile, FileHeader, for_each_relocation};

/// Bytes of an explicit relocation.
const RELA: u64 = 24;

pub fn run(bytes: &[u8]) {
    let content = Content::of_bytes(bytes);
    let Some(Some(header)) = super::read(FileHeader::read(&content)) else {
        return;
    };
    let Some(file) = super::read(ElfFile::with_header(&content, header)) else {
        return;
    };
    let Some(Some(dynamic)) = super::read(Dynamic::read(&file)) else {
        return;
    };
    let (mut explicit, mut packed) = (0, 0);
    let read = for_each_relocation(&file, &dynamic, &mut |relocation| {
        let size = if relocation.is_relr {
            packed += 1;
            let word = content.read_array(relocation.offset)?;
            assert_eq!(relocation.addend, i64::from_le_bytes(word));
            8
        } else {
            explicit += 1;
            RELA
        };
        assert!(relocation.offset + size <= content.len());
        Ok(())
    });
    super::read(read);
    // Two tables, and 63 bits of a word.
    assert!(explicit <= 2 * content.len() / RELA);
    assert!(packed <= content.len() / 8 * 63);
}
