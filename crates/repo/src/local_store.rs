//! A repository in a folder of a file system.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use rockpack_core::content::{Content, if_exists, is_file, list};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::run::Budget;
use rockpack_files::{
    Durability, empty_folder, kind_of, lock, make_folders, make_listable, make_readable_folders,
    refuse_world_writable, remove_empty, remove_file, rename, sync, sync_file_system,
    unlistable_mode,
};
use rockpack_report::{Finding, found};

use super::store::{FileBody, FileContent, PRIVATE, Stat, Store, WhenLocked, stat_of};

/// Unfinished files lie here, on the file system of the repository.
const UNFINISHED: &str = ".rockpack/unfinished";

const LOCK: &str = ".rockpack/lock";

const LINK_HINT: &str = "rockpack writes only inside the repository: replace the link by the folder, or \
                         mount the folder there; the repository itself may be a link";

const PLACE_HINT: &str = "remove it, or publish to another folder";

#[derive(Debug)]
pub struct LocalStore {
    root: PathBuf,
    budget: Budget,
    /// Held while the store is open for writing. A dry run has none if the lock file does not exist.
    lock: Option<File>,
    /// In a dry run: the files that it would have written or removed (`None`) so far.
    planned: Option<Mutex<BTreeMap<String, PlannedFile>>>,
}

/// The content of a file that would be written; `None` for one that would be removed.
type PlannedFile = Option<FileContent>;

impl LocalStore {
    /// Opens the folder `root` for writing; creates it if missing.
    pub fn open(root: &Path, when_locked: WhenLocked, budget: &Budget) -> Result<Self> {
        check_places(root, &[LOCK])?;
        refuse_world_writable(root)?;
        let private = root.join(PRIVATE);
        make_readable_folders(root).and_then(|()| make_folders(&private)).map_err(|error| {
            error.hint("the repository must be a folder that can be created and written to")
        })?;
        let path = root.join(LOCK);
        let lock = lock::open(&path)?;
        take(&lock, &path, when_locked)?;
        // The lock protects this folder, so its files need no locks of their own.
        empty_folder(&root.join(UNFINISHED))?;
        let (root, budget) = (root.to_path_buf(), budget.clone());
        Ok(Self { root, budget, lock: Some(lock), planned: None })
    }

    /// Opens the folder `root` for a dry run, which writes nothing to it. Takes the lock if its file exists.
    pub fn open_dry(root: &Path, when_locked: WhenLocked, budget: &Budget) -> Result<Self> {
        check_places(root, &[LOCK])?;
        refuse_world_writable(root)?;
        let path = root.join(LOCK);
        let lock = is_file(&path)?.then(|| lock::open(&path)).transpose()?;
        lock.iter().try_for_each(|lock| take(lock, &path, when_locked))?;
        let (root, budget) = (root.to_path_buf(), budget.clone());
        Ok(Self { root, budget, lock, planned: Some(Mutex::default()) })
    }

    /// Opens the folder `root` for reading files that runs replace atomically. Needs no lock.
    pub(super) fn open_to_read(root: &Path, budget: &Budget) -> Self {
        let (root, budget) = (root.to_path_buf(), budget.clone());
        Self { root, budget, lock: None, planned: Some(Mutex::default()) }
    }

    /// Records changes in a dry run; returns whether this is one.
    fn record_planned(&self, changes: impl IntoIterator<Item = (String, PlannedFile)>) -> bool {
        let Some(planned) = &self.planned else { return false };
        planned.lock().unwrap_or_else(PoisonError::into_inner).extend(changes);
        true
    }

    /// The file at `path`, if this dry run would have changed it.
    fn planned(&self, path: &str) -> Option<PlannedFile> {
        let planned = self.planned.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        planned.get(path).cloned()
    }

    fn path(&self, path: &str) -> Result<PathBuf> {
        check_path(path)?;
        Ok(self.root.join(path))
    }

