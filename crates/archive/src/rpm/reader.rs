//! A streaming reader of `.rpm` files that checks everything the format promises.
//!
//! It compares the digests of header and payload, and all sizes. The visitor of the entries compares the
//! content of files with its stated digest. Refused, among others: source packages, names of files that are
//! not UTF-8, devices, ghosts, digests other than SHA-256. Files with the same inode in the header are hard
//! links to one file, and the payload must have content only for the last of them.

use std::collections::HashMap;
use std::io::BufReader;

use rpm::{Header, IndexTag, PackageMetadata};
use sha2::{Digest as _, Sha256};

use super::cpio::{CpioMember, CpioMembers};
use super::files::entries;
use super::front::{RpmFront, archive_size, check_payload};
use super::structure::{FILE_NAMES, NonUtf8Texts};
use super::{fault, header, mismatch};
use crate::payload::{PayloadEntryKind, ReadEntry, Visitor};
use rockpack_core::compression::{Decoder, Method};
use rockpack_core::content::{Content, DigestingReader};
use rockpack_core::error::{Error, Result};

/// Longest link text in bytes (Linux's PATH_MAX).
const LINK_MAX: u64 = 4096;

#[derive(Debug)]
pub struct RpmReader {
    /// All tags, through the `rpm` crate.
    pub metadata: PackageMetadata,
    payload: Content,
    method: Method,
    /// The entries in the header, in its order.
    pub entries: Vec<ReadEntry>,
    non_utf8: NonUtf8Texts,
}

impl RpmReader {
    /// Reads signature and header and compares their digests; the payload is not read yet.
    pub fn open(package: Content) -> Result<Self> {
        let RpmFront { metadata, header, non_utf8 } = RpmFront::read(&package)?;
        let place = package.place(header.start);
        if non_utf8.has(&FILE_NAMES) {
            let hint = "the names are ambiguous: build it with names in UTF-8";
            let error = Error::unsupported("has names of files, or of links, that are not UTF-8");
            return Err(error.structure("rpm header").at(&place).hint(hint));
        }
        let payload = package.slice(header.end..package.len())?;
        let method = method(&metadata.header, &payload)?;
        let entries = entries(&metadata.header).map_err(|e| e.at(&place))?;
        Ok(Self { metadata, payload, method, entries, non_utf8 })
    }

    /// Names of the fields with texts that are not UTF-8. U+FFFD replaces their invalid bytes.
    pub fn not_utf8(&self) -> impl Iterator<Item = &'static str> {
        self.non_utf8.field_names()
    }

    /// Visits the payload once, in order, and compares its digests and sizes.
    pub fn visit(&self, visitor: &mut Visitor<'_>) -> Result<()> {
        self.visit_payload(visitor).map_err(|e| e.at(&self.payload.place(0)))
    }

    fn visit_payload(&self, visitor: &mut Visitor<'_>) -> Result<()> {
        let source = DigestingReader::<_, Sha256>::new(self.payload.reader());
        let source = BufReader::with_capacity(1 << 18, source);
        let mut members = CpioMembers::new(Decoder::new(source, self.method)?);
        let names = self.entries.iter().enumerate();
        let by_path: HashMap<&str, usize> =
            names.map(|(index, read)| (&*read.entry.path, index)).collect();
        let is_link = |read: &ReadEntry| matches!(read.entry.kind, PayloadEntryKind::Special(_));
        let has_links = self.entries.iter().any(is_link);
        let mut seen = vec![false; self.entries.len()];
        while let Some(member) = members.next()? {
            let index = self.locate(&member, &by_path)?;
            let read = &self.entries[index];
            if std::mem::replace(&mut seen[index], true) {
                return Err(fault(&format!("payload has /{} twice", read.entry.path)));
            }
            check_member(&member, read, has_links)?;
            members.source.left = read.entry.stored_size();
            if let Some(target) = read.entry.target()
                && members.content(LINK_MAX)? != target.as_bytes()
            {
                return Err(mismatch(&format!("link /{} differs from header", read.entry.path)));
            }
            visitor(read, &mut members.source)?;
        }
        if let Some(index) = seen.iter().position(|seen| !seen) {
            let path = &self.entries[index].entry.path;
            return Err(fault(&format!("/{path} is in the header but not in the payload")));
        }
        let (decoder, size) = members.source.into_inner();
        let stated = archive_size(&self.metadata.signature)?;
        if stated.is_some_and(|stated| stated != size) {
            return Err(mismatch("the payload's size differs from the signature's"));
        }
        let source = decoder.finish()?.into_inner();
        check_payload(&self.metadata.header, &source.digest.finalize())
    }

    fn locate(&self, member: &CpioMember, by_path: &HashMap<&str, usize>) -> Result<usize> {
        match member {
            CpioMember::Newc { name, .. } => {
                let path = name.strip_prefix("./").unwrap_or(name);
                let index = by_path.get(path).copied();
                index.ok_or_else(|| fault(&format!("{name} is in the payload but not the header")))
            }
            CpioMember::Stripped { index } => usize::try_from(*index)
                .ok()
                .filter(|index| *index < self.entries.len())
                .ok_or_else(|| fault(&format!("payload file {index} is not in the header"))),
        }
    }
}

/// Compares a member with its entry. Files may have several names only if the package `has_links`.
fn check_member(member: &CpioMember, read: &ReadEntry, has_links: bool) -> Result<()> {
    let CpioMember::Newc { name, mode, mtime, size, links } = member else {
        return Ok(());
    };
    let entry = &read.entry;
    let same = *mode == header::mode(entry)
        && u64::from(*mtime) == read.mtime
        && *size == entry.stored_size()
        && (*links == 1 || has_links);
    if same { Ok(()) } else { Err(mismatch(&format!("{name} differs between header and payload"))) }
}

/// The compression of a payload. A header without the tag means gzip or no compression.
fn method(header: &Header<IndexTag>, payload: &Content) -> Result<Method> {
    let tag = IndexTag::RPMTAG_PAYLOADCOMPRESSOR;
    if !header.entry_is_present(tag) {
        let magic: [u8; 2] = payload.read_array(0)?;
        return Ok(if magic == [0x1f, 0x8b] { Method::Gzip } else { Method::Stored });
    }
    let name = header.get_entry_data_as_string(tag).map_err(|e| fault("invalid tag").cause(e))?;
    Method::of_name(name)
        .ok_or_else(|| Error::unsupported(format!("payload compressor `{name}` is not supported")))
}
