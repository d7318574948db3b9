//! One open file, read at offsets. A file that changes while it is open is an error. Also finds the file that is
//! mapped at an address, by `/proc/self/maps`.

use std::ffi::CStr;

use rockpack_kpack::{Code, ReadAt};
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use crate::memory::copied;
use crate::report::{self, Cause, Escaped};

/// Seconds and nanoseconds.
type Time = (i64, i64);

/// The identity of a version of a file. It leaves out the ctime: dpkg links and unlinks the file that it replaces,
/// which changes the ctime but not the content, and programs keep using the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    size: i64,
    modified: Time,
}

/// A fault of a file. Its message is the last drafted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The result code for callers.
    pub code: Code,
    /// Whether the system failed (no descriptors, a failing disk), so that the file may be intact.
    pub is_system_fault: bool,
}

impl From<Code> for Fault {
    fn from(code: Code) -> Self {
        Self { code, is_system_fault: false }
    }
}

impl From<Fault> for Code {
    fn from(fault: Fault) -> Self {
        fault.code
    }
}

/// The current state of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The file is unchanged.
    Whole,
    /// The file is unchanged, and no path leads to it any more.
    Removed,
    /// The content has changed, or is unknown.
    Changed,
}

/// A regular file that stays open.
pub struct OpenFile {
    descriptor: OwnedFd,
    /// The path by which it was opened, for messages.
    path: Vec<u8>,
    /// The identity of the file when it was opened.
    pub identity: Identity,
}

/// The fault of a path that cannot be opened. Only some causes mean that the file does not exist for this user.
fn no_file(path: &CStr, errno: Errno) -> Fault {
    let code = match errno {
        Errno::NOENT => Code::FileNotFound,
        Errno::NOMEM => Code::OutOfMemory,
        _ => Code::Io,
    };
    let is_absent = matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::PERM)
        || matches!(errno, Errno::LOOP | Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ);
    let cause = Cause(errno);
    report::fail(code, format_args!("{}: cannot open: {cause}", Escaped(path.to_bytes())));
    Fault { code, is_system_fault: !is_absent }
}

fn status(path: &CStr) -> Result<Stat, Errno> {
    retry_on_intr(|| rustix::fs::stat(path))
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Whether a path leads to a folder.
pub fn is_folder(path: &CStr) -> bool {
    status(path).is_ok_and(|stat| kind(&stat) == FileType::Directory)
}

/// The identity of the regular, non-empty file at a path.
pub fn identity_at(path: &CStr) -> Result<Identity, Fault> {
    let stat = status(path).map_err(|errno| no_file(path, errno))?;
    Ok(regular(path, &stat)?)
}

/// The identity of a regular, non-empty file.
fn regular(path: &CStr, stat: &Stat) -> Result<Identity, Code> {
    let shown = Escaped(path.to_bytes());
    match kind(stat) {
        FileType::RegularFile if stat.st_size > 0 => Ok(identity(stat)),
        FileType::RegularFile => Err(report::fail(Code::Io, format_args!("{shown}: is empty"))),
        FileType::Directory => {
            let why = format_args!("{shown}: is a directory, not a kernel archive");
            Err(report::fail(Code::InvalidFormat, why))
        }
        _ => Err(report::fail(Code::Io, format_args!("{shown}: is not a regular file"))),
    }
}

/// Opens a file. Does not block on a named pipe without a writer.
fn opened(path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    match open_with(path, flags | OFlags::NONBLOCK) {
        // Another process has a lease on the file, and releases it for a blocking open.
        Err(Errno::AGAIN)
            if status(path).is_ok_and(|stat| kind(&stat) == FileType::RegularFile) =>
        {
            open_with(path, flags)
        }
        opened => opened,
    }
}

fn open_with(path: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
}

impl OpenFile {
    /// Opens a regular, non-empty file.
    pub fn open(path: &CStr) -> Result<Self, Fault> {
        let descriptor = opened(path).map_err(|errno| no_file(path, errno))?;
        let stat = rustix::fs::fstat(&descriptor).map_err(|errno| no_file(path, errno))?;
        let identity = regular(path, &stat)?;
        let path = copied(path.to_bytes()).map_err(|_| report::refused("the path of a file"))?;
        Ok(Self { descriptor, path, identity })
    }

    /// The path by which it was opened.
    pub fn path(&self) -> Escaped<'_> {
        Escaped(&self.path)
    }

    /// The descriptor, to map the file.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// The current state of the file.
    pub fn state(&self) -> State {
        match rustix::fs::fstat(&self.descriptor) {
            Ok(now) if identity(&now) != self.identity => State::Changed,
            Ok(now) if now.st_nlink == 0 => State::Removed,
            Ok(_) => State::Whole,
            Err(_) => State::Changed,
        }
    }

    /// Whether the descriptor still refers to the file. Daemons close all unknown descriptors, which are then reused
    /// for other files.
    pub fn is_own(&self) -> bool {
        let now = rustix::fs::fstat(&self.descriptor).map(|now| identity(&now));
        let Identity { device, inode, .. } = self.identity;
        now.is_ok_and(|now| (now.device, now.inode) == (device, inode))
    }

    /// Fails if the file was changed since it was opened. A call after each read detects every change that the read may
    /// have seen.
    pub fn unchanged(&self) -> Result<(), Code> {
        if self.state() != State::Changed {
            return Ok(());
        }
        let why = format_args!("{}: was changed while it was open", self.path());
        Err(report::fail_with_hint(Code::Io, why, "; start again"))
    }
}

