//! Which stage prefix each path of an artifact came from.
//!
//! Flattened components know the module of a file only. A list of packages names any part of a
//! stage prefix, and takes links and empty folders too.

use std::collections::BTreeMap;
use std::sync::Arc;

use rockpack_base::tree::TreePath;

use crate::input::artifact::{ComponentKind, Scan};
use crate::recombine::Component;

/// The stage prefixes of all paths of a scan.
#[derive(Debug, Clone, Default)]
pub struct StagePrefixes(BTreeMap<(String, ComponentKind), ComponentPrefixes>);

/// The stage prefixes of the paths of one component.
#[derive(Debug, Clone, Default)]
struct ComponentPrefixes {
    /// With something in them, each once.
    prefixes: Vec<Arc<str>>,
    paths: BTreeMap<TreePath, Arc<str>>,
}

impl StagePrefixes {
    /// The stage prefixes of all shards. Where several prefixes of an artifact hold a path, the first
    /// by name has it, as where prefixes are laid over one another; of several artifacts, the first
    /// one's.
    pub fn of(scan: &Scan) -> Self {
        let mut all = Self::default();
        for artifact in scan.shards.iter().flat_map(|shard| &shard.artifacts) {
            let key = (artifact.name.name.clone(), artifact.name.kind);
            let component = all.0.entry(key).or_default();
            for prefix in artifact.prefixes.iter().filter(|p| p.tree.iter().next().is_some()) {
                let name = component.prefix(&prefix.path);
                for (path, _) in &prefix.tree {
                    component.paths.entry(path.clone()).or_insert_with(|| Arc::clone(&name));
                }
            }
        }
        all
    }

    /// Adds one path.
    #[cfg(test)]
    pub(in crate::plan) fn add(
        &mut self,
        artifact: &str,
        kind: ComponentKind,
        prefix: &str,
        at: &str,
    ) {
        let component = self.0.entry((artifact.to_owned(), kind)).or_default();
        let prefix = component.prefix(prefix);
        component.paths.insert(TreePath::new(at).unwrap(), prefix);
    }

    /// The prefix that `path` of `component` came from.
    pub(in crate::plan) fn prefix(&self, component: &Component, path: &TreePath) -> Option<&str> {
        let known = self.0.get(&(component.artifact.clone(), component.kind))?;
        known.paths.get(path).map(|prefix| &**prefix)
    }

    /// The prefixes of a component with something in them.
    pub(in crate::plan) fn prefixes(
        &self,
        artifact: &str,
        kind: ComponentKind,
    ) -> impl Iterator<Item = &str> {
        let known = self.0.get(&(artifact.to_owned(), kind));
        known.into_iter().flat_map(|known| known.prefixes.iter().map(|prefix| &**prefix))
    }

    /// The names and kinds of all components.
    pub(in crate::plan) fn components(&self) -> impl Iterator<Item = (&str, ComponentKind)> {
        self.0.keys().map(|(artifact, kind)| (artifact.as_str(), *kind))
    }
}

impl ComponentPrefixes {
    fn prefix(&mut self, path: &str) -> Arc<str> {
        if let Some(known) = self.prefixes.iter().find(|known| &***known == path) {
            return Arc::clone(known);
        }
        let prefix: Arc<str> = Arc::from(path);
        self.prefixes.push(Arc::clone(&prefix));
        prefix
    }
}
