//! The kind of an entry of a folder: an artifact, a shard, a folder of an install tree, or another.

use std::io::ErrorKind;

use rockpack_core::compression::Method;
use rockpack_core::error::{Error, Faults, Result};
use rockpack_core::tree::ArtifactName;

use super::folder::{FolderEntry, list_matching};
use super::manifest::MANIFEST_NAME;
use super::packed::parse_name;
use crate::input::tree::is_tree_folder;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FolderEntryKind {
    Artifact,
    Shard,
    Other,
    /// The entry could not be read; a fault was reported.
    Unknown,
}

/// The artifact's name and the compression, if an entry has the name of a packed artifact.
pub(super) fn packed_name(entry: &FolderEntry) -> Result<Option<(&str, Method)>> {
    Ok(match parse_name(&entry.name) {
        Some(named) if !entry.leads_to_folder()? => Some(named),
        _ => None,
    })
}

/// The content of an entry that has the name of an artifact, if it is a folder.
pub(super) fn named_like_artifacts(entry: &FolderEntry) -> Result<Vec<FolderEntry>> {
    if !entry.leads_to_folder()? {
        return Ok(Vec::new());
    }
    let mut faults = Faults::default();
    let named =
        list_matching(&entry.path, &mut faults, |inside| Ok(artifact_in(&inside.name).is_some()));
    refuse_unread(faults).map(|()| named)
}

/// Fails if a fault of a look ahead is a read error; the other faults need no report here.
pub(super) fn refuse_unread(faults: Faults) -> Result<()> {
    match faults.finish() {
        Err(error) if error.flattened().any(Error::is_read_failure) => Err(error),
        _ => Ok(()),
    }
}

/// The artifact's name that an entry's name equals, or has before its first dot.
pub(super) fn artifact_in(entry: &str) -> Option<&str> {
    let stem = entry.split('.').next()?;
    stem.parse::<ArtifactName>().ok().map(|_| stem)
}

/// Whether an entry is a folder of install trees, and so neither an artifact nor a shard.
fn is_of_tree(entry: &FolderEntry) -> bool {
    entry.metadata.is_dir() && is_tree_folder(&entry.name)
}

/// Whether an entry is such a folder, and not a shard with the name of one.
pub(super) fn is_tree_without_artifacts(entry: &FolderEntry) -> bool {
    let artifacts = || list_matching(&entry.path, &mut Faults::default(), is_named_artifact);
    is_of_tree(entry) && artifacts().is_empty()
}

/// Whether an entry is an artifact by its name and its manifest, or its packing.
fn is_named_artifact(entry: &FolderEntry) -> Result<bool> {
    Ok(match packed_name(entry)? {
        Some((stem, _)) => artifact_in(stem).is_some(),
        None => has_artifact_name(entry) && entry.leads_to_folder()? && has_manifest(entry)?,
    })
}

/// The kind of an entry. The scan of an artifact or a shard finds faults of this look ahead again and reports
/// them. Other entries are not read again, so one that cannot be read is an error.
///
/// In a folder that may be an install tree, an artifact needs more than its name.
pub(super) fn kind_of(entry: &FolderEntry, may_be_tree: bool) -> Result<FolderEntryKind> {
    if let Some((stem, _)) = packed_name(entry)? {
        let is_artifact = !may_be_tree || artifact_in(stem).is_some();
        return Ok(if is_artifact { FolderEntryKind::Artifact } else { FolderEntryKind::Other });
    }
    if may_be_tree && is_of_tree(entry) || !entry.leads_to_folder()? {
        return Ok(FolderEntryKind::Other);
    }
    let found = has_manifest(entry);
    if !may_be_tree && has_artifact_name(entry) && found.is_err() || found? {
        return Ok(FolderEntryKind::Artifact);
    }
    let mut faults = Faults::default();
    let inside = list_matching(&entry.path, &mut faults, |entry| {
        Ok(packed_name(entry)?.is_some() || entry.leads_to_folder()?)
    });
    let holds_artifact = |entry: &FolderEntry| -> Result<bool> {
        if may_be_tree {
            return is_named_artifact(entry);
        }
        Ok(packed_name(entry)?.is_some() || entry.leads_to_folder()? && has_manifest(entry)?)
    };
    if inside.iter().any(|entry| faults.keep(holds_artifact(entry)) == Some(true)) {
        return Ok(FolderEntryKind::Shard);
    }
    refuse_unread(faults)?;
    if may_be_tree {
        return Ok(FolderEntryKind::Other);
    }
    if has_artifact_name(entry) {
        return Ok(FolderEntryKind::Artifact);
    }
    for inner in inside.iter().filter(|inner| has_artifact_name(inner)) {
        if inner.leads_to_folder()? {
            return Ok(FolderEntryKind::Shard);
        }
    }
    Ok(FolderEntryKind::Other)
}

fn has_artifact_name(entry: &FolderEntry) -> bool {
    entry.name.parse::<ArtifactName>().is_ok()
}

fn has_manifest(entry: &FolderEntry) -> Result<bool> {
    let path = entry.path.join(MANIFEST_NAME);
    match std::fs::symlink_metadata(&path) {
        Ok(_) => Ok(true),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(e) => Err(Error::io(path, "inspect", e)),
    }
}
