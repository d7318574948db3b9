//! One open archive: its file and its table, and the decompression of single code objects.

use std::ffi::CStr;
use std::fmt;

use rockpack_kpack::archive::{
    Archive, BLOB_LIMIT, FrameFault, OpenFault, Row, Scheme, Span, TOC_LIMIT,
};
use rockpack_kpack::message_pack::Fault;
use rockpack_kpack::{Code, ReadAt};

use crate::decoder::Decoder;
use crate::file::{self, OpenFile, State};
use crate::memory::CallerMemory;
use crate::report::{self, Escaped};

/// An archive that stays open. Threads may share it.
pub struct OpenArchive {
    /// The file.
    pub file: OpenFile,
    /// The table of the file.
    pub table: Archive,
}

/// The names of a row, for messages.
pub struct RowName<'a> {
    /// The key of its binary and wrapper.
    pub key: &'a [u8],
    /// The target of the row.
    pub target: &'a [u8],
}

impl fmt::Display for RowName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", Escaped(self.key), Escaped(self.target))
    }
}

/// The message of a fault of a table.
struct TableFault<'a>(&'a OpenFault<file::Fault>);

impl fmt::Display for TableFault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            OpenFault::Header(fault) => write!(f, "{fault}"),
            OpenFault::TocOutside(at) => write!(f, "the table at offset {at} is past the end"),
            OpenFault::TocTooLarge => write!(f, "the table has more than {TOC_LIMIT} bytes"),
            OpenFault::Toc(Fault::Truncated) => f.write_str("the table ends too early"),
            OpenFault::Toc(Fault::Invalid(byte)) => {
                write!(f, "the byte {byte:#04x} in the table does not begin a value")
            }
            OpenFault::Toc(Fault::OutOfMemory) => f.write_str("out of memory for the table"),
            OpenFault::Toc(Fault::Read(_)) => f.write_str("the table cannot be read"),
            OpenFault::NotAMap => f.write_str("the table is not a MessagePack map"),
            OpenFault::NotANumber => {
                f.write_str("a number in the table is missing, negative or too large")
            }
            OpenFault::Frames(fault) => write_frames(fault, f),
        }
    }
}

fn write_frames(fault: &FrameFault<file::Fault>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fault {
        FrameFault::TooLarge(size) => write!(f, "its frames claim {size} bytes, above 4 GiB"),
        FrameFault::TooMany(count) => write!(f, "it claims {count} frames, above 1,048,576"),
        FrameFault::OutOfRange(Span { offset, size }) => {
            write!(f, "its frames, {size} bytes at offset {offset}, are not within the file")
        }
        FrameFault::TruncatedSize(at) => write!(f, "its frames end at offset {at}, within a size"),
        FrameFault::FrameTooLong { ordinal, size, offset } => {
            write!(f, "frame {ordinal}, {size} bytes by offset {offset}, leaves the frames")
        }
        FrameFault::OutOfMemory => f.write_str("out of memory for the places of its frames"),
        FrameFault::Read(_) => f.write_str("its frames cannot be read"),
    }
}

/// Most attempts to open a file that changes while its table is read.
const OPENED_AGAIN: usize = 16;

impl OpenArchive {
    /// Opens an archive and reads its table. Tries again if the file changes meanwhile.
    pub fn open(path: &CStr) -> Result<Self, file::Fault> {
        for _ in 0..OPENED_AGAIN {
            let file = OpenFile::open(path)?;
            let opened = Archive::open(&file);
            if file.state() == State::Changed {
                continue;
            }
            let table = opened.map_err(|fault| match fault {
                // The read has drafted the message.
                OpenFault::Toc(Fault::Read(read)) | OpenFault::Frames(FrameFault::Read(read)) => {
                    read
                }
                _ => {
                    let why = format_args!(
                        "{}: not a kernel archive: {}",
                        file.path(),
                        TableFault(&fault)
                    );
                    report::fail(fault.code(), why).into()
                }
            })?;
            return Ok(Self { file, table });
        }
        let why = format_args!("{}: keeps changing", Escaped(path.to_bytes()));
        let code = report::fail_with_hint(Code::Io, why, "; start again");
        Err(file::Fault { code, is_system_fault: true })
    }

