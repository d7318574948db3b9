//! Folders that everybody may list, also where a run under a strict umask made them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rockpack_core::error::Result;

use rockpack_files::{closed_mode, kind_of, open_to_all};
use rockpack_report::Finding;

/// Lets everybody list the folders below `root` that `paths` are in, where they belong to this user. What
/// stays closed is a finding: folders of others, and `root`, which may have been closed on purpose.
pub(super) fn open_folders(root: &Path, paths: &[&str]) -> Result<Option<Finding>> {
    let above = paths.iter().flat_map(|path| Path::new(path).ancestors().skip(1));
    let mut folders: BTreeSet<&Path> = above.collect();
    folders.remove(Path::new(""));
    let mut closed = Vec::new();
    closed.extend(closed_mode(root)?.map(|mode| (root.to_path_buf(), mode)));
    let mut links: Vec<PathBuf> = Vec::new();
    // Each after those above it; what lies behind a link is not the repository's.
    for folder in folders.iter().map(|folder| root.join(folder)) {
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
    Ok(finding(&closed))
}

fn finding(closed: &[(PathBuf, u32)]) -> Option<Finding> {
    let ((folder, mode), others) = closed.split_first()?;
    let (folder, mode) = (folder.display().to_string(), format!("{mode:04o}"));
    Some(Finding::FolderClosed { folder, mode, others: others.len() })
}
