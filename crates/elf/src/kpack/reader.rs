//! A strict reader of kernel archives.
//!
//! Opening an archive checks its whole structure: header, gaps, position and announced size of every stored
//! code object, and that every row names one. The content of a frame is checked when it is read.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::sync::Arc;

use zstd::stream::read::Decoder;
use zstd::zstd_safe;

use rockpack_kpack::archive::{
    BLOB_LIMIT, BLOB_START, FRAME_LIMIT, FrameFault, Frames, HEADER_LEN, HeaderFault, Scheme, Span,
    TOC_LIMIT, VERSION, field, parse_header,
};

use super::{Toc, TocRow};
use crate::message_pack::{MapFields, decode};
use rockpack_core::content::{Content, ContentReader, StreamSource};
use rockpack_core::error::{Error, Kind, Place, Result};

/// Longest zstd frame header in bytes (RFC 8878, 3.1.1.1, with the magic number).
const FRAME_HEADER_LIMIT: u64 = 18;

const BODY_START: u64 = HEADER_LEN as u64;

#[derive(Debug)]
pub struct KpackReader {
    content: Content,
    toc: Toc,
    /// The stored code objects by ordinal, as ranges of the file.
    frames: Vec<Range<u64>>,
}

impl KpackReader {
    pub fn open(content: Content) -> Result<Self> {
        let _open = content.pin()?;
        let toc_offset = read_header(&content)?;
        let table = content.slice(toc_offset..content.len())?;
        let alone = table.budget().table(table.len(), "kernel archive TOC");
        let _alone = alone.map_err(|error| error.at(&table.place(0)))?;
        let value = decode(&table, TOC_LIMIT, "kernel archive TOC")?;
        let fields = MapFields::of(&value, "kernel archive TOC", &table.place(0))?;
        let mut toc = read_toc(&fields)?;
        let body = ArchiveBody { content: &content, end: toc_offset };
        let frames = match toc.scheme {
            Scheme::ZstdPerKernel => body.framed(&fields)?,
            Scheme::None => body.plain(&fields)?,
        };
        let sizes = frames.iter().map(|frame| match toc.scheme {
            Scheme::None => Ok(frame.end - frame.start),
            Scheme::ZstdPerKernel => content_size(&content.slice(frame.clone())?),
        });
        toc.rows = read_rows(&fields, &table, &sizes.collect::<Result<Vec<_>>>()?)?;
        Ok(Self { content, toc, frames })
    }

    pub fn toc(&self) -> &Toc {
        &self.toc
    }

    pub fn len(&self) -> usize {
        self.frames.len()
    }

    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The stored form of the code object `ordinal`: a zstd frame, or its own bytes.
    pub fn frame(&self, ordinal: u32) -> Result<Content> {
        let slot = usize::try_from(ordinal).ok();
        let range = slot.and_then(|slot| self.frames.get(slot)).ok_or_else(|| {
            Error::new(Kind::Usage, format!("no code object has ordinal {ordinal}"))
        })?;
        self.content.slice(range.clone())
    }

    /// The code object `ordinal`. Reading it to its end checks that the frame holds exactly as many bytes as
    /// announced, nothing else, and a correct checksum if it has one.
    pub fn code_object(&self, ordinal: u32) -> Result<Content> {
        let stored = self.frame(ordinal)?;
        if self.toc.scheme == Scheme::None {
            return Ok(stored);
        }
        decoded(&stored)
    }
}

pub fn decoded(frame: &Content) -> Result<Content> {
    let len = content_size(frame)?;
    Ok(frame.decoded(Arc::new(FrameStream { stored: frame.clone(), len })))
}

/// Checks the header and returns the offset of the TOC.
fn read_header(content: &Content) -> Result<u64> {
    let bytes = content
        .read_array::<HEADER_LEN>(0)
        .map_err(|error| error.structure("kernel archive header"))?;
    let toc_offset = match parse_header(&bytes) {
        Ok(toc_offset) => toc_offset,
        Err(version @ HeaderFault::Version(_)) => {
            let error = Error::unsupported(version.to_string());
            return Err(error.structure("kernel archive header").at(&content.place(4)));
        }
        Err(other) => return Err(header_fault(content, other.to_string(), 0)),
    };
    if toc_offset < BODY_START || toc_offset >= content.len() {
        let len = content.len();
        let message = format!("puts the TOC at {toc_offset:#x}, in a file of {len:#x} bytes");
        return Err(header_fault(content, message, 8));
    }
    if toc_offset > BLOB_START + BLOB_LIMIT {
        let message = format!("{toc_offset} bytes before the TOC, more than {BLOB_LIMIT}");
        return Err(Error::new(Kind::Limit, message).at(&content.place(8)));
    }
    Ok(toc_offset)
}

fn header_fault(content: &Content, message: String, offset: u64) -> Error {
    let error = Error::malformed(message).structure("kernel archive header");
    error.at(&content.place(offset))
}

