//! The storage of a repository. Everything is read and written through [`Store`]. [`LocalStore`] keeps
//! its promises on a file system; an object store could keep them, too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use rockpack_core::content::{Content, if_there, is_file, list};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::Budget;

use super::body::Body;
use super::places::{self, check_path};
use super::readable;
use super::stat::{Stat, stat_of};
use rockpack_files::{
    empty_folder, kind_of, link, lock, make_folders, make_readable_folders, refuse_open_to_all,
    remove_empty, remove_file, rename, sync_folder,
};
use rockpack_report::Finding;

/// The folder of what only rockpack reads: states, the lock, unfinished files, key packages.
pub const PRIVATE: &str = ".rockpack";

/// Unfinished files lie here, on the file system of the repository.
const UNFINISHED: &str = ".rockpack/unfinished";

const LOCK: &str = ".rockpack/lock";

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

/// A folder.
#[derive(Debug)]
pub struct LocalStore {
    root: PathBuf,
    budget: Budget,
    /// Held while the store is used for writing. In a dry run it may be missing.
    _lock: Option<File>,
    /// In a dry run: the files that a run would have written or removed (`None`) until now.
    planned: Option<Mutex<BTreeMap<String, PlannedFile>>>,
}

/// The bytes of a file that would be written; `None` for one that would be removed.
type PlannedFile = Option<Arc<[u8]>>;

impl LocalStore {
    /// Opens the folder `root` for writing, and makes it where it is missing.
    pub fn open(root: &Path, when_locked: WhenLocked, budget: &Budget) -> Result<Self> {
        places::check(root, &[LOCK])?;
        refuse_open_to_all(root)?;
        let private = root.join(PRIVATE);
        make_readable_folders(root).and_then(|()| make_folders(&private)).map_err(|error| {
            error.hint("the repository has to be a folder that can be created and written to")
        })?;
        let path = root.join(LOCK);
        let lock = lock::open(&path)?;
        take(&lock, &path, when_locked)?;
        // Nobody touches this folder without the lock, so files in it need no locks of their own, and
        // may be any number.
        empty_folder(&root.join(UNFINISHED))?;
        let (root, budget) = (root.to_path_buf(), budget.clone());
        Ok(Self { root, budget, _lock: Some(lock), planned: None })
    }

    /// Opens the folder `root` for a dry run, which writes nothing to it. Takes the lock if its file exists.
    pub fn open_dry(root: &Path, when_locked: WhenLocked, budget: &Budget) -> Result<Self> {
        places::check(root, &[LOCK])?;
        refuse_open_to_all(root)?;
        let path = root.join(LOCK);
        let lock = is_file(&path)?.then(|| lock::open(&path)).transpose()?;
        lock.iter().try_for_each(|lock| take(lock, &path, when_locked))?;
        let (root, budget) = (root.to_path_buf(), budget.clone());
        Ok(Self { root, budget, _lock: lock, planned: Some(Mutex::default()) })
    }

    /// Notes changes if this is a dry run, and tells whether it is one.
    fn plans(&self, changes: impl IntoIterator<Item = (String, PlannedFile)>) -> bool {
        let Some(planned) = &self.planned else { return false };
        planned.lock().unwrap_or_else(PoisonError::into_inner).extend(changes);
        true
    }

    /// The file at `path` if this dry run would have changed it.
    fn planned(&self, path: &str) -> Option<PlannedFile> {
        let planned = self.planned.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        planned.get(path).cloned()
    }

    fn path(&self, path: &str) -> Result<PathBuf> {
        check_path(path)?;
        Ok(self.root.join(path))
    }

    /// Writes files under temporary names, and those that share the content of another file last.
    fn write(&self, files: &[(String, Body)]) -> Result<Vec<PathBuf>> {
        let temporary = |number: usize| self.root.join(UNFINISHED).join(number.to_string());
        let temporaries: Vec<PathBuf> = (0..files.len()).map(temporary).collect();
        let written: Vec<Result<()>> = files
            .par_iter()
            .zip(&temporaries)
            .filter(|((_, body), _)| !is_same(body))
            .map(|((_, body), temporary)| body.write(temporary))
            .collect();
        written.into_iter().collect::<Result<()>>()?;
        let own = files.iter().zip(&temporaries).filter(|((_, body), _)| !is_same(body));
        let unfinished: HashMap<&str, &PathBuf> =
            own.map(|((path, _), temporary)| (path.as_str(), temporary)).collect();
        for ((_, body), temporary) in files.iter().zip(&temporaries) {
            if let Body::Same(other, _) = body {
                let source = match unfinished.get(other.as_str()) {
                    Some(source) => (*source).clone(),
                    None => self.path(other)?,
                };
                if !link(&source, temporary) {
                    body.write(temporary)?;
                }
            }
        }
        Ok(temporaries)
    }
}

fn is_same(body: &Body) -> bool {
    matches!(body, Body::Same(..))
}

/// Makes a folder of the repository: for everybody, or for rockpack alone.
fn make_all(folder: &Path, root: &Path) -> Result<()> {
    let is_private = folder.starts_with(root.join(PRIVATE));
    if is_private { make_folders(folder) } else { make_readable_folders(folder) }
}

fn take(file: &File, path: &Path, when_locked: WhenLocked) -> Result<()> {
    if when_locked == WhenLocked::Wait {
        return lock::wait(file, path);
    }
    if lock::take(file, path)? {
        return Ok(());
    }
    Err(Error::new(Kind::Conflict, "another run is writing to this repository")
        .file(path)
        .hint("try again when it is done, or wait for it with --wait"))
}

