//! What is at a path. Where the system does not say, that is an error and not "nothing".

use std::fs::{DirEntry, FileType, metadata, read_dir};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Bytes that a name may have on Linux.
pub const NAME_MAX: usize = 255;

/// Whether there is a folder, or a link to one.
pub fn is_folder(path: &Path) -> Result<bool> {
    Ok(kind_at(path)?.is_some_and(|kind| kind.is_dir()))
}

/// Whether there is a regular file, or a link to one.
pub fn is_file(path: &Path) -> Result<bool> {
    Ok(kind_at(path)?.is_some_and(|kind| kind.is_file()))
}

/// Whether there is anything that is not a link to nothing.
pub fn is_there(path: &Path) -> Result<bool> {
    Ok(kind_at(path)?.is_some())
}

/// What is directly in `folder`.
pub fn list(folder: &Path) -> Result<impl Iterator<Item = Result<DirEntry>>> {
    let fault = move |e| Error::io(folder, "list", e);
    Ok(read_dir(folder).map_err(fault)?.map(move |entry| entry.map_err(fault)))
}

/// What the system `answered` when it was asked to do something with `path`; nothing where nothing
/// is. `doing` says what it was asked, as for [`Error::io`].
pub fn if_there<T>(path: &Path, doing: &str, answered: io::Result<T>) -> Result<Option<T>> {
    match answered {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(path, doing, error)),
    }
}

/// Where `path` is, behind all links; nothing where nothing is.
pub fn real_path(path: &Path) -> Result<Option<PathBuf>> {
    match path.canonicalize() {
        Ok(real) => Ok(Some(real)),
        Err(error) if says_nothing_is_there(error.kind(), path) => Ok(None),
        Err(error) => Err(Error::io(path, "resolve", error)),
    }
}

/// What is at `path`, at the end of all links.
fn kind_at(path: &Path) -> Result<Option<FileType>> {
    match metadata(path) {
        Ok(metadata) => Ok(Some(metadata.file_type())),
        Err(error) if says_nothing_is_there(error.kind(), path) => Ok(None),
        Err(error) => Err(Error::io(path, "inspect", error)),
    }
}

/// Nothing can be at a name that no file may have, which indexes and configurations may state; where
/// only the whole path is too long, something may be.
fn says_nothing_is_there(kind: ErrorKind, path: &Path) -> bool {
    match kind {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput => true,
        ErrorKind::InvalidFilename => path.iter().any(|name| name.len() > NAME_MAX),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_looked_at_is_not_taken_for_absent() {
        let room = tempfile::tempdir().unwrap();
        let here = |name: &str| room.path().join(name);
        std::fs::write(here("file"), "").unwrap();
        std::os::unix::fs::symlink("file", here("link")).unwrap();
        std::os::unix::fs::symlink("gone", here("broken")).unwrap();
        std::os::unix::fs::symlink("endless", here("endless")).unwrap();
        let look = |name: &str| {
            let path = here(name);
            (is_there(&path).unwrap(), is_file(&path).unwrap(), is_folder(&path).unwrap())
        };
        assert_eq!(look(""), (true, false, true));
        assert_eq!(look("file"), (true, true, false));
        assert_eq!(look("link"), (true, true, false));
        for absent in ["gone", "broken", "file/below", "nul\0", &"long".repeat(100)] {
            assert_eq!(look(absent), (false, false, false), "{absent:?}");
            assert_eq!(real_path(&here(absent)).unwrap(), None, "{absent:?}");
        }
        let error = is_folder(&here("endless")).unwrap_err();
        assert!(error.to_string().contains("inspect"), "{error}");
        assert_eq!(error.kind(), crate::error::Kind::Io);
        is_there(&here(&"a/".repeat(2048))).unwrap_err();
    }
}
