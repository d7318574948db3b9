//! Fixtures with a few words changed, so that what one part of the file says is not what another
//! does. Each is refused, or transformed so that nothing is lost.

use std::path::Path;

use object::LittleEndian as LE;
use object::read::elf::{ElfFile64, ProgramHeader as _};
use rockpack::content::Content;
use rockpack::error::{Kind, Result};
use rockpack::host_binary::{Examined, examine};

use super::fixtures;

/// The bytes of a committed binary, or of the seed `transformed`.
struct Binary(Vec<u8>);

impl Binary {
    fn new(name: &str) -> Self {
        let folder = match name {
            "transformed" => Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/host_binary"),
            _ => fixtures::folder().join("binaries"),
        };
        Self(std::fs::read(folder.join(name)).unwrap())
    }

    fn put(mut self, at: usize, bytes: &[u8]) -> Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    fn word(self, at: usize, value: u64) -> Self {
        self.put(at, &value.to_le_bytes())
    }

    fn copy(self, from: usize, size: usize, to: usize) -> Self {
        let bytes = self.0[from..from + size].to_vec();
        self.put(to, &bytes)
    }

    fn number(&self, at: usize) -> usize {
        usize::try_from(u64::from_le_bytes(self.0[at..at + 8].try_into().unwrap())).unwrap()
    }

    /// Offset of a field of a section header.
    fn section(&self, index: usize, field: usize) -> usize {
        self.number(40) + index * 64 + field
    }

    fn with_type(self, section: usize, sh_type: u32) -> Self {
        let at = self.section(section, TYPE);
        self.put(at, &sh_type.to_le_bytes())
    }

    /// With other values in fields of a section header.
    fn with(self, section: usize, fields: &[(usize, u64)]) -> Self {
        fields.iter().fold(self, |file, (field, value)| {
            let at = file.section(section, *field);
            file.word(at, *value)
        })
    }

    /// With a program header of this type, offset, address, sizes and alignment.
    fn with_segment(self, index: usize, p_type: u32, fields: [u64; 5]) -> Self {
        let [offset, address, in_file, in_memory, align] = fields;
        let words = [offset, address, address, in_file, in_memory, align].map(u64::to_le_bytes);
        let at = 64 + index * 56;
        self.put(at, &p_type.to_le_bytes()).put(at + 8, &words.concat())
    }

    fn content(&self) -> Content {
        Content::of_bytes(&*self.0)
    }

    fn examine(&self) -> Result<Examined> {
        examine(&self.content())
    }

    /// The file after the transform.
    fn transformed(&self) -> Vec<u8> {
        let Examined::Fat(analysis) = self.examine().unwrap() else { panic!("is not fat") };
        let written = analysis.apply(b"\x80").unwrap();
        written.read_vec(0..written.len(), 1 << 30, "test").unwrap()
    }
}

// Fields of section headers.
const TYPE: usize = 4;
const FLAGS: usize = 8;
const ADDRESS: usize = 16;
const OFFSET: usize = 24;
const SIZE: usize = 32;
const LINK: usize = 40;
const ALIGN: usize = 48;

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const PHDR: u32 = 6;

#[track_caller]
fn assert_refused(file: &Binary, kind: Kind, text: &str) {
    match file.examine() {
        Err(error) => {
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(text), "{error}");
            assert!(error.place().structure.is_some(), "{error}");
        }
        Ok(_) => panic!("is not refused: {text}"),
    }
}

/// Symbol 13 of `sub_page`, of `.tdata`: where its section and its value are.
const SYMBOL: (usize, usize) = (0x1dee, 0x1df0);

/// A library with a large thread-local template has such offsets.
#[test]
fn symbols_whose_values_are_no_addresses_are_left_alone() {
    let offset = Binary::new("sub_page").word(SYMBOL.1, 0x1010);
    // Of `.comment`, which is not loaded.
    let comment = Binary::new("sub_page").word(SYMBOL.1, 0x1010).put(SYMBOL.0, &[29, 0]);
    for file in [offset, comment] {
        let written = file.transformed();
        let symbol = &file.0[SYMBOL.0..SYMBOL.1 + 8];
        assert!(written.windows(symbol.len()).any(|window| window == symbol));
    }
    let text = Binary::new("sub_page").word(SYMBOL.1, 0x1010).put(SYMBOL.0, &[13, 0]);
    assert_refused(&text, Kind::Unsupported, "lies inside of the device code");
}

