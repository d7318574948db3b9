//! The install prefix of packages that do not state it.

use std::collections::BTreeMap;

use rockpack_base::tree::TreePath;

use super::inputs::ArtifactInputs;
use crate::verify::own::installed::{Installed, InstalledNode};

/// The folder below which the most files of `packages` have the paths that they have in the artifacts;
/// empty if no file has. Without such a file no path is compared.
pub(in crate::verify) fn likely<'a>(
    packages: impl Iterator<Item = &'a Installed>,
    inputs: &ArtifactInputs,
) -> String {
    let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
    let nodes = packages.flat_map(|package| &package.paths);
    let files = nodes.filter(|(_, node)| !matches!(node, InstalledNode::Directory { .. }));
    for (path, _) in files {
        let folders = path.match_indices('/').map(|(at, _)| path.split_at(at));
        let mut named = folders.filter(|(above, _)| !above.is_empty());
        let input = named.find(|(_, below)| {
            TreePath::new(below.trim_start_matches('/')).is_ok_and(|below| inputs.has(&below))
        });
        if let Some((above, _)) = input {
            *votes.entry(above).or_default() += 1;
        }
    }
    let most = votes.into_iter().max_by_key(|(_, count)| *count);
    most.map_or(String::new(), |(prefix, _)| prefix.to_owned())
}
