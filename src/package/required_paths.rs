//! Required paths for which clients of an rpm repository find no package, although one has them: dnf and
//! zypper look among what packages provide and the files in `primary`, which lists only some.

use std::collections::BTreeMap;

use rockpack_base::formats::path_digests::path_digest;
use rockpack_base::formats::rpm_md::is_unlisted_path;

use super::RelationKind;
use super::owners::Owner;

/// Calls `found` with each such path, the position of an owner, and those of the packages that require it.
pub fn each_hidden(owners: &[Owner<'_>], mut found: impl FnMut(&str, usize, &[usize])) {
    let mut open: BTreeMap<u64, (&str, Vec<usize>)> = BTreeMap::new();
    for (at, owner) in owners.iter().enumerate() {
        for path in unlisted(owner, RelationKind::Depends) {
            open.entry(path_digest(path)).or_insert((path, Vec::new())).1.push(at);
        }
    }
    for path in owners.iter().flat_map(|owner| unlisted(owner, RelationKind::Provides)) {
        open.remove(&path_digest(path));
    }
    for (at, owner) in owners.iter().enumerate() {
        for (path, requirers) in owner.paths.iter().filter_map(|path| open.remove(path)) {
            found(path, at, &requirers);
        }
    }
}

/// The paths in the relations of a kind that `primary` does not list.
fn unlisted<'a>(owner: &'a Owner<'_>, kind: RelationKind) -> impl Iterator<Item = &'a str> {
    let names = owner.relations.of_kind(kind).iter().map(|(_, bound)| &*bound.name);
    names.filter(|name| is_unlisted_path(name))
}
