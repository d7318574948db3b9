//! The transform of host binaries: its changes, and that everything else stays.

use std::collections::HashSet;
use std::mem::replace;
use std::path::Path;

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader as _, SectionHeader as _};
use object::{Object, ObjectSection};
use rockpack_core::content::Content;
use rockpack_elf::marker::{AnyMarker, Marker, parse, to_bytes};
use rockpack_split::host_binary::{Analysis, Examined, MARKER_AREA, examine};
use rockpack_split::needed;
use support::fixtures;
use support::transform::{analyse, marker};

fn bytes(content: &Content) -> Vec<u8> {
    content.read_vec(0..content.len(), 1 << 30, "test").unwrap()
}

/// The file-backed bytes of a binary, by address.
struct Image<'a> {
    file: ElfFile64<'a, LE>,
    data: &'a [u8],
    /// Address, offset and size of each load segment.
    loads: Vec<(u64, u64, u64)>,
}

impl<'a> Image<'a> {
    fn new(data: &'a [u8]) -> Self {
        let file: ElfFile64<'a, LE> = ElfFile64::parse(data).unwrap();
        let headers = file.elf_program_headers().iter();
        let loads = headers.filter(|header| header.p_type(LE) == elf::PT_LOAD);
        let load = |load: &elf::ProgramHeader64<LE>| {
            (load.p_vaddr(LE), load.p_offset(LE), load.p_filesz(LE))
        };
        let loads = loads.map(load).collect();
        Self { file, data, loads }
    }

    /// The byte loaded at an address, if any: segments are loaded from the start of their first page.
    fn byte(&self, address: u64) -> Option<u8> {
        let holds = |(start, _, size): &(u64, u64, u64)| {
            (*start - *start % 0x1000..start + size).contains(&address)
        };
        let (start, offset, _) = self.loads.iter().copied().find(holds)?;
        Some(self.data[usize::try_from(address + offset - start).unwrap()])
    }

    fn range(&self, name: &str) -> Option<std::ops::Range<u64>> {
        let section = self.file.section_by_name(name)?;
        Some(section.address()..section.address() + section.size())
    }
}

/// Fails unless all loaded bytes stay at their addresses, except for headers, the tables moved to make room
/// for them, the device code, and the pointers to it.
fn assert_rest_unchanged(before: &Image, after: &Image) {
    let edited = [".hip_fatbin", ".hipFatBinSegment", ".dynamic", ".dynsym", ".rela.dyn"];
    let edited: Vec<_> = edited.iter().filter_map(|name| before.range(name)).collect();
    let sections = before.file.elf_section_table().iter();
    let fixed = sections.filter(|section| {
        let kind = section.sh_type(LE);
        let room = [
            elf::SHT_GNU_VERNEED,
            elf::SHT_GNU_VERSYM,
            elf::SHT_GNU_HASH,
            elf::SHT_HASH,
            elf::SHT_STRTAB,
            elf::SHT_DYNSYM,
            elf::SHT_NOTE,
            elf::SHT_NULL,
        ];
        section.sh_addr(LE) > 0 && !room.contains(&kind) && section.sh_addralign(LE) > 1
    });
    let first_fixed = fixed.map(|section| section.sh_addr(LE)).min().unwrap();
    for &(start, _, size) in &before.loads {
        for address in start.max(first_fixed)..start + size {
            if edited.iter().any(|range| range.contains(&address)) {
                continue;
            }
            assert_eq!(before.byte(address), after.byte(address), "at {address:#x}");
        }
    }
}

/// Fails unless sections that are not loaded keep their bytes, except for symbols and names.
fn assert_other_sections_unchanged(before: &Image, after: &Image) {
    for section in before.file.sections() {
        let name = section.name().unwrap();
        if section.address() > 0 || [".shstrtab", ".symtab", ""].contains(&name) {
            continue;
        }
        let other = after.file.section_by_name(name).unwrap();
        assert_eq!(section.data().unwrap(), other.data().unwrap(), "{name}");
    }
}

/// Fails unless all relocations except the wrappers' are unchanged.
fn assert_relocations_unchanged(before: &Image, after: &Image) {
    let Some(table) = before.range(".rela.dyn") else {
        return;
    };
    let wrappers = before.range(".hipFatBinSegment").unwrap();
    for entry in table.step_by(24) {
        let [old, new] = [before, after].map(|image| -> Vec<u8> {
            (entry..entry + 24).map(|address| image.byte(address).unwrap()).collect()
        });
        let target = u64::from_le_bytes(old[..8].try_into().unwrap());
        assert!(old == new || wrappers.contains(&target), "relocation at {entry:#x}");
    }
}

/// Fails if the result contains 32 bytes that only the device code had.
fn assert_no_device_code(analysis: &Analysis, before: &Image, after: &[u8]) {
    let code = bytes(&analysis.fatbin());
    let telling = |window: &&[u8]| {
        let mut seen = [false; 256];
        let new = window.iter().filter(|byte| !replace(&mut seen[usize::from(**byte)], true));
        new.count() >= 20
    };
    let mut windows: HashSet<&[u8]> = code.chunks_exact(32).filter(telling).collect();
    let section = before.file.section_by_name(".hip_fatbin").unwrap();
    let (start, size) = section.file_range().unwrap();
    let (start, end) = (usize::try_from(start).unwrap(), usize::try_from(start + size).unwrap());
    // Windows start at every byte of a file; their first two bytes index them.
    let mut begins = vec![false; 1 << 16];
    windows.iter().for_each(|window| begins[first_word(window)] = true);
    for host in [&before.data[..start], &before.data[end..]] {
        for window in host.windows(32).filter(|window| begins[first_word(window)]) {
            windows.remove(window);
        }
    }
    assert!(windows.len() > 8, "nothing to look for");
    let found =
        after.windows(32).position(|window| begins[first_word(window)] && windows.contains(window));
    assert_eq!(found, None, "device code is left");
}

