//! Central and local headers.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::ops::Range;

use super::directory::{Fields, IN_COMMENT, fault, has_records, several_disks};
use super::{CENTRAL, CENTRAL_SIZE, EXTRA_ZIP64, FLAG_UTF8, LOCAL, LOCAL_SIZE, Method, ZipMember};
use rockpack_core::content::{Content, NAME_MAX};
use rockpack_core::error::{Error, Result, abridged, is_invisible};
use rockpack_core::hold;
use rockpack_core::tree::TreePath;

/// Flags of members that installers cannot read: encryption, patches, strong encryption, masked headers.
const FLAGS_UNREADABLE: u16 = 1 | 1 << 5 | 1 << 6 | 1 << 13;

/// The highest version of the format that installers read: 6.3. The upper byte names a system.
const VERSION_MAX: u16 = 63;
const TOO_NEW: &str = "needs a version of the ZIP format above 6.3, which pip and uv do not read";

/// The longest path that Linux accepts, in bytes.
const PATH_MAX: usize = 4095;

const FLAG_DESCRIPTOR: u16 = 1 << 3;

/// The first bytes of a data descriptor, which may be missing.
const DESCRIPTOR: [u8; 4] = *b"PK\x07\x08";

const DESCRIPTOR_MAX: u64 = 24;

/// The extra field with the name in UTF-8, which could differ from the name in the header.
const EXTRA_NAME: u16 = 0x7075;

const NO_SIGNATURE: &str = "does not begin with its signature";
const UNREFERENCED_NUMBERS: &str = "has ZIP64 numbers that no field refers to";

/// A member as described by its central header.
pub(super) struct Entry {
    pub member: ZipMember,
    flags: u16,
    compressed: u64,
    local_offset: u64,
}

/// Reads the central header at `at`, and returns it with its length.
pub(super) fn central(archive: &Content, headers: &mut impl Read, at: u64) -> Result<(Entry, u64)> {
    let mut header = [0; CENTRAL_SIZE];
    headers.read_exact(&mut header).map_err(|error| read_error(error, archive, at))?;
    let mut fields = Fields::new(&header);
    if fields.u32() != CENTRAL {
        return Err(fault(archive, "central header", at, NO_SIGNATURE));
    }
    fields.skip(2);
    let (version, flags, method) = (fields.u16(), fields.u16(), fields.u16());
    fields.skip(4);
    let (crc32, compressed, size) = (fields.u32(), fields.u32(), fields.u32());
    let lengths = [fields.u16(), fields.u16(), fields.u16()];
    let disk = fields.u16();
    fields.skip(2);
    let (attributes, local_offset) = (fields.u32(), fields.u32());
    let mut parts = lengths.map(|len| vec![0; usize::from(len)]);
    for part in &mut parts {
        headers.read_exact(part).map_err(|error| read_error(error, archive, at))?;
    }
    let [name, extra, comment] = parts;
    let name = name_of(name, flags)
        .map_err(|why| fault(archive, "central header", at, why).hint("build the wheel again"))?;
    let method = supported_method(&name, version, flags, method)
        .map_err(|error| error.structure("central header").at(&archive.place(at)))?;
    let mut zip64 = zip64_numbers(&extra).map_err(|why| central_fault(archive, at, &name, why))?;
    let full = [size, compressed, local_offset].map(|field| full_value(field, &mut zip64));
    let [Some(size), Some(compressed), Some(local_offset)] = full else {
        return Err(central_fault(archive, at, &name, "lacks its ZIP64 numbers"));
    };
    if disk != 0 && (disk != u16::MAX || zip64.u32() != 0) {
        return Err(several_disks(archive, at));
    }
    let faults = [
        (!zip64.bytes.is_empty(), UNREFERENCED_NUMBERS),
        (has_records(&comment), IN_COMMENT),
        (size > 0 && name.ends_with('/'), "describes a folder with content"),
        (method == Method::Stored && compressed != size, "has two sizes but no compression"),
    ];
    if let Some((_, why)) = faults.iter().find(|(applies, _)| *applies) {
        return Err(central_fault(archive, at, &name, why));
    }
    let mode = (attributes >> 16 != 0).then_some(attributes >> 16);
    let member = ZipMember { name, method, crc32, size, stored: 0..0, mode };
    let len = CENTRAL_SIZE as u64 + lengths.iter().map(|len| u64::from(*len)).sum::<u64>();
    Ok((Entry { member, flags, compressed, local_offset }, len))
}

/// The error for a failed read of a central header: that of the file, or that the headers end too early.
fn read_error(error: io::Error, archive: &Content, at: u64) -> Error {
    if error.kind() != io::ErrorKind::UnexpectedEof {
        return hold::fault(error);
    }
    Error::truncated("the central headers end too early")
        .structure("central header")
        .at(&archive.place(at))
}

