//! Compares the paths of two sets, those of the earlier one moved below the prefix of the later one.

use std::collections::{BTreeMap, BTreeSet};

use derive_more::Display;
use serde::Serialize;

use super::MovedPath;
use crate::Format;
use crate::receipt::listing::{ListedMember, ListedPackage, Listing, PathOwners};

/// The paths whose owners changed. A package that lost a path that another still has, and one that gained a
/// path that another keeps, are named, too. If several packages lost and several gained a path, each is named
/// once, not paired with every other.
pub(super) fn moved(old: &PathOwners<'_>, new: &PathOwners<'_>) -> Vec<MovedPath> {
    let files = new.files().map(|it| (it.package.format, &*it.member.path));
    let paths: BTreeSet<(Format, &str)> = files.collect();
    let mut moved = Vec::new();
    for (format, path) in paths {
        let [before, after] = [old, new].map(|set| names(set, format, path));
        let (lost, gained) = (&before - &after, &after - &before);
        if lost.is_empty() && gained.is_empty() {
            continue;
        }
        let (lost, gained) = (nonempty_or_all(lost, before), nonempty_or_all(gained, after));
        moved.extend((0..lost.len().max(gained.len())).filter_map(|index| {
            let (from, to) = name_at(&lost, index).zip(name_at(&gained, index))?;
            Some(MovedPath { format, path: path.to_owned(), from, to })
        }));
    }
    moved
}

fn names<'a>(set: &PathOwners<'a>, format: Format, path: &str) -> BTreeSet<&'a str> {
    set.owners(format, path).map(|package| package.name.as_str()).collect()
}

fn nonempty_or_all<'a>(some: BTreeSet<&'a str>, all: BTreeSet<&'a str>) -> Vec<&'a str> {
    let names = if some.is_empty() { all } else { some };
    names.into_iter().collect()
}

/// The name for a pair. The last name of the shorter side fills all further pairs.
fn name_at(names: &[&str], index: usize) -> Option<String> {
    names.get(index).or(names.last()).map(|name| (*name).to_owned())
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileChange {
    pub path: String,
    pub changes: Vec<ChangedAspect>,
}

/// An aspect in which two versions of a path may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display)]
#[serde(rename_all = "lowercase")]
#[display(rename_all = "lowercase")]
pub enum ChangedAspect {
    /// The kind: a file became a link, for example.
    Kind,
    Mode,
    Size,
    Content,
    #[display("code objects")]
    Code,
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

/// Compares contents by digest, else by code objects, else by size. A planned archive has no exact size.
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

/// The packages of `earlier`, with their paths moved below the prefix of `later`.
pub(super) fn moved_to(earlier: &Listing, later: &Listing) -> Vec<ListedPackage> {
    let mut packages = earlier.packages.clone();
    if let (Some(from), Some(to)) = (&earlier.prefix, &later.prefix)
        && from != to
    {
        packages.iter_mut().for_each(|package| move_members(&mut package.members, from, to));
    }
    packages
}

/// Moves paths from one prefix to the other. A path whose new place is taken stays, and so is reported as
/// gone. Shorter paths move first: if one prefix contains the other, they free the places of longer ones.
fn move_members(members: &mut [ListedMember], from: &str, to: &str) {
    let (mut moving, staying): (Vec<_>, Vec<_>) =
        members.iter_mut().partition(|member| below(&member.path, from).is_some());
    let mut taken: BTreeSet<String> = staying.iter().map(|member| member.path.clone()).collect();
    moving.sort_by_key(|member| member.path.len());
    for member in moving {
        let rest = below(&member.path, from).unwrap_or_default();
        let moved = format!("{to}{rest}");
        if !taken.contains(&moved) {
            member.path = moved;
        }
        taken.insert(member.path.clone());
    }
    members.sort_by(|a, b| a.path.cmp(&b.path));
}

/// The rest of a path after `prefix`; `None` if the path is not `prefix` or below it.
fn below<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    path.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemberKind;
    use crate::receipt::listing::Size;
    use crate::receipt::listing::tests::listed;

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

    fn moved(paths: &[&str], from: &str, to: &str) -> Vec<String> {
        let paths: Vec<_> = paths.iter().map(|path| (*path, MemberKind::File)).collect();
        let mut members = listed(Format::Deb, "x", "1", &paths).members;
        move_members(&mut members, from, to);
        members.into_iter().map(|member| member.path).collect()
    }

    #[test]
    fn two_paths_never_become_one() {
        let paths = ["/opt/a", "/opt/a/x", "/opt/ab/x", "/opt/b/x"];
        let expected = ["/opt/a/x", "/opt/ab/x", "/opt/b", "/opt/b/x"];
        assert_eq!(moved(&paths, "/opt/a", "/opt/b"), expected);
        // One prefix contains the other: `/opt/a/x` cannot move to `/opt/x`, nor another path to its place.
        let paths = ["/opt/a/a/x", "/opt/a/x", "/opt/a/y", "/opt/x"];
        let expected = ["/opt/a/a/x", "/opt/a/x", "/opt/x", "/opt/y"];
        assert_eq!(moved(&paths, "/opt/a", "/opt"), expected);
        let paths = ["/opt/a/x", "/opt/x", "/usr/x"];
        assert_eq!(moved(&paths, "/opt", "/opt/a"), ["/opt/a/a/x", "/opt/a/x", "/usr/x"]);
    }
}
