//! The places in the folder of a repository where files may be put: below real folders, at a path that is free
//! or holds a file. A link on the way would make rockpack write and remove files elsewhere.

use std::collections::BTreeSet;
use std::path::Path;

use rockpack_core::error::{Error, Faults, Result};

use rockpack_files::kind_of;

const LINK_HINT: &str = "rockpack writes to no other folder than the repository: put the folder \
                         itself there, or mount it there; the whole repository may be a link";

const PLACE_HINT: &str = "remove it, or publish to another folder";

/// Refuses paths at which no file can be put, or only somewhere else than below `root`.
pub(super) fn check(root: &Path, paths: &[&str]) -> Result<()> {
    check_folders(root, paths)?;
    let mut faults = Faults::default();
    for path in paths {
        faults.keep(check_file(&root.join(path)));
    }
    faults.finish()
}

/// Refuses paths that lead through something other than folders below `root`.
pub(super) fn check_folders(root: &Path, paths: &[&str]) -> Result<()> {
    paths.iter().try_for_each(|path| check_path(path))?;
    let above = paths.iter().flat_map(|path| Path::new(path).ancestors().skip(1));
    let folders: BTreeSet<&Path> = above.collect();
    let (mut faults, mut refused) = (Faults::default(), Vec::new());
    // Each after those above it; what lies behind a link is no matter of the repository.
    for folder in folders.iter().filter(|folder| !folder.as_os_str().is_empty()) {
        let is_behind = refused.iter().any(|other| folder.starts_with(other));
        if !is_behind && faults.keep(check_folder(&root.join(folder))).is_none() {
            refused.push(folder);
        }
    }
    faults.finish()
}

/// Refuses paths that lead elsewhere by their words.
pub(super) fn check_path(path: &str) -> Result<()> {
    let is_plain = path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    if is_plain && !path.contains('\0') {
        Ok(())
    } else {
        let message = format!("`{}` is no path inside of a repository", path.escape_debug());
        Err(Error::malformed(message))
    }
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
