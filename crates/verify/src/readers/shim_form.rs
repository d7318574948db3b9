//! The places where a binary that registers its wrappers with the shim differs from its build.
//!
//! | part | in the build | with the shim |
//! |---|---|---|
//! | dynamic strings | | followed by the names of [`FUNCTIONS`] and of the shim, and zeros |
//! | undefined symbols of [`FUNCTIONS`] | a version of the HIP runtime | the other name, version index 1 |
//! | `.dynamic` | `DT_NULL`, or `DT_RELACOUNT` | `DT_NEEDED` of the shim |
//!
//! Both forms are normalized there, so they are equal if nothing else was changed.

use std::collections::BTreeMap;

use object::read::elf::SectionHeader as _;
use object::{LittleEndian as LE, elf};
use rockpack_core::error::Result;
use rockpack_split::host_binary::is_shim;

use crate::readers::elf_file::{HostElfFile, SectionRow, bytes_of, word};
use crate::readers::host_elf::{string, tag};

/// Longest table of dynamic strings.
const STRINGS_LIMIT: u64 = 256 << 20;

/// The functions that register and unregister wrappers: names in the HIP runtime, and in the shim.
const FUNCTIONS: [[&str; 2]; 2] = [
    ["__hipRegisterFatBinary", "rocm_kpack_register_fat_binary"],
    ["__hipUnregisterFatBinary", "rocm_kpack_unregister_fat_binary"],
];

/// The changed places of a binary with the shim, or those of a build that change.
pub(super) struct ShimPlaces {
    /// Whether `.dynamic` of the binary with the shim has `DT_RELACOUNT`, which the shim entry may have replaced.
    pub(super) has_count: bool,
    /// The index of the section of dynamic strings.
    strings: usize,
    /// Bytes of that section, and those that the build has.
    size: u64,
    build_size: u64,
    /// The number of the `.dynamic` entry for the shim; `None` in a build.
    needed: Option<usize>,
    /// Dynamic symbol number of a function → whether it is the second of [`FUNCTIONS`].
    functions: BTreeMap<usize, bool>,
}

impl ShimPlaces {
    /// Finds the places in a binary with the shim, or in the build of one; then `has` tells whether the binary has
    /// `DT_RELACOUNT`. `None` for other files, and for a binary with other data after its strings.
    pub(super) fn read(file: &HostElfFile<'_>, has: Option<bool>) -> Result<Option<Self>> {
        let Some(dynamic) = file.of_type(elf::SHT_DYNAMIC).next() else { return Ok(None) };
        let strings = usize::try_from(dynamic.sh_link(LE)).unwrap_or(usize::MAX);
        let Some(section) = file.sections.get(strings) else { return Ok(None) };
        let (mut last, mut has_count) = (None, false);
        let is_ended = file.each_entry(dynamic, &mut |number, tag, value| match tag {
            elf::DT_NEEDED => last = Some((number, value)),
            elf::DT_RELACOUNT => has_count = true,
            _ => {}
        })?;
        let mut shim = None;
        if let Some((number, at)) = last {
            let name = string(file.content, &bytes_of(section), at)?.map(|name| name.text);
            shim = name.filter(|name| is_shim(name)).map(|name| (number, at, name));
        }
        if !is_ended || shim.is_none() && has.is_none() {
            return Ok(None);
        }
        let bytes = file.content.read_vec(bytes_of(section), STRINGS_LIMIT, "dynamic strings")?;
        let (has_count, build, needed) = match shim {
            Some((number, at, name)) => (has_count, of_build(&bytes, at, &name), Some(number)),
            None => (has.unwrap_or(has_count), Some(bytes.as_slice()), None),
        };
        let Some(build) = build else { return Ok(None) };
        let functions = functions(file, &bytes, needed.is_some())?;
        let (size, build_size) = (bytes.len() as u64, build.len() as u64);
        Ok(Some(Self { has_count, strings, size, build_size, needed, functions }))
    }

    /// The header of the section with this index, with its size in the build.
    pub(super) fn section(&self, index: usize, section: &SectionRow) -> SectionRow {
        let mut row = *section;
        if index == self.strings {
            row.sh_size.set(LE, self.build_size);
        }
        row
    }

    /// Normalizes an entry of `.dynamic`.
    pub(super) fn normalize_entry(&self, number: usize, entry: &mut [u8; 16]) {
        let tag = tag(entry);
        let is_count = tag == elf::DT_RELACOUNT && !self.has_count;
        if is_count || self.needed == Some(number) {
            entry.fill(0);
        } else if tag == elf::DT_STRSZ && word(entry, 8) == self.size {
            entry[8..].copy_from_slice(&self.build_size.to_le_bytes());
        }
    }

    /// Normalizes a dynamic symbol of a function: a number replaces its name.
    pub(super) fn normalize_symbol(&self, number: usize, symbol: &mut [u8; 24]) {
        if let Some(is_second) = self.functions.get(&number) {
            symbol[..4].copy_from_slice(&[u8::from(*is_second), 0xff, 0xff, 0xff]);
        }
    }

    /// Normalizes the version of a dynamic symbol in a build.
    pub(super) fn normalize_version(&self, number: usize, version: &mut [u8; 2]) {
        if self.needed.is_none() && self.functions.contains_key(&number) {
            *version = elf::VER_NDX_GLOBAL.0.to_le_bytes();
        }
    }
}

/// The prefix of dynamic `strings` that the build has; the shim's name is at `at`. `None` if other strings than the
/// names of functions are between, or anything but zeros follows.
fn of_build<'a>(strings: &'a [u8], at: u64, name: &str) -> Option<&'a [u8]> {
    let (mut build, behind) = strings.split_at_checked(usize::try_from(at).ok()?)?;
    let names = FUNCTIONS.map(|[_, name]| format!("{name}\0"));
    while let Some(rest) = names.iter().find_map(|name| build.strip_suffix(name.as_bytes())) {
        build = rest;
    }
    let zeros = behind.strip_prefix(name.as_bytes())?;
    zeros.iter().all(|byte| *byte == 0).then_some(build)
}

/// The undefined dynamic symbols that have the names of functions in these `strings`.
fn functions(
    file: &HostElfFile<'_>,
    strings: &[u8],
    is_with_shim: bool,
) -> Result<BTreeMap<usize, bool>> {
    let mut found = BTreeMap::new();
    let names = FUNCTIONS.map(|names| names[usize::from(is_with_shim)].as_bytes());
    let mut look = |number, symbol: &mut [u8; 24]| {
        let at = usize::try_from(word(symbol, 0) & u64::from(u32::MAX)).unwrap_or(usize::MAX);
        let rest = strings.get(at..).unwrap_or_default();
        let is_named =
            |name: &&[u8]| rest.strip_prefix(*name).is_some_and(|it| it.starts_with(&[0]));
        // Undefined symbols: section index 0.
        if let Some(function) = names.iter().position(is_named).filter(|_| symbol[6..8] == [0, 0]) {
            found.insert(number, function == 1);
        }
    };
    if let Some(symbols) = file.of_type(elf::SHT_DYNSYM).next() {
        file.each_record(symbols, &mut look, &mut |_| ())?;
    }
    Ok(found)
}
