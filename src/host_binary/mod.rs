//! Fat host binaries: what is in them, and how they become host-only.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};

use crate::content::Content;
use crate::error::{Error, Result};
use crate::formats::elf_sections::{self, Section};

/// What a host file turns out to be.
#[derive(Debug)]
pub enum Examined {
    /// No device code.
    NoDeviceCode,
    /// A fat binary.
    Fat(Box<Analysis>),
    /// A binary that was transformed already.
    Transformed(Transformed),
    /// A file of debug information for a fat binary.
    SeparateDebug,
}

/// A binary that was transformed already.
#[derive(Debug)]
pub struct Transformed;

/// A fat binary that can be transformed; made by `examine`, which makes every refusal.
#[derive(Debug)]
pub struct Analysis {
    /// The original.
    pub original: Content,
    fatbin: Content,
    wrappers: Vec<WrapperRef>,
}

/// A wrapper and the bundle it points to.
#[derive(Debug, Clone)]
pub struct WrapperRef {
    /// Index in `.hipFatBinSegment`.
    pub index: u32,
    /// Where its bundle starts, from the start of `.hip_fatbin`.
    pub bundle_offset: u64,
    /// The symbol of the bundle.
    pub symbol: Option<String>,
}

impl Analysis {
    /// The content of `.hip_fatbin`.
    pub fn fatbin(&self) -> Content {
        self.fatbin.clone()
    }

    /// The wrappers by index.
    pub fn wrappers(&self) -> &[WrapperRef] {
        &self.wrappers
    }
}

/// Finds out what `content`, an ELF file, is. Reads RELATIVE relocations in `.rela.dyn` and
/// static pointers.
pub fn examine(content: &Content) -> Result<Examined> {
    let Some(header) = elf_sections::file_header(content)? else {
        return Ok(Examined::NoDeviceCode);
    };
    let sections = elf_sections::sections(content, &header)?;
    let find = |name: &[u8]| elf_sections::find(content, &header, &sections, name);
    let (Some(fatbin), Some(segment)) = (find(b".hip_fatbin")?, find(b".hipFatBinSegment")?) else {
        return Ok(Examined::NoDeviceCode);
    };
    let relocations = match find(b".rela.dyn")? {
        Some(section) => relative(content, &section)?,
        None => BTreeMap::new(),
    };
    let part = |s: &Section| content.slice(s.offset..s.offset.saturating_add(s.size));
    let bytes = part(&segment)?.read_vec(0..segment.size, 1 << 20, "wrappers")?;
    let mut wrappers = Vec::new();
    let mut at = 0;
    while let Some(wrapper) = bytes.get(at..at + 24) {
        if wrapper[..4] != 0x4849_5046_u32.to_le_bytes() {
            at += 8;
            continue;
        }
        let address = segment.address + at as u64 + 8;
        let fixed = wrapper[8..16].try_into().map_err(|_| Error::bug("slice"))?;
        let pointer = relocations.get(&address).copied();
        let pointer = pointer.unwrap_or(u64::from_le_bytes(fixed));
        let bundle_offset = pointer
            .checked_sub(fatbin.address)
            .ok_or_else(|| Error::malformed("a wrapper points before .hip_fatbin"))?;
        let index = u32::try_from(wrappers.len()).map_err(|_| Error::bug("count"))?;
        wrappers.push(WrapperRef {
            index,
            bundle_offset,
            symbol: None,
        });
        at += 24;
    }
    Ok(Examined::Fat(Box::new(Analysis {
        original: content.clone(),
        fatbin: part(&fatbin)?,
        wrappers,
    })))
}

fn relative(content: &Content, section: &Section) -> Result<BTreeMap<u64, u64>> {
    let part = content.slice(section.offset..section.offset.saturating_add(section.size))?;
    let mut reader = BufReader::new(part.reader());
    let mut found = BTreeMap::new();
    for _ in 0..section.size / 24 {
        let mut entry = [[0; 8]; 3];
        for field in &mut entry {
            reader
                .read_exact(field)
                .map_err(|_| Error::truncated("relocations"))?;
        }
        let [offset, info, addend] = entry.map(u64::from_le_bytes);
        if info == 8 {
            found.insert(offset, addend);
        }
    }
    Ok(found)
}
