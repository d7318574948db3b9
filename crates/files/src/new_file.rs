//! Files that appear atomically. Only [`replace`] replaces existing files.
//!
//! Content is written to a temporary name in the same folder, synced, and hard-linked to its final name, which fails
//! if the name exists. An existing file with the same content stays: a repeated run is no error. A killed run can
//! leave a hidden file or folder whose name begins with [`PREFIX`]; the next run that writes into the folder removes
//! it. Without file locks (flock), leftovers stay.

use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::Budget;
use serde::Serialize;

use super::{
    CreatedFolder, Scratch, ScratchKind, check_folder, create_new, kind_of, lock, make_folder,
    make_folders, parent_folder,
};

pub const PREFIX: &str = ".rockpack-new-";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteOutcome {
    Written,
    /// A file with the same content existed.
    Identical,
}

/// Whether a file with `content` exists at `path`. Fails if another file does.
pub fn exists(path: &Path, content: &Content) -> Result<bool> {
    match kind_of(path)? {
        None => Ok(false),
        Some(kind) if !kind.is_file() => Err(occupied(path, "already exists, and is not a file")),
        Some(_) if Content::open(path, content.budget())?.same_bytes(content)? => Ok(true),
        Some(_) => Err(occupied(path, "already exists with other content")),
    }
}

fn occupied(path: &Path, message: &str) -> Error {
    let hint = "rockpack does not overwrite it: move it away, or choose another path";
    Error::new(Kind::Conflict, message).file(path).hint(hint).refused()
}

/// Refuses a path where no file could be written: its folder is missing, or it exists and is not a file.
pub fn check_place(path: &Path) -> Result<()> {
    let folder = parent_folder(path);
    if !check_folder(folder, "files")? {
        // The folder is missing; this call returns the system's error for that.
        fs::metadata(folder).map_err(|e| Error::io(path, "create", e))?;
    }
    match kind_of(path)? {
        Some(kind) if !kind.is_file() => Err(occupied(path, "already exists, and is not a file")),
        Some(_) | None => Ok(()),
    }
}

/// Removes leftovers of killed runs in `folder`. Without file locks it removes none; leftovers do no harm.
///
/// Lists the folder, so call it once at the beginning of a run, not for each file.
pub fn remove_stale(folder: &Path) {
    let Ok(_alone) = lock::folder(folder) else { return };
    for form in [ScratchKind::File, ScratchKind::Folder] {
        for dead in Scratch::stale(form, folder, PREFIX).into_iter().flatten().flatten() {
            let _ = dead.remove();
        }
    }
}

/// Writes `content` to `path`, whose folder exists, and removes leftovers of killed runs there.
pub fn write_single(path: &Path, content: &Content) -> Result<WriteOutcome> {
    remove_stale(parent_folder(path));
    if exists(path, content)? {
        return Ok(WriteOutcome::Identical);
    }
    let unfinished = unfinished(ScratchKind::File, parent_folder(path))?;
    let file = unfinished.file().try_clone();
    let file = file.map_err(|fault| Error::io(unfinished.path(), "write", fault))?;
    fill(file, unfinished.path(), content)?;
    publish(unfinished.path(), path)
}

/// Gives a finished file the name `path`.
fn publish(finished: &Path, path: &Path) -> Result<WriteOutcome> {
    match fs::hard_link(finished, path) {
        Ok(()) => Ok(WriteOutcome::Written),
        // Another writer was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let content = Content::open(finished, &Budget::unlimited())?;
            exists(path, &content).map(|_| WriteOutcome::Identical)
        }
        Err(error) => Err(Error::io(path, "create", error)),
    }
}

/// Files of one folder that become visible after all are written.
#[derive(Debug)]
pub struct NewFiles {
    scratch: Scratch,
    _made: CreatedFolder,
}

impl NewFiles {
    /// Begins in `folder`; creates it if missing. `contents` names its content, as in [`make_folder`].
    pub fn begin(folder: &Path, contents: &str) -> Result<Self> {
        let made = make_folder(folder, contents, make_folders)?;
        Ok(Self { scratch: unfinished(ScratchKind::Folder, folder)?, _made: made })
    }

    pub fn write(&self, name: &str, content: &Content) -> Result<()> {
        let path = self.scratch.path().join(name);
        fill(create_new(&path)?, &path, content)
    }

    /// Moves the file `name` to `path` in the folder, and replaces an existing file.
    pub fn replace(&self, name: &str, path: &Path) -> Result<()> {
        crate::rename(&self.scratch.path().join(name), path)
    }

    pub fn publish(&self, name: &str) -> Result<WriteOutcome> {
        publish(&self.scratch.path().join(name), &parent_folder(self.scratch.path()).join(name))
    }
}

