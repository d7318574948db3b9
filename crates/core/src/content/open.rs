//! Opening files in folders that others write to, where a name may lead to a device, or to a pipe without a
//! writer; and tests for files and folders. A failed system call is an error, never "does not exist".

use std::fs::{DirEntry, File, FileType, OpenOptions, metadata, read_dir};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::Content;
use crate::error::{Error, Kind, Result};
use crate::run::Budget;

/// Opens the regular file at `path`; fails for any other kind.
pub fn open_file(path: &Path) -> io::Result<File> {
    let file = open_nonblocking(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

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
pub fn read_user_file(path: &Path, limit: u64, what: &str) -> Result<Vec<u8>> {
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
pub(super) fn open_nonblocking(path: &Path) -> io::Result<File> {
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

/// Longest file name on Linux, in bytes.
pub const NAME_MAX: usize = 255;

/// Whether `path` is a folder, or a link to one.
pub fn is_folder(path: &Path) -> Result<bool> {
    Ok(kind_at(path)?.is_some_and(|kind| kind.is_dir()))
}

/// Whether `path` is a regular file, or a link to one.
pub fn is_file(path: &Path) -> Result<bool> {
    Ok(kind_at(path)?.is_some_and(|kind| kind.is_file()))
}

/// Whether `path` exists; a dangling link does not count.
pub fn exists(path: &Path) -> Result<bool> {
    Ok(kind_at(path)?.is_some())
}

pub fn list(folder: &Path) -> Result<impl Iterator<Item = Result<DirEntry>>> {
    let entries = read_dir(folder).map_err(|e| Error::io(folder, "list", e))?;
    Ok(entries.map(move |entry| entry.map_err(|e| Error::io(folder, "list", e))))
}

/// The answer of a system call on `path`; `None` if that does not exist. `doing` is as for [`Error::io`].
pub fn if_exists<T>(path: &Path, doing: &str, answered: io::Result<T>) -> Result<Option<T>> {
    match answered {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(path, doing, error)),
    }
}

/// Resolves all links of `path`; `None` if it does not exist.
pub fn real_path(path: &Path) -> Result<Option<PathBuf>> {
    if_valid_name(path, "resolve", path.canonicalize())
}

/// The kind of the file at `path`, following links; `None` if it does not exist.
fn kind_at(path: &Path) -> Result<Option<FileType>> {
    Ok(if_valid_name(path, "inspect", metadata(path))?.map(|metadata| metadata.file_type()))
}

/// The answer of a system call on `path`; `None` if that does not exist. Indexes and configurations may state names
/// that no file can have; if only the whole path is too long, it may exist.
fn if_valid_name<T>(path: &Path, doing: &str, answered: io::Result<T>) -> Result<Option<T>> {
    let is_missing = |kind| match kind {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput => true,
        ErrorKind::InvalidFilename => path.iter().any(|name| name.len() > NAME_MAX),
        _ => false,
    };
    match answered {
        Err(error) if is_missing(error.kind()) => Ok(None),
        answered => answered.map(Some).map_err(|error| Error::io(path, doing, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_looked_at_is_not_taken_for_absent() {
        let room = tempfile::tempdir().unwrap();
        let here = room.path();
        std::fs::write(here.join("file"), "").unwrap();
        std::os::unix::fs::symlink("file", here.join("link")).unwrap();
        std::os::unix::fs::symlink("gone", here.join("broken")).unwrap();
        std::os::unix::fs::symlink("endless", here.join("endless")).unwrap();
        assert_eq!(looked_at(here), (true, false, true));
        assert_eq!(looked_at(&here.join("")), (true, false, true));
        assert_eq!(looked_at(&here.join("file")), (true, true, false));
        assert_eq!(looked_at(&here.join("link")), (true, true, false));
        for absent in ["gone", "broken", "file/below", "nul\0", &"long".repeat(100)] {
            assert_eq!(looked_at(&here.join(absent)), (false, false, false), "{absent:?}");
            assert_eq!(real_path(&here.join(absent)).unwrap(), None, "{absent:?}");
        }
        let error = is_folder(&here.join("endless")).unwrap_err();
        assert!(error.to_string().contains("inspect"), "{error}");
        assert_eq!(error.kind(), crate::error::Kind::Io);
        exists(&here.join("a/".repeat(2048))).unwrap_err();
    }

    /// Whether something is there, and is a file, and is a folder.
    fn looked_at(path: &Path) -> (bool, bool, bool) {
        (exists(path).unwrap(), is_file(path).unwrap(), is_folder(path).unwrap())
    }
}
