//! Files and folders that appear atomically.
//!
//! Every file is written under a temporary name on the target file system, mostly in a [`Scratch`], and renamed or
//! linked when it is complete. Further guarantees differ:
//!
//! | output | made with | guarantee |
//! |---|---|---|
//! | packages (`emit`) | [`Swap`], synced | a set replaces the earlier one, or is rolled back |
//! | artifacts (`directories`) | [`Swap`], not synced | so does each component; after a power failure the run is repeated |
//! | entries of a cache | [`Dir`] | an entry is complete or absent; not synced, because its digest is checked |
//! | code objects (`extract`), proposals, joined receipts | [`new_file`] | a file is synced and never replaces another |
//! | repositories (`repo::LocalStore`) | [`lock`], [`empty_folder`], [`write_new`] and [`rename`] | a publication is rolled forward by a protocol that needs neither renames nor locks of its store |
//!
//! Owns the names of unfinished files, locks, the order of renames, syncs, and recovery after a killed run. Knows
//! nothing about the content: callers give names and bytes, and state which existing names are theirs. The renames
//! that make a set visible ignore interruptions: either all of them happen, or none begins.

pub mod cache;
mod dir;
mod folder;
mod guarded;
mod journal;
pub mod lock;
pub mod new_file;
mod scratch;
mod swap;

use std::fs::{self, File, FileType, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

pub use dir::{Dir, Modified};
pub use folder::{
    CreatedFolder, check_folder, empty_folder, make_folder, make_folders, make_listable,
    make_readable_folders, parent_folder, remove_empty, remove_folder, sync, sync_file_system,
    unlistable_mode,
};
pub use guarded::{refuse_non_folder, refuse_world_writable};
pub use scratch::{Scratch, ScratchKind};
pub use swap::{CommitChange, CommitPolicy, Swap};

use rockpack_core::content::if_exists;
use rockpack_core::error::{Error, Result};

/// Whether visible files survive a power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Files and the folders of their names are synced to disk.
    Synced,
    Unsynced,
}

pub const READABLE: u32 = 0o644;

/// The type of the entry at `path`, without following links.
pub fn kind_of(path: &Path) -> Result<Option<FileType>> {
    let metadata = if_exists(path, "inspect", fs::symlink_metadata(path))?;
    Ok(metadata.map(|metadata| metadata.file_type()))
}

/// Removes a file, if it exists.
pub fn remove_file(path: &Path) -> Result<()> {
    if_exists(path, "remove", fs::remove_file(path)).map(drop)
}

pub fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|e| Error::io(to, "rename into place", e))
}

/// Creates a file for reading and writing. Fails if the path is taken.
pub fn create_new(path: &Path) -> Result<File> {
    File::create_new(path).map_err(|e| Error::io(path, "create", e))
}

/// Writes a new file in a scratch folder, with these permission bits regardless of the umask.
pub fn write_new(
    path: &Path,
    mode: u32,
    durability: Durability,
    write: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    let mut file = create_new(path)?;
    write(&mut file)?;
    set_mode(path, mode)?;
    match durability {
        Durability::Synced => file.sync_all().map_err(|e| Error::io(path, "write", e)),
        Durability::Unsynced => Ok(()),
    }
}

/// Creates a symbolic link to `target` at `path`. Fails if the path is taken.
pub fn make_link(target: &str, path: &Path) -> Result<()> {
    symlink(target, path).map_err(|e| Error::io(path, "create the link", e))
}

/// Writes a file in a scratch folder, world-readable regardless of the umask. Replaces an earlier one.
pub fn write_file(
    path: &Path,
    durability: Durability,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    remove_file(path)?;
    write_new(path, READABLE, durability, |file| {
        let mut sink = BufWriter::new(file);
        write(&mut sink).and_then(|()| sink.flush()).map_err(|e| Error::io(path, "write", e))
    })
}

/// Sets the permission bits of the entry at `path`, regardless of the umask.
pub fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|e| Error::io(path, "set the mode of", e))
}
