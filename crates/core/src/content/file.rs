//! Input files, opened when read and checked for change at every opening, and the folders and links that led
//! to them.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::Content;
use super::open::open_nonblocking;
use crate::error::{Error, Kind, Result};
use crate::run::Budget;

/// The identity and state of a file or folder; any difference means that the input changed. The time of a
/// folder changes with the names in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: (i64, i64),
    inode: (u64, u64),
    mode: u32,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            inode: (metadata.dev(), metadata.ino()),
            mode: metadata.mode(),
        }
    }
}

/// The number of cached bytes at the start of each file: the length of an ELF header. Many stages ask for the type of a
/// file, and opening a small file for each of them cost more than all other work on it.
const HEAD: u64 = 64;

/// A regular file of the input and the state in which it was first seen.
#[derive(Debug)]
pub struct StampedFile {
    path: PathBuf,
    stamp: Stamp,
    /// The first bytes of the file, at most [`HEAD`], once one of them was read.
    head: OnceLock<Box<[u8]>>,
    /// The descriptor, shared by concurrent readers. The last reader closes it, so that trees of a hundred
    /// thousand files do not exhaust descriptors.
    handle: Mutex<Weak<File>>,
}

impl StampedFile {
    /// Notes the state of the regular file at `path`, which is opened on the first read.
    pub fn open(path: &Path) -> Result<Self> {
        let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, "open", e))?;
        Self::of(path, &metadata)
    }

    /// Notes the state of the regular file at `path`, which has this metadata.
    pub fn of(path: &Path, metadata: &Metadata) -> Result<Self> {
        if !metadata.is_file() {
            return Err(Error::unsupported("is not a regular file").file(path).wrong_file_kind());
        }
        let (path, stamp) = (path.to_path_buf(), Stamp::of(metadata));
        Ok(Self { path, stamp, head: OnceLock::new(), handle: Mutex::new(Weak::new()) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// File size in bytes.
    pub fn len(&self) -> u64 {
        self.stamp.len
    }

    pub fn is_empty(&self) -> bool {
        self.stamp.len == 0
    }

    /// An open descriptor, shared with other readers.
    pub(super) fn handle(&self) -> Result<Arc<File>> {
        let mut slot = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = slot.upgrade() {
            return Ok(file);
        }
        let file = open_nonblocking(&self.path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => self.changed("vanished"),
            _ => Error::io(&self.path, "open", e),
        })?;
        let metadata = file.metadata().map_err(|e| Error::io(&self.path, "inspect", e))?;
        self.compare(Stamp::of(&metadata))?;
        let file = Arc::new(file);
        *slot = Arc::downgrade(&file);
        Ok(file)
    }

    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let end = offset.saturating_add(buffer.len() as u64);
        if end > self.len().min(HEAD) {
            return self.read_from_disk(offset, buffer);
        }
        let head = self.head()?;
        let start = usize::try_from(offset).unwrap_or(head.len());
        match head.get(start..start.saturating_add(buffer.len())) {
            Some(known) => buffer.copy_from_slice(known),
            None => self.read_from_disk(offset, buffer)?,
        }
        Ok(())
    }

    /// Whether the bytes up to `end` were read and are remembered.
    pub(super) fn is_known(&self, end: u64) -> bool {
        self.head.get().is_some_and(|head| end <= head.len() as u64)
    }

    fn head(&self) -> Result<&[u8]> {
        if let Some(head) = self.head.get() {
            return Ok(head);
        }
        let mut head = vec![0; usize::try_from(self.len().min(HEAD)).unwrap_or_default()];
        self.read_from_disk(0, &mut head)?;
        Ok(self.head.get_or_init(|| head.into_boxed_slice()))
    }

    fn read_from_disk(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let file = self.handle()?;
        file.read_exact_at(buffer, offset).map_err(|error| {
            if error.kind() == ErrorKind::UnexpectedEof {
                return self.changed("became shorter").offset(offset);
            }
            Error::io(&self.path, "read", error).offset(offset)
        })
    }

    /// Fails if the file changed since it was first seen.
    pub fn recheck(&self) -> Result<()> {
        self.compare(stamp_of(&self.path)?)
    }

    fn compare(&self, now: Stamp) -> Result<()> {
        if now == self.stamp {
            return Ok(());
        }
        let what = if now.len == self.stamp.len {
            "was modified or replaced".to_owned()
        } else {
            format!("had {} bytes and now has {}", self.stamp.len, now.len)
        };
        Err(self.changed(&what))
    }

    fn changed(&self, what: &str) -> Error {
        changed(&self.path, &format!("the input file {what}"))
    }
}

/// The stamp of the file or folder at `path`, following links, because reads follow them too.
fn stamp_of(path: &Path) -> Result<Stamp> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Stamp::of(&metadata)),
        Err(e) if e.kind() == ErrorKind::NotFound => Err(changed(path, "vanished")),
        Err(e) => Err(Error::io(path, "inspect", e)),
    }
}

fn changed(path: &Path, what: &str) -> Error {
    Error::new(Kind::Changed, format!("{what} during the run"))
        .file(path)
        .hint("run again once nothing writes to the input")
}

/// All input of a run, to be checked for change once more before its output becomes visible.
#[derive(Debug)]
pub struct Inputs {
    budget: Budget,
    files: Vec<Arc<StampedFile>>,
    folders: Vec<(PathBuf, Stamp)>,
    links: Vec<(PathBuf, PathBuf)>,
    others: Vec<Box<dyn Recheck>>,
}

