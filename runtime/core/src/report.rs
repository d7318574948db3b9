//! The message of the last error in a thread, debug lines, and lines for users.
//!
//! They need only a fixed buffer per thread, so that "out of memory" can be reported, too. In a privileged process they
//! have no variable parts, because its user may not be allowed to read its files.

use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use rockpack_kpack::Code;
use rockpack_kpack::target::TRIPLE_PREFIX;
use rustix::io::Errno;

use crate::memory::{is_privileged, without_signals};

/// Longest text in bytes, with its NUL. Longer texts are cut.
const TEXT_LIMIT: usize = 2048;

/// Replaces the cut part of a text.
const CUT: &str = "…";

/// A text of limited length that ends with a NUL.
#[derive(Clone)]
pub struct Text {
    bytes: [u8; TEXT_LIMIT],
    len: usize,
    /// Whether the text was cut. Later text is dropped.
    is_cut: bool,
}

impl Text {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; TEXT_LIMIT], len: 0, is_cut: false }
    }

    /// The bytes before the NUL.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Appends text, and cuts it if it is too long.
    pub fn append(&mut self, text: fmt::Arguments<'_>) {
        // The only failure is a text that is cut.
        let _ = self.write_fmt(text);
    }

    /// Appends an end that is never cut. Cuts the text before it if needed, and appends `…` there.
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

// Constant, and without a destructor: no thread allocates for them or has to clean up.
thread_local! {
    /// The text of the last fault, from which the call may still recover.
    static DRAFT: RefCell<Text> = const { RefCell::new(Text::new()) };
    /// The text of the last call that failed.
    static LAST: RefCell<Text> = const { RefCell::new(Text::new()) };
}

/// Whether a text may show bytes of files to a user who may not read them.
fn is_private(text: fmt::Arguments<'_>) -> bool {
    text.as_str().is_none() && is_privileged()
}

/// Drafts the text of a fault, and returns its code. A call that fails with it publishes the draft.
pub fn fail(code: Code, why: fmt::Arguments<'_>) -> Code {
    fail_with_hint(code, why, "")
}

/// Drafts the text of a fault that ends with a hint, which is never cut. Returns the code.
pub fn fail_with_hint(code: Code, why: fmt::Arguments<'_>, hint: &'static str) -> Code {
    // A draft that is being read stays unchanged.
    let _ = DRAFT.try_with(|draft| {
        draft.try_borrow_mut().map(|mut draft| {
            *draft = Text::new();
            if is_private(why) {
                let hidden = "the cause is hidden, because the process is privileged";
                draft.append(format_args!("{hidden}"));
            } else {
                draft.append(why);
            }
            draft.end(hint);
        })
    });
    code
}

/// Drafts the message that there is no memory for `what`.
pub fn refused(what: &str) -> Code {
    fail(Code::OutOfMemory, format_args!("out of memory: {what}"))
}

/// The text of the last fault in this thread, even if the call recovered from it.
pub fn draft() -> Text {
    let copy = DRAFT.try_with(|draft| draft.try_borrow().ok().map(|draft| Text::clone(&draft)));
    copy.ok().flatten().unwrap_or(Text::new())
}

/// Publishes the draft as the text of the last call that failed.
pub fn publish() {
    let _ = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| *last = draft()));
}

/// The text of the last call that failed in this thread, with a NUL at its end. Its address does not change
/// while the thread lives.
pub fn last() -> *const c_char {
    let of_last = LAST.try_with(|last| Some(last.try_borrow().ok()?.bytes.as_ptr().cast()));
    of_last.ok().flatten().unwrap_or(c"".as_ptr())
}

/// Writes one line to the standard error, in one call, without locks or allocation. The `end`, which has the
/// line break, is never cut. Private lines are not written.
pub fn line(text: fmt::Arguments<'_>, end: &str) {
    if is_private(text) {
        return;
    }
    let mut line = Text::new();
    line.append(text);
    line.end(end);
    // A closed or full standard error is no fault of the library.
    without_signals(|| _ = rustix::io::write(std::io::stderr(), line.as_bytes()));
}

/// Bytes for texts: invalid UTF-8 and control characters are escaped.
pub struct Escaped<'a>(pub &'a [u8]);

impl fmt::Display for Escaped<'_> {
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

/// The cause of a failed system call. The standard library's texts would allocate memory.
pub struct Cause(pub Errno);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.0 {
            Errno::NOENT => "no such file",
            Errno::ACCESS | Errno::PERM => "permission denied",
            Errno::NOTDIR => "a part of its path is not a folder",
            Errno::LOOP => "too many links",
            Errno::MFILE | Errno::NFILE => "too many open files",
            Errno::IO => "input/output error",
            Errno::NOMEM => "out of memory",
            other => return write!(f, "error {}", other.raw_os_error()),
        };
        f.write_str(words)
    }
}

/// The devices that `is_wanted` selects, as a list for messages.
pub fn devices(arches: &[&CStr], is_wanted: impl Fn(&[u8]) -> bool) -> Text {
    let mut text = Text::new();
    for arch in arches.iter().map(|arch| arch.to_bytes()) {
        let device = arch.strip_prefix(TRIPLE_PREFIX).unwrap_or(arch);
        if !device.is_empty() && is_wanted(device) {
            let or = if text.as_bytes().is_empty() { "" } else { " or " };
            text.append(format_args!("{or}{}", Escaped(device)));
        }
    }
    text
}

/// Writes a line about the devices not reported before for which the archives of a binary have no kernels. The HIP
/// runtime skips such devices silently.
pub fn report_missing(arches: &[&CStr], binary: &[u8], searched: &Text) {
    let devices = devices(arches, is_new);
    if devices.as_bytes().is_empty() {
        return;
    }
    let binary = Escaped(binary);
    let text =
        format_args!("rocm-kpack: no archive has {devices} for {binary}; looked in {searched}");
    line(text, " (ROCM_KPACK_QUIET=1 silences this)\n");
}

/// Hashes of the reported names of this process; 0 is a free entry. When all entries are used, reports stop.
static REPORTED: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// Records a device or another name, and returns whether it is new.
pub fn is_new(device: &[u8]) -> bool {
    // FNV-1a: a hash collision only hides one line.
    let hash = device
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        })
        .max(1);
    for slot in &REPORTED {
        match slot.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(there) if there == hash => return false,
            Err(_) => {}
        }
    }
    false
}
