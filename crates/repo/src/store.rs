//! The storage of a repository. Everything is read and written through [`Store`]. [`crate::LocalStore`] implements
//! it on a file system; an object store could implement it, too.

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
use rockpack_package::indexed::IndexedPackage;
use rockpack_report::Finding;
use sha2::{Digest, Sha256};

/// The folder that only rockpack reads: states, the lock file, unfinished files, key packages.
pub const PRIVATE: &str = ".rockpack";

/// A place for repositories. Paths are relative, with `/` between their parts.
pub trait Store: Sync {
    /// The content of a small file; `None` if it does not exist. Fails with [`Kind::Unsupported`] if the path is not
    /// a regular file.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>>;
    /// The memory budget for reading packages.
    fn budget(&self) -> &Budget;
    /// The content of a file; an error if it does not exist.
    fn open(&self, path: &str) -> Result<Content>;
    /// Size and time of a file; `None` if it does not exist.
    fn stat(&self, path: &str) -> Result<Option<Stat>>;
    /// Sorted names of the direct entries of a folder.
    fn list(&self, folder: &str) -> Result<Vec<String>>;
    /// Refuses paths where existing entries would make [`Store::put`] fail. A store without folders and links has no
    /// such paths.
    fn check(&self, _paths: &[&str]) -> Result<()> {
        Ok(())
    }
    /// Writes all files, then puts them in place in this order, each atomically. On return they are durable.
    fn put(&self, files: Vec<(String, FileBody)>) -> Result<()>;
    /// Makes the folders of these paths world-readable where this user may. Returns a finding about the others.
    fn open_folders(&self, _paths: &[&str]) -> Result<Option<Finding>> {
        Ok(None)
    }
    /// Renames a file within its folder, and replaces an existing one. On return the rename is durable.
    fn rename(&self, from: &str, to: &str) -> Result<()>;
    /// Removes files; missing ones are no error.
    fn remove(&self, paths: &[String]) -> Result<()>;
}

/// What to do while another run writes to the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenLocked {
    Wait,
    Fail,
}

/// A modification time: nanoseconds since 1970.
pub type Modified = i64;

/// Size and time of a stored file, by which a known file is recognised without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub size: u64,
    pub modified: Modified,
}

pub(super) fn stat_of(metadata: &fs::Metadata) -> Stat {
    let seconds = metadata.mtime().saturating_mul(1_000_000_000);
    Stat { size: metadata.len(), modified: seconds.saturating_add(metadata.mtime_nsec()) }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileContent {
    /// The bytes, or a zstd frame of them.
    pub(super) bytes: Arc<Vec<u8>>,
    /// The uncompressed size, if `bytes` is a zstd frame.
    pub(super) unpacked: Option<u64>,
}

impl From<Vec<u8>> for FileContent {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes: Arc::new(bytes), unpacked: None }
    }
}

impl FileContent {
    pub fn size(&self) -> u64 {
        self.unpacked.unwrap_or(self.bytes.len() as u64)
    }

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

/// The content of a file to put in place.
#[derive(Debug, Clone)]
pub enum FileBody {
    Made(FileContent),
    /// The content of another file of the repository: a hard link to it where possible, as files of a repository are
    /// never modified.
    Same(String, FileContent),
    /// A package: a copy of this content, or a hard link to the file at this path, which has the same content and is
    /// never modified.
    Package(Content, ExpectedFile, Option<PathBuf>),
}

/// The expected facts about a file that is published unchanged. If they differ when it is put in place, that is an
/// error of [`Kind::Changed`].
#[derive(Debug, Clone)]
pub struct ExpectedFile {
    pub indexed: Arc<IndexedPackage>,
    /// The time of modification that a copy gets.
    pub modified: Modified,
}

impl FileBody {
    pub(super) fn write(&self, path: &Path, durability: Durability) -> Result<()> {
        if let Self::Package(_, known, Some(source)) = self
            && fs::hard_link(source, path).is_ok()
        {
            // This run wrote it, so its modification time identifies it without reading it.
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

/// Copies `content` and compares it with the digest in the index: the source may have changed since it was read.
fn copy(content: &Content, known: &ExpectedFile, file: &mut File, path: &Path) -> Result<()> {
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
        .hint("nothing was published; run again when nothing else writes to the packages");
    source.into_iter().fold(error, |error, source| error.file(source))
}
