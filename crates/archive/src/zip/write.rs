//! Archives, written member by member.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::Crc;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};

use super::deflate::{CHUNK, compress};
use super::{
    CENTRAL, END, END_64, END_64_SIZE, EXTRA_ZIP64, FLAG_UTF8, LOCAL, LOCATOR_64, Method, ZipMember,
};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};

/// "Version made by": Unix, 4.5 of the format (ZIP64).
const MADE_BY: u16 = 3 << 8 | 45;

/// The bit of regular files in a mode.
const REGULAR: u32 = 0o100_000;

/// An MS-DOS time: even seconds from 1980 on, without a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DosTime(pub(super) u32);

impl DosTime {
    /// Converts seconds since 1970, in UTC. Times before 1980 or after 2107 become the first or last one.
    pub fn new(seconds: i64) -> Self {
        const FIRST: i64 = 315_532_800;
        const LAST: i64 = 4_354_819_198;
        let time = Timestamp::from_second(seconds.clamp(FIRST, LAST)).unwrap_or_default();
        let civil = time.to_zoned_datetime(TimeZone::UTC).datetime();
        let year = u32::try_from(civil.year() - 1980).unwrap_or_default();
        let date = year << 9 | time_part(civil.month()) << 5 | time_part(civil.day());
        let clock = time_part(civil.hour()) << 11
            | time_part(civil.minute()) << 5
            | (time_part(civil.second()) / 2);
        Self(date << 16 | clock)
    }
}