fn central_fault(archive: &Content, at: u64, name: &str, message: &str) -> Error {
    fault(archive, "central header", at, format!("of {name} {message}"))
}

/// Decodes the name in a header. Refuses names that installers would change, or that cannot be printed.
fn name_of(name: Vec<u8>, flags: u16) -> std::result::Result<String, String> {
    if flags & FLAG_UTF8 == 0 && !name.is_ascii() {
        return Err("has a name that is neither ASCII nor marked as UTF-8".to_owned());
    }
    let name = String::from_utf8(name).map_err(|_| "has a name that is not UTF-8")?;
    let path = name.strip_suffix('/').unwrap_or(&name);
    let is_long = path.len() > PATH_MAX || path.split('/').any(|part| part.len() > NAME_MAX);
    let why = match path {
        path if TreePath::new(path).is_err() => "is not a path inside the wheel",
        path if path.contains('\\') => "has a backslash: folders end in `/`",
        path if path.get(1..2) == Some(":") => "begins with a Windows drive letter",
        path if path.contains(is_unprintable) => "has unprintable characters",
        _ if is_long => "is too long for Linux: 4095 bytes, 255 for each part",
        _ => return Ok(name),
    };
    Err(format!("the name `{}` {why}", abridged(&name)))
}

/// Whether uv refuses a character in names (private ones, noncharacters, format characters), or it is
/// invisible. U+FE0F, which follows emoji, is allowed.
fn is_unprintable(c: char) -> bool {
    let is_private = matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..);
    let is_noncharacter = matches!(c, '\u{fdd0}'..='\u{fdef}' | '\u{fffe}'..='\u{ffff}');
    is_private || is_noncharacter || is_invisible(c) && c != '\u{fe0f}'
}

fn supported_method(name: &str, version: u16, flags: u16, method: u16) -> Result<Method> {
    if flags & FLAGS_UNREADABLE != 0 {
        let message = format!("the member {name} is encrypted, or patches other data");
        return Err(Error::unsupported(message));
    }
    if version & 0xff > VERSION_MAX {
        return Err(Error::unsupported(format!("the member {name} {TOO_NEW}")));
    }
    let known = [Method::Stored, Method::Deflated].into_iter().find(|it| *it as u16 == method);
    known.ok_or_else(|| {
        let message = format!("the member {name} is compressed by method {method}");
        let hint = "pip reads members that are stored or deflated: pack the wheel with deflate";
        Error::unsupported(message).hint(hint)
    })
}

fn zip64_numbers(extra: &[u8]) -> std::result::Result<Fields<'_>, &'static str> {
    let mut fields = Fields::new(extra);
    let (mut found, mut ids) = (extra.get(..0).unwrap_or_default(), BTreeSet::new());
    // Shorter remainders are padding.
    while fields.bytes.len() >= 4 {
        let (id, len) = (fields.u16(), usize::from(fields.u16()));
        let field = fields.take(len).ok_or("has an extra field that is cut off")?;
        match id {
            _ if !ids.insert(id) => return Err("has an extra field twice"),
            EXTRA_ZIP64 => found = field,
            EXTRA_NAME => return Err("repeats its name in an extra field"),
            _ => {}
        }
    }
    Ok(Fields::new(found))
}

/// The value of a header field: the next of the `zip64` numbers if `field` is `u32::MAX`, `None` without it.
fn full_value(field: u32, zip64: &mut Fields<'_>) -> Option<u64> {
    if field != u32::MAX {
        return Some(u64::from(field));
    }
    zip64.take(8).map(|bytes| Fields::new(bytes).u64())
}

/// Finds the stored bytes of all members; `end` is where the central headers begin.
pub(super) fn locate_members(
    archive: &Content,
    end: u64,
    mut entries: Vec<Entry>,
) -> Result<Vec<ZipMember>> {
    let mut order: Vec<(u64, usize)> =
        entries.iter().enumerate().map(|(index, entry)| (entry.local_offset, index)).collect();
    order.sort_unstable();
    if order.first().map_or(end, |(first, _)| *first) != 0 {
        return Err(fault(archive, "local header", 0, "is not at the start of the archive"));
    }
    let nexts = order.iter().skip(1).map(|(next, _)| *next).chain([end]);
    for ((_, index), next) in order.iter().zip(nexts) {
        let Some(entry) = entries.get_mut(*index) else { continue };
        let (start, is_zip64) = check_local(archive, entry)?;
        let range = start.checked_add(entry.compressed).map(|end| start..end);
        let stored = range.filter(|range| range.end <= next).ok_or_else(|| {
            let message = format!("of {} has data that overlaps what follows", entry.member.name);
            fault(archive, "local header", entry.local_offset, message)
        })?;
        if !is_descriptor_or_empty(archive, entry, stored.end..next, is_zip64)? {
            let message = "is followed by bytes that are neither its data descriptor nor a member";
            let error = local_fault(archive, entry, message);
            return Err(error.hint("bytes may be hidden there: build the wheel again"));
        }
        entry.member.stored = stored;
    }
    Ok(entries.into_iter().map(|entry| entry.member).collect())
}

