//! What is at a path. Where the system does not say, that is an error and not "nothing".

use std::fs::{FileType, metadata};
use std::io::ErrorKind;
use std::path::Path;

use crate::error::{Error, Result};

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

/// What is at `path`, at the end of all links. Nothing can be at a name that no file may have, which
/// indexes and configurations may state.
fn kind_at(path: &Path) -> Result<Option<FileType>> {
    use ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound};
    match metadata(path) {
        Ok(metadata) => Ok(Some(metadata.file_type())),
        Err(error)
            if matches!(
                error.kind(),
                NotFound | NotADirectory | InvalidFilename | InvalidInput
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(Error::io(path, "inspect", error)),
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
        }
        let error = is_folder(&here("endless")).unwrap_err();
        assert!(error.to_string().contains("inspect"), "{error}");
        assert_eq!(error.kind(), crate::error::Kind::Io);
    }
}
