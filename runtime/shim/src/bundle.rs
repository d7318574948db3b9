//! Offload bundles in memory.
//!
//! ```text
//! 24 bytes  magic "__CLANG_OFFLOAD_BUNDLE__"
//! u64       number of entries
//! per entry u64 offset (from the start of the bundle) | u64 size | u64 id length | id
//! then      code objects: decompressed, or in archives that are mapped after the tables of all bundles
//! ```
//!
//! Source: LLVM's documentation of clang-offload-bundler. The first entry is that of the host, without bytes, as clang
//! writes it. HIP runtimes read the table from the first 4096 bytes, and code objects in place (ROCm's
//! `hip_fatbin.cpp`).

#![allow(unsafe_code, reason = "each block states why it is sound")]

use std::collections::BTreeSet;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rockpack_kpack::archive::{BLOB_LIMIT, Scheme, Span};
use rockpack_kpack::target::SPIRV;
use rockpack_kpack::{Code, ReadAt};
use rocm_kpack_core::archive::{OpenArchive, RowName};
use rocm_kpack_core::archives::ArchiveHandle;
use rocm_kpack_core::report::{self, Escaped};

use crate::binary::{Binary, report_unused};
use crate::hip_runtime::Wrapper;

const MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";
/// Bytes of magic and number of entries.
const HEADER: usize = 32;
/// Bytes of an entry without its id.
const ENTRY: usize = 24;
const HOST_ID: &[u8] = b"host-x86_64-unknown-linux--";
const PAGE: usize = 4096;

/// A bundle that stays in memory.
pub struct Bundle {
    /// The wrapper for the HIP runtime.
    pub wrapper: Wrapper,
    /// The key of its rows.
    key: Vec<u8>,
    /// The archives that were searched.
    archives: Vec<ArchiveHandle>,
}

// SAFETY: no code writes to a bundle once it is made.
unsafe impl Sync for Bundle {}

/// The code object of a row.
struct CodeObject {
    target: Vec<u8>,
    archive: ArchiveHandle,
    /// The place in the archive.
    stored: Span,
    /// Whether the archive has it uncompressed.
    is_plain: bool,
    size: usize,
    /// The place in the bundle.
    offset: usize,
}

impl Bundle {
    /// Makes the bundle of a wrapper, whose rows have this key.
    pub fn new(binary: &mut Binary, key: Vec<u8>) -> Result<&'static Self, Code> {
        let mut code_objects = code_objects(binary, &key);
        let table_len = fit_table(&mut code_objects);
        let is_plain = code_objects.iter().all(|code| code.is_plain);
        if is_plain && binary.mapped.is_none() {
            binary.mapped = Mapped::new(binary);
        }
        let mapped = binary.mapped.as_mut().filter(|_| is_plain);
        let start = match mapped.and_then(|mapped| mapped.add(&mut code_objects, table_len)) {
            Some(start) => start,
            None => decompressed(binary, &key, code_objects, table_len)?,
        };
        let (wrapper, archives) = (Wrapper::of_bundle(start.cast()), binary.archives.clone());
        Ok(Box::leak(Box::new(Self { wrapper, key, archives })))
    }

    /// Whether the bundle of a wrapper would be the same.
    pub fn is_of(&self, binary: &Binary, key: &[u8]) -> bool {
        let archives = &binary.process_state.archives;
        key == self.key
            && self.archives == binary.archives
            && !self.archives.iter().any(|archive| archives.is_changed(archive))
    }
}

fn no_memory() -> Code {
    report::refused("an offload bundle")
}