/// Input other than files, such as objects of a store.
pub trait Recheck: fmt::Debug + Send + Sync {
    /// Fails if it changed since it was first seen.
    fn recheck(&self) -> Result<()>;
}

impl Inputs {
    /// An empty list; reading and remembering inputs draws from `budget`.
    pub fn within(budget: &Budget) -> Self {
        let (budget, files, folders) = (budget.clone(), Vec::new(), Vec::new());
        Self { budget, files, folders, links: Vec::new(), others: Vec::new() }
    }

    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Opens the file at `path` and remembers it.
    pub fn open(&mut self, path: &Path) -> Result<Arc<StampedFile>> {
        let file = Arc::new(StampedFile::open(path)?);
        self.files.push(Arc::clone(&file));
        Ok(file)
    }

    /// Opens and remembers the file at `path`, and returns its content.
    pub fn content(&mut self, path: &Path) -> Result<Content> {
        Ok(self.add(Arc::new(StampedFile::open(path)?)))
    }

    /// Remembers a file, and returns its content.
    pub fn add(&mut self, file: Arc<StampedFile>) -> Content {
        self.files.push(Arc::clone(&file));
        Content::of_file(file, &self.budget)
    }

    /// Remembers the folder at `path`, before the names in it are read.
    pub fn add_folder(&mut self, path: &Path) -> Result<()> {
        self.folders.push((path.to_path_buf(), stamp_of(path)?));
        Ok(())
    }

    /// Remembers that the link at `path` has the text `target`.
    pub fn add_link(&mut self, path: &Path, target: &Path) {
        self.links.push((path.to_path_buf(), target.to_path_buf()));
    }

    /// Remembers input other than a file.
    pub fn add_other(&mut self, other: impl Recheck + 'static) {
        self.others.push(Box::new(other));
    }

    /// Fails if anything changed since it was first seen, and names all of it.
    pub fn recheck(&self) -> Result<()> {
        let files = self.files.iter().map(|file| file.recheck());
        let folders = self.folders.iter().map(|(path, stamp)| match stamp_of(path)? {
            now if now == *stamp => Ok(()),
            _ => Err(changed(path, "a file was added to or removed from the input folder")),
        });
        let links = self.links.iter().map(|(path, target)| match std::fs::read_link(path) {
            Ok(now) if now == *target => Ok(()),
            Err(e) if !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => {
                Err(Error::io(path, "read the link", e))
            }
            _ => Err(changed(path, "the link was changed")),
        });
        let others = self.others.iter().map(|other| other.recheck());
        let all = files.chain(folders).chain(links).chain(others);
        let faults = all.filter_map(Result::err).collect();
        Error::gather(faults).map_or(Ok(()), Err)
    }

    /// If the input changed during the run, replaces the error of `result` by that change: it can look like damage.
    pub fn explain<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match self.recheck() {
            Err(found) if found.kind() == Kind::Changed => found,
            _ => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A folder with a file and a link, and the inputs that remember them.
    fn inputs(folder: &Path) -> Inputs {
        fs::write(folder.join("file"), "text").unwrap();
        symlink("file", folder.join("link")).unwrap();
        let mut inputs = Inputs::within(&Budget::unlimited());
        inputs.open(&folder.join("file")).unwrap();
        inputs.add_folder(folder).unwrap();
        inputs.add_link(&folder.join("link"), Path::new("file"));
        inputs.recheck().unwrap();
        inputs
    }

    #[test]
    fn a_failure_is_told_as_the_change_that_it_comes_of() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = inputs(folder.path());
        assert_eq!(kind_of_failure(&inputs), Kind::Malformed);
        fs::write(folder.path().join("file"), "longer text").unwrap();
        assert_eq!(kind_of_failure(&inputs), Kind::Changed);
    }

    fn kind_of_failure(inputs: &Inputs) -> Kind {
        let failed = inputs.explain::<()>(Err(Error::malformed("the magic is missing")));
        failed.unwrap_err().kind()
    }

    #[test]
    fn every_change_is_seen_and_named() {
        type Change = fn(&Path);
        let changes: [(&str, Change); 7] = [
            ("file", |folder| fs::write(folder.join("file"), "longer text").unwrap()),
            ("file", |folder| {
                let mode = fs::Permissions::from_mode(0o600);
                fs::set_permissions(folder.join("file"), mode).unwrap();
            }),
            ("file", |folder| fs::remove_file(folder.join("file")).unwrap()),
            ("", |folder| fs::write(folder.join("another"), "").unwrap()),
            ("", |folder| fs::rename(folder.join("file"), folder.join("renamed")).unwrap()),
            ("link", |folder| fs::remove_file(folder.join("link")).unwrap()),
            ("link", |folder| {
                fs::remove_file(folder.join("link")).unwrap();
                symlink("elsewhere", folder.join("link")).unwrap();
            }),
        ];
        for (place, change) in changes {
            let folder = tempfile::tempdir().unwrap();
            let inputs = inputs(folder.path());
            // File times are only as fine as the kernel's clock, which may tick every few ms.
            std::thread::sleep(std::time::Duration::from_millis(20));
            change(folder.path());
            let error = inputs.recheck().unwrap_err();
            let faults = std::iter::once(&error).chain(error.others());
            let mut places = faults.filter_map(|fault| fault.place().file.as_deref());
            assert!(places.any(|there| there == folder.path().join(place)), "{place}: {error}");
            assert_eq!(error.kind(), Kind::Changed);
        }
    }
}
