//! One open archive: its file and its table, and the decompression of single code objects.

use std::ffi::CStr;
use std::fmt;
use std::sync::Mutex;

use rockpack_kpack::Code;
use rockpack_kpack::archive::{
    Archive, BLOB_LIMIT, FrameFault, OpenFault, Row, Scheme, Span, TOC_LIMIT,
};
use rockpack_kpack::message_pack::Fault;
use zstd_safe::DCtx;

use crate::file::{self, OpenFile, State};
use crate::memory::Handed;
use crate::report::{self, Shown};

/// An archive that stays open. Threads may share it.
pub struct OpenArchive {
    /// The file.
    pub file: OpenFile,
    /// The table of the file.
    pub table: Archive,
}

/// The names of a row, for texts.
pub struct RowName<'a> {
    /// The key of its binary and wrapper.
    pub key: &'a [u8],
    /// The target of the row.
    pub target: &'a [u8],
}

impl fmt::Display for RowName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", Shown(self.key), Shown(self.target))
    }
}

/// The words for a fault of a table.
struct Why<'a>(&'a OpenFault<file::Fault>);

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            OpenFault::Header(fault) => write!(f, "{fault}"),
            OpenFault::TocOutside(at) => write!(f, "the table at offset {at} is behind the end"),
            OpenFault::TocTooLarge => write!(f, "the table has more than {TOC_LIMIT} bytes"),
            OpenFault::Toc(fault) => write_fault(fault, f),
            OpenFault::NoMap => f.write_str("the table is no MessagePack map"),
            OpenFault::NoNumber => {
                f.write_str("a number of the table is none, is negative or does not fit")
            }
            OpenFault::Frames(fault) => write_frames(fault, f),
        }
    }
}

fn write_fault(fault: &Fault<file::Fault>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fault {
        Fault::Truncated => f.write_str("the table ends too early"),
        Fault::Invalid(byte) => write!(f, "the byte {byte:#04x} in the table begins no value"),
        Fault::OutOfMemory => f.write_str("there is no memory for the table"),
        Fault::Read(_) => f.write_str("the table cannot be read"),
    }
}

fn write_frames(fault: &FrameFault<file::Fault>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fault {
        FrameFault::TooLarge(size) => write!(f, "its frames claim {size} bytes, above 4 GiB"),
        FrameFault::TooMany(count) => write!(f, "it claims {count} frames, above 1,048,576"),
        FrameFault::Outside(Span { offset, size }) => {
            write!(f, "its frames, {size} bytes at offset {offset}, are not within the file")
        }
        FrameFault::Cut(at) => write!(f, "its frames end at offset {at}, within a size"),
        FrameFault::Leaves { ordinal, size, offset } => {
            write!(f, "frame {ordinal}, {size} bytes by offset {offset}, leaves the frames")
        }
        FrameFault::OutOfMemory => f.write_str("there is no memory for the places of its frames"),
        FrameFault::Read(_) => f.write_str("its frames cannot be read"),
    }
}

/// The fault of a failed read, whose text the read has drafted already.
fn is_told(fault: &OpenFault<file::Fault>) -> Option<file::Fault> {
    match fault {
        OpenFault::Toc(Fault::Read(told)) | OpenFault::Frames(FrameFault::Read(told)) => {
            Some(*told)
        }
        _ => None,
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
            let table = opened.map_err(|fault| {
                is_told(&fault).unwrap_or_else(|| {
                    let why = format_args!("{}: no kernel archive: {}", file.path(), Why(&fault));
                    report::fail(fault.code(), why).into()
                })
            })?;
            return Ok(Self { file, table });
        }
        let why = format_args!("{}: is written to, again and again", Shown(path.to_bytes()));
        let code = report::fail_with_hint(Code::Io, why, "; start again");
        Err(file::Fault { code, is_of_machine: true })
    }

    fn row(&self, name: &RowName<'_>) -> Result<Row, Code> {
        self.table.row(name.key, name.target).ok_or_else(|| {
            let path = self.file.path();
            report::fail(Code::KernelNotFound, format_args!("{path}: has no row of {name}"))
        })
    }

    /// The place of a row's code object, and its uncompressed size in bytes.
    fn content(&self, row: Row, name: &RowName<'_>) -> Result<(Span, u64), Code> {
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
        let size = match self.table.scheme() {
            Scheme::None => span.size,
            Scheme::ZstdPerKernel => row.original_size.ok_or_else(|| {
                let why = format_args!("{path}: {name}: its row has no original_size");
                report::fail(Code::DecompressionFailed, why)
            })?,
        };
        Ok((span, size))
    }

    /// The size in bytes of the code object of a row.
    pub fn size(&self, key: &[u8], target: &[u8]) -> Result<u64, Code> {
        let name = RowName { key, target };
        self.size_of(self.row(&name)?, &name)
    }

    /// The size in bytes of the code object of a row that was already found.
    pub fn size_of(&self, row: Row, name: &RowName<'_>) -> Result<u64, Code> {
        self.content(row, name).map(|(_, size)| size)
    }

    /// Loads the code object of a row.
    pub fn load(&self, key: &[u8], target: &[u8]) -> Result<Handed, Code> {
        let name = RowName { key, target };
        self.load_of(self.row(&name)?, &name)
    }

    /// Loads the code object of a row that was already found.
    pub fn load_of(&self, row: Row, name: &RowName<'_>) -> Result<Handed, Code> {
        let (span, size) = self.content(row, name)?;
        match self.table.scheme() {
            Scheme::None => {
                let mut handed = Handed::new(size).map_err(|_| report::refused("a code object"))?;
                self.file.read(span.offset, &mut handed, size)?;
                self.file.unchanged().map(|()| handed)
            }
            Scheme::ZstdPerKernel => decompress(&self.file, span, size, name),
        }
    }
}