/// Whether `range`, which follows a member's bytes, is empty, or the data descriptor that its flags announce.
/// With `is_zip64`, the descriptor has 64-bit sizes.
fn is_descriptor_or_empty(
    archive: &Content,
    entry: &Entry,
    range: Range<u64>,
    is_zip64: bool,
) -> Result<bool> {
    if entry.flags & FLAG_DESCRIPTOR == 0 || range.end - range.start > DESCRIPTOR_MAX {
        return Ok(range.is_empty());
    }
    let mut expected = entry.member.crc32.to_le_bytes().to_vec();
    for size in [entry.compressed, entry.member.size].map(u64::to_le_bytes) {
        expected.extend(size.iter().take(if is_zip64 { 8 } else { 4 }));
    }
    let found = archive.read_vec(range, DESCRIPTOR_MAX, "data descriptor")?;
    Ok(found == expected || found.strip_prefix(&DESCRIPTOR) == Some(expected.as_slice()))
}

/// Compares the local header of a member with the central one. Returns the offset of its bytes, and whether
/// its data descriptor has 64-bit sizes.
fn check_local(archive: &Content, entry: &Entry) -> Result<(u64, bool)> {
    let Entry { member, flags, compressed, local_offset } = entry;
    let header: [u8; LOCAL_SIZE] = archive.read_array(*local_offset).map_err(in_local_header)?;
    let mut fields = Fields::new(&header);
    if fields.u32() != LOCAL {
        return Err(local_fault(archive, entry, NO_SIGNATURE));
    }
    let (version, own_flags, method) = (fields.u16(), fields.u16(), fields.u16());
    fields.skip(4);
    let (crc32, own_compressed, size) = (fields.u32(), fields.u32(), fields.u32());
    let (name_len, extra_len) = (u64::from(fields.u16()), u64::from(fields.u16()));
    let name_at = *local_offset + LOCAL_SIZE as u64;
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
    let compared = FLAGS_UNREADABLE | FLAG_UTF8 | FLAG_DESCRIPTOR;
    if method != member.method as u16 || (own_flags ^ flags) & compared != 0 {
        let message = "has another method or other flags than the central one";
        return Err(local_fault(archive, entry, message));
    }
    if version & 0xff > VERSION_MAX {
        return Err(local_fault(archive, entry, TOO_NEW));
    }
    let mut zip64 = zip64_numbers(&extra).map_err(|why| local_fault(archive, entry, why))?;
    let is_zip64 = !zip64.bytes.is_empty() || *compressed.max(&member.size) > u64::from(u32::MAX);
    let mut sizes = vec![full_value(size, &mut zip64), full_value(own_compressed, &mut zip64)];
    // Some writers reserve 64-bit sizes and keep them although 32 bits are enough.
    if size != u32::MAX && own_compressed != u32::MAX && !zip64.bytes.is_empty() {
        sizes.extend([full_value(u32::MAX, &mut zip64), full_value(u32::MAX, &mut zip64)]);
    }
    if !zip64.bytes.is_empty() {
        return Err(local_fault(archive, entry, UNREFERENCED_NUMBERS));
    }
    // The sizes may be 0 if a data descriptor follows the bytes.
    let has_descriptor = own_flags & FLAG_DESCRIPTOR != 0;
    let is_stated = |local: Option<u64>, central: u64| {
        local == Some(central) || has_descriptor && local == Some(0)
    };
    let mut pairs = sizes.into_iter().zip([member.size, *compressed].into_iter().cycle());
    if !pairs.all(|(local, central)| is_stated(local, central))
        || !is_stated(Some(u64::from(crc32)), u64::from(member.crc32))
    {
        return Err(local_fault(archive, entry, "has another size or CRC-32 than the central one"));
    }
    Ok((extra_at + extra_len, is_zip64))
}

fn in_local_header(error: Error) -> Error {
    error.structure("local header")
}

fn local_fault(archive: &Content, entry: &Entry, message: &str) -> Error {
    let message = format!("of {} {message}", entry.member.name);
    fault(archive, "local header", entry.local_offset, message)
}
