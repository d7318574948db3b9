//! Locks (flock) of files and folders. They tell a run that is alive from one that was killed, and
//! make runs into one folder take turns.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;

use super::guarded;
use crate::error::{Error, Result};

const HINT: &str = "use a folder on a file system that supports flock, which some network file \
                    systems do not; a finished result can be copied there";

/// Opens the file at `path` that is there to be locked, and makes it where it is missing. What it
/// holds stays: it belongs to whoever has the lock. A link is refused, and what is no file.
pub fn open(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    guarded::open_to_write(path, options.read(true).write(true).create(true).truncate(false))
}

/// Waits for the lock of the folder at `path`, which is held as long as the returned file is open.
pub fn folder(path: &Path) -> Result<File> {
    let folder = File::open(path).map_err(|e| Error::io(path, "open", e))?;
    wait(&folder, path)?;
    Ok(folder)
}

/// Waits for the lock of `file`, which is open at `path`.
pub fn wait(file: &File, path: &Path) -> Result<()> {
    uninterrupted(|| file.lock()).map_err(|e| fault(path, e))
}

/// Takes the lock of `file`, which is open at `path`, and says whether it was free.
pub fn take(file: &File, path: &Path) -> Result<bool> {
    let taken = uninterrupted(|| match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    });
    taken.map_err(|e| fault(path, e))
}

/// Gives back the lock of `file`, which is open at `path`.
pub fn release(file: &File, path: &Path) -> Result<()> {
    uninterrupted(|| file.unlock()).map_err(|e| fault(path, e))
}

/// The standard library passes EINTR of flock on.
fn uninterrupted<T>(lock: impl Fn() -> io::Result<T>) -> io::Result<T> {
    loop {
        match lock() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn fault(path: &Path, error: io::Error) -> Error {
    Error::io(path, "lock", error).hint(HINT)
}
