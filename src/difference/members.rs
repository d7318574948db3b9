//! Paths of two sets.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Moved;
use crate::listing::{ListedMember, ListedPackage, Owned, Owners};

/// The paths that have another owner than before.
pub(super) fn moved(old: &Owners<'_>, new: &Owners<'_>) -> Vec<Moved> {
    let mut moved = BTreeSet::new();
    for Owned { package, member } in new.files() {
        if let Some(from) = old.owner(&package.format, &member.path)
            && from.name != package.name
        {
            moved.insert(Moved {
                format: package.format.clone(),
                path: member.path.clone(),
                from: from.name.clone(),
                to: package.name.clone(),
            });
        }
    }
    moved.into_iter().collect()
}

/// A path that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// The absolute path.
    pub path: String,
    /// What is different.
    pub changes: Vec<Change>,
}

/// In what a path differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// A file became a link, or the like.
    Kind,
    /// Permission bits.
    Mode,
    /// The number of bytes.
    Size,
    /// The bytes.
    Content,
    /// Where a link leads.
    Target,
}

impl Change {
    /// As it is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Mode => "mode",
            Self::Size => "size",
            Self::Content => "content",
            Self::Target => "target",
        }
    }
}

/// Files that could not be compared whole.
#[derive(Default)]
pub(super) struct Counts {
    pub uncompared: u64,
    pub by_size: u64,
}

/// The paths of both that differ.
pub(super) fn compare(
    before: &ListedPackage,
    after: &ListedPackage,
    counts: &mut Counts,
) -> Vec<FileChange> {
    let old: BTreeMap<&str, &ListedMember> =
        before.members.iter().map(|member| (member.path.as_str(), member)).collect();
    let mut changed = Vec::new();
    for member in &after.members {
        let Some(earlier) = old.get(member.path.as_str()) else { continue };
        let changes = changes(earlier, member, counts);
        if !changes.is_empty() {
            changed.push(FileChange { path: member.path.clone(), changes });
        }
    }
    changed
}

fn changes(before: &ListedMember, after: &ListedMember, counts: &mut Counts) -> Vec<Change> {
    if before.kind != after.kind {
        return vec![Change::Kind];
    }
    let mut changes = Vec::new();
    if before.mode != after.mode {
        changes.push(Change::Mode);
    }
    if before.target != after.target {
        changes.push(Change::Target);
    }
    changes.extend(content(before, after, counts));
    changes
}

/// By digest, else by size; archives of a plan have neither.
fn content(before: &ListedMember, after: &ListedMember, counts: &mut Counts) -> Option<Change> {
    let (old, new) = (before.size?, after.size?);
    if let (Some(old), Some(new)) = (&before.sha256, &after.sha256) {
        return (old != new).then_some(Change::Content);
    }
    if old.estimated || new.estimated {
        counts.uncompared += 1;
        return None;
    }
    if old.bytes != new.bytes {
        return Some(Change::Size);
    }
    counts.by_size += 1;
    None
}
