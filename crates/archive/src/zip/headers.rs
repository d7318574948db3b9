//! Central and local headers.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::ops::Range;

use super::directory::{Fields, IN_COMMENT, fault, has_records, several_disks};
use super::{CENTRAL, CENTRAL_SIZE, EXTRA_64, FLAG_UTF8, LOCAL, LOCAL_SIZE, Method, ZipMember};
use rockpack_core::content::{Content, NAME_MAX};
use rockpack_core::error::{Error, Result, abridged, is_unseen};
use rockpack_core::hold;
use rockpack_core::tree::TreePath;

/// Flags of members that installers cannot read: encryption, patches, strong encryption, masked headers.
const FLAGS_UNREADABLE: u16 = 1 | 1 << 5 | 1 << 6 | 1 << 13;

/// The highest version of the format that installers read: 6.3. The upper byte names a system.
const VERSION_MAX: u16 = 63;
const TOO_NEW: &str = "needs a version of the ZIP format above 6.3, which pip and uv do not read";

/// The most bytes of a path that file systems take.
const PATH_MAX: usize = 4095;

const FLAG_DESCRIPTOR: u16 = 1 << 3;

/// The first bytes of a data descriptor, which may be missing.
const DESCRIPTOR: [u8; 4] = *b"PK\x07\x08";

const DESCRIPTOR_MAX: u64 = 24;

/// The extra field with another form of the name.
const EXTRA_NAME: u16 = 0x7075;

/// The message for numbers of 64 bits beyond those that header fields refer to.
const SPARE: &str = "has numbers of 64 bits that no field refers to";

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
    headers.read_exact(&mut header).map_err(|error| unread(error, archive, at))?;
    let mut fields = Fields::new(&header);
    if fields.u32() != CENTRAL {
        return Err(fault(archive, "central header", at, "is none"));
    }
    fields.skip(2);
    let (version, flags, method) = (fields.u16(), fields.u16(), fields.u16());
    fields.skip(4);
    let (crc32, compressed, size) = (fields.u32(), fields.u32(), fields.u32());
    let lengths = [fields.u16(), fields.u16(), fields.u16()];
    let disk = fields.u16();
    fields.skip(2);
    let (attributes, local) = (fields.u32(), fields.u32());
    let mut parts = lengths.map(|len| vec![0; usize::from(len)]);
    for part in &mut parts {
        headers.read_exact(part).map_err(|error| unread(error, archive, at))?;
    }
    let [name, extra, comment] = parts;
    let name = name_of(name, flags)
        .map_err(|why| fault(archive, "central header", at, why).hint("build the wheel again"))?;
    let method = readable(&name, version, flags, method)
        .map_err(|error| error.structure("central header").at(&archive.place(at)))?;
    let mut wide = wide_numbers(&extra).map_err(|why| central_fault(archive, at, &name, why))?;
    let full = [size, compressed, local].map(|field| full(field, &mut wide));
    let [Some(size), Some(compressed), Some(local)] = full else {
        return Err(central_fault(archive, at, &name, "lacks its numbers of 64 bits"));
    };
    if disk != 0 && (disk != u16::MAX || wide.u32() != 0) {
        return Err(several_disks(archive, at));
    }
    let faults = [
        (!wide.bytes.is_empty(), SPARE),
        (has_records(&comment), IN_COMMENT),
        (size > 0 && name.ends_with('/'), "is that of a folder, and has content"),
        (method == Method::Stored && compressed != size, "has two sizes, and no compression"),
    ];
    if let Some((_, why)) = faults.iter().find(|(is_so, _)| *is_so) {
        return Err(central_fault(archive, at, &name, why));
    }
    let mode = (attributes >> 16 != 0).then_some(attributes >> 16);
    let member = ZipMember { name, method, crc32, size, stored: 0..0, mode };
    let len = CENTRAL_SIZE as u64 + lengths.iter().map(|len| u64::from(*len)).sum::<u64>();
    Ok((Entry { member, flags, compressed, local }, len))
}

