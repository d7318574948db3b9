//! Folders: created, checked, synced and removed.

use std::fs::{self, File, Metadata, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rockpack_core::content::{if_exists, list};
use rockpack_core::error::{Error, Kind, Result};
use rustix::process::geteuid;

use super::{guarded, refuse_non_folder, set_mode};

/// The permission bits of folders that all users may list.
const LISTABLE_MODE: u32 = 0o755;

/// The permission bits that let other users list a folder.
const OTHERS_MAY_LIST: u32 = 0o005;

const HINT: &str = "name a folder that can be created and written to";

/// An output folder. On drop it is removed, if this run created it and it is empty.
#[derive(Debug)]
pub struct CreatedFolder(Option<PathBuf>);

impl Drop for CreatedFolder {
    fn drop(&mut self) {
        if let Some(made) = &self.0 {
            remove_empty(made);
        }
    }
}

/// Creates the output folder at `path` by `make` if it is missing. `contents` names its content: `packages`.
pub fn make_folder(
    path: &Path,
    contents: &str,
    make: impl Fn(&Path) -> Result<()>,
) -> Result<CreatedFolder> {
    if is_folder(path, contents)? {
        return Ok(CreatedFolder(None));
    }
    make(path).map_err(|error| error.hint(HINT))?;
    Ok(CreatedFolder(Some(path.to_path_buf())))
}

/// Refuses an output folder that [`make_folder`] could not create, as far as the existing folders show,
/// without creating any. Whether it exists.
pub fn check_folder(path: &Path, contents: &str) -> Result<bool> {
    if is_folder(path, contents)? {
        return Ok(true);
    }
    // The nearest existing parent gets the missing ones.
    for above in path.ancestors().skip(1).filter(|above| *above != Path::new("")) {
        if is_folder(above, contents)? {
            break;
        }
    }
    Ok(false)
}

/// Whether a folder is at `path`. Fails if something else is, or if that cannot be read.
fn is_folder(path: &Path, contents: &str) -> Result<bool> {
    let message = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Ok(true),
        Ok(_) => "is a file",
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(Error::io(path, "inspect", error).hint(HINT));
        }
        Err(_) if path.is_symlink() => "is a dangling symbolic link",
        Err(_) => return Ok(false),
    };
    let message = format!("{message}, but {contents} are written into a folder");
    Err(Error::new(Kind::Usage, message).file(path).hint(HINT))
}

pub fn make_folders(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|e| Error::io(path, "create", e))
}

/// Creates the folder at `path` and its missing parents, listable by all users regardless of the umask.
pub fn make_readable_folders(path: &Path) -> Result<()> {
    let missing = path.ancestors().take_while(|it| *it != Path::new("") && !it.is_dir());
    for folder in missing.collect::<Vec<&Path>>().into_iter().rev() {
        match fs::create_dir(folder) {
            Ok(()) => {
                let metadata = fs::metadata(folder).map_err(|e| Error::io(folder, "inspect", e))?;
                let mode = metadata.permissions().mode();
                set_mode(folder, (mode & 0o7777) | LISTABLE_MODE)?;
            }
            // Another run was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(error) => return Err(Error::io(folder, "create", error)),
        }
    }
    Ok(())
}

/// Makes the folder at `path`, which must not be a link, listable by all users. Returns its permission bits if that
/// fails: it belongs to another user, or its file system has no such bits.
pub fn make_listable(path: &Path) -> Result<Option<u32>> {
    let Some(mode) = unlistable_mode(path)? else { return Ok(None) };
    let folder = match guarded::open_folder(path) {
        Ok(folder) => folder,
        // Only the owner may change the bits.
        Err(error) if error.kind() == Kind::Io => return Ok(Some(mode)),
        Err(error) => return Err(error),
    };
    let metadata = folder.metadata().map_err(|e| Error::io(path, "inspect", e))?;
    let opened = metadata.uid() == geteuid().as_raw()
        && folder.set_permissions(Permissions::from_mode(mode | LISTABLE_MODE)).is_ok();
    Ok((!opened).then_some(mode))
}

/// The permission bits of the folder at `path`, unless all users may list it.
pub fn unlistable_mode(path: &Path) -> Result<Option<u32>> {
    let metadata = if_exists(path, "inspect", fs::metadata(path))?;
    let mode = metadata.filter(Metadata::is_dir).map(|folder| folder.permissions().mode() & 0o7777);
    Ok(mode.filter(|mode| mode & OTHERS_MAY_LIST != OTHERS_MAY_LIST))
}

pub fn parent_folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Syncs a file, or the names in a folder, to disk.
pub fn sync(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|it| it.sync_all());
    synced.map_err(|e| Error::io(path, "sync", e))
}

/// Syncs the file system of `folder`, so that later [`sync`]s are fast. Some file systems ignore it.
pub fn sync_file_system(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|it| Ok(rustix::fs::syncfs(it)?));
    synced.map_err(|e| Error::io(folder, "sync", e))
}

/// Removes a folder with all its content, if it exists, and even if folders inside are read-only.
pub fn remove_folder(folder: &Path) -> Result<()> {
    let removed = match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            make_writable(folder)?;
            fs::remove_dir_all(folder)
        }
        removed => removed,
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(guarded::refused(folder, "remove", error))
        }
        _ => Ok(()),
    }
}

/// Removes an empty folder, and returns whether it is gone.
pub fn remove_empty(folder: &Path) -> bool {
    // Fails for a folder with content, as intended.
    fs::remove_dir(folder).is_ok()
}

/// Creates an empty folder at `path`, and removes an existing one. Only for folders that are used under a lock: old
/// content is from killed runs.
pub fn empty_folder(path: &Path) -> Result<()> {
    remove_folder(path)?;
    fs::create_dir(path).map_err(|e| Error::io(path, "create", e))
}

fn make_writable(folder: &Path) -> Result<()> {
    refuse_non_folder(folder)?;
    set_mode(folder, 0o700)?;
    for entry in list(folder)? {
        let entry = entry?;
        let kind = entry.file_type().map_err(|e| Error::io(entry.path(), "inspect", e))?;
        if kind.is_dir() {
            make_writable(&entry.path())?;
        }
    }
    Ok(())
}
