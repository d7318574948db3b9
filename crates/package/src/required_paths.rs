//! Required paths for which clients of an rpm repository find no package, although one has them: dnf and
//! zypper look among what packages provide and the files in `primary`, which lists only some.

use std::collections::{BTreeMap, HashSet};

use rockpack_archive::path_digests::path_digest;
use rockpack_archive::rpm_md::is_unlisted_path;

use super::RelationKind;
use super::owners::Owner;
use super::requirement::Requirement;

/// Calls `found` with each such path, the position of an owner, and those of the packages that require it.
pub fn each_hidden(owners: &[Owner<'_>], mut found: impl FnMut(&str, usize, &[usize])) {
    let relations = || owners.iter().map(|owner| &owner.package.relations);
    let provides = relations().flat_map(|it| it.bounds(RelationKind::Provides));
    let provided: HashSet<&str> = provides.map(|bound| &*bound.name).collect();
    let mut open: BTreeMap<u64, (String, Vec<usize>)> = BTreeMap::new();
    for (at, relations) in relations().enumerate() {
        let is_provided = |name: &str| provided.contains(name);
        for path in relations.needs().flat_map(|need| unmet(need, is_provided)) {
            open.entry(path_digest(&path)).or_insert((path, Vec::new())).1.push(at);
        }
    }
    for (at, owner) in owners.iter().enumerate() {
        let paths = owner.paths.iter().chain(&owner.shared);
        for (path, requirers) in paths.filter_map(|path| open.remove(path)) {
            found(&path, at, &requirers);
        }
    }
}

/// The paths outside of `primary` that nothing provides and a requirement needs, unless another name meets
/// it. Without its condition, a requirement is met.
pub fn unmet(requirement: &Requirement<'_>, is_provided: impl Fn(&str) -> bool) -> Vec<String> {
    let bounds = requirement.bounds().into_iter().map(|bound| &*bound.name);
    let open = bounds.filter(|name| is_unlisted_path(name) && !is_provided(name));
    let paths: Vec<String> = open.map(str::to_owned).collect();
    if paths.is_empty() || matches!(requirement, Requirement::If(_)) {
        return Vec::new();
    }
    let holds = requirement.holds(&|bound| Some(is_provided(&bound.name)));
    if holds == Some(false) { paths } else { Vec::new() }
}
