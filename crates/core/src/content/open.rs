//! Opening files in folders that others write to: the name of a file may lead to a device, or to a pipe
//! without a writer.

use std::fs::{File, OpenOptions, metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::Content;
use crate::error::{Error, Kind, Result};
use crate::run::Budget;

/// Opens the regular file at `path`; fails for any other kind.
pub fn open_file(path: &Path) -> io::Result<File> {
    let file = open_at_once(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"))
    }
}

/// Reads the regular file at `path`.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a small regular file at `path` before a run has a budget; refused, with the name `what`, if it has
/// more than `limit` bytes.
pub fn read_small(path: &Path, limit: u64, what: &str) -> Result<Vec<u8>> {
    let content = Content::open(path, &Budget::unlimited())?;
    content.read_vec(0..content.len(), limit, what)
}

/// Longest key file that is read, in bytes: keys with thousands of certifications fit.
pub const KEY_FILE_LIMIT: u64 = 16 << 20;

/// Reads a file that the user names, which may be the end of a pipe; refused, with the name `what`, if it has
/// more than `limit` bytes.
pub fn read_given(path: &Path, limit: u64, what: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file =
        File::open(path).map_err(|e| Error::io(path, "open", e))?.take(limit.saturating_add(1));
    file.read_to_end(&mut bytes).map_err(|e| Error::io(path, "read", e))?;
    if bytes.len() as u64 > limit {
        let message = format!("has more than {limit} bytes");
        return Err(Error::new(Kind::Limit, message).structure(what).file(path));
    }
    Ok(bytes)
}

/// Opens `path`, whatever its kind, without waiting for the other end of a pipe and without acquiring a
/// controlling terminal.
pub(super) fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        // Another process has a lease on the file, and gives it up while a blocking open waits (open(2)).
        Err(error) if error.kind() == ErrorKind::WouldBlock && metadata(path)?.is_file() => {
            File::open(path)
        }
        opened => opened,
    }
}
