//! The hidden directory where packages grow until the whole set is whole.
//!
//! ```text
//! OUT/.rockpack-staging-N/            one per run, locked (flock) while the run lives
//!     <packages>                      until they are renamed into OUT
//!     documented                      if an SPDX document comes with them
//!     packages.spdx.json              that document, until it is renamed into OUT
//!     packages.json                   the new receipt, from the beginning of the commit to its end
//!     replaced/                       what the commit moved out of the way
//! OUT/packages.json                   the receipt of the set in OUT, last to appear
//! ```
//!
//! Where the set is one of several parts, packages.json is packages-1-of-3.json in both places, and
//! packages.spdx.json likewise.
//!
//! Beginning, committing and cleaning up happen under a lock on OUT itself, so that runs into the
//! same folder take turns; between, they do not disturb each other. A directory whose lock can be
//! taken belongs to a dead run: if that run was committing (its receipt is still there), what it
//! had done is undone, so that OUT has its earlier set again; then the directory is removed.
//! A commit replaces the set: packages that the earlier receipt lists and the new one does not
//! are removed, and so is an SPDX document of ours, which describes the earlier set; nothing else
//! is. A packages.json that is no receipt is refused.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::journal::{self, Journal};
use crate::content::Content;
use crate::error::{Error, Kind, Result};
use crate::receipt::{self, Part};

const PREFIX: &str = ".rockpack-staging-";

/// What is said beside an error of a commit that could not be taken back either.
const BETWEEN_SETS: &str = "making the set visible, which could not be taken back: the folder is \
                            between the earlier set and this one until the next run puts it right";

/// What to do about an output folder that cannot be used.
const OUT_HINT: &str = "the output folder has to be one that can be created and written to";

/// Runs into one folder at the same time; more dead or live directories than this are a mistake.
const STAGINGS_MAX: u32 = 1000;

/// A place for a package set that is not whole yet; removed with everything in it unless
/// committed.
#[derive(Debug)]
pub struct Staging {
    out: PathBuf,
    directory: PathBuf,
    /// Locked as long as this run lives.
    _lock: File,
    /// Whether this run made `out`.
    made_out: bool,
    /// Whether the directory holds packages of the earlier set that could not be put back.
    kept: bool,
    names: Mutex<BTreeSet<String>>,
    /// The receipt's file name.
    receipt: String,
}

impl Staging {
    /// For a whole set: makes a staging directory inside `out` (which is made too if it does not
    /// exist) and clears away what dead runs left there.
    pub fn begin(out: &Path) -> Result<Self> {
        Self::begin_part(out, None)
    }

    /// The same for a part of a set, which has a receipt of its own, so that all parts can be
    /// written into one folder.
    pub fn begin_part(out: &Path, part: Option<Part>) -> Result<Self> {
        let receipt = receipt::file_name(part);
        let made_out = make_folder(out)?;
        let guard = lock(out)?;
        clear_dead(out)?;
        journal::refuse_mixed(out, &receipt)?;
        journal::earlier_packages(out, &receipt)?;
        journal::refuse_foreign_sbom(out, &receipt, false)?;
        let (directory, own) = make_directory(out)?;
        drop(guard);
        Ok(Self {
            out: out.to_path_buf(),
            directory,
            _lock: own,
            made_out,
            kept: false,
            names: Mutex::default(),
            receipt,
        })
    }

    /// An empty file for a package; a name is given out once.
    pub fn create(&self, name: &str) -> Result<File> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.insert(name.to_owned()) {
            let message = format!("two packages would both be written to {name}");
            return Err(Error::new(Kind::Conflict, message));
        }
        let path = self.directory.join(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let file = options.open(&path).map_err(|e| Error::io(&path, "create", e))?;
        make_readable(&file, &path)?;
        Ok(file)
    }

    /// Says that an SPDX document comes with the set; fails if there is no place for it.
    pub fn expect_sbom(&self) -> Result<()> {
        journal::refuse_foreign_sbom(&self.out, &self.receipt, true)?;
        write_synced(&self.directory.join(journal::DOCUMENTED), |_| Ok(()))
    }

    /// The SPDX document of the set, filled by `write`.
    pub fn write_sbom(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        write_synced(&self.directory.join(receipt::sbom_name(&self.receipt)), write)
    }

    /// Syncs a finished file to disk and returns what it holds, to be digested.
    pub fn seal(&self, name: &str) -> Result<Content> {
        let path = self.directory.join(name);
        let file = File::open(&path).map_err(|e| Error::io(&path, "open", e))?;
        file.sync_all().map_err(|e| Error::io(&path, "sync", e))?;
        Content::open(&path)
    }

    /// A staged file, to be read.
    pub fn open(&self, name: &str) -> Result<File> {
        let path = self.path(name);
        File::open(&path).map_err(|e| Error::io(&path, "open", e))
    }