fn time_part(value: i8) -> u32 {
    u32::try_from(value).unwrap_or_default()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenMember {
    pub size: u64,
    /// SHA-256 of the uncompressed bytes.
    pub sha256: [u8; 32],
}

struct Header {
    name: String,
    method: Method,
    crc32: u32,
    compressed: u64,
    size: u64,
    mode: u32,
    local: u64,
}

/// Members of at least this size in bytes may need more than 32 bits for their compressed size.
const NEAR: u64 = 0xfff0_0000;

pub struct ZipWriter {
    file: BufWriter<File>,
    path: PathBuf,
    time: DosTime,
    at: u64,
    headers: Vec<Header>,
}

impl ZipWriter {
    /// A writer into the empty `file`, which messages call `path`; all members get `time`.
    pub fn new(file: File, path: &Path, time: DosTime) -> Self {
        let file = BufWriter::with_capacity(256 << 10, file);
        Self { file, path: path.to_path_buf(), time, at: 0, headers: Vec::new() }
    }

    /// Copies a member of another archive, with its bytes `stored` there, and gives it `mode`.
    pub fn copy(&mut self, member: &ZipMember, mode: u32, stored: &Content) -> Result<()> {
        let ZipMember { method, crc32, size, .. } = *member;
        let header = Header {
            method,
            crc32,
            compressed: stored.len(),
            size,
            ..self.header(&member.name, mode)
        };
        self.put(&local_header(&header, self.time, false)?)?;
        stored.try_each_window(|window| self.put(window))?;
        self.headers.push(header);
        Ok(())
    }

    /// Writes a member with the bytes of `content`, uncompressed.
    pub fn store(&mut self, name: &str, mode: u32, content: &Content) -> Result<WrittenMember> {
        self.member(name, mode, content, Method::Stored)
    }

    /// Writes a member with the bytes of `content`, compressed by the threads of the current rayon pool.
    pub fn deflate(&mut self, name: &str, mode: u32, content: &Content) -> Result<WrittenMember> {
        // An empty member is not compressed.
        let method = if content.is_empty() { Method::Stored } else { Method::Deflated };
        self.member(name, mode, content, method)
    }

    /// Writes the central headers and returns the file.
    pub fn finish(mut self) -> Result<File> {
        let (start, headers) = (self.at, std::mem::take(&mut self.headers));
        headers.iter().try_for_each(|it| self.put(&central_header(it, self.time)?))?;
        let (size, count) = (self.at - start, headers.len() as u64);
        self.put(&end_records(start, size, count))?;
        self.file.into_inner().map_err(|e| Error::io(&self.path, "write", e.into_error()))
    }

    fn header(&self, name: &str, mode: u32) -> Header {
        let (name, local) = (name.to_owned(), self.at);
        Header { name, method: Method::Stored, crc32: 0, compressed: 0, size: 0, mode, local }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| self.write_fault(e))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Writes a member, and corrects its header when its bytes are written.
    fn member(
        &mut self,
        name: &str,
        mode: u32,
        content: &Content,
        method: Method,
    ) -> Result<WrittenMember> {
        let size = content.len();
        let mut header = Header { method, size, ..self.header(name, mode) };
        // Compression may enlarge bytes, so a member near the limit gets room for 64 bits.
        let is_wide = size >= NEAR;
        self.put(&local_header(&header, self.time, is_wide)?)?;
        let start = self.at;
        let (crc, sha256) = self.content(content, method)?;
        header.compressed = self.at - start;
        header.crc32 = crc.sum();
        let bytes = local_header(&header, self.time, is_wide)?;
        self.file.seek(SeekFrom::Start(header.local)).map_err(|e| self.write_fault(e))?;
        self.file.write_all(&bytes).map_err(|e| self.write_fault(e))?;
        self.file.seek(SeekFrom::Start(self.at)).map_err(|e| self.write_fault(e))?;
        self.headers.push(header);
        Ok(WrittenMember { size, sha256: sha256.finalize().into() })
    }

    /// Writes the bytes of a member, and returns their checksums.
    fn content(&mut self, content: &Content, method: Method) -> Result<(Crc, Sha256)> {
        let (mut crc, mut sha256) = (Crc::new(), Sha256::new());
        let mut reader = content.reader();
        // Stored bytes need no thread, and many members may be written at the same time.
        let count = match method {
            Method::Stored => 1,
            Method::Deflated => rayon::current_num_threads().max(1),
        };
        let mut left = content.len();
        let mut before: Vec<u8> = Vec::new();
        while left > 0 {
            let mut chunks = Vec::new();
            while left > 0 && chunks.len() < count {
                let len = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
                let mut chunk = vec![0; len];
                if reader.read_window(&mut chunk)? != len {
                    return Err(Error::bug("content is shorter than its length"));
                }
                left -= len as u64;
                crc.update(&chunk);
                sha256.update(&chunk);
                chunks.push(chunk);
            }
            match method {
                Method::Stored => chunks.iter().try_for_each(|chunk| self.put(chunk))?,
                Method::Deflated => {
                    let compressed = compress(&before, &chunks, left == 0)?;
                    compressed.iter().try_for_each(|bytes| self.put(bytes))?;
                    before = chunks.pop().unwrap_or_default();
                }
            }
        }
        Ok((crc, sha256))
    }

    fn write_fault(&self, error: std::io::Error) -> Error {
        Error::io(&self.path, "write", error)
    }
}

/// The 32-bit header field for `value`; all ones if it does not fit.
fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn length(name: &str) -> Result<u16> {
    u16::try_from(name.len()).map_err(|_| {
        let message = format!("a member's name has {} bytes, and 65535 are the most", name.len());
        Error::new(Kind::Limit, message).structure(name.chars().take(80).collect::<String>())
    })
}

/// A local header, with both sizes in 64 bits if `is_wide`, or where 32 bits are too few.
fn local_header(header: &Header, time: DosTime, is_wide: bool) -> Result<Vec<u8>> {
    let (mut sizes, mut extra) = ([header.compressed, header.size].map(narrow), Vec::new());
    if is_wide || sizes.contains(&u32::MAX) {
        (sizes, extra) = ([u32::MAX; 2], extra_64(&[header.size, header.compressed])?);
    }
    let fields = shared_fields(header, time, sizes, &extra)?;
    Ok([&LOCAL.to_le_bytes()[..], &fields, header.name.as_bytes(), &extra].concat())
}

fn central_header(header: &Header, time: DosTime) -> Result<Vec<u8>> {
    let numbers = [header.size, header.compressed, header.local];
    let wide = numbers.into_iter().filter(|number| narrow(*number) == u32::MAX);
    let extra = extra_64(&wide.collect::<Vec<u64>>())?;
    let sizes = [header.compressed, header.size].map(narrow);
    let mut bytes = CENTRAL.to_le_bytes().to_vec();
    bytes.extend(MADE_BY.to_le_bytes());
    bytes.extend(shared_fields(header, time, sizes, &extra)?);
    // No comment, disk 0, no text attributes.
    bytes.extend([0; 6]);
    bytes.extend(((REGULAR | header.mode & 0o7777) << 16).to_le_bytes());
    bytes.extend(narrow(header.local).to_le_bytes());
    bytes.extend(header.name.as_bytes());
    bytes.extend(extra);
    Ok(bytes)
}

/// The fields that both headers of a member have, from the version to the length of the `extra` fields.
fn shared_fields(
    header: &Header,
    time: DosTime,
    [compressed, size]: [u32; 2],
    extra: &[u8],
) -> Result<Vec<u8>> {
    let version = if extra.is_empty() { 20 } else { 45 };
    let flags = if header.name.is_ascii() { 0 } else { FLAG_UTF8 };
    let mut bytes = [version, flags, header.method as u16].map(u16::to_le_bytes).concat();
    bytes.extend([time.0, header.crc32, compressed, size].into_iter().flat_map(u32::to_le_bytes));
    bytes.extend(length(&header.name)?.to_le_bytes());
    bytes.extend(extra_length(extra.len())?.to_le_bytes());
    Ok(bytes)
}

/// The extra field with ZIP64 numbers; empty without numbers.
fn extra_64(numbers: &[u64]) -> Result<Vec<u8>> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let mut bytes = EXTRA_ZIP64.to_le_bytes().to_vec();
    bytes.extend(extra_length(8 * numbers.len())?.to_le_bytes());
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    Ok(bytes)
}

fn extra_length(len: usize) -> Result<u16> {
    u16::try_from(len).map_err(|_| Error::bug("long extra fields"))
}

/// The records after `count` central headers, which have `size` bytes and begin at `start`.
fn end_records(start: u64, size: u64, count: u64) -> Vec<u8> {
    let narrow_count = u16::try_from(count).unwrap_or(u16::MAX);
    let mut bytes = Vec::new();
    if narrow_count == u16::MAX || narrow(size) == u32::MAX || narrow(start) == u32::MAX {
        bytes.extend(END_64.to_le_bytes());
        bytes.extend((END_64_SIZE as u64 - 12).to_le_bytes());
        bytes.extend(MADE_BY.to_le_bytes());
        bytes.extend(45_u16.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend([count, count, size, start].into_iter().flat_map(u64::to_le_bytes));
        bytes.extend(LOCATOR_64.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend((start + size).to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
    }
    bytes.extend(END.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend([narrow_count; 2].into_iter().flat_map(u16::to_le_bytes));
    bytes.extend([size, start].into_iter().flat_map(|number| narrow(number).to_le_bytes()));
    bytes.extend([0; 2]);
    bytes
}
