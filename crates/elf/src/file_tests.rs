use super::*;

/// A file of load segments (offset, address, bytes in the file), whose bytes may be missing.
fn file(loads: &[(u64, u64, u64)]) -> ElfFile {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(64, 0);
    bytes[32] = 64;
    (bytes[54], bytes[56]) = (56, u8::try_from(loads.len()).unwrap());
    for (offset, address, size) in loads {
        bytes.extend([elf::PT_LOAD.0, 0].map(u32::to_le_bytes).concat());
        bytes.extend([*offset, *address, 0, *size, 0, 0].map(u64::to_le_bytes).concat());
    }
    let content = Content::of_bytes(bytes);
    ElfFile::with_header(&content, FileHeader::read(&content).unwrap().unwrap()).unwrap()
}

#[test]
fn addresses_are_found_in_segments_of_any_order() {
    let file =
        file(&[(0x300, 0x3000, 0x80), (0, 0, 0x100), (0x200, 0x3100, 0), (0x100, 0x1000, 8)]);
    for (start, len, expected) in [
        (0, 0x100, Some(0)),
        (0xff, 1, Some(0xff)),
        (0x100, 0, Some(0x100)),
        (0x100, 1, None),
        (0x1000, 8, Some(0x100)),
        (0x1001, 8, None),
        (0x3010, 0x70, Some(0x310)),
        (0x3100, 1, None),
        (u64::MAX, 1, None),
        (u64::MAX - 1, 1, None),
    ] {
        assert_eq!(file.offset_of(start, len), expected, "{start:#x} {len:#x}");
    }
}