impl ReadAt for OpenFile {
    type Error = Fault;

    fn len(&self) -> u64 {
        u64::try_from(self.identity.size).unwrap_or_default()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Fault> {
        let (path, mut read) = (self.path(), 0);
        while let Some(room) = buffer.get_mut(read..).filter(|room| !room.is_empty()) {
            let at = offset.saturating_add(read as u64);
            match rustix::io::pread(&self.descriptor, room, at) {
                Ok(0) => {
                    let why = format_args!("{path}: ends at offset {at}, within what is read");
                    return Err(report::fail(Code::Io, why).into());
                }
                Ok(count) => read += count,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    let cause = Cause(errno);
                    let why = format_args!("{path}: cannot read at offset {at}: {cause}");
                    return Err(Fault { code: report::fail(Code::Io, why), is_system_fault: true });
                }
            }
        }
        Ok(())
    }
}

// The types of these fields differ between machines.
#[allow(clippy::useless_conversion, clippy::unnecessary_fallible_conversions)]
fn identity(stat: &Stat) -> Identity {
    let signed = |value| i64::try_from(value).unwrap_or_default();
    Identity {
        device: stat.st_dev,
        inode: stat.st_ino,
        size: stat.st_size,
        modified: (signed(stat.st_mtime), i64::try_from(stat.st_mtime_nsec).unwrap_or_default()),
    }
}

const MAPS: &CStr = c"/proc/self/maps";

/// Bytes per read, several times the longest line.
const CHUNK: usize = 32 << 10;

/// The path in a line such as `7f0c1000-7f0c2000 r-xp 00001000 fe:01 1234   /usr/lib/x.so`, and the offset of
/// `address` in that file. Returns `None` if the range does not contain `address`. The path may have spaces.
fn mapping(line: &[u8], address: u64) -> Option<(&[u8], u64)> {
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let range = fields.next()?;
    let dash = range.iter().position(|byte| *byte == b'-')?;
    let (start, end) = (hex_number(range.get(..dash)?)?, hex_number(range.get(dash + 1..)?)?);
    let offset = hex_number(fields.nth(1)?)?;
    let path = fields.nth(2).unwrap_or_default().trim_ascii_start();
    let within = (start..end).contains(&address);
    within.then(|| (path, offset.saturating_add(address - start)))
}

fn hex_number(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

fn unreadable(errno: Errno) -> Code {
    let cause = Cause(errno);
    let why = format_args!("/proc/self/maps: cannot be read: {cause}");
    report::fail(Code::PathDiscoveryFailed, why)
}

/// Finds the file that is mapped at `address`. Returns its path and the offset of the address in it. Fails for
/// anonymous mappings and the kernel's own, such as `[stack]`.
pub fn discover(address: u64) -> Result<(Vec<u8>, u64), Code> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let maps = rustix::fs::open(MAPS, flags, Mode::empty()).map_err(unreadable)?;
    let mut lines = Vec::new();
    loop {
        lines.try_reserve(CHUNK).map_err(|_| report::refused("a list of mappings"))?;
        match rustix::io::read(&maps, spare_capacity(&mut lines)) {
            Ok(0) => break,
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(unreadable(errno)),
        }
        let end = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let whole = lines.get(..end).unwrap_or_default().split(|byte| *byte == b'\n');
        if let Some((path, offset)) = whole.filter_map(|line| mapping(line, address)).next() {
            if path.is_empty() || path.first() == Some(&b'[') {
                let why = format_args!("memory at address {address:#x} belongs to no file");
                return Err(report::fail(Code::PathDiscoveryFailed, why));
            }
            let path = copied(path).map_err(|_| report::refused("the path of a file"))?;
            return Ok((path, offset));
        }
        lines.drain(..end);
    }
    let why = format_args!("no file is mapped at address {address:#x}");
    Err(report::fail(Code::PathDiscoveryFailed, why))
}
