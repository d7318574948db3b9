//! Refuses references to bytes that change: into device code, or into a section that moves to make room.

use std::collections::BTreeSet;
use std::ops::Range;

use object::elf;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_elf::{Dynamic, DynamicEntry, DynamicSymbols, ElfFile, for_each_relocation};

use super::layout::Layout;
use super::make_room::table_end;

/// Tags that hold an address, with the tag of its size where there is one.
const ADDRESSES: [(elf::DynamicTag, Option<elf::DynamicTag>); 17] = [
    (elf::DT_RELA, Some(elf::DT_RELASZ)),
    (elf::DT_JMPREL, Some(elf::DT_PLTRELSZ)),
    (elf::DT_RELR, Some(elf::DT_RELRSZ)),
    (elf::DT_STRTAB, Some(elf::DT_STRSZ)),
    (elf::DT_INIT_ARRAY, Some(elf::DT_INIT_ARRAYSZ)),
    (elf::DT_FINI_ARRAY, Some(elf::DT_FINI_ARRAYSZ)),
    (elf::DT_PREINIT_ARRAY, Some(elf::DT_PREINIT_ARRAYSZ)),
    (elf::DT_SYMTAB, None),
    (elf::DT_HASH, None),
    (elf::DT_GNU_HASH, None),
    (elf::DT_VERSYM, None),
    (elf::DT_VERNEED, None),
    (elf::DT_VERDEF, None),
    (elf::DT_PLTGOT, None),
    (elf::DT_INIT, None),
    (elf::DT_FINI, None),
    (elf::DT_DEBUG, None),
];

/// Tags of `ADDRESSES` whose table may move with its section.
pub const MOVABLE: [elf::DynamicTag; 7] = [
    elf::DT_HASH,
    elf::DT_GNU_HASH,
    elf::DT_STRTAB,
    elf::DT_SYMTAB,
    elf::DT_VERSYM,
    elf::DT_VERNEED,
    elf::DT_VERDEF,
];

/// Fails if an entry that must be unique occurs twice: glibc takes the last, other loaders the first.
pub fn refuse_repeated_tags(file: &ElfFile, dynamic: &Dynamic) -> Result<()> {
    let sizes = ADDRESSES.iter().filter_map(|(_, size)| *size);
    let single: Vec<_> = ADDRESSES.iter().map(|(tag, _)| *tag).chain(sizes).collect();
    let mut seen = BTreeSet::new();
    let mut entries = dynamic.entries.iter().filter(|item| single.contains(&item.entry.d_tag));
    let twice = entries.find(|item| !seen.insert(item.entry.d_tag.0));
    let Some(item) = twice else { return Ok(()) };
    let message = format!("tag {:#x} occurs twice", item.entry.d_tag.0);
    let error = file.refuse(Kind::Unsupported, "dynamic section", item.offset, message);
    Err(error.hint("no linker writes it twice: build the file again"))
}

/// The tables that the entries of the dynamic section point to.
pub struct LoaderTables<'a> {
    file: &'a ElfFile,
    /// Each entry that holds an address, with the size of its table, or one byte if that is unknown.
    addresses: Vec<(DynamicEntry, u64)>,
}

impl<'a> LoaderTables<'a> {
    /// Reads the sizes of the tables; some follow from the number of `symbols`.
    pub fn read(
        file: &'a ElfFile,
        dynamic: &Dynamic,
        symbols: &DynamicSymbols<'_>,
    ) -> Result<Self> {
        let mut sizes = symbols.table_sizes(file, dynamic)?;
        sizes.extend(ADDRESSES.iter().map(|(tag, size)| {
            (*tag, size.and_then(|size| dynamic.value(size)).unwrap_or_default())
        }));
        let addresses = dynamic.entries.iter().filter_map(|item| {
            let (_, size) = sizes.iter().find(|(tag, _)| *tag == item.entry.d_tag)?;
            Some((*item, (*size).max(1)))
        });
        Ok(Self { file, addresses: addresses.collect() })
    }

    /// Fails if the loader's own tables lie in the device code.
    pub fn refuse_in(&self, device_code: &Range<u64>) -> Result<()> {
        for (item, size) in &self.addresses {
            let start = item.entry.d_val;
            if start < device_code.end && device_code.start < start.saturating_add(*size) {
                let tag = item.entry.d_tag.0;
                let message = format!("tag {tag:#x} is {start:#x}, inside the device code");
                return Err(self.refuse(item, message));
            }
        }
        Ok(())
    }

    /// Fails if a tag points to moved or overwritten bytes after the program headers, unless they belong to
    /// a section whose tags are updated with it.
    pub fn refuse_moved(&self, layout: &Layout) -> Result<()> {
        let file = self.file;
        let front = layout.room.front(file).end;
        if layout.room.extra == 0 {
            return Ok(());
        }
        for (item, size) in &self.addresses {
            let (tag, start) = (item.entry.d_tag, item.entry.d_val);
            let in_front = file.offset_of(start, 1).is_some_and(|offset| offset < front);
            let mut moving = layout.moving().map(|index| &file.sections[index]);
            // Zero means "absent" for tags whose table is optional.
            let stays_right = if MOVABLE.contains(&tag) {
                let end = start.saturating_add(*size);
                moving.any(|section| section.sh_addr == start && end <= section.memory_end())
            } else {
                start == 0
            };
            if in_front && !stays_right {
                let message = format!(
                    "tag {:#x} refers to {size:#x} bytes at {start:#x}, which make room for program \
                     headers, but its section does not begin there or is shorter",
                    tag.0
                );
                let error = self.refuse(item, message);
                return Err(error.hint("give the binary as the linker or strip wrote it"));
            }
        }
        Ok(())
    }

    fn refuse(&self, item: &DynamicEntry, message: String) -> Error {
        self.file.refuse(Kind::Unsupported, "dynamic section", item.offset, message)
    }
}

/// Fails if a relocation changes device code or headers, or a section that moves: the latter then holds more
/// than the tables that dynamic tags point to.
pub fn refuse_relocations(file: &ElfFile, dynamic: &Dynamic, layout: &Layout) -> Result<()> {
    let moved = layout.moved(file);
    let rewritten = [headers(file), layout.start..layout.end];
    for_each_relocation(file, dynamic, &mut |relocation| {
        let target = relocation.address_without_symbol();
        let last_byte = relocation.address.saturating_add(7);
        let what = if is_in(&rewritten, relocation.address) || is_in(&rewritten, last_byte) {
            "headers or device code"
        } else if is_in(&moved, relocation.address)
            || is_in(&moved, last_byte)
            || target.is_some_and(|target| is_in(&moved, target))
        {
            "a section that must move to make room for program headers"
        } else {
            return Ok(());
        };
        let message =
            format!("relocates address {:#x}, which is in or refers to {what}", relocation.address);
        Err(file.refuse(Kind::Unsupported, "relocation", relocation.offset, message))
    })
}

fn is_in(ranges: &[Range<u64>], address: u64) -> bool {
    ranges.iter().any(|range| range.contains(&address))
}

/// The addresses of the file header and the program headers.
fn headers(file: &ElfFile) -> Range<u64> {
    let first = file.loads().find(|(_, load)| load.p_offset == 0);
    let start = first.map_or(0, |(_, load)| load.p_vaddr);
    start..start.saturating_add(table_end(file.program_headers.len()))
}
