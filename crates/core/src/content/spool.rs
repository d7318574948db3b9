//! An anonymous temporary file for bytes that do not fit into memory.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Content;
use crate::error::{Error, Result};

/// An append-only anonymous temporary file: a killed run leaves nothing behind. Where the file system cannot
/// make one, the file has a name until it is open.
#[derive(Debug)]
pub struct Spool {
    directory: PathBuf,
    file: Arc<File>,
    end: AtomicU64,
}

impl Spool {
    /// Makes an empty spool on the file system of `directory`.
    pub fn create(directory: &Path) -> Result<Self> {
        let file = anonymous(directory)
            .map_err(|cause| Error::io(directory, "create a spool file in", cause.into()))?;
        Ok(Self {
            directory: directory.to_path_buf(),
            file: Arc::new(file),
            end: AtomicU64::new(0),
        })
    }

    /// Appends `bytes`, and returns them as content. Several threads may append at once.
    pub fn append(&self, bytes: &[u8]) -> Result<Content> {
        let len = bytes.len() as u64;
        let offset = self.end.fetch_add(len, Ordering::Relaxed);
        self.file
            .write_all_at(bytes, offset)
            .map_err(|cause| Error::io(&self.directory, "write the spool file in", cause))?;
        Ok(Content::of_spool(Arc::clone(&self.file), offset, len))
    }
}

fn anonymous(directory: &Path) -> Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(directory, flags | OFlags::TMPFILE, mode) {
        Ok(file) => Ok(file.into()),
        // File systems without O_TMPFILE (NFS, some overlays), and kernels that ignore the flag and refuse to
        // open a directory for writing.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => unlinked(directory),
        Err(error) => Err(error),
    }
}

/// Opens a new file and removes its name at once.
fn unlinked(directory: &Path) -> Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL;
    for attempt in 0..u16::MAX {
        let name = format!(".rockpack-spool-{}-{attempt}", std::process::id());
        let path = directory.join(name);
        match rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => {
                rustix::fs::unlink(&path)?;
                return Ok(file.into());
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_spool_have_no_name_and_keep_bytes() {
        let directory = tempfile::tempdir().unwrap();
        for create in [anonymous, unlinked] {
            let spool = Spool {
                directory: directory.path().to_path_buf(),
                file: Arc::new(create(directory.path()).unwrap()),
                end: AtomicU64::new(0),
            };
            let first = spool.append(b"first").unwrap();
            let second = spool.append(b"second").unwrap();
            assert_eq!(&second.read_array(0).unwrap(), b"second");
            assert_eq!(&first.slice(1..5).unwrap().read_array(0).unwrap(), b"irst");
            assert_eq!(directory.path().read_dir().unwrap().count(), 0);
        }
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = Spool::create(Path::new("/nonexistent/spool")).unwrap_err();
        let file = error.place().file.as_deref();
        assert_eq!(file, Some(Path::new("/nonexistent/spool")));
    }
}