/// The failure to read a central header: of the file, or because the headers end.
fn unread(error: io::Error, archive: &Content, at: u64) -> Error {
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

/// The name in a header with the flags `flags`: a path that installers take as it is, and that people see.
fn name_of(name: Vec<u8>, flags: u16) -> std::result::Result<String, String> {
    if flags & FLAG_UTF8 == 0 && !name.is_ascii() {
        return Err("has a name that is neither ASCII nor said to be UTF-8".to_owned());
    }
    let name = String::from_utf8(name).map_err(|_| "has a name that is not UTF-8")?;
    let path = name.strip_suffix('/').unwrap_or(&name);
    let is_long = path.len() > PATH_MAX || path.split('/').any(|part| part.len() > NAME_MAX);
    let why = match path {
        path if TreePath::new(path).is_err() => "is no path inside the wheel",
        path if path.contains('\\') => "has a backslash: members have `/` between folders",
        path if path.get(1..2) == Some(":") => "begins with a drive of Windows",
        path if path.contains(is_unprintable) => "has characters that are not printed",
        _ if is_long => "is longer than file systems take: 255 bytes for each part",
        _ => return Ok(name),
    };
    Err(format!("the name `{}` {why}", abridged(&name)))
}

/// Whether uv refuses a character in names (private ones, noncharacters, format characters), or people do not
/// see it. U+FE0F, which follows emoji, is fine.
fn is_unprintable(c: char) -> bool {
    let is_private = matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..);
    let is_none = matches!(c, '\u{fdd0}'..='\u{fdef}' | '\u{fffe}'..='\u{ffff}');
    is_private || is_none || is_unseen(c) && c != '\u{fe0f}'
}

