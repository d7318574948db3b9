//! Folders: made, checked, synced and removed.

use std::fs::{self, File, Metadata, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rockpack_base::content::{if_there, list};
use rockpack_base::error::{Error, Kind, Result};
use rustix::process::geteuid;

use super::{guarded, refuse_no_folder, set_mode};

/// The permission bits of folders that everybody may list.
const LISTABLE: u32 = 0o755;

/// The permission bits by which others than the owner and the group list a folder.
const LISTED: u32 = 0o005;

/// What to do about an output folder that cannot be used.
const HINT: &str = "name a folder that can be created and written to";

/// An output folder; one that this run made is removed when this is dropped, if nothing is in it.
#[derive(Debug)]
pub struct MadeFolder(Option<PathBuf>);

impl Drop for MadeFolder {
    fn drop(&mut self) {
        if let Some(made) = &self.0 {
            remove_empty(made);
        }
    }
}

/// Makes the output folder at `path` where it is missing. `holds` is what will be in it: `packages`.
pub fn make_folder(path: &Path, holds: &str) -> Result<MadeFolder> {
    make_by(make_folders, path, holds)
}

/// Makes the output folder at `path` where it is missing, for files that everybody may read: everybody
/// may list it, whatever the umask is. `holds` is what will be in it: `packages`.
pub fn make_readable_folder(path: &Path, holds: &str) -> Result<MadeFolder> {
    make_by(make_readable_folders, path, holds)
}

fn make_by(make: impl Fn(&Path) -> Result<()>, path: &Path, holds: &str) -> Result<MadeFolder> {
    if is_folder(path, holds)? {
        return Ok(MadeFolder(None));
    }
    make(path).map_err(|error| error.hint(HINT))?;
    Ok(MadeFolder(Some(path.to_path_buf())))
}

/// Refuses an output folder that [`make_folder`] could not make, as far as that can be told from what
/// is there; makes none. Says whether it is there.
pub fn check_folder(path: &Path, holds: &str) -> Result<bool> {
    if is_folder(path, holds)? {
        return Ok(true);
    }
    // The nearest one above it that is there gets the missing ones.
    for above in path.ancestors().skip(1).filter(|above| *above != Path::new("")) {
        if is_folder(above, holds)? {
            break;
        }
    }
    Ok(false)
}

/// Whether a folder is at `path`; an error if something else is, or nobody can tell.
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

/// Makes the folder at `path`, and those that it is in, where they are missing.
pub fn make_folders(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|e| Error::io(path, "create", e))
}

/// Makes the folder at `path`, and those that it is in, where they are missing; everybody may list
/// those that are made, whatever the umask is.
pub fn make_readable_folders(path: &Path) -> Result<()> {
    let is_missing = |folder: &&Path| *folder != Path::new("") && !folder.is_dir();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    for folder in missing.into_iter().rev() {
        match fs::create_dir(folder) {
            Ok(()) => {
                let fault = |e| Error::io(folder, "inspect", e);
                let mode = fs::metadata(folder).map_err(fault)?.permissions().mode();
                set_mode(folder, (mode & 0o7777) | LISTABLE)?;
            }
            // Another run was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(error) => return Err(Error::io(folder, "create", error)),
        }
    }
    Ok(())
}

/// Lets everybody list the folder at `path`, which is no link, if it belongs to this user, and returns its
/// permission bits if it stays closed: it belongs to somebody else, or its file system has no such bits.
pub fn open_to_all(path: &Path) -> Result<Option<u32>> {
    let Some(mode) = closed_mode(path)? else { return Ok(None) };
    let folder = match guarded::open_folder(path) {
        Ok(folder) => folder,
        // Only its owner may change it.
        Err(error) if error.kind() == Kind::Io => return Ok(Some(mode)),
        Err(error) => return Err(error),
    };
    let metadata = folder.metadata().map_err(|e| Error::io(path, "inspect", e))?;
    let opened = metadata.uid() == geteuid().as_raw()
        && folder.set_permissions(Permissions::from_mode(mode | LISTABLE)).is_ok();
    Ok((!opened).then_some(mode))
}

/// The permission bits of the folder at `path`, if not everybody may list it.
pub fn closed_mode(path: &Path) -> Result<Option<u32>> {
    let metadata = if_there(path, "inspect", fs::metadata(path))?;
    let mode = metadata.filter(Metadata::is_dir).map(|folder| folder.permissions().mode() & 0o7777);
    Ok(mode.filter(|mode| mode & LISTED != LISTED))
}

/// The folder that the name at the end of `path` is in.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Brings the names in `folder` to disk.
pub fn sync_folder(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|e| Error::io(folder, "sync", e))
}

/// Removes a folder with everything in it, if it is there; also one that holds folders that may not
/// be written to.
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

/// Removes a folder in which nothing is, and says whether it is gone.
pub fn remove_empty(folder: &Path) -> bool {
    // Fails where the folder is not empty, as it should.
    fs::remove_dir(folder).is_ok()
}

/// Makes the folder at `path`, whose parent is there, without anything in it, whatever was in it.
/// For folders that only the holder of a lock uses: what is there is of runs that live no more.
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