    /// Writes files under temporary names. Writes those that share another file's content last.
    fn write(&self, files: &[(String, FileBody)]) -> Result<Vec<PathBuf>> {
        let temporary = |number: usize| self.root.join(UNFINISHED).join(number.to_string());
        let temporaries: Vec<PathBuf> = (0..files.len()).map(temporary).collect();
        let (same, own): (Vec<_>, Vec<_>) = files
            .iter()
            .zip(&temporaries)
            .partition(|((_, it), _)| matches!(it, FileBody::Same(..)));
        let is_many = temporaries.len() >= MANY;
        let durability = if is_many { Durability::Unsynced } else { Durability::Synced };
        let write = |((_, body), temporary): &(&(String, FileBody), &PathBuf)| {
            body.write(temporary, durability)
        };
        let written: Vec<Result<()>> = own.par_iter().map(write).collect();
        written.into_iter().collect::<Result<()>>()?;
        let unfinished: HashMap<&str, &PathBuf> =
            own.into_iter().map(|((path, _), temporary)| (path.as_str(), temporary)).collect();
        for ((_, body), temporary) in same {
            if let FileBody::Same(other, _) = body {
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

/// From this many files on, syncing the whole file system first is faster: it writes their metadata together.
const MANY: usize = 64;

impl Drop for LocalStore {
    /// Unlocks explicitly: a process that another thread starts at this moment inherits the open file.
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
            // Reading a pipe would block, and the target of a link is not part of the repository.
            Some(kind) if !kind.is_file() => {
                Err(Error::unsupported("is not a regular file").file(&path))
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
        let metadata = if_exists(&path, "inspect", fs::metadata(&path))?;
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
        // Also folders that a run with a strict umask created. Folders of other users are reported, and so is the
        // root, which may be closed on purpose.
        let mut closed = Vec::new();
        closed.extend(unlistable_mode(&self.root)?.map(|mode| (self.root.clone(), mode)));
        let mut links: Vec<PathBuf> = Vec::new();
        // A dry run opens no folder.
        let paths: &[&str] = if self.planned.is_some() { &[] } else { paths };
        for folder in folders_of(paths).into_iter().map(|folder| self.root.join(folder)) {
            // The target of a link is not part of the repository.
            if links.iter().any(|link| folder.starts_with(link)) {
                continue;
            }
            match kind_of(&folder)? {
                Some(kind) if kind.is_dir() => {
                    closed.extend(make_listable(&folder)?.map(|mode| (folder, mode)));
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

    fn put(&self, files: Vec<(String, FileBody)>) -> Result<()> {
        let sources = files.iter().filter_map(|(_, body)| match body {
            FileBody::Same(other, _) => Some(other.as_str()),
            _ => None,
        });
        let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).chain(sources).collect();
        self.check(&paths)?;
        let changes = files.iter().filter_map(|(path, body)| match body {
            FileBody::Made(content) | FileBody::Same(_, content) => {
                Some((path.clone(), Some(content.clone())))
            }
            // Packages are not read again in a run.
            FileBody::Package(..) => None,
        });
        if self.record_planned(changes) {
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
            if matches!(body, FileBody::Same(..)) {
                // Renaming to another name of the same file does nothing.
                remove_file(&temporary)?;
            }
        }
        // A new folder is an entry of its parent.
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
        if self.record_planned(paths.iter().map(|path| (path.clone(), None))) {
            return Ok(());
        }
        for path in paths {
            let path = self.path(path)?;
            remove_file(&path)?;
            // Remove the parent folders, up to the first one that is not empty.
            let mut above = path.ancestors().skip(1).take_while(|folder| *folder != self.root);
            while above.next().is_some_and(remove_empty) {}
        }
        Ok(())
    }
}

/// Refuses paths whose parents are not real folders below `root`, or that exist and are not files. Through a link,
/// rockpack would write and remove files elsewhere.
fn check_places(root: &Path, paths: &[&str]) -> Result<()> {
    check_folders(root, paths)?;
    Faults::all(paths.iter().map(|path| check_file(&root.join(path)))).map(drop)
}

/// Refuses paths whose parents below `root` exist and are not folders.
fn check_folders(root: &Path, paths: &[&str]) -> Result<()> {
    paths.iter().try_for_each(|path| check_path(path))?;
    let (mut faults, mut refused) = (Faults::default(), Vec::new());
    // Nothing below a refused folder is checked.
    for folder in folders_of(paths).into_iter().map(Path::new) {
        let is_behind = refused.iter().any(|other| folder.starts_with(other));
        if !is_behind && faults.keep(check_folder(&root.join(folder))).is_none() {
            refused.push(folder);
        }
    }
    faults.finish()
}

/// Refuses paths with empty parts, `.`, `..` or NUL.
fn check_path(path: &str) -> Result<()> {
    let is_plain = path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    if is_plain && !path.contains('\0') {
        Ok(())
    } else {
        let message = format!("`{}` is not a path inside a repository", path.escape_debug());
        Err(Error::malformed(message))
    }
}

/// All parent folders of these paths, relative to the repository, parents first.
fn folders_of<'a>(paths: &[&'a str]) -> BTreeSet<&'a str> {
    let mut folders = BTreeSet::new();
    for path in paths {
        let mut path = *path;
        // A known folder's parents are known, too.
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
            Err(Error::unsupported("is a symbolic link, not a folder of the repository")
                .file(path)
                .hint(LINK_HINT))
        }
        Some(kind) if !kind.is_dir() => {
            Err(Error::unsupported("is not a folder").file(path).hint(PLACE_HINT))
        }
        _ => Ok(()),
    }
}

fn check_file(path: &Path) -> Result<()> {
    match kind_of(path)? {
        Some(kind) if !kind.is_file() => {
            Err(Error::unsupported("is not a regular file").file(path).hint(PLACE_HINT))
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

    fn one_byte() -> FileBody {
        FileBody::Made(b"x".to_vec().into())
    }

    #[test]
    fn many_files_are_put_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), WhenLocked::Fail).unwrap();
        let paths: Vec<String> = (0..MANY).map(|number| format!("{number}/file")).collect();
        let body = |path: &String| (path.clone(), FileBody::Made(path.clone().into_bytes().into()));
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
                        store.put(vec![("a".into(), FileBody::Made(Vec::new().into()))]).unwrap();
                    }
                });
            }
        });
    }
}
