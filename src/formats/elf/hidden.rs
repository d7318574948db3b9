//! Symbols that the dynamic linker finds, and no section shows.
//!
//! The dynamic linker knows no number of symbols: it goes where hash tables and relocations lead. A
//! section of dynamic symbols that is said to be shorter hides the rest from everyone who reads it.
//!
//! ```text
//! DT_HASH      nbucket, nchain, and both numbers of words; nchain is the number of symbols
//! DT_GNU_HASH  nbuckets, symoffset, bloom_size, bloom_shift; bloom_size words of 8 bytes;
//!              nbuckets words, each the first symbol of a bucket or zero;
//!              a word for each symbol from symoffset on, odd = the last one of its bucket
//! ```
//!
//! Words are 4 bytes. Source: System V ABI, generic edition; `DT_GNU_HASH` as in glibc 2.36 and
//! binutils 2.40.

use object::{LittleEndian as LE, U32, elf};

use super::dynamic::Dynamic;
use super::file::ElfFile;
use super::record::{Record, SectionHeader, Symbol};
use super::relocation::for_each_relocation;
use super::table::Table;
use crate::error::{Error, Kind, Result};

/// Bytes of a word.
const WORD: u64 = 4;

/// Bytes of a word of the Bloom filter.
const BLOOM_WORD: u64 = 8;

/// A word of a hash table.
#[derive(Debug, Clone, Copy)]
struct Word(u32);

impl Record for Word {
    type Raw = U32<LE>;
    const NAME: &'static str = "hash table";

    fn from_raw(raw: &Self::Raw) -> Self {
        Self(raw.get(LE))
    }

    fn to_raw(self) -> Self::Raw {
        U32::new(LE, self.0)
    }
}

/// Fails if the dynamic linker finds symbols behind the end of `table`, the section of dynamic symbols;
/// without one, if it finds any.
pub fn refuse_hidden_symbols(
    file: &ElfFile,
    dynamic: &Dynamic,
    table: Option<(usize, &SectionHeader)>,
) -> Result<()> {
    let count = table.map_or(0, |(_, section)| section.sh_size / Symbol::SIZE);
    let by_hashes =
        hash_leads_behind(file, dynamic, count)? || gnu_hash_leads_behind(file, dynamic, count)?;
    if by_hashes || relocations_lead_behind(file, dynamic, count)? {
        let message = format!("the dynamic linker finds symbols behind the {count} of sections");
        let error = match table {
            Some((index, _)) => file.refuse_section(Kind::Unsupported, index, message),
            None => {
                let place = file.header.e_shoff();
                file.refuse(Kind::Unsupported, "section headers", place, message)
            }
        };
        return Err(error.hint("no linker writes such a file: build it or copy it again"));
    }
    Ok(())
}

fn hash_leads_behind(file: &ElfFile, dynamic: &Dynamic, count: u64) -> Result<bool> {
    let Some(address) = dynamic.value(elf::DT_HASH) else { return Ok(false) };
    let [_, chains] = numbers(file, address)?;
    Ok(chains > count)
}

fn gnu_hash_leads_behind(file: &ElfFile, dynamic: &Dynamic, count: u64) -> Result<bool> {
    let Some(address) = dynamic.value(elf::DT_GNU_HASH) else { return Ok(false) };
    let [bucket_count, first, bloom_size, _] = numbers(file, address)?;
    let buckets = address.saturating_add(4 * WORD + BLOOM_WORD * bloom_size);
    let chains = buckets.saturating_add(WORD * bucket_count);
    let mut last = 0;
    for item in words(file, buckets, bucket_count)?.iter() {
        last = u64::from(item?.1.0).max(last);
    }
    let Some(before) = last.checked_sub(first).filter(|_| last > 0) else { return Ok(false) };
    // All buckets end where the one that begins last does, or before.
    let Some(rest) = count.checked_sub(last).filter(|rest| *rest > 0) else { return Ok(true) };
    let chain = chains.saturating_add(WORD * before);
    for item in words(file, chain, rest)?.iter() {
        if item?.1.0 & 1 == 1 {
            return Ok(false);
        }
    }
    Ok(true)
}

fn relocations_lead_behind(file: &ElfFile, dynamic: &Dynamic, count: u64) -> Result<bool> {
    let mut last = 0;
    for_each_relocation(file, dynamic, &mut |relocation| {
        last = last.max(relocation.symbol);
        Ok(())
    })?;
    Ok(last > 0 && u64::from(last) >= count)
}

/// The numbers that a hash table at `address` begins with.
fn numbers<const N: usize>(file: &ElfFile, address: u64) -> Result<[u64; N]> {
    let mut numbers = [0; N];
    for (number, item) in numbers.iter_mut().zip(words(file, address, N as u64)?.iter()) {
        *number = u64::from(item?.1.0);
    }
    Ok(numbers)
}

/// The `count` words of a hash table at `address`.
fn words(file: &ElfFile, address: u64, count: u64) -> Result<Table<Word>> {
    let size = count.saturating_mul(WORD);
    let start = file.offset_of(address, size).ok_or_else(|| outside(file, address, size))?;
    Table::new(file.content(), start, size)
}

fn outside(file: &ElfFile, address: u64, size: u64) -> Error {
    let message = format!(
        "{size:#x} bytes of a hash table at {address:#x} are not in the file where it is loaded"
    );
    let error = file.refuse(Kind::Malformed, "dynamic section", 0, message);
    error.hint("the file is damaged: build it or copy it again")
}
