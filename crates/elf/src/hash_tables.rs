//! The hash tables of dynamic symbols: their length, and the symbols they lead to.
//!
//! ```text
//! DT_HASH      nbucket, nchain; nbucket and nchain words, each a symbol or zero
//! DT_GNU_HASH  nbuckets, symoffset, bloom_size, bloom_shift; bloom_size words of 8 bytes;
//!              nbuckets words, each the first symbol of a bucket or zero;
//!              a word for each symbol from symoffset on, odd = the last one of its bucket
//! ```
//!
//! Words are 4 bytes. The dynamic linker follows buckets and chains, and does not look at nchain.
//! Source: System V ABI, generic edition; `DT_GNU_HASH` as in glibc 2.36 and binutils 2.40.

use object::{LittleEndian as LE, U32, elf};

use super::dynamic::Dynamic;
use super::file::ElfFile;
use super::record::Record;
use super::table::RecordTable;
use rockpack_core::error::{Kind, Result};

const WORD: u64 = 4;

/// Bytes of a word of the Bloom filter.
const BLOOM_WORD: u64 = 8;

impl Record for u32 {
    type Raw = U32<LE>;
    const NAME: &'static str = "hash table";

    fn from_raw(raw: &Self::Raw) -> Self {
        raw.get(LE)
    }

    fn to_raw(self) -> Self::Raw {
        U32::new(LE, self)
    }
}

/// A hash table of a file with a known number of dynamic symbols.
#[derive(Debug, Clone, Copy)]
pub(super) struct HashTable {
    /// The tag of the dynamic entry for the table.
    pub(super) tag: elf::DynamicTag,
    /// Size in bytes, as far as the dynamic linker reads it.
    pub(super) size: u64,
    /// Whether the table refers to symbols beyond the known number.
    pub(super) exceeds_symbols: bool,
}

/// Reads the hash tables of a file with `count` dynamic symbols.
pub(super) fn read(file: &ElfFile, dynamic: &Dynamic, count: u64) -> Result<Vec<HashTable>> {
    let mut found = Vec::new();
    if let Some(address) = dynamic.value(elf::DT_HASH) {
        found.push(hash(file, address, count)?);
    }
    if let Some(address) = dynamic.value(elf::DT_GNU_HASH) {
        found.push(gnu_hash(file, address, count)?);
    }
    Ok(found)
}

fn hash(file: &ElfFile, address: u64, count: u64) -> Result<HashTable> {
    let [buckets, chains] = numbers(file, address)?;
    let behind = buckets + chains.max(count);
    let mut exceeds_symbols = chains > count;
    let first = address.saturating_add(2 * WORD);
    for item in words(file, first, behind)?.iter() {
        exceeds_symbols |= u64::from(item?.1) >= count.max(1);
    }
    Ok(HashTable { tag: elf::DT_HASH, size: (2 + behind) * WORD, exceeds_symbols })
}

fn gnu_hash(file: &ElfFile, address: u64, count: u64) -> Result<HashTable> {
    let [bucket_count, covered_from, bloom_size, _] = numbers(file, address)?;
    let before = 4 * WORD + BLOOM_WORD * bloom_size;
    let mut exceeds_symbols = false;
    let mut last = 0;
    for item in words(file, address.saturating_add(before), bucket_count)?.iter() {
        let symbol = u64::from(item?.1);
        // Chains of symbols below `covered_from` would lie before the table's chains.
        exceeds_symbols |= symbol > 0 && (symbol < covered_from || symbol >= count);
        last = last.max(symbol);
    }
    let mut size = before + WORD * bucket_count;
    if last > 0 && !exceeds_symbols {
        // No bucket ends after the bucket that begins last.
        let chain = address.saturating_add(size + WORD * (last - covered_from));
        exceeds_symbols = true;
        for item in words(file, chain, count - last)?.iter() {
            if item?.1 & 1 == 1 {
                exceeds_symbols = false;
                break;
            }
        }
        size += WORD * (count - covered_from);
    }
    Ok(HashTable { tag: elf::DT_GNU_HASH, size, exceeds_symbols })
}

/// Reads the numbers at the start of the hash table at `address`.
fn numbers<const N: usize>(file: &ElfFile, address: u64) -> Result<[u64; N]> {
    let mut numbers = [0; N];
    for (number, item) in numbers.iter_mut().zip(words(file, address, N as u64)?.iter()) {
        *number = u64::from(item?.1);
    }
    Ok(numbers)
}

fn words(file: &ElfFile, address: u64, count: u64) -> Result<RecordTable<u32>> {
    let size = count.saturating_mul(WORD);
    let Some(start) = file.offset_of(address, size) else {
        let message = format!(
            "{size:#x} bytes of a hash table at {address:#x} are not in the file where it is loaded"
        );
        let error = file.refuse(Kind::Malformed, "dynamic section", 0, message);
        return Err(error.hint("the file is damaged: build it or copy it again"));
    };
    RecordTable::new(file.content(), start, size)
}