/// The content size that a zstd frame announces.
fn content_size(frame: &Content) -> Result<u64> {
    let len = frame.len().min(FRAME_HEADER_LIMIT);
    let header = frame.read_vec(0..len, FRAME_HEADER_LIMIT, "zstd frame header")?;
    let message = match zstd_safe::get_frame_content_size(&header) {
        Ok(Some(size)) if size <= BLOB_LIMIT => return Ok(size),
        Ok(Some(_)) => "announces more than the 4 GiB that loaders accept",
        Ok(None) => "does not announce its content size",
        Err(_) => "is not a zstd frame",
    };
    Err(Error::malformed(message).structure("zstd frame").at(&frame.place(0)))
}

/// Reads the TOC without its rows.
fn read_toc(fields: &MapFields<'_>) -> Result<Toc> {
    let version = fields.number(field::FORMAT_VERSION)?;
    if version != u64::from(VERSION) {
        let message = format!("format_version {version} is not known, only {VERSION} is");
        return Err(Error::unsupported(message).at(fields.fault("").place()));
    }
    Ok(Toc {
        group_name: fields.text(field::GROUP_NAME)?.to_owned(),
        gfx_arch_family: fields.text(field::GFX_ARCH_FAMILY)?.to_owned(),
        gfx_arches: fields.texts(field::GFX_ARCHES)?,
        scheme: read_scheme(fields)?,
        rows: BTreeMap::new(),
    })
}

fn read_scheme(fields: &MapFields<'_>) -> Result<Scheme> {
    if fields.optional(field::COMPRESSION_SCHEME).is_none() {
        return Ok(Scheme::None);
    }
    let text = fields.text(field::COMPRESSION_SCHEME)?;
    let mut known = [Scheme::ZstdPerKernel, Scheme::None].into_iter();
    known.find(|scheme| scheme.as_str() == text).ok_or_else(|| {
        let message = format!("the compression scheme `{text}` is not known");
        Error::unsupported(message).at(fields.fault("").place())
    })
}

type RowsByKey = BTreeMap<String, BTreeMap<String, TocRow>>;

/// Reads the rows in `table`; `sizes` are the uncompressed sizes of the code objects.
fn read_rows(fields: &MapFields<'_>, table: &Content, sizes: &[u64]) -> Result<RowsByKey> {
    let place = &table.place(0);
    let toc = MapFields::of(fields.required(field::TOC)?, "kernel archive TOC, toc", place)?;
    let mut rows = RowsByKey::new();
    for (key, targets) in toc.iter() {
        let targets = MapFields::of(targets, &format!("kernel archive TOC, {key}"), place)?;
        let mut by_target = BTreeMap::new();
        for (target, row) in targets.iter() {
            table.budget().charge_code_object(key.len() + target.len())?;
            let row = MapFields::of(row, &format!("kernel archive TOC, {key}, {target}"), place)?;
            by_target.insert(target.to_owned(), read_row(&row, sizes)?);
        }
        rows.insert(key.to_owned(), by_target);
    }
    Ok(rows)
}

fn read_row(row: &MapFields<'_>, sizes: &[u64]) -> Result<TocRow> {
    let number = row.number(field::ORDINAL)?;
    let stored = usize::try_from(number).ok().and_then(|n| sizes.get(n));
    let (Ok(ordinal), Some(&stored)) = (u32::try_from(number), stored) else {
        let message = format!("names ordinal {number} of {} code objects", sizes.len());
        return Err(row.fault(message));
    };
    if row.optional(field::ORIGINAL_SIZE).is_some() && row.number(field::ORIGINAL_SIZE)? != stored {
        let size = row.number(field::ORIGINAL_SIZE)?;
        let message = format!("announces {size} bytes, code object {ordinal} has {stored}");
        return Err(row.fault(message));
    }
    Ok(TocRow {
        kind: row.text(field::TYPE)?.to_owned(),
        ordinal,
        original_size: stored,
        metadata: row.optional(field::METADATA).cloned(),
    })
}

/// The part of an archive between header and TOC.
struct ArchiveBody<'a> {
    content: &'a Content,
    end: u64,
}

