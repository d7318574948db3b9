//! The entries of one folder, sorted, with their metadata.

use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rockpack_core::content::{self, Inputs, is_folder};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::TreePath;
use rustix::fs::lgetxattr;
use rustix::io::Errno;

/// The setuid and setgid bits. A file that has them runs with privileges that a build folder cannot justify.
pub(super) const SET_ID: u32 = 0o6000;

/// An entry of a folder.
pub(super) struct FolderEntry {
    pub name: String,
    pub path: PathBuf,
    /// The metadata of the entry itself, not of a link's target.
    pub metadata: Metadata,
}

impl FolderEntry {
    /// Tells whether this is a folder, or a link to one. Fails if the target of a link cannot be read.
    pub fn leads_to_folder(&self) -> Result<bool> {
        if self.metadata.is_symlink() { is_folder(&self.path) } else { Ok(self.metadata.is_dir()) }
    }

    /// The permission bits.
    pub fn mode(&self) -> u32 {
        self.metadata.mode() & 0o7777
    }

    /// Fails for an entry that cannot be a file of a package.
    pub fn refuse_special(&self) -> Result<()> {
        let kind = self.metadata.file_type();
        let what = if kind.is_block_device() || kind.is_char_device() {
            "is a device"
        } else if kind.is_fifo() {
            "is a named pipe"
        } else if kind.is_socket() {
            "is a socket"
        } else if kind.is_file() && self.metadata.mode() & SET_ID != 0 {
            HAS_SET_ID
        } else if kind.is_file() && has_capabilities(&self.path)? {
            HAS_CAPABILITIES
        } else {
            return Ok(());
        };
        Err(special(what).file(&self.path))
    }
}

/// Tells whether the file at `path`, which is no link, has capabilities. File systems without extended
/// attributes have no capabilities.
fn has_capabilities(path: &Path) -> Result<bool> {
    let mut value = [0; CAPABILITY_MAX];
    match lgetxattr(path, "security.capability", &mut value) {
        Ok(_) | Err(Errno::RANGE) => Ok(true),
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
        Err(error) => Err(Error::io(path, "read the capabilities", error.into())),
    }
}

/// Bytes of the longest form that the kernel knows, version 3.
const CAPABILITY_MAX: usize = 24;

/// Most folders above a file within the artifact or the stage prefix: ten times the depth of the deepest real
/// ones. Each folder on the way costs an entry with the whole path.
pub(super) const DEPTH_LIMIT: usize = 256;

/// Refuses a path that is too deep.
pub(crate) fn refuse_deep(path: &TreePath) -> Result<()> {
    // The last component is the file.
    if path.components().count() <= DEPTH_LIMIT + 1 {
        return Ok(());
    }
    let message = format!("lies in more than {DEPTH_LIMIT} folders");
    Err(Error::new(Kind::Limit, message).hint("no artifact is that deep: look at what made it"))
}

/// The fault of a file that has [`SET_ID`] bits.
pub(super) const HAS_SET_ID: &str = "has the setuid or setgid bit";

/// The fault of a file with capabilities, which are a part of root's rights, as setuid is.
pub(super) const HAS_CAPABILITIES: &str = "has file capabilities";

/// Refuses an entry that cannot be a file of a package, because it is a `what`.
pub(super) fn special(what: &str) -> Error {
    Error::unsupported(format!("{what}, which no package of ours installs"))
        .hint("an artifact holds ordinary files, folders and symbolic links")
}

/// Lists `folder` in the order of names; unusable entries are faults. Notes the folder in the inputs, and
/// counts its entries against the budget. If they exceed it, that is a fault and the list is empty.
pub(super) fn list(folder: &Path, inputs: &mut Inputs, faults: &mut Faults) -> Vec<FolderEntry> {
    // One fault is enough to say that there are too many.
    if inputs.budget().is_exhausted() && faults.has(Kind::Limit) {
        return Vec::new();
    }
    // Before the names are read, so that a later change of the folder is noticed.
    faults.keep(inputs.add_folder(folder));
    look_into(folder, faults, |entry| inputs.budget().charge_entry(entry.name.len()).map(|()| true))
}

/// Lists the `wanted` entries of `folder` in the order of names; none after the first error of `wanted`. Others
/// are not kept, so a look ahead, after which nothing of the folder may be used, counts nothing.
pub(super) fn look_into(
    folder: &Path,
    faults: &mut Faults,
    wanted: impl Fn(&FolderEntry) -> Result<bool>,
) -> Vec<FolderEntry> {
    let mut listed = Vec::new();
    for entry in faults.keep(content::list(folder)).into_iter().flatten() {
        let Some(entry) = faults.keep(entry.and_then(|entry| examine(&entry))) else { continue };
        match wanted(&entry) {
            Ok(true) => listed.push(entry),
            Ok(false) => {}
            Err(fault) => {
                faults.add(fault.file(folder));
                return Vec::new();
            }
        }
    }
    listed.sort_by(|a: &FolderEntry, b| a.name.cmp(&b.name));
    listed
}

fn examine(entry: &std::fs::DirEntry) -> Result<FolderEntry> {
    let path = entry.path();
    let name = entry.file_name().into_string().map_err(|name| {
        let message = format!("the name {name:?} is not UTF-8");
        Error::malformed(message)
            .file(&path)
            .hint("packages and archives name their files in UTF-8; rename the file")
    })?;
    let metadata = entry.metadata().map_err(|e| Error::io(&path, "inspect", e))?;
    Ok(FolderEntry { name, path, metadata })
}