    /// The stored span of a row's code object, and its uncompressed size in bytes, which is checked to be possible.
    pub fn place_of(&self, row: Row, name: &RowName<'_>) -> Result<(Span, u64), Code> {
        let (path, ordinal) = (self.file.path(), row.ordinal);
        let span = self.table.stored(ordinal).map_err(|code| match code {
            Code::KernelNotFound => {
                let count = self.table.count();
                let why = format_args!("{path}: {name}: no code object {ordinal}: it has {count}");
                report::fail(code, why)
            }
            _ => {
                let why = "is not within the file, or exceeds 4 GiB";
                report::fail(code, format_args!("{path}: {name}: code object {ordinal} {why}"))
            }
        })?;
        if self.table.scheme() == Scheme::None {
            return Ok((span, span.size));
        }
        let size = row.original_size.ok_or_else(|| {
            let why = format_args!("{path}: {name}: its row has no original_size");
            report::fail(Code::DecompressionFailed, why)
        })?;
        if !can_become(span.size, size) {
            let why = format_args!("cannot become the {size} bytes that its row has");
            return Err(self.corrupt(span, name, why));
        }
        Ok((span, size))
    }

    /// Loads the code object of a row.
    pub fn load(&self, key: &[u8], target: &[u8]) -> Result<CallerMemory, Code> {
        let name = RowName { key, target };
        let row = self.table.row(key, target).ok_or_else(|| {
            let path = self.file.path();
            report::fail(Code::KernelNotFound, format_args!("{path}: has no row of {name}"))
        })?;
        let (span, size) = self.place_of(row, &name)?;
        let mut handed = CallerMemory::new(size).map_err(|_| report::refused("a code object"))?;
        self.load_into(span, &name, handed.bytes_mut())?;
        Ok(handed)
    }

    /// Loads the code object at this span into `room`, which has its uncompressed size. Threads may load in parallel.
    pub fn load_into(&self, span: Span, name: &RowName<'_>, room: &mut [u8]) -> Result<(), Code> {
        if self.table.scheme() == Scheme::None {
            self.file.read_at(span.offset, room)?;
            return self.file.unchanged();
        }
        let mut decoder = Decoder::take()?;
        let frame = decoder.window.frame(&self.file, span)?;
        let decoded = decoder.context.decompress(room, &frame);
        drop(frame);
        decoder.set_aside();
        let corrupt = |why| self.corrupt(span, name, why);
        let size = room.len();
        match decoded {
            Ok(len) if len == size => Ok(()),
            Ok(len) => Err(corrupt(format_args!("has {len} bytes, and its row says {size}"))),
            Err(fault) => Err(corrupt(format_args!("{}", zstd_safe::get_error_name(fault)))),
        }
    }

    /// Drafts the fault of a stored code object.
    fn corrupt(
        &self,
        Span { offset, size }: Span,
        name: &RowName<'_>,
        why: fmt::Arguments<'_>,
    ) -> Code {
        let path = self.file.path();
        let why = format_args!("{path}: {name}, {size} bytes at offset {offset}: {why}");
        report::fail_with_hint(Code::DecompressionFailed, why, "; install it again")
    }
}

/// The largest content of a zstd block in bytes, and its smallest size.
const BLOCK: u64 = 128 << 10;
const BLOCK_LEAST: u64 = 4;

/// Whether frames of `size` bytes can decompress to `content` bytes, so that a forged size reserves no memory. No code
/// object is larger than the limit of a blob.
fn can_become(size: u64, content: u64) -> bool {
    content <= BLOB_LIMIT.min((size / BLOCK_LEAST + 1).saturating_mul(BLOCK))
}