/// The code objects of a key that a GPU of the machine can use; for each target, that of the first archive.
fn code_objects(binary: &Binary, key: &[u8]) -> Vec<CodeObject> {
    let mut found = Vec::new();
    let mut targets = BTreeSet::new();
    for archive in &binary.archives {
        binary.process_state.archives.with(archive, |open| {
            for (target, row) in open.table.rows_of(key) {
                let target = target.to_bytes();
                if !binary.process_state.gpus.can_use(target) || targets.contains(target) {
                    continue;
                }
                let name = RowName { key, target };
                let Ok((stored, size)) = open.place_of(row, &name) else {
                    report_unused(&report::draft());
                    continue;
                };
                let Ok(size) = usize::try_from(size) else { continue };
                if found.try_reserve(1).is_err() {
                    return;
                }
                let (archive, target) = (*archive, target.to_vec());
                let is_plain = open.table.scheme() == Scheme::None;
                targets.insert(target.clone());
                found.push(CodeObject { target, archive, stored, is_plain, size, offset: 0 });
            }
        });
    }
    found
}

/// Drops code objects that do not fit into the table, and returns the length of the table in bytes.
fn fit_table(code_objects: &mut Vec<CodeObject>) -> usize {
    let mut len = HEADER + ENTRY + HOST_ID.len();
    code_objects.retain(|code| {
        let end = len + ENTRY + id(&code.target).len();
        let fits = end <= PAGE;
        if fits {
            len = end;
        } else {
            let why = format_args!("code for more targets than HIP runtimes look for");
            report::fail(Code::InvalidFormat, why);
            report_unused(&report::draft());
        }
        fits
    });
    len
}

/// Decompresses code objects after the table, each stored one once.
fn decompressed(
    binary: &Binary,
    key: &[u8],
    mut code_objects: Vec<CodeObject>,
    table_len: usize,
) -> Result<*mut u8, Code> {
    let mut end = table_len;
    for index in 0..code_objects.len() {
        let (before, rest) = code_objects.split_at_mut(index);
        let Some(code) = rest.first_mut() else { break };
        let same = |it: &&CodeObject| it.archive == code.archive && it.stored == code.stored;
        code.offset = match before.iter().find(same) {
            Some(same) => same.offset,
            None => end.next_multiple_of(PAGE),
        };
        end = end.max(code.offset.checked_add(code.size).ok_or_else(no_memory)?);
    }
    if end as u64 > BLOB_LIMIT {
        let key = Escaped(key);
        let why = format_args!("{key}: {end} bytes of code are too many for a bundle");
        return Err(report::fail(Code::DecompressionFailed, why));
    }
    let mut memory = Memory::new(end)?;
    let mut filled = BTreeSet::new();
    code_objects.retain(|code| {
        if filled.contains(&code.offset) {
            return true;
        }
        let result = code.fill(binary, key, &mut memory);
        filled.extend(result.is_ok().then_some(code.offset));
        result.map_err(|_| report_unused(&report::draft())).is_ok()
    });
    memory.write(0, &table(&code_objects));
    Ok(memory.start)
}

/// The id of the entry for a target.
fn id(target: &[u8]) -> Vec<u8> {
    let is_spirv = target.starts_with(SPIRV.as_bytes());
    let before: &[u8] =
        if is_spirv { b"hip-spirv64-amd-amdhsa--" } else { b"hipv4-amdgcn-amd-amdhsa--" };
    [before, target].concat()
}

fn table(code_objects: &[CodeObject]) -> Vec<u8> {
    let devices = code_objects.iter().map(|code| (code.offset, code.size, id(&code.target)));
    let mut bytes = MAGIC.to_vec();
    bytes.extend((code_objects.len() as u64 + 1).to_le_bytes());
    for (offset, size, id) in std::iter::once((PAGE, 0, HOST_ID.to_vec())).chain(devices) {
        let numbers = [offset, size, id.len()].map(|number| (number as u64).to_le_bytes());
        bytes.extend(numbers.as_flattened());
        bytes.extend(id);
    }
    bytes
}

impl CodeObject {
    /// Fills the place in the bundle.
    fn fill(&self, binary: &Binary, key: &[u8], memory: &mut Memory) -> Result<(), Code> {
        let place = self.offset..self.offset + self.size;
        memory.populate(&place);
        let filled = binary.process_state.archives.with(&self.archive, |open| {
            let name = RowName { key, target: &self.target };
            open.load_into(self.stored, &name, memory.room(place))
        });
        filled.unwrap_or_else(|| Err(report::refused("an archive that another thread changes")))
    }
}