/// Atomically replaces the content of the file at `path` by what `write` writes. Keeps its owner, mode and modification
/// time.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let unfinished = unfinished(ScratchKind::File, parent_folder(path))?;
    let failed = |doing| move |fault| Error::io(path, doing, fault);
    let was = fs::metadata(path).map_err(failed("inspect"))?;
    let mut file = unfinished.file().try_clone().map_err(failed("write"))?;
    write(&mut file)?;
    let now = file.metadata().map_err(failed("inspect"))?;
    if (was.uid(), was.gid()) != (now.uid(), now.gid()) {
        fchown(&file, Some(was.uid()), Some(was.gid())).map_err(failed("keep the owner of"))?;
    }
    copy_mode_and_time(&file, &was, path)?;
    file.sync_all().map_err(failed("write"))?;
    fs::rename(unfinished.path(), path).map_err(failed("replace"))
}

/// Writes a new file at `path` in a scratch folder, with the mode and modification time of the file at `like`.
pub fn write_like(
    path: &Path,
    like: &Path,
    write: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    let was = fs::metadata(like).map_err(|fault| Error::io(like, "inspect", fault))?;
    let mut file = create_new(path)?;
    write(&mut file)?;
    copy_mode_and_time(&file, &was, path)
}

/// Copies the mode and the modification time `was` to the file or folder at `path`.
pub fn copy_mode_and_time(file: &File, was: &Metadata, path: &Path) -> Result<()> {
    let taken = file.set_permissions(was.permissions());
    let taken = taken.and_then(|()| file.set_modified(was.modified()?));
    taken.map_err(|fault| Error::io(path, "set mode and time of", fault))
}

fn unfinished(form: ScratchKind, folder: &Path) -> Result<Scratch> {
    let _alone = lock::folder(folder);
    let scratch = Scratch::create(form, folder, PREFIX)?;
    // Without file locks, no run removes it as a leftover either.
    let _ = scratch.lock();
    Ok(scratch)
}

fn fill(mut file: File, path: &Path, content: &Content) -> Result<()> {
    content.write_to(&mut file, path)?;
    file.sync_all().map_err(|fault| Error::io(path, "write", fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_once_and_never_over_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let content = Content::of_bytes(*b"abc");
        assert_eq!(write_single(&path, &content).unwrap(), WriteOutcome::Written);
        assert_eq!(write_single(&path, &content).unwrap(), WriteOutcome::Identical);
        let error = write_single(&path, &Content::of_bytes(*b"abd")).unwrap_err();
        assert_eq!(error.kind(), Kind::Conflict);
        assert_eq!(fs::read(&path).unwrap(), b"abc");
        assert!(write_single(folder.path(), &content).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn files_of_one_run_are_visible_when_it_says_so() {
        let room = tempfile::tempdir().unwrap();
        let folder = room.path().join("out");
        let files = NewFiles::begin(&folder, "texts").unwrap();
        let content = Content::of_bytes(*b"abc");
        files.write("x", &content).unwrap();
        files.write("y", &content).unwrap();
        assert!(!folder.join("x").exists());
        assert_eq!(files.publish("x").unwrap(), WriteOutcome::Written);
        fs::write(folder.join("y"), b"abd").unwrap();
        assert_eq!(files.publish("y").unwrap_err().kind(), Kind::Conflict);
        drop(files);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        fs::remove_dir_all(&folder).unwrap();
        let files = NewFiles::begin(&folder, "texts").unwrap();
        files.write("x", &content).unwrap();
        drop(files);
        assert!(!folder.exists());
    }

    #[test]
    fn what_a_dead_run_left_goes_and_what_a_living_one_writes_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let living = unfinished(ScratchKind::File, folder.path()).unwrap();
        let dead = folder.path().join(format!("{PREFIX}7"));
        fs::write(&dead, b"ab").unwrap();
        write_single(&path, &Content::of_bytes(*b"abc")).unwrap();
        assert!(living.path().exists() && !dead.exists());
        drop(living);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// Runs that remove leftovers while others write: no run takes a file that another is writing.
    #[test]
    fn runs_into_one_folder_do_not_take_each_others_files() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for run in 0..4 {
                let folder = folder.path();
                scope.spawn(move || {
                    for file in 0..25 {
                        let path = folder.join(format!("{run}-{file}"));
                        let written = write_single(&path, &Content::of_bytes(text_of(run, file)));
                        assert_eq!(written.unwrap(), WriteOutcome::Written);
                    }
                });
            }
        });
        for (run, file) in (0..4).flat_map(|run| (0..25).map(move |file| (run, file))) {
            let path = folder.path().join(format!("{run}-{file}"));
            assert_eq!(fs::read(path).unwrap(), text_of(run, file));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 100);
    }

    fn text_of(run: u8, file: u8) -> Vec<u8> {
        vec![run; 1000 + usize::from(file)]
    }

    #[test]
    fn content_that_cannot_be_read_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        fs::write(&source, b"abc").unwrap();
        let content = Content::open(&source, &Budget::unlimited()).unwrap();
        fs::write(&source, b"ab").unwrap();
        assert!(write_single(&folder.path().join("x"), &content).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
