//! Files that appear whole or not at all, and never in the place of another.
//!
//! Content is written beside its final name, synced, and then linked to that name, which fails
//! where something stands there already. A file that is there with the same content is left as it
//! is: a repeated run is no error. A run that is killed can leave a hidden file whose name begins
//! with [`PREFIX`], and nothing under a final name. The next run that writes into the folder removes
//! it: such a file is locked (flock) as long as its run lives.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::content::Content;
use crate::error::{Error, Kind, Result};

/// What unfinished files begin with.
pub const PREFIX: &str = ".rockpack-new-";

/// Unfinished files in one folder at the same time; more are a mistake.
const UNFINISHED_MAX: u32 = 1000;

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was written.
    Written,
    /// It was there already, with the same content.
    Identical,
}

/// Whether a file with `content` is at `path` already; an error if another one is.
pub fn is_there(path: &Path, content: &Content) -> Result<bool> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        found => found.map_err(|error| Error::io(path, "inspect", error))?,
    };
    if metadata.is_file() && Content::open(path)?.same_bytes(content)? {
        return Ok(true);
    }
    let message = match metadata.is_file() {
        true => "is there already, with another content",
        false => "is there already, and is no file",
    };
    let hint = "nothing is overwritten: move it away or choose another place";
    Err(Error::new(Kind::Conflict, message).file(path).hint(hint))
}

/// Removes what runs left in `folder` that live no more. Without locks none is taken for dead, and
/// what cannot be removed is in nobody's way.
///
/// Lists the folder, so that it is for the beginning of a run and not for each of its files.
pub fn clear_dead(folder: &Path) {
    let Some(_alone) = lock(folder) else { return };
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let ours = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with(PREFIX));
    for entry in names.filter(|entry| ours(&entry.file_name())) {
        let path = entry.path();
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Writes one file, as [`write()`] does, into a folder in which runs may have left something.
pub fn write_single(path: &Path, content: &Content) -> Result<Outcome> {
    clear_dead(folder_of(path));
    write(path, content)
}

/// Writes `content` to `path`, whose folder exists.
pub fn write(path: &Path, content: &Content) -> Result<Outcome> {
    write_if(path, content, || Ok(()))
}

/// The same, if `holds` says so of what was read of `content` before anything is visible.
pub fn write_if(path: &Path, content: &Content, holds: impl Fn() -> Result<()>) -> Result<Outcome> {
    if is_there(path, content)? {
        return holds().map(|()| Outcome::Identical);
    }
    let unfinished = Unfinished::create(path)?;
    unfinished.fill(content)?;
    holds()?;
    match fs::hard_link(&unfinished.path, path) {
        Ok(()) => Ok(Outcome::Written),
        // Somebody was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            is_there(path, content).map(|_| Outcome::Identical)
        }
        Err(error) => Err(Error::io(path, "create", error)),
    }
}

/// A file under a name of its own, removed when this is dropped.
struct Unfinished {
    path: PathBuf,
    file: File,
}

impl Unfinished {
    fn create(beside: &Path) -> Result<Self> {
        let folder = folder_of(beside);
        // Who clears away does not see the file before it is locked.
        let _alone = lock(folder);
        for number in 1..=UNFINISHED_MAX {
            let path = folder.join(format!("{PREFIX}{number}"));
            match File::create_new(&path) {
                Ok(file) => {
                    // On a file system without locks, nobody else takes it for a dead run's either.
                    let _ = uninterrupted(|| file.lock());
                    return Ok(Self { path, file });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io(beside, "create", error)),
            }
        }
        let message = format!("{UNFINISHED_MAX} unfinished files lie in the folder");
        Err(Error::new(Kind::Limit, message).file(folder))
    }

    fn fill(&self, content: &Content) -> Result<()> {
        let fault = |error| Error::io(&self.path, "write", error);
        let mut writer = BufWriter::new(&self.file);
        io::copy(&mut content.reader(), &mut writer).map_err(fault)?;
        writer.flush().map_err(fault)?;
        drop(writer);
        self.file.sync_all().map_err(fault)
    }
}

/// The folder, locked (flock) as long as this is there; `None` where that cannot be. Files are made and
/// cleared away under it, in no more time than that takes.
fn lock(folder: &Path) -> Option<File> {
    let folder = File::open(folder).ok()?;
    uninterrupted(|| folder.lock()).ok()?;
    Some(folder)
}

fn uninterrupted(lock: impl Fn() -> io::Result<()>) -> io::Result<()> {
    loop {
        match lock() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Whatever cannot be removed lies there under a name that says what it is.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_once_and_never_over_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let content = Content::of_bytes(*b"abc");
        assert_eq!(write(&path, &content).unwrap(), Outcome::Written);
        assert_eq!(write(&path, &content).unwrap(), Outcome::Identical);
        let error = write(&path, &Content::of_bytes(*b"abd")).unwrap_err();
        assert_eq!(error.kind(), Kind::Conflict);
        assert_eq!(fs::read(&path).unwrap(), b"abc");
        assert!(write(folder.path(), &content).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_does_not_hold_any_more_is_not_visible() {
        let folder = tempfile::tempdir().unwrap();
        let (path, content) = (folder.path().join("x"), Content::of_bytes(*b"abc"));
        let changed = || Err(Error::new(Kind::Changed, "changed during the run"));
        assert_eq!(write_if(&path, &content, changed).unwrap_err().kind(), Kind::Changed);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        write(&path, &content).unwrap();
        assert_eq!(write_if(&path, &content, changed).unwrap_err().kind(), Kind::Changed);
    }

    #[test]
    fn what_a_dead_run_left_goes_and_what_a_living_one_writes_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let living = Unfinished::create(&path).unwrap();
        let dead = folder.path().join(format!("{PREFIX}7"));
        fs::write(&dead, b"ab").unwrap();
        write_single(&path, &Content::of_bytes(*b"abc")).unwrap();
        assert!(living.path.exists() && !dead.exists());
        drop(living);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// Runs that clear away while others write: nobody takes what another is writing.
    #[test]
    fn runs_into_one_folder_do_not_take_each_others_files() {
        let folder = tempfile::tempdir().unwrap();
        let text = |run: u8, file: u8| vec![run; 1000 + usize::from(file)];
        std::thread::scope(|scope| {
            for run in 0..4 {
                let folder = folder.path();
                scope.spawn(move || {
                    for file in 0..25 {
                        let path = folder.join(format!("{run}-{file}"));
                        let written = write_single(&path, &Content::of_bytes(text(run, file)));
                        assert_eq!(written.unwrap(), Outcome::Written);
                    }
                });
            }
        });
        for (run, file) in (0..4).flat_map(|run| (0..25).map(move |file| (run, file))) {
            let path = folder.path().join(format!("{run}-{file}"));
            assert_eq!(fs::read(path).unwrap(), text(run, file));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 100);
    }

    #[test]
    fn content_that_cannot_be_read_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        fs::write(&source, b"abc").unwrap();
        let content = Content::open(&source).unwrap();
        fs::write(&source, b"ab").unwrap();
        assert!(write(&folder.path().join("x"), &content).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
