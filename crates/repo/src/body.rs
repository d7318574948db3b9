//! The future content of files of a repository, written under temporary names.

use std::fs::{self, File, FileTimes};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rockpack_core::content::{Content, hex};
use rockpack_core::error::{Error, Kind, Result};
use sha2::{Digest, Sha256};

use super::stat::{Modified, stat_of};
use rockpack_files::{Durability, READABLE, link, write_new};

/// The future content of a file.
#[derive(Debug, Clone)]
pub enum Body {
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// The content of another file of the repository, which has these bytes: a hard link to it where that is
    /// possible. No file of a repository is ever written to again.
    Same(String, Arc<[u8]>),
    /// A package: a copy of this content, or a hard link to the file at the path, which has it and is never written
    /// to again.
    Package(Content, KnownFile, Option<PathBuf>),
}

/// The known facts about a file that is published unchanged. If they differ when the file is
/// put in place, that is an error of [`Kind::Changed`].
#[derive(Debug, Clone)]
pub struct KnownFile {
    /// SHA-256 of what it holds, in hex.
    pub sha256: String,
    /// The time of modification that a copy gets.
    pub modified: Modified,
}

impl Body {
    /// Writes it to a new file at `path`.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        if let Self::Package(_, known, Some(source)) = self
            && link(source, path)
        {
            return check_link(source, known, path);
        }
        write_new(path, READABLE, Durability::Synced, |file| match self {
            Self::Bytes(bytes) | Self::Same(_, bytes) => {
                file.write_all(bytes).map_err(|e| Error::io(path, "write", e))
            }
            Self::Package(content, known, _) => copy(content, known, file, path),
        })
    }
}

/// A file that was just written is not read again: its time tells whether it is still the one.
fn check_link(source: &Path, known: &KnownFile, path: &Path) -> Result<()> {
    let metadata = fs::metadata(path).map_err(|e| Error::io(path, "inspect", e))?;
    if stat_of(&metadata).modified == known.modified { Ok(()) } else { Err(changed(Some(source))) }
}

/// Indexes say what was read before. What is written is held against that, because the content may
/// have changed since, and even between two reads of one opened file.
fn copy(content: &Content, known: &KnownFile, file: &mut File, path: &Path) -> Result<()> {
    let (mut digest, mut written) = (Sha256::new(), Ok(()));
    content.each_window(|bytes| {
        digest.update(bytes);
        if written.is_ok() {
            written = file.write_all(bytes);
        }
    })?;
    written.map_err(|e| Error::io(path, "write", e))?;
    if hex(&digest.finalize()) != known.sha256 {
        return Err(changed(content.files().next().as_deref()));
    }
    file.set_times(times(known.modified)).map_err(|e| Error::io(path, "write", e))
}

fn changed(source: Option<&Path>) -> Error {
    let message = "the package was modified or replaced during the run, and is not what was read";
    let error = Error::new(Kind::Changed, message)
        .hint("nothing is published; run again when nothing writes to the packages any more");
    source.into_iter().fold(error, |error, source| error.file(source))
}

fn times(modified: Modified) -> FileTimes {
    let time = u64::try_from(modified).map(Duration::from_nanos).unwrap_or_default();
    FileTimes::new().set_modified(UNIX_EPOCH + time)
}
