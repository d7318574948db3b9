//! ELF files in which many records lead to one thing: a name, a chain, a range of notes, a table. Each alone
//! costs little; a reader that follows every record anew pays the product of both.

#![allow(clippy::cast_possible_truncation, reason = "counts of these files fit")]

use object::elf;

use super::dense::LEN;

/// The sizes of the file header, of a program header and of a section header, in bytes.
pub const HEADERS: [usize; 3] = [64, 56, 64];

/// The number of kernels in a note.
pub const NOTED_KERNELS: usize = 200;

/// The length of a long search path in bytes.
pub const LONG: usize = LEN / 2;

/// The inputs of a target that reads ELF files.
pub fn inputs(target: &str) -> Vec<Vec<u8>> {
    match target {
        "linking" => vec![
            versions(elf::DT_VERNEED),
            versions(elf::DT_VERDEF),
            undefined(),
            bound_to_one_version(),
            names_of_libraries(elf::DT_NEEDED),
            names_of_libraries(elf::DT_RUNPATH),
            search_path(LEN / 32, &"s".repeat(LONG)),
            search_path(2, &"$ORIGIN".repeat(LEN / 7)),
            search_path(2, &parts("$ORIGIN")),
            search_path(2, &parts("/stage/")),
        ],
        "code_object" => vec![kernels(), notes()],
        "host_binary" => vec![section_names(), tables_of_symbols(), segments_of_the_same()],
        "relocations" => vec![packed_relocations(), scattered_relocations()],
        "verify_file" => {
            let search = search_path_of_a_section(LEN);
            vec![
                tables_of_relocations(),
                wrappers(),
                section_names(),
                dynamic_sections(500),
                search,
            ]
        }
        _ => Vec::new(),
    }
}

/// A file whose addresses are its offsets.
pub struct File {
    machine: elf::Machine,
    segments: Vec<Vec<u8>>,
    /// The number of program headers that there is room for.
    room: usize,
    sections: Vec<Vec<u8>>,
    body: Vec<u8>,
}

impl File {
    /// A file with room for this many program headers; it may end up with fewer.
    pub fn new(machine: elf::Machine, room: usize) -> Self {
        let body = vec![0; HEADERS[0] + HEADERS[1] * room];
        Self { machine, segments: Vec::new(), room, sections: vec![vec![0; HEADERS[2]]], body }
    }

    /// Appends `bytes` to the file, and returns their offset and length.
    pub fn put(&mut self, bytes: &[u8]) -> (u64, u64) {
        self.body.resize(self.body.len().next_multiple_of(8), 0);
        let at = self.body.len() as u64;
        self.body.extend(bytes);
        (at, bytes.len() as u64)
    }

    pub fn segment(&mut self, kind: elf::ProgramType, (at, size): (u64, u64)) {
        let mut header = [kind.0, 4].map(u32::to_le_bytes).concat();
        header.extend(words(&[at, at, at, size, size, 8]));
        assert!(self.segments.len() < self.room);
        self.segments.push(header);
    }

    /// Adds a section: offset of its name, type and flags, offset and length, and the section it links to.
    pub fn section(&mut self, name: u32, kind: (elf::SectionType, u64), at: (u64, u64), link: u32) {
        let mut header = [name, kind.0.0].map(u32::to_le_bytes).concat();
        let address = if kind.1 == 0 { 0 } else { at.0 };
        header.extend(words(&[kind.1, address, at.0, at.1]));
        header.extend([link, 0].map(u32::to_le_bytes).concat());
        let entry = match kind.0 {
            elf::SHT_SYMTAB | elf::SHT_DYNSYM | elf::SHT_RELA => 24,
            _ => 0,
        };
        header.extend(words(&[1, entry]));
        self.sections.push(header);
    }