#[test]
fn first_sections_that_are_not_null_are_refused() {
    let refused = |file: Binary| assert_refused(&file, Kind::Malformed, "the null section");
    let large = |name| Binary::new(name).with_type(0, 1).with(0, &[(OFFSET, u64::MAX), (SIZE, 1)]);
    refused(large("sub_page"));
    // The names of the symbols are there.
    refused(large("rdc").with(31, &[(LINK, 0)]));
    let note = [(FLAGS, 2), (ADDRESS, 0x270), (OFFSET, 0x270), (SIZE, 1), (ALIGN, u64::MAX)];
    refused(Binary::new("bfd_shared").with_type(0, 7).with(0, &note));
    refused(Binary::new("bfd_shared").with(0, &[(FLAGS, 2)]));
    let rdc = Binary::new("rdc");
    let (table, null) = (rdc.section(31, 0), rdc.section(0, 0));
    refused(rdc.copy(table, 64, null));
}

/// The names are written anew, and zeros over the old ones.
#[test]
fn section_names_that_are_not_a_string_table_of_their_own_are_refused() {
    let shared = || Binary::new("bfd_shared");
    let no_table = |file: Binary| assert_refused(&file, Kind::Unsupported, "string table");
    // In `.text`, and in `.comment`, which reaches as far as the names do.
    no_table(shared().copy(0xd0df, 0x113, 0x10c0).with_type(29, 8).with(29, &[(OFFSET, 0x10c0)]));
    no_table(shared().with_type(29, 8).with(28, &[(SIZE, 0x162)]));
    no_table(shared().with_type(29, 0));
    no_table(shared().with_type(29, 1));
    let loaded = shared().with_segment(3, LOAD, [0xcd6c, 0xdd6c, 0x500, 0x4364, 0x1000]);
    no_table(loaded.with(29, &[(FLAGS, 2), (ADDRESS, 0xe0df)]));
    let inside = shared().copy(0xd0df, 0x113, 0x3100).with(29, &[(OFFSET, 0x3100)]);
    assert_refused(&inside, Kind::Unsupported, "shares bytes");
    no_table(inside.with_type(29, 8));
}

/// The loader takes the last one, other tools the first.
#[test]
fn second_segments_of_what_there_is_one_of_are_refused() {
    let shared = || Binary::new("bfd_shared");
    let refused = |file: &Binary| assert_refused(file, Kind::Unsupported, "is the second one");
    let dynamic = [0x10c0, 0x10c0, 0x1f0, 0x1f0, 8];
    refused(&shared().copy(0xcdb0, 0x1f0, 0x10c0).with_segment(8, DYNAMIC, dynamic));
    // Two of program headers, and an interpreter, a template and read-only data besides the others.
    refused(&Binary::new("rdc").with_segment(9, PHDR, [64, 64, 0x268, 0x268, 8]));
    refused(&Binary::new("bfd_pie").with_segment(12, 3, [0x350, 0x350, 0x1c, 0x1c, 1]));
    for p_type in [7, 0x6474_e552] {
        refused(&shared().with_segment(8, p_type, [0xcd6c, 0xdd6c, 4, 4, 4]));
    }
}

/// The loader reads on behind the segment.
#[test]
fn dynamic_sections_without_an_end_in_their_segment_are_refused() {
    for size in [0x160, 0x1a0, 0x1b0] {
        let file = Binary::new("bfd_shared");
        let file = file.with_segment(4, DYNAMIC, [0xcdb0, 0xddb0, size, size, 8]);
        match size {
            0x1b0 => drop(file.transformed()),
            _ => assert_refused(&file, Kind::Unsupported, "without DT_NULL"),
        }
    }
}

/// Memory that is zero at the start has an offset all the same.
#[test]
fn empty_load_segments_in_the_device_code_stay_congruent() {
    let file = Binary::new("rdc");
    let file = file.with_segment(9, LOAD, [0x2234, 0x2_0234, 0, 0x100, 0x1000]);
    let written = file.transformed();
    let written = ElfFile64::<LE>::parse(&*written).unwrap();
    let mut headers = written.elf_program_headers().iter();
    let load = headers.find(|header| header.p_vaddr(LE) == 0x2_0234).unwrap();
    assert_eq!((load.p_offset(LE) % 0x1000, load.p_align(LE)), (0x234, 0x1000));
}

