//! The decoders that a process keeps between loads, each with the frames that it read ahead.

use std::borrow::Cow;
use std::sync::Mutex;

use rockpack_kpack::archive::Span;
use rockpack_kpack::{Code, ReadAt};
use zstd_safe::DCtx;

use crate::file::{Identity, OpenFile};
use crate::report;

/// Bytes per read-ahead for loads of neighbouring frames. A read and the check after it take as long as copying some
/// ten KiB, and small code objects have frames of a few hundred bytes.
const WINDOW: u64 = 32 << 10;

/// The farthest end of a neighbouring frame, in bytes after the previous frame: several fit into a window.
const NEAR: u64 = WINDOW / 4;

/// A decoder of code objects.
pub struct Decoder {
    /// The context of zstd.
    pub context: DCtx<'static>,
    /// The source of frames.
    pub window: Window,
}

/// The idle decoders. Most programs load from one thread; two idle decoders take less than 1 MiB. The locks are
/// only tried: in a child forked while one was held, it stays locked.
static IDLE: [Mutex<Option<Decoder>>; 2] = [const { Mutex::new(None) }; 2];

impl Decoder {
    /// Takes an idle decoder, or makes one.
    pub fn take() -> Result<Self, Code> {
        let idle = IDLE.iter().find_map(|place| place.try_lock().ok()?.take());
        let new = || Some(Self { context: DCtx::try_create()?, window: Window::default() });
        idle.or_else(new).ok_or_else(|| report::refused("a decoder of code objects"))
    }

    /// Keeps the decoder for a later load.
    pub fn set_aside(self) {
        for place in &IDLE {
            if let Ok(mut place) = place.try_lock()
                && place.is_none()
            {
                *place = Some(self);
                return;
            }
        }
    }
}

/// Bytes of one file that were read together.
#[derive(Default)]
pub struct Window {
    /// The file, and the end of the frame that was asked for last.
    last: Option<(Identity, u64)>,
    /// The offset of the bytes.
    offset: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// Reads a frame, and the bytes after it if it is a neighbour of the previous one. They stay valid if the file
    /// changes later, because each read is checked to be of the opened file.
    pub fn frame(&mut self, file: &OpenFile, frame: Span) -> Result<Cow<'_, [u8]>, Code> {
        let end = frame.offset.saturating_add(frame.size);
        let last = self.last.replace((file.identity, end));
        let last = last.filter(|(identity, _)| *identity == file.identity);
        if last.is_none() {
            self.bytes = Vec::new();
        }
        if self.held(frame).is_none() {
            let step = last.and_then(|(_, last)| end.checked_sub(last)).unwrap_or_default();
            let size = WINDOW.min(file.len().saturating_sub(frame.offset));
            let is_near = (1..=NEAR).contains(&step);
            let ahead = is_near.then(|| read(file, Span { offset: frame.offset, size }));
            // If the read-ahead failed, the frame itself may be readable.
            let Some(Ok(bytes)) = ahead else { return read(file, frame).map(Cow::Owned) };
            (self.offset, self.bytes) = (frame.offset, bytes);
        }
        Ok(Cow::Borrowed(self.held(frame).unwrap_or_default()))
    }

    fn held(&self, frame: Span) -> Option<&[u8]> {
        let start = usize::try_from(frame.offset.checked_sub(self.offset)?).ok()?;
        let end = start.checked_add(usize::try_from(frame.size).ok()?)?;
        self.bytes.get(start..end)
    }
}

/// Reads bytes of a file that has not changed since it was opened.
fn read(file: &OpenFile, span: Span) -> Result<Vec<u8>, Code> {
    let mut bytes = Vec::new();
    let len = usize::try_from(span.size).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(len).map_err(|_| report::refused("compressed code objects"))?;
    bytes.resize(len, 0);
    file.read_at(span.offset, &mut bytes)?;
    file.unchanged()?;
    Ok(bytes)
}
