//! Paths that two packages of a suite, or of the rpm repository, own.

use rockpack_archive::path_digests::path_digest;

use super::context::Context;
use crate::problem::Problem;
use rockpack_package::Format;
use rockpack_package::owners::{Obstacle, Owner, obstacles};

/// Reports every path at which two packages conflict. `named` gives the path of a package
/// by the position of the package and the number of the path; `differ` says whether two have two files there.
pub(super) fn check(
    context: &mut Context<'_>,
    format: Format,
    owners: &[Owner<'_>],
    differ: impl FnMut((usize, usize), u64) -> bool,
    named: impl Fn(usize, &dyn Fn(&str) -> bool) -> Option<String>,
) {
    for shared in obstacles(format, owners, differ) {
        let is_it = |path: &str| path_digest(path) == shared.path;
        let [one, other] = [shared.first, shared.second].map(|at| named(at, &is_it));
        // Numbers of two paths may be the same.
        let (Some(path), true) = (&one, one == other) else { continue };
        let [first, second] =
            [shared.first, shared.second].map(|at| owners[at].package.name_and_version());
        let reason = match shared.obstacle {
            Obstacle::Together => format!(
                "is owned by {first} and {second} (.{format}), and no Conflicts, Breaks, Replaces or \
                 Obsoletes keeps them apart"
            ),
            Obstacle::Moved => format!(
                "was in {first} and is in {second}, which does not replace it: dpkg stops at that \
                 update"
            ),
        };
        let path = format!("/{}", path.trim_start_matches('/'));
        context.problems.add(Problem::RepositoryPath { path, reason });
    }
}
