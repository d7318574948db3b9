//! Texts: of the last error in a thread, of debug lines, of lines for users.
//!
//! They take no memory but a fixed buffer for each thread, so that "out of memory" has a text, too.

use std::cell::RefCell;
use std::ffi::c_char;
use std::fmt::{self, Write};

use rockpack_kpack::Code;
use rustix::io::Errno;

use crate::memory::without_signals;

/// Longest text in bytes, with its NUL. What is longer is cut.
pub const TEXT_LIMIT: usize = 2048;

/// What stands for the part of a text that was cut.
const CUT: &str = "…";

/// A text of limited length that ends with a NUL.
#[derive(Clone)]
pub struct Text {
    bytes: [u8; TEXT_LIMIT],
    len: usize,
    /// Whether something did not fit. Nothing is appended behind it.
    is_cut: bool,
}

impl Text {
    /// An empty text.
    pub const fn new() -> Self {
        Self { bytes: [0; TEXT_LIMIT], len: 0, is_cut: false }
    }

    /// The bytes before the NUL.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Appends to it; what is too long is cut.
    pub fn append(&mut self, text: fmt::Arguments<'_>) {
        let _ = self.write_fmt(text);
    }

    /// Appends an end that is never cut. What stands before it makes room, which `…` tells.
    pub fn end(&mut self, end: &str) {
        let room = (TEXT_LIMIT - 1).saturating_sub(end.len());
        if self.is_cut || self.len > room {
            let mut cut = room.saturating_sub(CUT.len()).min(self.len);
            while self.bytes.get(cut).is_some_and(|byte| byte & 0xc0 == 0x80) {
                cut = cut.saturating_sub(1);
            }
            self.bytes.get_mut(cut..).unwrap_or_default().fill(0);
            (self.len, self.is_cut) = (cut, false);
            self.append(format_args!("{CUT}"));
        }
        self.append(format_args!("{end}"));
    }

    fn set(&mut self, text: fmt::Arguments<'_>) {
        *self = Self::new();
        // The only failure is that the rest is cut.
        let _ = self.write_fmt(text);
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.is_cut {
            return Err(fmt::Error);
        }
        let room = (TEXT_LIMIT - 1).saturating_sub(self.len);
        let mut cut = room.min(text.len());
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        let end = self.len + cut;
        if let Some(bytes) = self.bytes.get_mut(self.len..end) {
            bytes.copy_from_slice(text.as_bytes().get(..cut).unwrap_or_default());
            self.len = end;
        }
        self.is_cut = cut < text.len();
        if self.is_cut { Err(fmt::Error) } else { Ok(()) }
    }
}

// Constant, and nothing to drop: no thread allocates for them or has to clean up.
thread_local! {
    /// The text of the last fault, which the call that met it may still get over.
    static DRAFT: RefCell<Text> = const { RefCell::new(Text::new()) };
    /// The text of the last call that failed.
    static LAST: RefCell<Text> = const { RefCell::new(Text::new()) };
}

/// Drafts the text of a fault; its code. A call that ends with the fault publishes it.
pub fn fail(code: Code, why: fmt::Arguments<'_>) -> Code {
    fail_with_hint(code, why, "")
}

/// Drafts the text of a fault whose end, a hint, is never cut; its code.
pub fn fail_with_hint(code: Code, why: fmt::Arguments<'_>, hint: &str) -> Code {
    // A text that is being read is left alone.
    let _ = DRAFT.try_with(|draft| {
        draft.try_borrow_mut().map(|mut draft| {
            draft.set(why);
            draft.end(hint);
        })
    });
    code
}

/// Drafts that memory was refused for `what`.
pub fn refused(what: &str) -> Code {
    fail(Code::OutOfMemory, format_args!("out of memory: {what}"))
}

/// The text of the last fault in this thread, whether or not a call ended with it.
pub fn draft() -> Text {
    let copy = DRAFT.try_with(|draft| draft.try_borrow().ok().map(|draft| Text::clone(&draft)));
    copy.ok().flatten().unwrap_or(Text::new())
}

/// Makes the text of the last fault that of the last call that failed.
pub fn publish() {
    let _ = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| *last = draft()));
}

/// The text of the last call that failed in this thread, which ends with a NUL. It stays at its
/// address as long as the thread lives.
pub fn last() -> *const c_char {
    let of_last = LAST.try_with(|last| Some(last.try_borrow().ok()?.bytes.as_ptr().cast()));
    of_last.ok().flatten().unwrap_or(c"".as_ptr())
}

/// Writes one line to the standard error, in one call, without a lock and without memory. Its `end`
/// is never cut, nor is the line break.
pub fn line(text: fmt::Arguments<'_>, end: LineEnd) {
    let mut line = Text::new();
    line.append(text);
    line.end(end.0);
    // A standard error that is closed or full is nobody's fault here.
    without_signals(|| _ = rustix::io::write(std::io::stderr(), line.as_bytes()));
}

/// The end of a line, with its line break.
pub struct LineEnd(&'static str);

impl LineEnd {
    /// The line break alone.
    pub const PLAIN: Self = Self("\n");
    /// A hint how to be rid of such lines.
    pub const SILENCED: Self = Self(" (ROCM_KPACK_QUIET=1 silences this)\n");
}

/// Bytes as they are told: what is no UTF-8, and what a terminal would obey, is escaped.
pub struct Shown<'a>(pub &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                if c.is_control() { write!(f, "{}", c.escape_default())? } else { f.write_char(c)? }
            }
            write!(f, "{}", chunk.invalid().escape_ascii())?;
        }
        Ok(())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(self.as_bytes()).unwrap_or_default())
    }
}

/// The cause of a failed system call. The words of the standard library would take memory.
pub struct Cause(pub Errno);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.0 {
            Errno::NOENT => "there is no such file",
            Errno::ACCESS | Errno::PERM => "permission denied",
            Errno::NOTDIR => "a part of its path is no folder",
            Errno::LOOP => "too many links",
            Errno::MFILE | Errno::NFILE => "too many open files",
            Errno::IO => "input/output error",
            Errno::NOMEM => "out of memory",
            other => return write!(f, "error {}", other.raw_os_error()),
        };
        f.write_str(words)
    }
}