impl Store for LocalStore {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        if let Some(planned) = self.planned(path) {
            return Ok(planned.map(|bytes| bytes.to_vec()));
        }
        let path = self.path(path)?;
        match kind_of(&path)? {
            None => Ok(None),
            // A pipe would be waited for, and what is behind a link is not the repository's.
            Some(kind) if !kind.is_file() => {
                Err(Error::unsupported("is no regular file").file(&path))
            }
            Some(_) => {
                let content = Content::open(&path, &self.budget)?;
                content.read_vec(0..content.len(), u64::MAX, "a file of the repository").map(Some)
            }
        }
    }

    fn budget(&self) -> &Budget {
        &self.budget
    }

    fn open(&self, path: &str) -> Result<Content> {
        Content::open(self.path(path)?, &self.budget)
    }

    fn stat(&self, path: &str) -> Result<Option<Stat>> {
        if let Some(planned) = self.planned(path) {
            return Ok(planned.map(|bytes| Stat { size: bytes.len() as u64, modified: 0 }));
        }
        let path = self.path(path)?;
        let metadata = if_there(&path, "inspect", fs::metadata(&path))?;
        Ok(metadata.map(|metadata| stat_of(&metadata)))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let folder = self.path(folder)?;
        let mut names = Vec::new();
        if kind_of(&folder)?.is_some() {
            for entry in list(&folder)? {
                names.extend(entry?.file_name().into_string().ok());
            }
        }
        names.sort();
        Ok(names)
    }

    fn check(&self, paths: &[&str]) -> Result<()> {
        places::check(&self.root, paths)
    }

    fn open_folders(&self, paths: &[&str]) -> Result<Option<Finding>> {
        // A dry run opens no folder; that of the repository is never opened.
        let paths: &[&str] = if self.planned.is_some() { &[] } else { paths };
        readable::open_folders(&self.root, paths)
    }

    fn put(&self, files: Vec<(String, Body)>) -> Result<()> {
        let sources = files.iter().filter_map(|(_, body)| match body {
            Body::Same(other, _) => Some(other.as_str()),
            _ => None,
        });
        let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).chain(sources).collect();
        self.check(&paths)?;
        let changes = files.iter().filter_map(|(path, body)| match body {
            Body::Bytes(bytes) | Body::Same(_, bytes) => {
                Some((path.clone(), Some(Arc::clone(bytes))))
            }
            // Packages are put in place last, and not read again.
            Body::Package(..) => None,
        });
        if self.plans(changes) {
            return Ok(());
        }
        let written = self.write(&files)?;
        let mut folders = BTreeSet::new();
        for (path, _) in &files {
            let path = self.path(path)?;
            let folder = path.parent().unwrap_or(&self.root);
            if folders.insert(folder.to_path_buf()) {
                make_all(folder, &self.root)?;
            }
        }
        for ((path, body), temporary) in files.iter().zip(written) {
            rename(&temporary, &self.path(path)?)?;
            if is_same(body) {
                // Renaming to another name of the same file does nothing.
                remove_file(&temporary)?;
            }
        }
        sync_with_parents(&self.root, folders)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        if self.planned.is_some() {
            return Ok(());
        }
        let to = self.path(to)?;
        rename(&self.path(from)?, &to)?;
        sync_folder(to.parent().unwrap_or(&self.root))
    }

    fn remove(&self, paths: &[String]) -> Result<()> {
        let all: Vec<&str> = paths.iter().map(String::as_str).collect();
        places::check_folders(&self.root, &all)?;
        if self.plans(paths.iter().map(|path| (path.clone(), None))) {
            return Ok(());
        }
        for path in paths {
            let path = self.path(path)?;
            remove_file(&path)?;
            remove_empty_above(&self.root, &path);
        }
        Ok(())
    }
}

/// Folders above `path` that hold nothing more are removed, too.
fn remove_empty_above(root: &Path, path: &Path) {
    let mut above = path.ancestors().skip(1).take_while(|folder| *folder != root);
    // Up to the first one that holds something.
    while above.next().is_some_and(remove_empty) {}
}

/// Makes renames durable; a new folder is a name in the one above it.
fn sync_with_parents(root: &Path, folders: BTreeSet<PathBuf>) -> Result<()> {
    let mut all = BTreeSet::new();
    for folder in &folders {
        for above in folder.ancestors().take_while(|above| above.starts_with(root)) {
            if !all.insert(above.to_path_buf()) {
                break;
            }
        }
    }
    all.par_iter().try_for_each(|folder| sync_folder(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path, when_locked: WhenLocked) -> Result<LocalStore> {
        LocalStore::open(folder, when_locked, &Budget::unlimited())
    }

    #[test]
    fn files_appear_whole_and_only_inside() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), WhenLocked::Fail).unwrap();
        store.put(vec![("a/b/c".into(), one_byte()), ("d".into(), one_byte())]).unwrap();
        assert_eq!(store.read("a/b/c").unwrap().unwrap(), b"x");
        assert_eq!(store.list("a/b").unwrap(), ["c"]);
        store.remove(&["a/b/c".to_owned(), "nothing".to_owned()]).unwrap();
        assert!(!folder.path().join("a").exists() && folder.path().exists());
        for path in ["../x", "/x", "a//b", "a/../b", ""] {
            assert!(store.put(vec![(path.into(), one_byte())]).is_err(), "{path}");
        }
        let error = open(folder.path(), WhenLocked::Fail).unwrap_err();
        assert_eq!(error.kind(), Kind::Conflict);
        drop(store);
        open(folder.path(), WhenLocked::Fail).unwrap();
    }

    fn one_byte() -> Body {
        Body::Bytes(b"x"[..].into())
    }

    #[test]
    fn stores_are_opened_by_many_at_once() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let store = open(folder.path(), WhenLocked::Wait).unwrap();
                        store.put(vec![("a".into(), Body::Bytes([][..].into()))]).unwrap();
                    }
                });
            }
        });
    }
}