/// The buffers of a thread that decompresses.
struct Decoder {
    context: DCtx<'static>,
    /// The compressed frame.
    frame: Handed,
}

/// The idle decoders. Most programs load from one thread; two idle decoders take less than 1 MiB. The lock is
/// only tried: in a child forked while it was held, it stays locked.
static IDLE: Mutex<Vec<Decoder>> = Mutex::new(Vec::new());
const IDLE_LIMIT: usize = 2;

/// Most bytes for frames that an idle decoder keeps.
const FRAME_KEPT: usize = 256 << 10;

/// The largest content of a zstd block in bytes, and its smallest size.
const BLOCK: u64 = 128 << 10;
const BLOCK_LEAST: u64 = 4;

fn no_decoder() -> Code {
    report::refused("a decoder of code objects")
}

/// A decoder with room for a frame of `size` bytes.
fn decoder(size: u64) -> Result<Decoder, Code> {
    let idle = IDLE.try_lock().ok().and_then(|mut idle| idle.pop());
    let mut decoder = match idle {
        Some(decoder) => decoder,
        None => {
            let frame = Handed::new(size).map_err(|_| no_decoder())?;
            Decoder { context: DCtx::try_create().ok_or_else(no_decoder)?, frame }
        }
    };
    if !decoder.frame.restart(size) {
        decoder.frame = Handed::new(size).map_err(|_| no_decoder())?;
    }
    Ok(decoder)
}

fn set_aside(mut decoder: Decoder) {
    if decoder.frame.allocated() > FRAME_KEPT {
        let Ok(empty) = Handed::new(0) else { return };
        decoder.frame = empty;
    }
    if let Ok(mut idle) = IDLE.try_lock()
        && idle.len() < IDLE_LIMIT
        && idle.try_reserve(1).is_ok()
    {
        idle.push(decoder);
    }
}

/// Tells whether frames of `size` bytes can become `content` bytes, so that a false size reserves nothing. No
/// code object is larger than a whole blob may be.
fn can_become(size: u64, content: u64) -> bool {
    content <= BLOB_LIMIT.min((size / BLOCK_LEAST + 1).saturating_mul(BLOCK))
}

/// Decompresses a code object of exactly `content` bytes from its place. `what` names it in texts. Any number of
/// threads may decompress at once.
fn decompress(
    file: &OpenFile,
    Span { offset, size }: Span,
    content: u64,
    what: &dyn fmt::Display,
) -> Result<Handed, Code> {
    let corrupt = |why: fmt::Arguments<'_>| {
        let path = file.path();
        let at = format_args!("{path}: {what}, {size} bytes at offset {offset}");
        let why = format_args!("{at}: {why}");
        report::fail_with_hint(Code::DecompressionFailed, why, "; install it again")
    };
    if !can_become(size, content) {
        return Err(corrupt(format_args!("cannot become the {content} bytes that its row has")));
    }
    let mut code_object = Handed::new(content).map_err(|_| report::refused("a code object"))?;
    let mut decoder = decoder(size)?;
    let read = file.read(offset, &mut decoder.frame, size).map_err(Code::from);
    let result = read.and_then(|()| file.unchanged());
    let decoded = result.map(|()| {
        let Decoder { context, frame } = &mut decoder;
        context.decompress(&mut code_object, frame.bytes())
    });
    set_aside(decoder);
    match decoded? {
        Ok(len) if len as u64 == content => Ok(code_object),
        Ok(len) => Err(corrupt(format_args!("has {len} bytes, and its row says {content}"))),
        Err(fault) => Err(corrupt(format_args!("{}", zstd_safe::get_error_name(fault)))),
    }
}