/// Zeroed memory that is never given back.
struct Memory {
    start: *mut u8,
    len: usize,
}

impl Memory {
    fn new(len: usize) -> Result<Self, Code> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory, at a place that the kernel chooses.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            Err(no_memory())
        } else {
            Ok(Self { start: start.cast(), len })
        }
    }

    /// The bytes of a range.
    fn room(&mut self, range: Range<usize>) -> &mut [u8] {
        if range.start > range.end || range.end > self.len {
            return &mut [];
        }
        // SAFETY: the range is within the `len` bytes from `start` on, which belong to `self`. Those outside of files
        // are initialised with zeros and can be written, and callers ask for no others.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let room = self.room(offset..offset + bytes.len());
        room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    }

    /// Populates the pages of a page-aligned range at once, instead of one by one on write. Older kernels ignore it.
    fn populate(&mut self, range: &Range<usize>) {
        let len = range.end - range.start;
        // SAFETY: the range belongs to `self`, and its bytes stay the same.
        unsafe {
            libc::madvise(self.start.add(range.start).cast(), len, libc::MADV_POPULATE_WRITE)
        };
    }

    /// Maps a file over a page-aligned range. Returns false if the kernel refuses it.
    fn map(&mut self, range: Range<usize>, file: BorrowedFd<'_>) -> bool {
        let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
        // SAFETY: the pages of the range belong to `self`, which has no reference to them now.
        unsafe {
            let place = self.start.add(range.start).cast();
            libc::mmap(place, range.len(), libc::PROT_READ, flags, file.as_raw_fd(), 0) == place
        }
    }
}

/// The mapped archives of a binary with uncompressed code objects, after the tables of its bundles.
pub struct Mapped {
    memory: Memory,
    /// Bytes of tables.
    used: usize,
    /// The place of each archive.
    archives: Vec<(ArchiveHandle, usize)>,
}

/// The least alignment of a code object that is not copied.
const ALIGNMENT: usize = 16;
/// Bytes for the tables of the bundles of a binary.
const TABLES: usize = 1 << 20;

impl Mapped {
    /// Maps the archives of a binary, if none of them is compressed.
    fn new(binary: &Binary) -> Option<Self> {
        let open = &binary.process_state.archives;
        let (mut archives, mut end) = (Vec::new(), TABLES);
        for archive in &binary.archives {
            let is_plain = |it: &OpenArchive| it.table.scheme() == Scheme::None;
            let len = open.with(archive, |it| is_plain(it).then(|| it.file.len()))??;
            archives.push((*archive, end));
            end = end.checked_add(usize::try_from(len).ok()?)?.checked_next_multiple_of(PAGE)?;
        }
        let mut memory = Memory::new(end).ok()?;
        for (archive, start) in &archives {
            let is_mapped = open.with(archive, |it| {
                let end = start + usize::try_from(it.file.len()).unwrap_or_default();
                memory.map(*start..end, it.file.descriptor()) && it.file.unchanged().is_ok()
            });
            is_mapped.filter(|is_mapped| *is_mapped)?;
        }
        Some(Self { memory, used: 0, archives })
    }

    /// Adds the table of a bundle, and returns its address; `None` if there is no space for it.
    fn add(&mut self, code_objects: &mut [CodeObject], table_len: usize) -> Option<*mut u8> {
        let start = self.used;
        self.used = start.checked_add(table_len)?.next_multiple_of(HEADER);
        if self.used > TABLES {
            return None;
        }
        for code in &mut *code_objects {
            let (_, archive) = self.archives.iter().find(|(handle, _)| *handle == code.archive)?;
            let stored = usize::try_from(code.stored.offset).ok()?;
            // HIP runtimes read headers in place.
            if stored % ALIGNMENT != 0 {
                return None;
            }
            code.offset = archive + stored - start;
        }
        self.memory.write(start, &table(code_objects));
        Some(self.memory.start.wrapping_add(start))
    }
}

// SAFETY: the memory has no other owner.
unsafe impl Send for Mapped {}
