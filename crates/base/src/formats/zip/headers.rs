//! Central and local headers.

use std::io::Read;

use super::fields::{Fields, fault, several_disks};
use super::{CENTRAL, CENTRAL_SIZE, EXTRA_64, FLAG_UTF8, LOCAL, LOCAL_SIZE, Method, ZipMember};
use crate::content::Content;
use crate::error::{Error, Result};

/// Flags of members that cannot be read without a key: encryption, strong encryption, masked headers.
const FLAGS_ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;

/// The flag of members whose sizes follow their bytes.
const FLAG_DESCRIPTOR: u16 = 1 << 3;

/// The extra field with another form of the name.
const EXTRA_NAME: u16 = 0x7075;

/// A member as described by its central header.
pub(super) struct Entry {
    pub member: ZipMember,
    flags: u16,
    compressed: u64,
    /// The offset of the local header.
    local: u64,
}

/// Reads the central header at `at`, and returns it with its length.
pub(super) fn central(archive: &Content, headers: &mut impl Read, at: u64) -> Result<(Entry, u64)> {
    let mut header = [0; CENTRAL_SIZE];
    headers.read_exact(&mut header).map_err(|_| cut_headers(archive, at))?;
    let mut fields = Fields::new(&header);
    if fields.u32() != CENTRAL {
        return Err(fault(archive, "central header", at, "is none"));
    }
    fields.skip(4);
    let (flags, method) = (fields.u16(), fields.u16());
    fields.skip(4);
    let (crc32, compressed, size) = (fields.u32(), fields.u32(), fields.u32());
    let lengths = [fields.u16(), fields.u16(), fields.u16()];
    let disk = fields.u16();
    fields.skip(2);
    let (attributes, local) = (fields.u32(), fields.u32());
    let mut parts = lengths.map(|len| vec![0; usize::from(len)]);
    for part in &mut parts {
        headers.read_exact(part).map_err(|_| cut_headers(archive, at))?;
    }
    let [name, extra, _] = parts;
    let name = name_of(name, flags).map_err(|why| fault(archive, "central header", at, why))?;
    if flags & FLAGS_ENCRYPTED != 0 {
        let error = Error::unsupported(format!("the member {name} is encrypted"));
        return Err(error.structure("central header").at(&archive.place(at)));
    }
    let method = method_of(method).ok_or_else(|| {
        let error =
            Error::unsupported(format!("the member {name} is compressed by method {method}"));
        let hint = "pip reads members that are stored or deflated: pack the wheel with deflate";
        error.structure("central header").at(&archive.place(at)).hint(hint)
    })?;
    if disk != 0 && disk != u16::MAX {
        return Err(several_disks(archive, at));
    }
    let mut wide = Wide::of(&extra).map_err(|why| central_fault(archive, at, &name, why))?;
    let full = [size, compressed, local].map(|field| wide.full(field));
    let [Some(size), Some(compressed), Some(local)] = full else {
        return Err(central_fault(archive, at, &name, "lacks its numbers of 64 bits"));
    };
    let mode = (attributes >> 16 != 0).then_some(attributes >> 16);
    let member = ZipMember { name, method, crc32, size, stored: 0..0, mode };
    let len = CENTRAL_SIZE as u64 + lengths.iter().map(|len| u64::from(*len)).sum::<u64>();
    Ok((Entry { member, flags, compressed, local }, len))
}

fn cut_headers(archive: &Content, at: u64) -> Error {
    Error::truncated("the central headers end too early")
        .structure("central header")
        .at(&archive.place(at))
}

fn central_fault(archive: &Content, at: u64, name: &str, message: &str) -> Error {
    fault(archive, "central header", at, format!("of {name} {message}"))
}

/// The name in a header with the flags `flags`.
fn name_of(name: Vec<u8>, flags: u16) -> std::result::Result<String, &'static str> {
    if flags & FLAG_UTF8 == 0 && !name.is_ascii() {
        return Err("has a name that is neither ASCII nor said to be UTF-8");
    }
    let name = String::from_utf8(name).map_err(|_| "has a name that is not UTF-8")?;
    if name.is_empty() || name.contains('\0') {
        return Err("has a name that is empty or has a NUL in it");
    }
    Ok(name)
}

const fn method_of(number: u16) -> Option<Method> {
    match number {
        0 => Some(Method::Stored),
        8 => Some(Method::Deflated),
        _ => None,
    }
}

/// The 64-bit numbers in the extra fields of a header.
struct Wide<'a> {
    left: Fields<'a>,
}