    /// Finishes a file that is loaded as a whole, with this dynamic section.
    fn dynamic(mut self, entries: &[(elf::DynamicTag, u64)]) -> Vec<u8> {
        let pairs = entries.iter().flat_map(|(tag, value)| [tag.0.cast_unsigned(), *value]);
        let bytes = words(&pairs.chain([0, 0]).collect::<Vec<u64>>());
        let place = self.put(&bytes);
        self.segment(elf::PT_LOAD, (0, place.0 + place.1));
        self.segment(elf::PT_DYNAMIC, place);
        self.finish(0)
    }

    /// Finishes the file; `names` is the index of the section with section names.
    pub fn finish(mut self, names: u16) -> Vec<u8> {
        let sections = self.put(&[]).0;
        let count = self.sections.len();
        self.body.extend(self.sections.concat());
        let mut header = b"\x7fELF\x02\x01\x01".to_vec();
        header.extend([if self.machine == elf::EM_AMDGPU { 64 } else { 0 }, 3]);
        header.resize(16, 0);
        header.extend([3, self.machine.0].map(u16::to_le_bytes).concat());
        header.extend(1_u32.to_le_bytes());
        header.extend(words(&[0, HEADERS[0] as u64, sections]));
        header.extend(0_u32.to_le_bytes());
        let counts = [64, 56, self.segments.len() as u16, 64, count as u16, names];
        header.extend(counts.map(u16::to_le_bytes).concat());
        header.extend(self.segments.concat());
        self.body[..header.len()].copy_from_slice(&header);
        self.body
    }
}