/// A new reference is written where the header of the old one says, and its size into its symbols.
#[test]
fn transformed_files_that_cannot_be_rewritten_in_place_are_refused() {
    let marker = |fields: &[(usize, u64)]| Binary::new("transformed").with(10, fields);
    let unloaded = |file: Binary| assert_refused(&file, Kind::Malformed, "what is loaded at");
    unloaded(Binary::new("transformed").with_type(10, 7));
    unloaded(marker(&[(FLAGS, 0)]));
    unloaded(marker(&[(OFFSET, 0x1100)]));
    unloaded(marker(&[(ADDRESS, 0x9000)]));
    let shared = |file: Binary| assert_refused(&file, Kind::Malformed, "shares bytes");
    // In the text, in its own header, and with a section that reaches into it or beyond.
    shared(marker(&[(OFFSET, 0x27f0)]));
    shared(marker(&[(OFFSET, 0x3b30)]));
    let comment =
        |offset, size| Binary::new("transformed").with(24, &[(OFFSET, offset), (SIZE, size)]);
    shared(comment(0x1010, 0x200));
    shared(comment(0xff0, 0x200));
    // Symbols that would be edited twice.
    let file = Binary::new("transformed");
    let (symbols, other) = (file.section(25, 8), file.section(24, 8));
    shared(file.copy(symbols, 56, other).with_type(24, 2));
    let range = |file: Binary| assert_refused(&file, Kind::Truncated, "outside of the file");
    range(comment(0x3090, 0x10_0000));
}

/// `eu-strip` drops zeros of no section at the end of the last segment, and loaders do not mind.
#[test]
fn transformed_files_may_end_before_their_last_segment() {
    let file = Binary::new("transformed");
    let file = file.with_segment(4, LOAD, [0x3008, 0xe008, 0x1000, 0x1000, 0x1000]);
    assert!(matches!(file.examine(), Ok(Examined::Transformed(_))));
}

/// Headers begin with zeros.
#[test]
fn references_do_not_grow_into_section_headers() {
    let file = Binary::new("transformed");
    let file = file.copy(0x38b0, 28 * 64, 0x1100).word(40, 0x1100);
    let Examined::Transformed(transformed) = file.examine().unwrap() else { panic!() };
    assert_eq!(transformed.marker_capacity(), 0x100);
    assert_eq!(transformed.rewrite(&[0x81; 0x100]).unwrap().len(), file.0.len() as u64);
}

/// Copied as they are they would bring their device code into a host package.
#[test]
fn fat_files_are_not_taken_for_debug_files() {
    for section in [22, 27] {
        let file = Binary::new("lld_relr").with_type(section, 8);
        assert_refused(&file, Kind::Malformed, "no bytes in the file");
        // Nor has the device code any.
        assert!(matches!(file.with_type(11, 8).examine(), Ok(Examined::SeparateDebug)));
    }
}

/// The same.
#[test]
fn fat_files_without_names_of_sections_are_refused() {
    let file = Binary::new("lld_relr").with(30, &[(SIZE, 0)]);
    assert_refused(&file, Kind::Unsupported, "no section headers");
    let mut file = Binary::new("lld_relr");
    file.0[0xac50..0xac50 + 0x12f].fill(0);
    assert_refused(&file, Kind::Unsupported, "no section headers");
}

/// The tool of others leaves device code in place where it is less than a page.
#[test]
fn references_beside_device_code_are_refused() {
    let mut file = Binary::new("lld_relr");
    let (names, wrappers) = (file.section(30, 0), file.section(27, 0));
    let (start, size) = (file.number(names + OFFSET), file.number(names + SIZE));
    let moved = [&file.0[start..start + size], b".rocm_kpack_ref\0"].concat();
    let end = file.0.len() as u64;
    file.0.extend(&moved);
    for wrapper in 0..3 {
        let at = file.number(wrappers + OFFSET) + wrapper * 24;
        file = file.put(at, b"HIPK");
    }
    let file = file.with(30, &[(OFFSET, end), (SIZE, moved.len() as u64)]);
    // `.rodata` becomes the marker.
    let name = file.section(10, 0);
    let mut file = file.put(name, &u32::try_from(size).unwrap().to_le_bytes());
    assert_refused(&file, Kind::Unsupported, "holds device code");
    file.0[0x1000..0x1000 + 0x8ff8].fill(0);
    assert!(matches!(file.examine(), Ok(Examined::Transformed(_))));
}
