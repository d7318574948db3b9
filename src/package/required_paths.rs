//! Required paths for which clients of an rpm repository find no package, although one has them: dnf and
//! zypper look among what packages provide and the files in `primary`, which lists only some.

use std::collections::{BTreeMap, HashSet};

use rockpack_base::formats::path_digests::path_digest;
use rockpack_base::formats::rpm_md::is_unlisted_path;

use super::owners::Owner;
use super::updates::Wish;
use super::{Format, RelationKind};

/// Calls `found` with each such path, the position of an owner, and those of the packages that require it.
pub fn each_hidden(owners: &[Owner<'_>], mut found: impl FnMut(&str, usize, &[usize])) {
    let provides = owners.iter().flat_map(|owner| owner.relations.of_kind(RelationKind::Provides));
    let provided: HashSet<&str> = provides.map(|(_, bound)| &*bound.name).collect();
    let mut open: BTreeMap<u64, (String, Vec<usize>)> = BTreeMap::new();
    for (at, owner) in owners.iter().enumerate() {
        let requires = owner.relations.of_kind(RelationKind::Depends).iter();
        let is_provided = |name: &str| provided.contains(name);
        for path in requires.flat_map(|(_, bound)| unmet(&bound.name, is_provided)) {
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

/// The paths outside of `primary` that a relation needs and nothing provides, unless another name meets it.
pub fn unmet(relation: &str, is_provided: impl Fn(&str) -> bool) -> Vec<String> {
    if !relation.starts_with(['/', '(']) {
        return Vec::new();
    }
    let wish = Wish::of(Format::Rpm, relation, None);
    // Without its condition, a relation is met.
    let is_plain = !matches!(wish, Wish::If(_));
    let mut names: Vec<String> = Vec::new();
    if is_plain && wish.holds(&|bound| Some(is_provided(&bound.name))) == Some(false) {
        names.extend(wish.bounds().into_iter().map(|bound| bound.name.to_string()));
    }
    names.retain(|name| is_unlisted_path(name) && !is_provided(name));
    names
}
