//! Compares the paths of two sets.

use std::collections::{BTreeMap, BTreeSet};

use derive_more::Display;
use serde::Serialize;

use super::Moved;
use crate::Format;
use crate::receipt::listing::{ListedMember, ListedPackage, OwnedMember, Owners};

/// The paths whose owners changed. A package that lost a path that another still has, and one that gained a
/// path that another keeps, are named, too. If several packages lost and several gained a path, each is named
/// once, not paired with every other.
pub(super) fn moved(old: &Owners<'_>, new: &Owners<'_>) -> Vec<Moved> {
    let paths: BTreeSet<(Format, &str)> = new
        .files()
        .map(|OwnedMember { package, member }| (package.format, &*member.path))
        .collect();
    let mut moved = Vec::new();
    for (format, path) in paths {
        let [before, after] = [old, new].map(|set| names(set, format, path));
        let (lost, gained) = (&before - &after, &after - &before);
        if lost.is_empty() && gained.is_empty() {
            continue;
        }
        let (lost, gained) = (or_all(lost, before), or_all(gained, after));
        moved.extend((0..lost.len().max(gained.len())).filter_map(|index| {
            let (from, to) = name_at(&lost, index).zip(name_at(&gained, index))?;
            Some(Moved { format, path: path.to_owned(), from, to })
        }));
    }
    moved
}

fn names<'a>(set: &Owners<'a>, format: Format, path: &str) -> BTreeSet<&'a str> {
    set.owners(format, path).map(|package| package.name.as_str()).collect()
}

fn or_all<'a>(some: BTreeSet<&'a str>, all: BTreeSet<&'a str>) -> Vec<&'a str> {
    let names = if some.is_empty() { all } else { some };
    names.into_iter().collect()
}

/// The name for a pair. The last name of the shorter side fills all further pairs.
fn name_at(names: &[&str], index: usize) -> Option<String> {
    names.get(index).or(names.last()).map(|name| (*name).to_owned())
}

/// A path that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// The absolute path.
    pub path: String,
    /// The aspects that differ.
    pub changes: Vec<ChangedAspect>,
}

/// An aspect in which two versions of a path may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display)]
#[serde(rename_all = "lowercase")]
#[display(rename_all = "lowercase")]
pub enum ChangedAspect {
    /// The kind: a file became a link, for example.
    Kind,
    /// Permission bits.
    Mode,
    /// The number of bytes.
    Size,
    /// The bytes.
    Content,
    /// The code objects of a kernel archive.
    #[display("code objects")]
    Code,
    /// The target of a link.
    Target,
}

/// Numbers of files that were compared by size alone, or not at all.
#[derive(Default)]
pub(super) struct Counts {
    pub uncompared: u64,
    pub by_size: u64,
}

/// Compares the paths that both packages have, and returns those that differ.
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

fn changes(before: &ListedMember, after: &ListedMember, counts: &mut Counts) -> Vec<ChangedAspect> {
    if before.kind != after.kind {
        return vec![ChangedAspect::Kind];
    }
    let mut changes = Vec::new();
    if before.mode != after.mode {
        changes.push(ChangedAspect::Mode);
    }
    if before.target != after.target {
        changes.push(ChangedAspect::Target);
    }
    changes.extend(content(before, after, counts));
    changes
}

/// Compares contents by digest, else by code objects, else by size. Archives of a plan have neither digest
/// nor exact size.
fn content(
    before: &ListedMember,
    after: &ListedMember,
    counts: &mut Counts,
) -> Option<ChangedAspect> {
    if !before.is_file() {
        return None;
    }
    if let (Some(old), Some(new)) = (&before.sha256, &after.sha256) {
        return (old != new).then_some(ChangedAspect::Content);
    }
    if let (Some(old), Some(new)) = (&before.code_sha256, &after.code_sha256) {
        return (old != new).then_some(ChangedAspect::Code);
    }
    let exact = [before, after].map(|member| member.size.filter(|size| !size.estimated));
    let [Some(old), Some(new)] = exact else {
        counts.uncompared += 1;
        return None;
    };
    if old.bytes != new.bytes {
        return Some(ChangedAspect::Size);
    }
    counts.by_size += 1;
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemberKind;
    use crate::receipt::listing::Size;

    fn file(size: Option<u64>, sha256: Option<&str>) -> ListedMember {
        ListedMember {
            path: "/x".to_owned(),
            kind: MemberKind::File,
            mode: 0o644,
            size: size.map(Size::exact),
            sha256: sha256.map(str::to_owned),
            code_sha256: None,
            target: None,
        }
    }

    #[test]
    fn digests_are_compared_whether_or_not_sizes_are_known() {
        let whole = file(Some(1), Some("a"));
        assert_eq!(compared(&whole, &file(None, Some("b"))), (Some(ChangedAspect::Content), 0, 0));
        assert_eq!(compared(&file(None, Some("a")), &whole), (None, 0, 0));
        assert_eq!(compared(&whole, &file(None, None)), (None, 1, 0));
        assert_eq!(compared(&file(None, None), &file(None, None)), (None, 1, 0));
        assert_eq!(compared(&whole, &file(Some(2), None)), (Some(ChangedAspect::Size), 0, 0));
        assert_eq!(compared(&whole, &file(Some(1), None)), (None, 0, 1));
        let folder = ListedMember { kind: MemberKind::Directory, ..file(None, None) };
        assert_eq!(compared(&folder, &folder), (None, 0, 0));
    }

    /// The change, and the numbers of files that were not compared and compared by size.
    fn compared(before: &ListedMember, after: &ListedMember) -> (Option<ChangedAspect>, u64, u64) {
        let mut counts = Counts::default();
        let change = content(before, after, &mut counts);
        (change, counts.uncompared, counts.by_size)
    }
}
