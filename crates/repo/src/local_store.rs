//! A repository in a folder of a file system.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use rockpack_core::content::{Content, if_there, is_file, list};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::run::Budget;
use rockpack_files::{
    Durability, closed_mode, empty_folder, kind_of, lock, make_folders, make_readable_folders,
    open_to_all, refuse_open_to_all, remove_empty, remove_file, rename, sync, sync_file_system,
};
use rockpack_report::{Finding, found};

use super::store::{Body, FileContent, PRIVATE, Stat, Store, WhenLocked, stat_of};

/// Unfinished files lie here, on the file system of the repository.
const UNFINISHED: &str = ".rockpack/unfinished";

const LOCK: &str = ".rockpack/lock";

const LINK_HINT: &str = "rockpack writes to no other folder than the repository: put the folder \
                         itself there, or mount it there; the whole repository may be a link";

const PLACE_HINT: &str = "remove it, or publish to another folder";

/// A folder.
#[derive(Debug)]
pub struct LocalStore {
    root: PathBuf,
    budget: Budget,
    /// Held while the store is used for writing. In a dry run it may be missing.
    lock: Option<File>,
    /// In a dry run: the files that a run would have written or removed (`None`) until now.
    planned: Option<Mutex<BTreeMap<String, PlannedFile>>>,
}

/// The content of a file that would be written; `None` for one that would be removed.
type PlannedFile = Option<FileContent>;

impl LocalStore {
    /// Opens the folder `root` for writing, and makes it where it is missing.
    pub fn open(root: &Path, when_locked: WhenLocked, budget: &Budget) -> Result<Self> {
        check_places(root, &[LOCK])?;
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
        Ok(Self { root, budget, lock: Some(lock), planned: None })
    }

    /// Opens the folder `root` for a dry run, which writes nothing to it. Takes the lock if its file exists.
    pub fn open_dry(root: &Path, when_locked: WhenLocked, budget: &Budget) -> Result<Self> {
        check_places(root, &[LOCK])?;
        refuse_open_to_all(root)?;
        let path = root.join(LOCK);
        let lock = is_file(&path)?.then(|| lock::open(&path)).transpose()?;
        lock.iter().try_for_each(|lock| take(lock, &path, when_locked))?;
        let (root, budget) = (root.to_path_buf(), budget.clone());
        Ok(Self { root, budget, lock, planned: Some(Mutex::default()) })
    }

    /// Opens the folder `root` for reading what runs replace whole. It needs no lock.
    pub(super) fn open_to_read(root: &Path, budget: &Budget) -> Self {
        let (root, budget) = (root.to_path_buf(), budget.clone());
        Self { root, budget, lock: None, planned: Some(Mutex::default()) }
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
        let (same, own): (Vec<_>, Vec<_>) =
            files.iter().zip(&temporaries).partition(|((_, it), _)| matches!(it, Body::Same(..)));
        let is_many = temporaries.len() >= MANY;
        let durability = if is_many { Durability::Unsynced } else { Durability::Synced };
        let write = |((_, body), temporary): &(&(String, Body), &PathBuf)| {
            body.write(temporary, durability)
        };
        let written: Vec<Result<()>> = own.par_iter().map(write).collect();
        written.into_iter().collect::<Result<()>>()?;
        let unfinished: HashMap<&str, &PathBuf> =
            own.into_iter().map(|((path, _), temporary)| (path.as_str(), temporary)).collect();
        for ((_, body), temporary) in same {
            if let Body::Same(other, _) = body {
                let source = match unfinished.get(other.as_str()) {
                    Some(source) => (*source).clone(),
                    None => self.path(other)?,
                };
                // Not every file system has hard links.
                if fs::hard_link(&source, temporary).is_err() {
                    body.write(temporary, durability)?;
                }
            }
        }
        self.sync_all(&temporaries)?;
        Ok(temporaries)
    }

    fn sync_all(&self, paths: &[PathBuf]) -> Result<()> {
        if paths.len() >= MANY {
            sync_file_system(&self.root)?;
        }
        paths.par_iter().try_for_each(|path| sync(path))
    }
}

/// From so many files on, it takes less to sync the file system first, which writes what it notes of several at once.
const MANY: usize = 64;