    /// Where a staged file is, to be read back before the set is committed.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Makes the set visible: all packages by rename, then `receipt` as `packages.json`.
    ///
    /// The caller has checked that the inputs did not change. The receipt, which `write` writes, is a
    /// JSON object whose `packages` is an array of objects with a `file_name` and a `sha256`; it must
    /// name exactly the staged files. On an error, `out` has its earlier set, unless the renames could
    /// not be taken back either, as the error then says. Returns the packages of the earlier set that
    /// are gone now, by name.
    pub fn commit(
        mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<BTreeSet<String>> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let guard = lock(&self.out)?;
        clear_dead(&self.out)?;
        write_synced(&self.directory.join(&self.receipt), write)?;
        let listed = journal::earlier_packages(&self.directory, &self.receipt)?;
        if listed != names {
            let odd: Vec<_> = listed.symmetric_difference(&names).cloned().collect();
            let message = format!("receipt and staged packages differ: {}", odd.join(", "));
            return Err(Error::bug(message));
        }
        sync_directory(&self.directory)?;
        let mut journal = Journal::new(&self.out, &self.directory, &self.receipt);
        let result = journal.replace_set(&names).map_err(|error| {
            self.kept = !journal.undo();
            if self.kept { error.context(BETWEEN_SETS) } else { error }
        });
        drop(guard);
        result
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // Whatever cannot be removed now is removed by the next run.
        let _ = fs::remove_dir_all(&self.directory);
        if self.made_out {
            // Fails where the folder is not empty, as it should.
            let _ = fs::remove_dir(&self.out);
        }
    }
}

/// Makes `out` where it is missing, and says whether it was.
fn make_folder(out: &Path) -> Result<bool> {
    let message = match fs::metadata(out) {
        Ok(metadata) if metadata.is_dir() => return Ok(false),
        Ok(_) => "is a file, and packages are written into a folder",
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(Error::io(out, "inspect", error).hint(OUT_HINT));
        }
        Err(_) if out.is_symlink() => {
            "is a link that leads nowhere, and packages are written into a folder"
        }
        Err(_) => {
            let made = fs::create_dir_all(out).map_err(|e| Error::io(out, "create", e));
            return made.map(|()| true).map_err(|error| error.hint(OUT_HINT));
        }
    };
    Err(Error::new(Kind::Usage, message).file(out).hint(OUT_HINT))
}

/// Waits until no other run begins or commits in `out`.
fn lock(out: &Path) -> Result<File> {
    let directory = File::open(out).map_err(|e| Error::io(out, "open", e))?;
    directory.lock().map_err(|e| lock_fault(out, e))?;
    Ok(directory)
}

/// Locks are what tells a run that lives from one that was killed, so there is no going without.
fn lock_fault(path: &Path, error: std::io::Error) -> Error {
    Error::io(path, "lock", error).hint(
        "the output folder has to be on a file system that supports flock, which some network \
         file systems do not: write to a local folder and copy the packages",
    )
}

/// The first free name; the directory is locked before `out` is unlocked.
fn make_directory(out: &Path) -> Result<(PathBuf, File)> {
    for number in 1..=STAGINGS_MAX {
        let path = out.join(format!("{PREFIX}{number}"));
        match fs::create_dir(&path) {
            Ok(()) => {
                let own = File::open(&path).map_err(|e| Error::io(&path, "open", e))?;
                own.try_lock().map_err(|e| lock_fault(&path, e.into()))?;
                return Ok((path, own));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io(&path, "create", error).hint(OUT_HINT)),
        }
    }
    let message = format!("{STAGINGS_MAX} staging directories are in use");
    Err(Error::new(Kind::Limit, message).file(out))
}

/// Undoes and removes what runs left that live no more. Call under the lock of `out`.
fn clear_dead(out: &Path) -> Result<()> {
    let entries = fs::read_dir(out).map_err(|e| Error::io(out, "list", e))?;
    for entry in entries {
        let entry = entry.map_err(|e| Error::io(out, "list", e))?;
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX));
        let kind = entry.file_type().map_err(|e| Error::io(entry.path(), "inspect", e))?;
        if ours && kind.is_dir() {
            clear_if_dead(out, &entry.path())?;
        }
    }
    Ok(())
}

fn clear_if_dead(out: &Path, directory: &Path) -> Result<()> {
    let handle = match File::open(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(|e| Error::io(directory, "open", e))?,
    };
    match handle.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(lock_fault(directory, error)),
        Ok(()) => {}
    }
    journal::undo_dead(out, directory)?;
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::io(directory, "remove", error))
        }
        _ => Ok(()),
    }
}

/// A new file at `path`, filled by `write` and synced.
fn write_synced(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let file = File::create_new(path).map_err(|e| Error::io(path, "create", e))?;
    make_readable(&file, path)?;
    let mut sink = BufWriter::new(file);
    let written = write(&mut sink).and_then(|()| sink.flush());
    let synced = written.and_then(|()| sink.get_ref().sync_all());
    synced.map_err(|e| Error::io(path, "write", e))
}

/// Packages are there to be read by everybody, whatever the umask of the run.
fn make_readable(file: &File, path: &Path) -> Result<()> {
    file.set_permissions(Permissions::from_mode(0o644))
        .map_err(|e| Error::io(path, "set the mode of", e))
}

/// Makes renames inside `path` durable.
pub(super) fn sync_directory(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(|e| Error::io(path, "sync", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_locks_is_named_as_the_reason() {
        let source = std::io::Error::from(ErrorKind::Unsupported);
        let error = lock_fault(Path::new("out"), source);
        assert!(error.to_string().contains("out"), "{error}");
        assert!(error.hint_text().is_some_and(|hint| hint.contains("supports flock")));
    }
}