impl<'a> Wide<'a> {
    fn of(extra: &'a [u8]) -> std::result::Result<Self, &'static str> {
        let mut fields = Fields::new(extra);
        let mut found = None;
        // Shorter remainders are padding.
        while fields.bytes.len() >= 4 {
            let (id, len) = (fields.u16(), usize::from(fields.u16()));
            let field = fields.take(len).ok_or("has an extra field that is cut off")?;
            match id {
                EXTRA_64 if found.is_some() => return Err("has numbers of 64 bits twice"),
                EXTRA_64 => found = Some(field),
                EXTRA_NAME => return Err("has its name once more in an extra field"),
                _ => {}
            }
        }
        Ok(Self { left: Fields::new(found.unwrap_or_default()) })
    }

    /// The value of a header field: the next 64-bit number if `field` is all ones, `None` if that is missing.
    fn full(&mut self, field: u32) -> Option<u64> {
        if field != u32::MAX {
            return Some(u64::from(field));
        }
        let bytes = self.left.take(8)?;
        Some(Fields::new(bytes).u64())
    }
}

/// Finds the bytes of the members; the central headers begin at `end`.
pub(super) fn place(archive: &Content, end: u64, entries: Vec<Entry>) -> Result<Vec<ZipMember>> {
    let mut order: Vec<(u64, usize)> =
        entries.iter().enumerate().map(|(index, entry)| (entry.local, index)).collect();
    order.sort_unstable();
    if let Some((first, _)) = order.first()
        && *first != 0
    {
        return Err(fault(archive, "local header", 0, "is not at the start of the archive"));
    }
    let mut members: Vec<Option<ZipMember>> = vec![None; entries.len()];
    let nexts = order.iter().skip(1).map(|(next, _)| *next).chain([end]);
    for ((_, index), next) in order.iter().zip(nexts) {
        let Some(entry) = entries.get(*index) else { continue };
        let start = local(archive, entry)?;
        let range = start.checked_add(entry.compressed).map(|end| start..end);
        let stored = range.filter(|range| range.end <= next).ok_or_else(|| {
            let message =
                format!("of {} has bytes that reach into what follows", entry.member.name);
            fault(archive, "local header", entry.local, message)
        })?;
        if let Some(slot) = members.get_mut(*index) {
            *slot = Some(ZipMember { stored, ..entry.member.clone() });
        }
    }
    Ok(members.into_iter().flatten().collect())
}

/// Compares the local header of a member with the central one, and returns the offset of its bytes.
fn local(archive: &Content, entry: &Entry) -> Result<u64> {
    let Entry { member, flags, compressed, local } = entry;
    let header: [u8; LOCAL_SIZE] = archive.read_array(*local).map_err(in_local_header)?;
    let mut fields = Fields::new(&header);
    if fields.u32() != LOCAL {
        return Err(local_fault(archive, entry, "is none"));
    }
    fields.skip(2);
    let (own_flags, method) = (fields.u16(), fields.u16());
    fields.skip(4);
    let (crc32, own_compressed, size) = (fields.u32(), fields.u32(), fields.u32());
    let (name_len, extra_len) = (u64::from(fields.u16()), u64::from(fields.u16()));
    let name_at = *local + LOCAL_SIZE as u64;
    let name = archive
        .read_vec(name_at..name_at + name_len, u64::from(u16::MAX), "name")
        .map_err(in_local_header)?;
    let extra_at = name_at + name_len;
    let extra = archive
        .read_vec(extra_at..extra_at + extra_len, u64::from(u16::MAX), "extra fields")
        .map_err(in_local_header)?;
    if name != member.name.as_bytes() {
        return Err(local_fault(archive, entry, "has another name"));
    }
    if method != member.method.number() || (own_flags ^ flags) & (FLAGS_ENCRYPTED | FLAG_UTF8) != 0
    {
        let message = "has another method or other flags than the central one";
        return Err(local_fault(archive, entry, message));
    }
    let mut wide = Wide::of(&extra).map_err(|why| local_fault(archive, entry, why))?;
    let full = (wide.full(size), wide.full(own_compressed));
    let is_behind = own_flags & FLAG_DESCRIPTOR != 0;
    let same = full == (Some(member.size), Some(*compressed)) && crc32 == member.crc32;
    if !same && !is_behind {
        return Err(local_fault(archive, entry, "has another size or CRC-32 than the central one"));
    }
    Ok(extra_at + extra_len)
}

fn in_local_header(error: Error) -> Error {
    error.structure("local header")
}

fn local_fault(archive: &Content, entry: &Entry, message: &str) -> Error {
    let message = format!("of {} {message}", entry.member.name);
    fault(archive, "local header", entry.local, message)
}
