//! The stage prefixes of the paths of artifacts.
//!
//! Flattened components know only the module of a file. A package list names any part of a stage prefix, and
//! takes links and empty folders too.

use std::collections::BTreeMap;

use rockpack_core::tree::TreePath;

use crate::recombine::Component;
use rockpack_split::input::artifact::{ComponentKind, Scan};

/// The stage prefixes of all paths of a scan.
#[derive(Debug, Clone, Default)]
pub(crate) struct StagePrefixes(BTreeMap<(String, ComponentKind), ComponentPrefixes>);

/// The stage prefixes of the paths of one component.
#[derive(Debug, Clone, Default)]
struct ComponentPrefixes {
    /// The non-empty prefixes, each once.
    prefixes: Vec<StagePrefix>,
    /// Path → index of its prefix.
    paths: BTreeMap<TreePath, usize>,
}

#[derive(Debug, Clone)]
struct StagePrefix {
    path: String,
    /// Index in the list of the entry that takes it.
    owner: Option<usize>,
}

impl StagePrefixes {
    /// The stage prefixes of all shards. If several prefixes of an artifact hold a path, the first by name
    /// has it, as when prefixes are merged; among several artifacts, the first.
    pub fn of(scan: &Scan) -> Self {
        let mut all = Self::default();
        for artifact in scan.shards.iter().flat_map(|shard| &shard.artifacts) {
            let key = (artifact.name.name.clone(), artifact.name.kind);
            let component = all.0.entry(key).or_default();
            for prefix in artifact.prefixes.iter().filter(|p| p.tree.iter().next().is_some()) {
                let place = component.place(&prefix.path);
                for (path, _) in &prefix.tree {
                    component.paths.entry(path.clone()).or_insert(place);
                }
            }
        }
        all
    }

    /// Adds one path.
    #[cfg(test)]
    pub fn add(&mut self, artifact: &str, kind: ComponentKind, prefix: &str, at: &str) {
        let component = self.0.entry((artifact.to_owned(), kind)).or_default();
        let place = component.place(prefix);
        component.paths.insert(TreePath::new(at).unwrap(), place);
    }

    /// Determines the owner of every prefix.
    pub fn own(&mut self, owner: impl Fn(&str, ComponentKind, &str) -> Option<usize>) {
        for ((artifact, kind), component) in &mut self.0 {
            for prefix in &mut component.prefixes {
                prefix.owner = owner(artifact, *kind, &prefix.path);
            }
        }
    }

    /// The owner of the prefix of `path` in `component`. The outer `None` means an unknown prefix, the inner
    /// one a prefix without owner.
    pub fn owner(&self, component: &Component, path: &TreePath) -> Option<Option<usize>> {
        let known = self.0.get(&(component.artifact.clone(), component.kind))?;
        known.prefixes.get(*known.paths.get(path)?).map(|prefix| prefix.owner)
    }

    /// The non-empty prefixes of a component.
    pub fn of_component(&self, artifact: &str, kind: ComponentKind) -> impl Iterator<Item = &str> {
        let known = self.0.get(&(artifact.to_owned(), kind));
        known.into_iter().flat_map(|known| known.prefixes.iter().map(|prefix| &*prefix.path))
    }

    /// The names and kinds of all components.
    pub fn components(&self) -> impl Iterator<Item = (&str, ComponentKind)> {
        self.0.keys().map(|(artifact, kind)| (artifact.as_str(), *kind))
    }
}

impl ComponentPrefixes {
    fn place(&mut self, path: &str) -> usize {
        let known = self.prefixes.iter().position(|known| known.path == path);
        known.unwrap_or_else(|| {
            self.prefixes.push(StagePrefix { path: path.to_owned(), owner: None });
            self.prefixes.len() - 1
        })
    }
}
