//! Unfinished files and folders, each under a unique name and locked as long as its run is alive.
//!
//! Creating a scratch and searching for those of killed runs happen under one lock (of the folder, or of the cache), so
//! that no run mistakes a new, not yet locked scratch for that of a killed run. Both are short; filling a scratch holds
//! only its own lock.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rockpack_core::content::list;
use rockpack_core::error::{Error, Kind, Result};

use super::{guarded, kind_of, lock, remove_file, remove_folder};

const HINT: &str = "it must be a folder that this user may write to";

/// Maximum number of scratches in one folder, from simultaneous runs.
const MOST: u32 = 1000;

#[derive(Debug, Clone, Copy)]
pub enum ScratchKind {
    File,
    Folder,
}

impl ScratchKind {
    fn make(self, path: &Path) -> io::Result<File> {
        match self {
            Self::File => File::create_new(path),
            Self::Folder => fs::create_dir(path).and_then(|()| File::open(path)),
        }
    }

    /// Opens the scratch at `path`, which another user may have forged, without following links.
    fn open(self, path: &Path) -> Result<File> {
        match self {
            Self::File => guarded::open_file(path, OpenOptions::new().read(true)),
            Self::Folder => guarded::open_folder(path),
        }
    }

    fn is(self, kind: FileType) -> bool {
        match self {
            Self::File => kind.is_file(),
            Self::Folder => kind.is_dir(),
        }
    }
}

/// An unfinished file or folder, removed on drop.
#[derive(Debug)]
pub struct Scratch {
    form: ScratchKind,
    path: PathBuf,
    /// The open file or folder, locked as long as this run is alive.
    file: File,
    kept: AtomicBool,
}

impl Scratch {
    /// Creates a scratch in `folder` with a name that begins with `prefix`. Call [`Scratch::lock`] next.
    pub fn create(form: ScratchKind, folder: &Path, prefix: &str) -> Result<Self> {
        for number in 1..=MOST {
            let path = folder.join(format!("{prefix}{number}"));
            match form.make(&path) {
                Ok(file) => return Ok(Self { form, path, file, kept: AtomicBool::new(false) }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io(folder, "write into", error).hint(HINT)),
            }
        }
        let message = format!("contains {MOST} unfinished files or folders");
        Err(Error::new(Kind::Limit, message).file(folder))
    }

    /// Locks the scratch, to show that its run is alive.
    pub fn lock(&self) -> Result<()> {
        lock::wait(&self.file, &self.path)
    }

    /// Scratches of killed runs in `folder` whose names begin with `prefix`. They stay until [`Scratch::remove`].
    pub fn stale(
        form: ScratchKind,
        folder: &Path,
        prefix: &str,
    ) -> Result<impl Iterator<Item = Result<Self>>> {
        let mut paths = Vec::new();
        for entry in list(folder)? {
            let entry = entry?;
            if entry.file_name().to_str().is_none_or(|name| !name.starts_with(prefix)) {
                continue;
            }
            let kind = entry.file_type().map_err(|e| Error::io(entry.path(), "inspect", e))?;
            if form.is(kind) {
                paths.push(entry.path());
            }
        }
        Ok(paths.into_iter().filter_map(move |path| Self::if_stale(form, path).transpose()))
    }

    fn if_stale(form: ScratchKind, path: PathBuf) -> Result<Option<Self>> {
        // The run may have removed it meanwhile.
        if kind_of(&path)?.is_none() {
            return Ok(None);
        }
        let file = form.open(&path)?;
        let is_dead = lock::take(&file, &path)?;
        Ok(is_dead.then_some(Self { form, path, file, kept: AtomicBool::new(true) }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    pub fn keep(&self, kept: bool) {
        self.kept.store(kept, Ordering::Relaxed);
    }

    pub fn remove(self) -> Result<()> {
        self.keep(true);
        self.clear()
    }

    fn clear(&self) -> Result<()> {
        match self.form {
            ScratchKind::File => remove_file(&self.path),
            ScratchKind::Folder => remove_folder(&self.path),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !*self.kept.get_mut() {
            // The next run removes it if this fails.
            let _ = self.clear();
        }
    }
}
