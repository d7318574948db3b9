//! Input files: opened when read, checked for change at every opening.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::error::{Error, Kind, Result};

/// What identifies the state of a file: a change of any of it is a changed input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: (i64, i64),
    inode: (u64, u64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            inode: (metadata.dev(), metadata.ino()),
        }
    }
}

/// A regular file of the input and the state in which it was first seen.
#[derive(Debug)]
pub struct InputFile {
    path: PathBuf,
    stamp: Stamp,
    /// Shared by concurrent readers; closed with the last of them, so that trees of a hundred
    /// thousand files do not exhaust descriptors.
    handle: Mutex<Weak<File>>,
}

impl InputFile {
    /// Notes the state of the regular file at `path`; its content is opened on the first read.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
        let metadata = file.metadata().map_err(|e| Error::io(path, "inspect", e))?;
        if !metadata.is_file() {
            return Err(Error::unsupported("is no regular file").file(path));
        }
        let stamp = Stamp::of(&metadata);
        Ok(Self { path: path.to_path_buf(), stamp, handle: Mutex::new(Weak::new()) })
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size in bytes.
    pub fn len(&self) -> u64 {
        self.stamp.len
    }

    /// Whether it holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.stamp.len == 0
    }

    /// An open descriptor, shared with other readers.
    pub(super) fn handle(&self) -> Result<Arc<File>> {
        let mut slot = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = slot.upgrade() {
            return Ok(file);
        }
        let file = File::open(&self.path).map_err(|e| Error::io(&self.path, "open", e))?;
        let metadata = file.metadata().map_err(|e| Error::io(&self.path, "inspect", e))?;
        self.compare(Stamp::of(&metadata))?;
        let file = Arc::new(file);
        *slot = Arc::downgrade(&file);
        Ok(file)
    }

    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let file = self.handle()?;
        file.read_exact_at(buffer, offset).map_err(|error| {
            if error.kind() == std::io::ErrorKind::UnexpectedEof {
                return self.changed("became shorter").offset(offset);
            }
            Error::io(&self.path, "read", error).offset(offset)
        })
    }

    /// Fails if the file is no longer what it was when it was first seen.
    pub fn recheck(&self) -> Result<()> {
        let metadata = std::fs::symlink_metadata(&self.path)
            .map_err(|e| Error::io(&self.path, "inspect", e))?;
        self.compare(Stamp::of(&metadata))
    }

    fn compare(&self, now: Stamp) -> Result<()> {
        if now == self.stamp {
            return Ok(());
        }
        let what = match now.len == self.stamp.len {
            true => "was modified or replaced".to_owned(),
            false => format!("had {} bytes and now has {}", self.stamp.len, now.len),
        };
        Err(self.changed(&what))
    }

    fn changed(&self, what: &str) -> Error {
        Error::new(Kind::Changed, format!("the input file {what} during the run"))
            .file(&self.path)
            .hint("run again when nothing writes to the artifacts any more")
    }
}

/// All input files of a run, to be checked once more before its output becomes visible.
#[derive(Debug, Default)]
pub struct Inputs {
    files: Vec<Arc<InputFile>>,
}

impl Inputs {
    /// Remembers `file`.
    pub fn add(&mut self, file: Arc<InputFile>) {
        self.files.push(file);
    }

    /// Takes over the files of `other`.
    pub fn extend(&mut self, other: Inputs) {
        self.files.extend(other.files);
    }

    /// Fails with all files that changed since they were first seen.
    pub fn recheck(&self) -> Result<()> {
        let faults = self.files.iter().filter_map(|file| file.recheck().err()).collect();
        Error::gather(faults).map_or(Ok(()), Err)
    }
}
