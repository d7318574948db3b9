//! Folders: created, checked, synced and removed.

use std::fs::{self, File, Metadata, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rockpack_core::content::{if_there, list};
use rockpack_core::error::{Error, Kind, Result};
use rustix::process::geteuid;

use super::{guarded, refuse_no_folder, set_mode};

/// The permission bits of folders that everybody may list.
const LISTABLE: u32 = 0o755;

/// The permission bits that let users outside owner and group list a folder.
const LISTED: u32 = 0o005;

/// The hint for an unusable output folder.
const HINT: &str = "name a folder that can be created and written to";

/// An output folder. On drop it is removed, if this run created it and it is empty.
#[derive(Debug)]
pub struct MadeFolder(Option<PathBuf>);

impl Drop for MadeFolder {
    fn drop(&mut self) {
        if let Some(made) = &self.0 {
            remove_empty(made);
        }
    }
}

/// Creates the output folder at `path` by `make` if it is missing. `holds` names its content: `packages`.
pub fn make_folder(
    path: &Path,
    holds: &str,
    make: impl Fn(&Path) -> Result<()>,
) -> Result<MadeFolder> {
    if is_folder(path, holds)? {
        return Ok(MadeFolder(None));
    }
    make(path).map_err(|error| error.hint(HINT))?;
    Ok(MadeFolder(Some(path.to_path_buf())))
}

/// Refuses an output folder that [`make_folder`] could not create, as far as the existing folders show,
/// without creating any. Tells whether it exists.
pub fn check_folder(path: &Path, holds: &str) -> Result<bool> {
    if is_folder(path, holds)? {
        return Ok(true);
    }
    // The nearest existing folder above gets the missing ones.
    for above in path.ancestors().skip(1).filter(|above| *above != Path::new("")) {
        if is_folder(above, holds)? {
            break;
        }
    }
    Ok(false)
}

/// Tells whether a folder is at `path`. Fails if something else is, or if that cannot be read.
fn is_folder(path: &Path, holds: &str) -> Result<bool> {
    let message = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Ok(true),
        Ok(_) => "is a file",
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(Error::io(path, "inspect", error).hint(HINT));
        }
        Err(_) if path.is_symlink() => "is a link that leads nowhere",
        Err(_) => return Ok(false),
    };
    let message = format!("{message}, and {holds} are written into a folder");
    Err(Error::new(Kind::Usage, message).file(path).hint(HINT))
}

/// Creates the folder at `path` and its missing parents.
pub fn make_folders(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|e| Error::io(path, "create", e))
}

/// Creates the folder at `path` and its missing parents, which everybody may list, whatever the umask.
pub fn make_readable_folders(path: &Path) -> Result<()> {
    let missing = path.ancestors().take_while(|it| *it != Path::new("") && !it.is_dir());
    for folder in missing.collect::<Vec<&Path>>().into_iter().rev() {
        match fs::create_dir(folder) {
            Ok(()) => {
                let metadata = fs::metadata(folder).map_err(|e| Error::io(folder, "inspect", e))?;
                let mode = metadata.permissions().mode();
                set_mode(folder, (mode & 0o7777) | LISTABLE)?;
            }
            // Another run was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(error) => return Err(Error::io(folder, "create", error)),
        }
    }
    Ok(())
}

/// Lets everybody list the folder at `path`, which is no link. Returns its permission bits if that is
/// impossible: it belongs to another user, or its file system has no such bits.
pub fn open_to_all(path: &Path) -> Result<Option<u32>> {
    let Some(mode) = closed_mode(path)? else { return Ok(None) };
    let folder = match guarded::open_folder(path) {
        Ok(folder) => folder,
        // Only the owner may change the bits.
        Err(error) if error.kind() == Kind::Io => return Ok(Some(mode)),
        Err(error) => return Err(error),
    };
    let metadata = folder.metadata().map_err(|e| Error::io(path, "inspect", e))?;
    let opened = metadata.uid() == geteuid().as_raw()
        && folder.set_permissions(Permissions::from_mode(mode | LISTABLE)).is_ok();
    Ok((!opened).then_some(mode))
}

/// The permission bits of the folder at `path`, unless everybody may list it.
pub fn closed_mode(path: &Path) -> Result<Option<u32>> {
    let metadata = if_there(path, "inspect", fs::metadata(path))?;
    let mode = metadata.filter(Metadata::is_dir).map(|folder| folder.permissions().mode() & 0o7777);
    Ok(mode.filter(|mode| mode & LISTED != LISTED))
}

/// The parent folder of `path`.
pub fn folder_of(path: &Path) -> &Path {
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

/// Syncs the file system of `folder`, so that [`sync`] has little left to do. Not every file system does it.
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

/// Removes an empty folder, and tells whether it is gone.
pub fn remove_empty(folder: &Path) -> bool {
    // Fails for a folder with content, as intended.
    fs::remove_dir(folder).is_ok()
}

/// Creates an empty folder at `path`, whose parent exists, in place of its old content. Only for folders that
/// are used under a lock: their content is from dead runs.
pub fn empty_folder(path: &Path) -> Result<()> {
    remove_folder(path)?;
    fs::create_dir(path).map_err(|e| Error::io(path, "create", e))
}

fn make_writable(folder: &Path) -> Result<()> {
    refuse_no_folder(folder)?;
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
