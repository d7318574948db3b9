//! Which stage prefix each path of an artifact came from.
//!
//! Flattened components know the module of a file only. A list of packages names any part of a
//! stage prefix, and takes links and empty folders too.

use std::collections::BTreeMap;

use crate::artifact::{ComponentKind, Scan};
use crate::recombine::Component;
use crate::tree::TreePath;

/// Path → stage prefix.
type Paths = BTreeMap<TreePath, String>;

/// The stage prefixes of all paths of a scan.
#[derive(Debug, Clone, Default)]
pub struct Places(BTreeMap<(String, ComponentKind), Paths>);

impl Places {
    /// Of all shards. Where several prefixes hold a path, the first by name has it, as where
    /// prefixes are laid over one another.
    pub fn of(scan: &Scan) -> Self {
        let mut places = Self::default();
        for artifact in scan.shards.iter().flat_map(|shard| &shard.artifacts) {
            let key = (artifact.name.name.clone(), artifact.name.component);
            let paths = places.0.entry(key).or_default();
            for prefix in &artifact.prefixes {
                for (path, _) in &prefix.tree {
                    paths.entry(path.clone()).or_insert_with(|| prefix.path.clone());
                }
            }
        }
        places
    }

    /// The prefix that `path` of `component` came from.
    pub(super) fn prefix(&self, component: &Component, path: &TreePath) -> Option<&str> {
        let paths = self.0.get(&(component.artifact.clone(), component.kind))?;
        paths.get(path).map(String::as_str)
    }

    /// The prefixes of a component with files, in order.
    pub(super) fn prefixes(&self, artifact: &str, kind: ComponentKind) -> Vec<&str> {
        let paths = self.0.get(&(artifact.to_owned(), kind));
        let mut prefixes: Vec<&str> =
            paths.into_iter().flatten().map(|(_, prefix)| prefix.as_str()).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        prefixes
    }

    /// The names and kinds of all components.
    pub(super) fn components(&self) -> impl Iterator<Item = (&str, ComponentKind)> {
        self.0.keys().map(|(artifact, kind)| (artifact.as_str(), *kind))
    }
}