fn readable(name: &str, version: u16, flags: u16, method: u16) -> Result<Method> {
    if flags & FLAGS_UNREADABLE != 0 {
        let message = format!("the member {name} is encrypted, or a patch of other bytes");
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

fn wide_numbers(extra: &[u8]) -> std::result::Result<Fields<'_>, &'static str> {
    let mut fields = Fields::new(extra);
    let (mut found, mut ids) = (extra.get(..0).unwrap_or_default(), BTreeSet::new());
    // Shorter remainders are padding.
    while fields.bytes.len() >= 4 {
        let (id, len) = (fields.u16(), usize::from(fields.u16()));
        let field = fields.take(len).ok_or("has an extra field that is cut off")?;
        match id {
            _ if !ids.insert(id) => return Err("has an extra field twice"),
            EXTRA_64 => found = field,
            EXTRA_NAME => return Err("has its name once more in an extra field"),
            _ => {}
        }
    }
    Ok(Fields::new(found))
}

/// The value of a header field: the next of the `wide` numbers if `field` is all ones, `None` if that is missing.
fn full(field: u32, wide: &mut Fields<'_>) -> Option<u64> {
    if field != u32::MAX {
        return Some(u64::from(field));
    }
    wide.take(8).map(|bytes| Fields::new(bytes).u64())
}

/// Finds the bytes of the members; the central headers begin at `end`.
pub(super) fn place(
    archive: &Content,
    end: u64,
    mut entries: Vec<Entry>,
) -> Result<Vec<ZipMember>> {
    let mut order: Vec<(u64, usize)> =
        entries.iter().enumerate().map(|(index, entry)| (entry.local, index)).collect();
    order.sort_unstable();
    if order.first().map_or(end, |(first, _)| *first) != 0 {
        return Err(fault(archive, "local header", 0, "is not at the start of the archive"));
    }
    let nexts = order.iter().skip(1).map(|(next, _)| *next).chain([end]);
    for ((_, index), next) in order.iter().zip(nexts) {
        let Some(entry) = entries.get_mut(*index) else { continue };
        let (start, is_wide) = local(archive, entry)?;
        let range = start.checked_add(entry.compressed).map(|end| start..end);
        let stored = range.filter(|range| range.end <= next).ok_or_else(|| {
            let message =
                format!("of {} has bytes that reach into what follows", entry.member.name);
            fault(archive, "local header", entry.local, message)
        })?;
        if !ends_at(archive, entry, stored.end..next, is_wide)? {
            let message = "is followed by bytes that are neither its data descriptor nor a member";
            let error = local_fault(archive, entry, message);
            return Err(error.hint("bytes may be hidden there: build the wheel again"));
        }
        entry.member.stored = stored;
    }
    Ok(entries.into_iter().map(|entry| entry.member).collect())
}

/// Whether `range`, behind the bytes of a member, is empty or its data descriptor, as its flags say; `is_wide`
/// if the descriptor has sizes of 64 bits.
fn ends_at(archive: &Content, entry: &Entry, range: Range<u64>, is_wide: bool) -> Result<bool> {
    if entry.flags & FLAG_DESCRIPTOR == 0 || range.end - range.start > DESCRIPTOR_MAX {
        return Ok(range.is_empty());
    }
    let mut expected = entry.member.crc32.to_le_bytes().to_vec();
    for size in [entry.compressed, entry.member.size].map(u64::to_le_bytes) {
        expected.extend(size.iter().take(if is_wide { 8 } else { 4 }));
    }
    let found = archive.read_vec(range, DESCRIPTOR_MAX, "data descriptor")?;
    Ok(found == expected || found.strip_prefix(&DESCRIPTOR) == Some(expected.as_slice()))
}

/// Compares the local header of a member with the central one. Returns the offset of its bytes, and whether
/// its data descriptor has sizes of 64 bits.
fn local(archive: &Content, entry: &Entry) -> Result<(u64, bool)> {
    let Entry { member, flags, compressed, local } = entry;
    let header: [u8; LOCAL_SIZE] = archive.read_array(*local).map_err(in_local_header)?;
    let mut fields = Fields::new(&header);
    if fields.u32() != LOCAL {
        return Err(local_fault(archive, entry, "is none"));
    }
    let (version, own_flags, method) = (fields.u16(), fields.u16(), fields.u16());
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
    let compared = FLAGS_UNREADABLE | FLAG_UTF8 | FLAG_DESCRIPTOR;
    if method != member.method as u16 || (own_flags ^ flags) & compared != 0 {
        let message = "has another method or other flags than the central one";
        return Err(local_fault(archive, entry, message));
    }
    if version & 0xff > VERSION_MAX {
        return Err(local_fault(archive, entry, TOO_NEW));
    }
    let mut wide = wide_numbers(&extra).map_err(|why| local_fault(archive, entry, why))?;
    let is_wide = !wide.bytes.is_empty() || *compressed.max(&member.size) > u64::from(u32::MAX);
    let mut sizes = vec![full(size, &mut wide), full(own_compressed, &mut wide)];
    // Writers that leave room for 64 bits keep it where 32 are enough.
    if size != u32::MAX && own_compressed != u32::MAX && !wide.bytes.is_empty() {
        sizes.extend([full(u32::MAX, &mut wide), full(u32::MAX, &mut wide)]);
    }
    if !wide.bytes.is_empty() {
        return Err(local_fault(archive, entry, SPARE));
    }
    // Sizes behind the bytes may be missing here.
    let is_behind = own_flags & FLAG_DESCRIPTOR != 0;
    let is_said = |own: Option<u64>, said: u64| own == Some(said) || is_behind && own == Some(0);
    let mut pairs = sizes.into_iter().zip([member.size, *compressed].into_iter().cycle());
    if !pairs.all(|(own, said)| is_said(own, said))
        || !is_said(Some(u64::from(crc32)), u64::from(member.crc32))
    {
        return Err(local_fault(archive, entry, "has another size or CRC-32 than the central one"));
    }
    Ok((extra_at + extra_len, is_wide))
}

fn in_local_header(error: Error) -> Error {
    error.structure("local header")
}

fn local_fault(archive: &Content, entry: &Entry, message: &str) -> Error {
    let message = format!("of {} {message}", entry.member.name);
    fault(archive, "local header", entry.local, message)
}