impl Drop for LocalStore {
    /// Unlocks the folder. The file stays open longer in a process that another thread starts at this moment.
    fn drop(&mut self) {
        if let Some(lock) = &self.lock {
            let _ = lock.unlock();
        }
    }
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
            return planned.map(|content| content.to_vec()).transpose();
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
            return Ok(planned.map(|content| Stat { size: content.size(), modified: 0 }));
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
        check_places(&self.root, paths)
    }

    fn open_folders(&self, paths: &[&str]) -> Result<Option<Finding>> {
        // Also where a run under a strict umask made them. What stays closed is a finding: folders of others, and the
        // root, which may have been closed on purpose.
        let mut closed = Vec::new();
        closed.extend(closed_mode(&self.root)?.map(|mode| (self.root.clone(), mode)));
        let mut links: Vec<PathBuf> = Vec::new();
        // A dry run opens no folder.
        let paths: &[&str] = if self.planned.is_some() { &[] } else { paths };
        for folder in folders_of(paths).into_iter().map(|folder| self.root.join(folder)) {
            // What lies behind a link is not the repository's.
            if links.iter().any(|link| folder.starts_with(link)) {
                continue;
            }
            match kind_of(&folder)? {
                Some(kind) if kind.is_dir() => {
                    closed.extend(open_to_all(&folder)?.map(|mode| (folder, mode)));
                }
                Some(_) => links.push(folder),
                None => {}
            }
        }
        Ok(closed.split_first().map(|((folder, mode), others)| {
            let (folder, mode) = (folder.display().to_string(), format!("{mode:04o}"));
            found::FolderClosed { folder, mode, others: others.len() }.into()
        }))
    }

    fn put(&self, files: Vec<(String, Body)>) -> Result<()> {
        let sources = files.iter().filter_map(|(_, body)| match body {
            Body::Same(other, _) => Some(other.as_str()),
            _ => None,
        });
        let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).chain(sources).collect();
        self.check(&paths)?;
        let changes = files.iter().filter_map(|(path, body)| match body {
            Body::Made(content) | Body::Same(_, content) => {
                Some((path.clone(), Some(content.clone())))
            }
            // Packages are put in place last, and not read again.
            Body::Package(..) => None,
        });
        if self.plans(changes) {
            return Ok(());
        }
        let written = self.write(&files)?;
        let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        let folders = folders_of(&paths);
        for folder in &folders {
            let is_private = Path::new(folder).starts_with(PRIVATE);
            let folder = self.root.join(folder);
            if is_private { make_folders(&folder)? } else { make_readable_folders(&folder)? }
        }
        for ((path, body), temporary) in files.iter().zip(written) {
            rename(&temporary, &self.path(path)?)?;
            if matches!(body, Body::Same(..)) {
                // Renaming to another name of the same file does nothing.
                remove_file(&temporary)?;
            }
        }
        // A new folder is a name in the one above it.
        let folders = folders.into_iter().chain([""]).map(|folder| self.root.join(folder));
        self.sync_all(&folders.collect::<Vec<_>>())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        if self.planned.is_some() {
            return Ok(());
        }
        let to = self.path(to)?;
        rename(&self.path(from)?, &to)?;
        sync(to.parent().unwrap_or(&self.root))
    }

    fn remove(&self, paths: &[String]) -> Result<()> {
        let all: Vec<&str> = paths.iter().map(String::as_str).collect();
        check_folders(&self.root, &all)?;
        if self.plans(paths.iter().map(|path| (path.clone(), None))) {
            return Ok(());
        }
        for path in paths {
            let path = self.path(path)?;
            remove_file(&path)?;
            // Folders above, up to the first one that holds something, are removed, too.
            let mut above = path.ancestors().skip(1).take_while(|folder| *folder != self.root);
            while above.next().is_some_and(remove_empty) {}
        }
        Ok(())
    }
}

/// Refuses paths at which no file can be put, or only somewhere else than below `root`: a place for a file is below
/// real folders, and is free or holds a file. A link on the way would make rockpack write and remove files elsewhere.
fn check_places(root: &Path, paths: &[&str]) -> Result<()> {
    check_folders(root, paths)?;
    Faults::all(paths.iter().map(|path| check_file(&root.join(path)))).map(drop)
}

/// Refuses paths that lead through something other than folders below `root`.
fn check_folders(root: &Path, paths: &[&str]) -> Result<()> {
    paths.iter().try_for_each(|path| check_path(path))?;
    let (mut faults, mut refused) = (Faults::default(), Vec::new());
    // What lies behind a link is no matter of the repository.
    for folder in folders_of(paths).into_iter().map(Path::new) {
        let is_behind = refused.iter().any(|other| folder.starts_with(other));
        if !is_behind && faults.keep(check_folder(&root.join(folder))).is_none() {
            refused.push(folder);
        }
    }
    faults.finish()
}

/// Refuses paths that lead elsewhere by their words.
fn check_path(path: &str) -> Result<()> {
    let is_plain = path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    if is_plain && !path.contains('\0') {
        Ok(())
    } else {
        let message = format!("`{}` is no path inside of a repository", path.escape_debug());
        Err(Error::malformed(message))
    }
}

/// The folders below the repository that hold these paths, each after those above it.
fn folders_of<'a>(paths: &[&'a str]) -> BTreeSet<&'a str> {
    let mut folders = BTreeSet::new();
    for path in paths {
        let mut path = *path;
        // Where a folder is known, so are those above it.
        while let Some((folder, _)) = path.rsplit_once('/')
            && folders.insert(folder)
        {
            path = folder;
        }
    }
    folders
}

fn check_folder(path: &Path) -> Result<()> {
    match kind_of(path)? {
        Some(kind) if kind.is_symlink() => {
            Err(Error::unsupported("is a symbolic link, and no folder of the repository")
                .file(path)
                .hint(LINK_HINT))
        }
        Some(kind) if !kind.is_dir() => {
            Err(Error::unsupported("is no folder").file(path).hint(PLACE_HINT))
        }
        _ => Ok(()),
    }
}

fn check_file(path: &Path) -> Result<()> {
    match kind_of(path)? {
        Some(kind) if !kind.is_file() => {
            Err(Error::unsupported("is no regular file").file(path).hint(PLACE_HINT))
        }
        _ => Ok(()),
    }
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
        Body::Made(b"x".to_vec().into())
    }

    #[test]
    fn many_files_are_put_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), WhenLocked::Fail).unwrap();
        let paths: Vec<String> = (0..MANY).map(|number| format!("{number}/file")).collect();
        let body = |path: &String| (path.clone(), Body::Made(path.clone().into_bytes().into()));
        store.put(paths.iter().map(body).collect()).unwrap();
        for path in &paths {
            assert_eq!(store.read(path).unwrap().unwrap(), path.as_bytes());
        }
    }

    #[test]
    fn stores_are_opened_by_many_at_once() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let store = open(folder.path(), WhenLocked::Wait).unwrap();
                        store.put(vec![("a".into(), Body::Made(Vec::new().into()))]).unwrap();
                    }
                });
            }
        });
    }
}
