//! Decompression of single code objects. Any number of threads may decompress at once.

use std::sync::Mutex;

use rockpack_kpack::Code;
use rockpack_kpack::archive::BLOB_LIMIT;
use zstd_safe::DCtx;

use crate::file::OpenFile;
use crate::memory::Handed;
use crate::report;

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

fn refused() -> Code {
    report::refused("a decoder of code objects")
}

/// A decoder with room for a frame of `size` bytes.
fn decoder(size: u64) -> Result<Decoder, Code> {
    let idle = IDLE.try_lock().ok().and_then(|mut idle| idle.pop());
    let mut decoder = match idle {
        Some(decoder) => decoder,
        None => {
            let frame = Handed::new(size).map_err(|_| refused())?;
            Decoder { context: DCtx::try_create().ok_or_else(refused)?, frame }
        }
    };
    if !decoder.frame.restart(size) {
        decoder.frame = Handed::new(size).map_err(|_| refused())?;
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

/// Decompresses a code object of exactly `content` bytes from the `size` bytes at `offset`. `what` names it
/// in texts.
pub fn decompress(
    file: &OpenFile,
    (offset, size): (u64, u64),
    content: u64,
    what: &dyn std::fmt::Display,
) -> Result<Handed, Code> {
    let corrupt = |why: std::fmt::Arguments<'_>| {
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
