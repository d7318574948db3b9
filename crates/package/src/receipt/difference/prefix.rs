//! Moves the paths of the earlier set below the prefix of the later one.

use std::collections::BTreeSet;

use crate::receipt::listing::{ListedMember, ListedPackage, Listing};

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
    use crate::receipt::listing::tests::listed;
    use crate::{Format, MemberKind};

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