impl ArchiveBody<'_> {
    fn fault(&self, message: String, offset: u64) -> Error {
        Error::malformed(message).structure("kernel archive blob").at(&self.content.place(offset))
    }

    /// The frames of a blob with scheme `zstd-per-kernel`; they must fill it.
    fn framed(&self, fields: &MapFields<'_>) -> Result<Vec<Range<u64>>> {
        let offset = fields.number(field::ZSTD_OFFSET)?;
        let blob = Span { offset, size: fields.number(field::ZSTD_SIZE)? };
        let mut sizes =
            Frames::open(self.content, blob).map_err(|fault| self.frame_fault(fault, blob))?;
        let range = self.range(blob.offset, blob.size)?;
        self.expect_zeros(BODY_START..range.start)?;
        self.expect_zeros(range.end..self.end)?;
        let mut frames = Vec::new();
        for frame in sizes.by_ref() {
            let Span { offset, size } = frame.map_err(|fault| self.frame_fault(fault, blob))?;
            frames.push(offset..offset + size);
        }
        let rest = sizes.rest();
        if rest.size > 0 {
            let message = format!("{} bytes follow the last frame", rest.size);
            return Err(self.fault(message, rest.offset));
        }
        Ok(frames)
    }

    fn frame_fault(&self, fault: FrameFault<Error>, blob: Span) -> Error {
        match fault {
            FrameFault::TooLarge(size) => {
                self.over_limit(format!("the blob has {size} bytes, more than {BLOB_LIMIT}"), 0)
            }
            FrameFault::TooMany(count) => {
                self.over_limit(format!("{count} frames, more than {FRAME_LIMIT}"), blob.offset)
            }
            FrameFault::OutOfRange(Span { offset, size }) => self.outside(offset, size),
            FrameFault::TruncatedSize(offset) => {
                self.fault("ends inside a frame size".into(), offset)
            }
            FrameFault::FrameTooLong { ordinal, size, offset } => {
                self.fault(format!("frame {ordinal} of {size} bytes leaves the blob"), offset)
            }
            FrameFault::OutOfMemory => {
                let refused = io::Error::from(io::ErrorKind::OutOfMemory);
                Error::library_failure("frames cannot be listed", refused)
            }
            FrameFault::Read(error) => error,
        }
    }

    fn over_limit(&self, message: String, offset: u64) -> Error {
        Error::new(Kind::Limit, message).at(&self.content.place(offset))
    }

    /// The code objects of an archive with scheme `none`.
    fn plain(&self, fields: &MapFields<'_>) -> Result<Vec<Range<u64>>> {
        let listed = fields.list(field::BLOBS)?;
        if listed.len() as u64 > u64::from(FRAME_LIMIT) {
            let message = format!("{} code objects, more than {FRAME_LIMIT}", listed.len());
            return Err(self.over_limit(message, 0));
        }
        let mut blobs = Vec::new();
        for value in listed {
            let blob = MapFields::of(value, "kernel archive TOC, blobs", &self.content.place(0))?;
            blobs.push(self.range(blob.number(field::OFFSET)?, blob.number(field::SIZE)?)?);
        }
        let mut in_order: Vec<&Range<u64>> = blobs.iter().collect();
        in_order.sort_by_key(|blob| (blob.start, blob.end));
        let mut position = BODY_START;
        for blob in in_order {
            if blob.start < position {
                return Err(self.fault("two code objects overlap".into(), blob.start));
            }
            self.expect_zeros(position..blob.start)?;
            position = blob.end;
        }
        self.expect_zeros(position..self.end)?;
        Ok(blobs)
    }

    fn range(&self, start: u64, size: u64) -> Result<Range<u64>> {
        match start.checked_add(size) {
            Some(end) if start >= BODY_START && end <= self.end => Ok(start..end),
            _ => Err(self.outside(start, size)),
        }
    }

    fn outside(&self, start: u64, size: u64) -> Error {
        let message = format!(
            "{size} bytes at {start:#x} are not between the header and the TOC ({:#x})",
            self.end
        );
        self.fault(message, 0)
    }

    /// Checks that `range` is zero: tools that rewrite the archive would lose content that no row names.
    fn expect_zeros(&self, range: Range<u64>) -> Result<()> {
        match self.content.first_other_byte(range, &[0])? {
            Some(offset) => Err(self.fault("padding is not zero".into(), offset)),
            None => Ok(()),
        }
    }
}

/// A zstd frame as a stream of decoded bytes.
#[derive(Debug)]
struct FrameStream {
    stored: Content,
    /// Size of the content, as announced by the frame.
    len: u64,
}

impl StreamSource for FrameStream {
    fn len(&self) -> u64 {
        self.len
    }

    fn open(&self) -> Result<Box<dyn Read + Send>> {
        let input = BufReader::with_capacity(zstd_safe::DCtx::in_size(), self.stored.reader());
        let decoder = Decoder::with_buffer(input)
            .map_err(|cause| Error::library_failure("cannot set up a zstd decoder", cause))?;
        Ok(Box::new(FrameReader { decoder: decoder.single_frame(), left: self.len }))
    }

    fn place(&self) -> Place {
        self.stored.place(0)
    }
}

/// Reads the content of a frame, and checks at the last byte that nothing follows.
struct FrameReader {
    decoder: Decoder<'static, BufReader<ContentReader>>,
    left: u64,
}

impl Read for FrameReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.decoder.read(buffer)?;
        let before = self.left;
        self.left = before.checked_sub(len as u64).ok_or_else(excess_content)?;
        if len > 0 && self.left == 0 {
            // The decoder checks the checksum after the last block only when more is requested.
            if self.decoder.read(&mut [0])? != 0 {
                return Err(excess_content().into());
            }
            if !self.decoder.get_mut().fill_buf()?.is_empty() {
                return Err(Error::malformed("bytes follow the zstd frame").into());
            }
        }
        Ok(len)
    }
}

fn excess_content() -> Error {
    Error::malformed("a zstd frame holds more than it announces")
}
