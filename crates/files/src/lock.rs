//! Locks (flock) of files and folders. They show whether a run is alive, and serialise runs that write to one folder.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rockpack_core::error::{Error, Result};
use rockpack_core::run::waiting;
use rustix::fs::{major, minor};

use super::guarded;

/// Number and length of the waits for a lock before it is reported: most locks are held for milliseconds.
const SHORT_WAITS: u32 = 50;
const SHORT_WAIT: Duration = Duration::from_millis(20);

const HINT: &str = "use a folder on a file system that supports flock, which some network file \
                    systems do not; a finished result can be copied there";

/// Opens the lock file at `path`, and creates it if it is missing. Keeps its content, which belongs to the holder of
/// the lock. Refuses links and other entries that are not regular files.
pub fn open(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = guarded::open_file(path, &mut options)?;
    guarded::refuse_hard_link(&file, path)?;
    Ok(file)
}

/// Waits for the lock of the folder at `path`, which is held as long as the returned file is open.
pub fn folder(path: &Path) -> Result<File> {
    let folder = File::open(path).map_err(|e| Error::io(path, "open", e))?;
    wait(&folder, path)?;
    Ok(folder)
}

/// Waits for the lock of `file`, open at `path`. Reports a longer wait with the process that holds the lock.
pub fn wait(file: &File, path: &Path) -> Result<()> {
    for _ in 0..SHORT_WAITS {
        if take(file, path)? {
            return Ok(());
        }
        thread::sleep(SHORT_WAIT);
    }
    // The kernel's list is not a snapshot, and may miss a lock while others change.
    let holder = (0..3).find_map(|_| holder(file)).unwrap_or_else(|| "another process".to_owned());
    waiting::tell(&format!("waiting for the lock on {}, held by {holder}", path.display()));
    uninterrupted(|| file.lock()).map_err(|e| fault(path, e))
}

/// The process that holds the lock of `file`, from the kernel's list. `None` on network file systems, and for
/// processes outside this container.
///
/// Source: proc_locks(5).
fn holder(file: &File) -> Option<String> {
    let metadata = file.metadata().ok()?;
    let (major, minor) = (major(metadata.dev()), minor(metadata.dev()));
    let place = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let process = locks.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let is_lock = fields.next()? == "FLOCK";
        let process = fields.nth(2)?;
        (is_lock && fields.next()? == place).then_some(process)
    })?;
    let number: u32 = process.parse().ok().filter(|number| *number > 0)?;
    let comm = fs::read_to_string(format!("/proc/{number}/comm")).ok();
    let name = comm.map(|name| format!(" ({})", name.trim_end())).unwrap_or_default();
    Some(format!("process {number}{name}"))
}

/// Tries to lock `file`, which is open at `path`. Returns whether the lock was free.
pub fn take(file: &File, path: &Path) -> Result<bool> {
    let taken = uninterrupted(|| match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    });
    taken.map_err(|e| fault(path, e))
}

/// Releases the lock of `file`, which is open at `path`.
pub fn release(file: &File, path: &Path) -> Result<()> {
    uninterrupted(|| file.unlock()).map_err(|e| fault(path, e))
}

/// Repeats a call of flock that a signal interrupted: the standard library returns its EINTR.
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
