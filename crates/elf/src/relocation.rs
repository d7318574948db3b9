//! The relocations that the loader applies, from all three tables: `DT_RELA`, `DT_JMPREL` and `DT_RELR`.

use object::elf;

use super::dynamic::Dynamic;
use super::file::ElfFile;
use super::record::{Record, Rela};
use super::table::{RecordTable, WordReader};
use rockpack_core::error::{Kind, Result};

/// Bytes of a RELR word, and of the word that it relocates.
const WORD: u64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relocation {
    pub address: u64,
    pub kind: elf::RelocationType,
    /// Index into the dynamic symbol table; zero for none.
    pub symbol: u32,
    /// The addend: explicit, or, for RELR, the relocated word itself.
    pub addend: i64,
    /// Whether it is from `DT_RELR`, and not from `DT_RELA` or `DT_JMPREL`.
    pub is_relr: bool,
    /// Offset in the file of the entry, or, for RELR, of the relocated word.
    pub offset: u64,
}

impl Relocation {
    /// Whether the relocation is for thread-local storage. The addend of such a relocation is not an address.
    pub fn is_thread_local(&self) -> bool {
        let kinds = [
            elf::R_X86_64_DTPMOD64,
            elf::R_X86_64_DTPOFF64,
            elf::R_X86_64_TPOFF64,
            elf::R_X86_64_TLSDESC,
        ];
        kinds.contains(&self.kind)
    }

    /// The address in the addend, if the relocation does not use the address of a symbol. The loader
    /// adds the load address of the file to it.
    pub fn address_without_symbol(&self) -> Option<u64> {
        let relative = [elf::R_X86_64_RELATIVE, elf::R_X86_64_IRELATIVE].contains(&self.kind);
        let plain = self.symbol == 0 && !self.is_thread_local();
        (relative || plain).then_some(self.addend.cast_unsigned())
    }
}

/// Calls `visit` with every relocation that `dynamic` locates, in table order, without those of type
/// `R_X86_64_NONE`. Refused: other encodings, and tables that end inside an entry, because loaders read
/// such an entry to its end.
pub fn for_each_relocation(
    file: &ElfFile,
    dynamic: &Dynamic,
    visit: &mut dyn FnMut(Relocation) -> Result<()>,
) -> Result<()> {
    refuse_other_encodings(file, dynamic)?;
    for (address, size) in [(elf::DT_RELA, elf::DT_RELASZ), (elf::DT_JMPREL, elf::DT_PLTRELSZ)] {
        if let Some((start, size)) = table(file, dynamic, address, size)? {
            for item in RecordTable::<Rela>::new(file.content(), start, size)?.iter() {
                let (offset, entry) = item?;
                let (raw, endian) = (entry.to_raw(), object::LittleEndian);
                let kind = raw.r_type(endian, false);
                // Linkers leave this type in place of dropped relocations, and loaders ignore it.
                if kind != elf::R_X86_64_NONE {
                    let (symbol, address) = (raw.r_sym(endian, false), entry.r_offset);
                    let (addend, is_relr) = (entry.r_addend, false);
                    visit(Relocation { address, kind, symbol, addend, is_relr, offset })?;
                }
            }
        }
    }
    match table(file, dynamic, elf::DT_RELR, elf::DT_RELRSZ)? {
        Some((_, size)) if size % WORD != 0 => {
            let message = format!("DT_RELRSZ is {size:#x}, which is not a multiple of 8 bytes");
            Err(file.refuse(Kind::Malformed, "dynamic section", 0, message))
        }
        Some(table) => for_each_relr(file, table, visit),
        None => Ok(()),
    }
}

/// Refuses relocations without addend, which the x86-64 ABI does not have, and Android's packed forms.
fn refuse_other_encodings(file: &ElfFile, dynamic: &Dynamic) -> Result<()> {
    let other = [elf::DT_REL, elf::DT_ANDROID_REL, elf::DT_ANDROID_RELA, elf::DT_ANDROID_RELR];
    for item in &dynamic.entries {
        let tag = item.entry.d_tag;
        let other_plt = tag == elf::DT_PLTREL && item.entry.d_val.cast_signed() != elf::DT_RELA.0;
        if other.contains(&tag) || other_plt {
            let message = format!("relocations of the kind of tag {:#x} are not handled", tag.0);
            return Err(file.refuse(Kind::Unsupported, "dynamic section", item.offset, message));
        }
    }
    Ok(())
}

/// The offset in the file and the size of a relocation table.
fn table(
    file: &ElfFile,
    dynamic: &Dynamic,
    address_tag: elf::DynamicTag,
    size_tag: elf::DynamicTag,
) -> Result<Option<(u64, u64)>> {
    let size = dynamic.value(size_tag).unwrap_or_default();
    let Some(address) = dynamic.value(address_tag).filter(|_| size > 0) else {
        return Ok(None);
    };
    let Some(start) = file.offset_of(address, size) else {
        let message = format!("{size:#x} bytes of relocations at {address:#x} are not loaded");
        return Err(file.refuse(Kind::Malformed, "dynamic section", 0, message));
    };
    Ok(Some((start, size)))
}

/// Calls `visit` with every relocation of the RELR table at `start`.
fn for_each_relr(
    file: &ElfFile,
    (start, size): (u64, u64),
    visit: &mut dyn FnMut(Relocation) -> Result<()>,
) -> Result<()> {
    let mut relocated = WordReader::new(file.content());
    let mut relocate = |address: u64| -> Result<()> {
        let Some(offset) = file.offset_of(address, WORD) else {
            let message = format!("relocates address {address:#x}, which is not loaded");
            return Err(file.refuse(Kind::Malformed, ".relr.dyn", 0, message));
        };
        visit(Relocation {
            address,
            kind: elf::R_X86_64_RELATIVE,
            symbol: 0,
            addend: relocated.read(offset)?.cast_signed(),
            is_relr: true,
            offset,
        })
    };
    let mut words = WordReader::new(file.content());
    let mut base: u64 = 0;
    for skip in (0..size).step_by(8) {
        let word = words.read(start.saturating_add(skip))?;
        if word & 1 == 0 {
            relocate(word)?;
            base = word.saturating_add(WORD);
            continue;
        }
        for bit in (0..63).filter(|bit| word >> (bit + 1) & 1 == 1) {
            relocate(base.saturating_add(bit * WORD))?;
        }
        base = base.saturating_add(63 * WORD);
    }
    Ok(())
}
