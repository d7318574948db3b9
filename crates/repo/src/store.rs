//! The storage of a repository. Everything is read and written through [`Store`]. [`crate::LocalStore`] keeps
//! its promises on a file system; an object store could keep them, too.

use std::fs::{self, File, FileTimes};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rockpack_core::compression::{Decoder, Method, decoder_fault};
use rockpack_core::content::{Content, hex};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::Budget;
use rockpack_files::{Durability, READABLE, write_new};
use rockpack_package::indexed::Indexed;
use rockpack_report::Finding;
use sha2::{Digest, Sha256};

/// The folder of what only rockpack reads: states, the lock, unfinished files, key packages.
pub const PRIVATE: &str = ".rockpack";

/// A place for repositories. Paths are relative, with `/` between their parts.
pub trait Store: Sync {
    /// The whole of a small file; `None` if it does not exist, and an error of
    /// [`Kind::Unsupported`] if the path is no file.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>>;
    /// The budget of the run: what reading packages takes is drawn from it.
    fn budget(&self) -> &Budget;
    /// The content of a file; an error if it does not exist.
    fn open(&self, path: &str) -> Result<Content>;
    /// Size and time of a file; `None` if it does not exist.
    fn stat(&self, path: &str) -> Result<Option<Stat>>;
    /// Names of what is directly in a folder, in order.
    fn list(&self, folder: &str) -> Result<Vec<String>>;
    /// Refuses paths at which [`Store::put`] could put no file because of existing entries. A
    /// store without folders and links has no such paths.
    fn check(&self, _paths: &[&str]) -> Result<()> {
        Ok(())
    }
    /// Puts files in place, each whole or not at all, in this order, and only when all of them
    /// could be written. On return they stay there whatever happens to the machine.
    fn put(&self, files: Vec<(String, Body)>) -> Result<()>;
    /// Lets everybody list the folders of these paths, as far as this user may; what is to be said of
    /// those that stay closed.
    fn open_folders(&self, _paths: &[&str]) -> Result<Option<Finding>> {
        Ok(None)
    }
    /// Renames a file within its folder, and replaces the one that has the new name. On return that stays so
    /// whatever happens to the machine.
    fn rename(&self, from: &str, to: &str) -> Result<()>;
    /// Removes files; one that is not there is no error.
    fn remove(&self, paths: &[String]) -> Result<()>;
}

/// The reaction to another run that has the repository open for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenLocked {
    /// Wait until that run is done.
    Wait,
    /// Fail.
    Fail,
}

/// A time of modification: nanoseconds since 1970.
pub type Modified = i64;

/// Size and time of a stored file, by which a file that was read before is known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Bytes.
    pub size: u64,
    /// When it was modified.
    pub modified: Modified,
}

/// Size and time of a file.
pub(super) fn stat_of(metadata: &fs::Metadata) -> Stat {
    let seconds = metadata.mtime().saturating_mul(1_000_000_000);
    Stat { size: metadata.len(), modified: seconds.saturating_add(metadata.mtime_nsec()) }
}

/// The content of a file that a run makes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileContent {
    /// The bytes, or a zstd frame of them.
    pub(super) bytes: Arc<Vec<u8>>,
    /// Number of bytes in the frame, which takes less memory than these.
    pub(super) unpacked: Option<u64>,
}

impl From<Vec<u8>> for FileContent {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes: Arc::new(bytes), unpacked: None }
    }
}

impl FileContent {
    /// Number of bytes.
    pub fn size(&self) -> u64 {
        self.unpacked.unwrap_or(self.bytes.len() as u64)
    }

    /// All bytes.
    pub fn to_vec(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes).map_err(decoder_fault)?;
        Ok(bytes)
    }

    fn write_to(&self, sink: &mut impl Write) -> io::Result<()> {
        if self.unpacked.is_none() {
            return sink.write_all(&self.bytes);
        }
        io::copy(&mut Decoder::new(&self.bytes[..], Method::Zstd)?, sink).map(drop)
    }
}

/// The future content of a file, written under a temporary name.
#[derive(Debug, Clone)]
pub enum Body {
    /// This content.
    Made(FileContent),
    /// The content of another file of the repository, which is this: a hard link to it where that is possible. No file
    /// of a repository is ever written to again.
    Same(String, FileContent),
    /// A package: a copy of this content, or a hard link to the file at the path, which has it and is never written
    /// to again.
    Package(Content, KnownFile, Option<PathBuf>),
}

/// The known facts about a file that is published unchanged. If they differ when the file is
/// put in place, that is an error of [`Kind::Changed`].
#[derive(Debug, Clone)]
pub struct KnownFile {
    /// What it holds.
    pub indexed: Arc<Indexed>,
    /// The time of modification that a copy gets.
    pub modified: Modified,
}

impl Body {
    /// Writes it to a new file at `path`.
    pub(super) fn write(&self, path: &Path, durability: Durability) -> Result<()> {
        if let Self::Package(_, known, Some(source)) = self
            && fs::hard_link(source, path).is_ok()
        {
            // It was just written, and is not read again: its time tells whether it is the one.
            let metadata = fs::metadata(path).map_err(|e| Error::io(path, "inspect", e))?;
            let is_it = stat_of(&metadata).modified == known.modified;
            return if is_it { Ok(()) } else { Err(changed(Some(source))) };
        }
        write_new(path, READABLE, durability, |file| match self {
            Self::Made(content) | Self::Same(_, content) => {
                content.write_to(file).map_err(|e| Error::io(path, "write", e))
            }
            Self::Package(content, known, _) => copy(content, known, file, path),
        })
    }
}

/// Indexes say what was read before. What is written is held against that, because the content may
/// have changed since, and even between two reads of one opened file.
fn copy(content: &Content, known: &KnownFile, file: &mut File, path: &Path) -> Result<()> {
    let mut digest = Sha256::new();
    content.try_each_window(|bytes| {
        digest.update(bytes);
        file.write_all(bytes).map_err(|e| Error::io(path, "write", e))
    })?;
    if hex(&digest.finalize()) != known.indexed.sha256 {
        return Err(changed(content.files().next().as_deref()));
    }
    let time = u64::try_from(known.modified).map(Duration::from_nanos).unwrap_or_default();
    let times = FileTimes::new().set_modified(UNIX_EPOCH + time);
    file.set_times(times).map_err(|e| Error::io(path, "write", e))
}

fn changed(source: Option<&Path>) -> Error {
    let message = "the package was modified or replaced during the run, and is not what was read";
    let error = Error::new(Kind::Changed, message)
        .hint("nothing is published; run again when nothing writes to the packages any more");
    source.into_iter().fold(error, |error, source| error.file(source))
}