fn first_word(window: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([window[0], window[1]]))
}

/// Fails unless the program headers are where kernels before 5.18 look for them.
fn assert_headers_in_front(after: &Image) {
    let header = after.file.elf_header();
    assert_eq!(header.e_phoff.get(LE), 64);
    let (start, offset, _) = after.loads[0];
    let segments = after.file.elf_program_headers();
    let entry = segments.iter().find(|segment| segment.p_type(LE) == elf::PT_PHDR);
    if let Some(entry) = entry {
        assert_eq!(entry.p_vaddr(LE), start - offset + 64);
        assert_eq!(entry.p_filesz(LE), 56 * segments.len() as u64);
    }
}

fn check(path: &Path) {
    let analysis = analyse(path);
    let result = analysis.apply(&marker()).unwrap();
    assert_eq!(result.len(), analysis.output_len());
    let (old, new) = (bytes(analysis.original()), bytes(&result));
    let (before, after) = (Image::new(&old), Image::new(&new));
    assert_rest_unchanged(&before, &after);
    assert_other_sections_unchanged(&before, &after);
    assert_relocations_unchanged(&before, &after);
    assert_no_device_code(&analysis, &before, &new);
    assert_headers_in_front(&after);
    assert_second_run(&analysis, &result);
}

/// Fails unless a transformed file is recognised, and its marker can be rewritten in place.
fn assert_second_run(analysis: &Analysis, result: &Content) {
    let Examined::Transformed(again) = examine(result).unwrap() else {
        panic!("not recognised");
    };
    assert_eq!(again.marker(), marker());
    let indexes: Vec<u32> = analysis.wrappers().iter().map(|wrapper| wrapper.index).collect();
    assert_eq!(again.co_indexes(), indexes);
    assert!(again.program_headers_in_front());
    let long = Marker {
        kernel_name: "lib/a/longer/name/libx.so".into(),
        kpack_search_paths: vec!["../lib/.kpack/x_@GFXARCH@.kpack".into(); 3],
    };
    let rewritten = again.rewrite(&to_bytes(&long).unwrap()).unwrap();
    assert_eq!(rewritten.len(), result.len());
    let Examined::Transformed(last) = examine(&rewritten).unwrap() else {
        panic!("not recognised after a rewrite");
    };
    assert_eq!(parse(last.marker()).unwrap(), AnyMarker::Map(long));
    assert_eq!(bytes(&last.rewrite(&marker()).unwrap()), bytes(result));
}

#[test]
fn committed_binaries_keep_everything_but_device_code() {
    for path in fixtures::committed() {
        note!("{}", path.display());
        check(&path);
    }
}

#[test]
fn the_compile_matrix_keeps_everything_but_device_code() {
    for path in fixtures::matrix() {
        note!("{}", path.display());
        check(path);
    }
}

#[test]
fn assembled_shapes_keep_everything_but_device_code() {
    let shapes: [(&str, &[&str], [u64; 2]); 6] = [
        ("ordered", &[], [0, 12288]),
        ("reversed", &["-DORDER=1"], [12288, 0]),
        ("shared_bundle", &["-DORDER=2"], [0, 0]),
        ("exact_pages", &["-DCODE=4096"], [0, 8192]),
        ("one_word", &["-DCODE=512"], [0, 8192]),
        ("before_bss", &["-DCODE=520", "-DWRITABLE"], [0, 8192]),
    ];
    for (name, flags, bundles) in shapes {
        let path = fixtures::assembled(name, flags);
        check(&path);
        let analysis = analyse(&path);
        let offsets = analysis.wrappers().iter().map(|wrapper| wrapper.bundle_offset);
        assert!(offsets.eq(bundles), "{name}: {:?}", analysis.wrappers());
    }
}

#[test]
fn the_length_does_not_depend_on_the_marker() {
    for path in fixtures::committed() {
        let analysis = analyse(&path);
        let capacity = usize::try_from(analysis.marker_capacity()).unwrap();
        for len in [1, 200, capacity] {
            let result = analysis.apply(&vec![b'x'; len]).unwrap();
            assert_eq!(result.len(), analysis.output_len(), "{len}");
        }
        assert!(analysis.apply(&vec![b'x'; capacity + 1]).is_err());
        assert!(analysis.apply(b"").is_err());
    }
}

#[test]
fn symbols_of_bundles_are_named() {
    let analysis = analyse(&fixtures::folder().join("binaries/rdc"));
    assert_eq!(analysis.marker_capacity(), MARKER_AREA);
    let wrappers = analysis.wrappers().iter();
    let named: Vec<&str> = wrappers.filter_map(|wrapper| wrapper.symbol.as_deref()).collect();
    assert!(named.len() >= 2, "{named:?}");
    assert!(named.iter().all(|name| name.starts_with("__hip_fatbin_")));
    let needed = needed(analysis.original()).unwrap();
    assert!(needed.contains(&"libamdhip64.so.7".to_owned()), "{needed:?}");
}
