//! One open file, read by positioned reads. A file that changes while it is open is an error.

use std::cell::RefCell;
use std::ffi::CStr;

use rockpack_kpack::{Code, ReadAt};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::memory::Handed;
use crate::report::{self, Cause, Shown};

/// What tells one content of a file from another. The time of the last status change is left out: a
/// package manager that replaces the file changes it by removing the old name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
}

/// A regular file that stays open.
pub struct OpenFile {
    descriptor: OwnedFd,
    /// The name it was opened by, for texts.
    path: Vec<u8>,
    identity: Identity,
    len: u64,
}

fn no_file(path: &CStr, errno: Errno) -> Code {
    let code = if errno == Errno::NOENT { Code::FileNotFound } else { Code::Io };
    let cause = Cause(errno);
    report::fail(code, format_args!("{}: cannot open: {cause}", Shown(path.to_bytes())))
}

impl OpenFile {
    /// Opens a regular file that is not empty.
    pub fn open(path: &CStr) -> Result<Self, Code> {
        // Without NONBLOCK, a named pipe would be waited for.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = rustix::fs::open(path, flags, Mode::empty());
        let descriptor = opened.map_err(|errno| no_file(path, errno))?;
        let stat = rustix::fs::fstat(&descriptor).map_err(|errno| no_file(path, errno))?;
        let shown = Shown(path.to_bytes());
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => {
                let why = format_args!("{shown}: is a directory, not a kernel archive");
                return Err(report::fail(Code::InvalidFormat, why));
            }
            _ => return Err(report::fail(Code::Io, format_args!("{shown}: is no regular file"))),
        }
        let identity = identity(&stat);
        let len = u64::try_from(identity.size).unwrap_or_default();
        if len == 0 {
            return Err(report::fail(Code::Io, format_args!("{shown}: is empty")));
        }
        let mut copy = Vec::new();
        let bytes = path.to_bytes();
        copy.try_reserve_exact(bytes.len()).map_err(|_| report::refused("the path of a file"))?;
        copy.extend_from_slice(bytes);
        Ok(Self { descriptor, path: copy, identity, len })
    }

    /// The name it was opened by.
    pub fn path(&self) -> Shown<'_> {
        Shown(&self.path)
    }

    /// What tells its content from another.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Fails if the file was changed since it was opened. Asked behind each read, it finds every
    /// change that the read can have seen.
    pub fn unchanged(&self) -> Result<(), Code> {
        let now = rustix::fs::fstat(&self.descriptor).map(|stat| identity(&stat));
        if now == Ok(self.identity) {
            return Ok(());
        }
        let why = format_args!("{}: was changed while it was open; start again", self.path());
        Err(report::fail(Code::Io, why))
    }

    fn cut(&self, offset: u64) -> Code {
        let why = format_args!("{}: ends at offset {offset}, within what is read", self.path());
        report::fail(Code::Io, why)
    }

    fn refuses(&self, offset: u64, errno: Errno) -> Code {
        let cause = Cause(errno);
        let why = format_args!("{}: cannot read at offset {offset}: {cause}", self.path());
        report::fail(Code::Io, why)
    }

    /// Fills `room`, whose size is set, from `offset` on.
    pub fn read(&self, offset: u64, room: &mut Handed, size: u64) -> Result<(), Code> {
        let filled = room.fill(|before, room| {
            let at = offset.saturating_add(before);
            rustix::io::pread(&self.descriptor, room, at).map(|(read, _)| read)
        });
        filled.map_err(|errno| self.refuses(offset, errno))?;
        let read = room.bytes().len() as u64;
        if read == size { Ok(()) } else { Err(self.cut(offset.saturating_add(read))) }
    }

    fn read_slice(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Code> {
        let mut read = 0;
        while let Some(room) = buffer.get_mut(read..).filter(|room| !room.is_empty()) {
            let at = offset.saturating_add(read as u64);
            match rustix::io::pread(&self.descriptor, room, at) {
                Ok(0) => return Err(self.cut(at)),
                Ok(count) => read += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.refuses(at, errno)),
            }
        }
        Ok(())
    }
}

fn identity(stat: &rustix::fs::Stat) -> Identity {
    // The types of these fields differ between machines.
    #[allow(clippy::useless_conversion, clippy::unnecessary_fallible_conversions)]
    let modified = (
        i64::try_from(stat.st_mtime).unwrap_or_default(),
        i64::try_from(stat.st_mtime_nsec).unwrap_or_default(),
    );
    Identity { device: stat.st_dev, inode: stat.st_ino, size: stat.st_size, modified }
}

/// Bytes that are read at once where a few are asked for. The sizes before small frames lie close to each
/// other: each window behind the last one is twice as long. Those before large frames cost one
/// short read each.
const WINDOW: usize = 16 << 10;
const FIRST_WINDOW: usize = 512;

/// Reads the table of a file.
pub struct Source<'a> {
    file: &'a OpenFile,
    /// The offset of the window, and the number of its bytes that were read.
    window: RefCell<(u64, usize, [u8; WINDOW])>,
}

impl<'a> Source<'a> {
    /// A source whose window is empty.
    pub fn new(file: &'a OpenFile) -> Self {
        Self { file, window: RefCell::new((0, 0, [0; WINDOW])) }
    }

    fn by_window(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Code> {
        let mut window = self.window.borrow_mut();
        let (start, filled, bytes) = &mut *window;
        let within = |start: u64, filled: usize| {
            let first = usize::try_from(offset.checked_sub(start)?).ok()?;
            let end = first.checked_add(buffer.len())?;
            (end <= filled).then_some(first..end)
        };
        let range = match within(*start, *filled) {
            Some(range) => range,
            None => {
                let left = self.file.len.saturating_sub(offset);
                let near = (*start).saturating_add(2 * *filled as u64);
                let wanted = if offset <= near { 2 * *filled } else { FIRST_WINDOW };
                let count = usize::try_from(left).unwrap_or(usize::MAX);
                let count = count.min(wanted.clamp(FIRST_WINDOW, WINDOW));
                *filled = 0;
                self.file.read_slice(offset, bytes.get_mut(..count).unwrap_or_default())?;
                (*start, *filled) = (offset, count);
                within(offset, count).ok_or_else(|| self.file.cut(offset))?
            }
        };
        buffer.copy_from_slice(bytes.get(range).unwrap_or_default());
        Ok(())
    }
}

impl ReadAt for Source<'_> {
    type Error = Code;

    fn len(&self) -> u64 {
        self.file.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Code> {
        if buffer.len() <= 16 {
            self.by_window(offset, buffer)
        } else {
            self.file.read_slice(offset, buffer)
        }
    }
}