pub fn words(all: &[u64]) -> Vec<u8> {
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Makes `count` symbols whose names each start `step` bytes further into the string table.
pub fn symbols(count: usize, step: usize, section: u16) -> Vec<u8> {
    let symbol = |n: usize| {
        let name = (1 + n * step) as u32;
        let info = [&name.to_le_bytes()[..], &[0x12, 0], &section.to_le_bytes()].concat();
        [info, words(&[0, 0])].concat()
    };
    (0..count).flat_map(symbol).collect()
}

/// A string table of one string.
pub fn one_string(len: usize, end: &str) -> Vec<u8> {
    [&[0], &vec![b's'; len][..], end.as_bytes(), &[0]].concat()
}

/// Heads that all lead to the same chain.
pub fn versions(list: elf::DynamicTag) -> Vec<u8> {
    let count = LEN / 2 / 20;
    let mut file = File::new(elf::EM_X86_64, 2);
    let strings = file.put(&one_string(16, ""));
    let is_need = list == elf::DT_VERNEED;
    let (head, link) = if is_need { (16, 16) } else { (20, 8) };
    let mut chain = Vec::new();
    for n in 0..count {
        let aux = ((count - n) * head) as u32;
        let (count, next) = (count as u16, head as u32);
        if is_need {
            chain.extend([1, count].map(u16::to_le_bytes).concat());
            chain.extend([1, aux, next].map(u32::to_le_bytes).concat());
        } else {
            chain.extend([1, 0, 2, count].map(u16::to_le_bytes).concat());
            chain.extend([0, aux, next].map(u32::to_le_bytes).concat());
        }
    }
    for _ in 0..count {
        if is_need {
            chain.extend([0, 2, 1, link].map(u32::to_le_bytes).concat())
        } else {
            chain.extend([1, link].map(u32::to_le_bytes).concat())
        }
    }
    let chain = file.put(&chain);
    let number = if is_need { elf::DT_VERNEEDNUM } else { elf::DT_VERDEFNUM };
    let table = [(elf::DT_STRTAB, strings.0), (elf::DT_STRSZ, strings.1)];
    file.dynamic(&[&table[..], &[(list, chain.0), (number, count as u64)]].concat())
}

/// A file with `count` undefined symbols, and their string table.
fn linked(
    strings: &[u8],
    symbols: &[u8],
    more: &[(elf::DynamicTag, u64)],
    mut file: File,
) -> Vec<u8> {
    let (strings, symbols) = (file.put(strings), file.put(symbols));
    let hash = file.put(&[1, (symbols.1 / 24) as u32].map(u32::to_le_bytes).concat());
    let tables = [
        (elf::DT_STRTAB, strings.0),
        (elf::DT_STRSZ, strings.1),
        (elf::DT_SYMTAB, symbols.0),
        (elf::DT_HASH, hash.0),
    ];
    file.dynamic(&[&tables[..], more].concat())
}

pub fn undefined() -> Vec<u8> {
    let file = File::new(elf::EM_X86_64, 2);
    linked(&one_string(LEN / 2, ""), &symbols(LEN / 2 / 24, 1, 0), &[], file)
}

/// Symbols with short names, all bound to the same long version.
pub fn bound_to_one_version() -> Vec<u8> {
    let count = LEN / 2 / 26;
    let mut file = File::new(elf::EM_X86_64, 2);
    let need = [[1_u16, 1].map(u16::to_le_bytes).concat(), {
        let words = [1, 16, 0, 0, 2 << 16, 1, 0];
        words.map(u32::to_le_bytes).concat()
    }];
    let need = file.put(&need.concat());
    let indexes = file.put(&[2, 0].repeat(count));
    let versions =
        [(elf::DT_VERNEED, need.0), (elf::DT_VERNEEDNUM, 1), (elf::DT_VERSYM, indexes.0)];
    let mut names = symbols(count, 0, 0);
    let (long, short) = (one_string(LEN / 2, ""), (LEN / 2) as u32);
    names.chunks_mut(24).for_each(|symbol| symbol[..4].copy_from_slice(&short.to_le_bytes()));
    linked(&long, &names, &versions, file)
}

/// Names of the greatest length allowed.
pub fn names_of_libraries(tag: elf::DynamicTag) -> Vec<u8> {
    let entries = vec![(tag, 1); LEN / 16];
    linked(&one_string(4094, ""), &symbols(1, 0, 0), &entries, File::new(elf::EM_X86_64, 2))
}

/// One search path, named by `count` entries.
pub fn search_path(count: usize, text: &str) -> Vec<u8> {
    let strings = [&b"\0"[..], text.as_bytes(), b"\0"].concat();
    let entries = vec![(elf::DT_RUNPATH, 1); count];
    linked(&strings, &symbols(1, 0, 0), &entries, File::new(elf::EM_X86_64, 2))
}

/// A library whose section contains a search path of `len` bytes.
pub fn search_path_of_a_section(len: usize) -> Vec<u8> {
    let mut file = File::new(elf::EM_X86_64, 1);
    let strings = file.put(&one_string(len, ""));
    let tag = elf::DT_RUNPATH.0.cast_unsigned();
    let entries = file.put(&words(&[tag, 1, 0, 0]));
    file.segment(elf::PT_LOAD, (0, entries.0 + entries.1));
    file.section(0, (elf::SHT_STRTAB, 0), strings, 0);
    file.section(0, (elf::SHT_DYNAMIC, 2), entries, 1);
    file.finish(1)
}

/// A search path of numbered folders, up to [`LEN`].
fn parts(folder: &str) -> String {
    (0..LEN / (folder.len() + 6)).map(|n| format!("{folder}{n}:")).collect()
}

/// A library with `count` dynamic sections.
pub fn dynamic_sections(count: usize) -> Vec<u8> {
    let mut file = File::new(elf::EM_X86_64, 1);
    let (strings, entries) = (file.put(b"\0"), file.put(&[0; 16]));
    file.segment(elf::PT_LOAD, (0, entries.0 + entries.1));
    file.section(0, (elf::SHT_STRTAB, 0), strings, 0);
    (0..count).for_each(|_| file.section(0, (elf::SHT_DYNAMIC, 2), entries, 1));
    file.finish(1)
}

pub fn kernels() -> Vec<u8> {
    let mut file = File::new(elf::EM_AMDGPU, 0);
    let (strings, symbols) =
        (file.put(&one_string(LEN / 2, ".kd")), file.put(&symbols(LEN / 2 / 24, 1, 1)));
    file.section(0, (elf::SHT_SYMTAB, 0), symbols, 2);
    file.section(0, (elf::SHT_STRTAB, 0), strings, 0);
    file.finish(0)
}

/// Headers that all name the same notes.
pub fn notes() -> Vec<u8> {
    let room = LEN / 2 / HEADERS[1];
    let mut file = File::new(elf::EM_AMDGPU, room);
    let mut map = vec![0x82, 0xae];
    map.extend(b"amdhsa.version\x92\x01\x02\xaeamdhsa.kernels\xdc");
    let mut kernel = b"\x89\xa5.name\xa0\xa7.symbol\xa0".to_vec();
    for (length, field) in [
        (0xb5, ".kernarg_segment_size"),
        (0xb9, ".group_segment_fixed_size"),
        (0xbb, ".private_segment_fixed_size"),
        (0xaf, ".wavefront_size"),
        (0xab, ".sgpr_count"),
        (0xab, ".vgpr_count"),
        (0xb8, ".max_flat_workgroup_size"),
    ] {
        kernel.extend([&[length], field.as_bytes(), &[0]].concat());
    }
    let count = NOTED_KERNELS;
    map.extend((count as u16).to_be_bytes());
    map.extend(kernel.repeat(count));
    let mut note = [7, map.len() as u32, 32].map(u32::to_le_bytes).concat();
    note.extend(b"AMDGPU\0\0");
    note.extend(map);
    note.resize(note.len().next_multiple_of(4), 0);
    let place = file.put(&note);
    (0..room).for_each(|_| file.segment(elf::PT_NOTE, place));
    file.finish(0)
}

/// A file with `count` sections of the same notes, `size` bytes, and one section with a build ID.
#[allow(dead_code, reason = "too long an input for the smoke test")]
pub fn sections_of_notes(count: usize, size: usize) -> Vec<u8> {
    let mut file = File::new(elf::EM_X86_64, 0);
    let same = file.put(&vec![0; size]);
    let id = [[4_u32, 8, 3].map(u32::to_le_bytes).concat(), b"GNU\0build-id".to_vec()].concat();
    let id = file.put(&id);
    (0..count).for_each(|_| file.section(0, (elf::SHT_NOTE, 0), same, 0));
    file.section(0, (elf::SHT_NOTE, 0), id, 0);
    file.finish(0)
}

/// Sections outside of the file, all with the same long name.
pub fn section_names() -> Vec<u8> {
    let mut file = File::new(elf::EM_X86_64, 0);
    let strings = b"\0.hip_fatbin\0.hipFatBinSegment\0";
    let names = file.put(&[&strings[..], &vec![b'n'; LEN / 2]].concat());
    file.section(0, (elf::SHT_STRTAB, 0), names, 0);
    file.section(1, (elf::SHT_PROGBITS, 2), names, 0);
    let no_wrapper = file.put(&[0; 24]);
    file.section(13, (elf::SHT_PROGBITS, 2), no_wrapper, 0);
    for n in 0..LEN / 2 / HEADERS[2] {
        let place = (u64::MAX >> 1, 1);
        file.section((strings.len() + n) as u32, (elf::SHT_PROGBITS, 2), place, 0);
    }
    file.finish(1)
}

/// Symbol tables with the same symbols, in a binary that looks transformed.
pub fn tables_of_symbols() -> Vec<u8> {
    let mut file = File::new(elf::EM_X86_64, 0);
    let names = file.put(b"\0.hipFatBinSegment\0.rocm_kpack_ref\0");
    let wrapper = file.put(&[words(&[0x1_4b50_4948, 0, 0])].concat());
    let marker = file.put(&[0x80]);
    let table = file.put(&symbols(LEN / 2 / 24, 0, 3));
    file.section(0, (elf::SHT_STRTAB, 0), names, 0);
    file.section(1, (elf::SHT_PROGBITS, 2), wrapper, 0);
    file.section(19, (elf::SHT_PROGBITS, 2), marker, 0);
    (0..LEN / 2 / HEADERS[2]).for_each(|_| file.section(0, (elf::SHT_SYMTAB, 0), table, 1));
    file.finish(1)
}

/// Segments that all load the whole file, which has no sections for finding device code.
pub fn segments_of_the_same() -> Vec<u8> {
    let room = LEN / 2 / HEADERS[1];
    let mut file = File::new(elf::EM_X86_64, room);
    file.put(&[0; LEN / 2]);
    (0..room).for_each(|_| file.segment(elf::PT_LOAD, (0, LEN as u64)));
    file.finish(0)
}

/// The most packed relocations and segments that fit.
pub fn packed_relocations() -> Vec<u8> {
    let room = LEN / 2 / HEADERS[1];
    relocations(room, LEN / 2 / 8, |n| if n % 2 == 0 { 64 } else { u64::MAX })
}

/// Packed relocations that alternate between two distant places.
fn scattered_relocations() -> Vec<u8> {
    relocations(4, LEN / 8, |n| if n % 2 == 0 { 64 } else { LEN as u64 - 64 })
}

fn relocations(room: usize, count: usize, word: impl Fn(usize) -> u64) -> Vec<u8> {
    let mut file = File::new(elf::EM_X86_64, room);
    let packed = words(&(0..count).map(word).collect::<Vec<u64>>());
    let packed = file.put(&packed);
    // Segments without any relocated words.
    (2..room as u64).for_each(|n| file.segment(elf::PT_LOAD, (n << 32, 8)));
    let pad = LEN.saturating_sub(file.body.len());
    file.put(&vec![0; pad]);
    file.dynamic(&[(elf::DT_RELR, packed.0), (elf::DT_RELRSZ, packed.1)])
}

/// Tables of relocations and sections of code that share the same bytes.
pub fn tables_of_relocations() -> Vec<u8> {
    let mut file = File::new(elf::EM_X86_64, 0);
    let names = file.put(b"\0.hipFatBinSegment\0");
    let wrapper = file.put(&words(&[0x1_4849_5046, 0, 0]));
    let table = words(&[wrapper.0 + 8, 1, 0]).repeat(LEN / 2 / 24);
    let table = file.put(&table);
    let symbols = file.put(&symbols(1, 0, 1));
    file.section(0, (elf::SHT_STRTAB, 0), names, 0);
    file.section(1, (elf::SHT_PROGBITS, 2), wrapper, 0);
    file.section(0, (elf::SHT_DYNSYM, 2), symbols, 1);
    for n in 0..LEN / 2 / HEADERS[2] {
        let kind = if n % 2 == 0 { (elf::SHT_RELA, 2) } else { (elf::SHT_PROGBITS, 6) };
        file.section(0, kind, table, 3);
    }
    file.finish(1)
}

/// Wrappers that all point to the same bundle.
pub fn wrappers() -> Vec<u8> {
    let mut file = File::new(elf::EM_X86_64, 1);
    let names = file.put(b"\0.hip_fatbin\0.hipFatBinSegment\0");
    let bundle = file.put(&super::dense::bundle_of(LEN / 2 / 40, 1));
    let wrapper = words(&[0x1_4849_5046, bundle.0, 0]);
    let wrappers = file.put(&wrapper.repeat(LEN / 2 / wrapper.len()));
    file.segment(elf::PT_LOAD, (0, wrappers.0 + wrappers.1));
    file.section(0, (elf::SHT_STRTAB, 0), names, 0);
    file.section(1, (elf::SHT_PROGBITS, 2), bundle, 0);
    file.section(13, (elf::SHT_PROGBITS, 3), wrappers, 0);
    file.finish(1)
}
