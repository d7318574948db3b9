//! Artifacts to be written.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::{Node, Tree, TreePath};
use serde::Serialize;

use rockpack_split::input::artifact::{ArtifactManifest, MANIFEST_NAME};

/// An artifact directory before it is written.
#[derive(Debug)]
pub struct OutputArtifact {
    /// `{name}_{kind}_{gpu_family}`.
    pub name: String,
    /// The bytes of its manifest.
    pub manifest: Content,
    /// Stage prefix → its content.
    pub prefixes: BTreeMap<String, Tree<Content>>,
}

/// An artifact directory that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrittenArtifact {
    /// Folder of the artifact; `None` for the output folder itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// `{name}_{kind}_{gpu_family}`.
    pub artifact: String,
    /// Number of files and links.
    pub files: usize,
    /// Bytes of its files.
    pub bytes: u64,
}

/// Collects the files of several artifacts.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    artifacts: BTreeMap<String, BTreeMap<String, BTreeMap<TreePath, Node<Content>>>>,
}

impl Outputs {
    /// Adds a stage prefix that may stay empty.
    pub fn prefix(&mut self, artifact: &str, prefix: &str) {
        let prefixes = self.artifacts.entry(artifact.to_owned()).or_default();
        prefixes.entry(prefix.to_owned()).or_default();
    }

    /// Adds the node at `path` below a stage prefix. Identical nodes become one; modes of a directory are
    /// joined.
    pub fn add(
        &mut self,
        artifact: &str,
        prefix: &str,
        path: &TreePath,
        node: Node<Content>,
    ) -> Result<()> {
        self.prefix(artifact, prefix);
        let prefixes = self.artifacts.entry(artifact.to_owned()).or_default();
        let slot = prefixes.entry(prefix.to_owned()).or_default().entry(path.clone());
        let mut there = match slot {
            Entry::Vacant(slot) => {
                slot.insert(node);
                return Ok(());
            }
            Entry::Occupied(slot) => slot,
        };
        let same = match (there.get_mut(), &node) {
            (Node::Directory { mode }, Node::Directory { mode: other }) => {
                *mode |= other;
                true
            }
            (Node::Link { target }, Node::Link { target: other }) => target == other,
            (Node::File { data, .. }, Node::File { data: other, .. }) => data.same_bytes(other)?,
            _ => false,
        };
        if same {
            Ok(())
        } else {
            let message = format!("{prefix}/{path} of {artifact} would have two contents");
            Err(Error::new(Kind::Conflict, message))
        }
    }

    /// The artifacts, in name order. An artifact of the input with the same name, in the folder that
    /// `earlier` gives, passes on its manifest if that lists all prefixes.
    pub fn finish<'a>(
        self,
        earlier: impl Fn(&str) -> Option<&'a Path>,
    ) -> Result<Vec<OutputArtifact>> {
        let mut finished = Vec::new();
        for (name, prefixes) in self.artifacts {
            let listed: Vec<&str> = prefixes.keys().map(String::as_str).collect();
            let kept = match earlier(&name) {
                Some(artifact) => kept_manifest(artifact, &listed)?,
                None => None,
            };
            let manifest = kept.unwrap_or_else(|| {
                let lines: Vec<String> = listed.iter().map(|line| format!("{line}\n")).collect();
                Content::of_bytes(lines.concat())
            });
            let mut trees = BTreeMap::new();
            for (prefix, nodes) in prefixes {
                let mut tree = Tree::new();
                for (path, node) in nodes {
                    tree.insert(path, node)?;
                }
                trees.insert(prefix, tree);
            }
            finished.push(OutputArtifact { name, manifest, prefixes: trees });
        }
        Ok(finished)
    }
}

/// The manifest of `artifact`, if that is a folder and lists all of `prefixes`.
fn kept_manifest(artifact: &Path, prefixes: &[&str]) -> Result<Option<Content>> {
    let metadata = std::fs::metadata(artifact).map_err(|e| Error::io(artifact, "inspect", e))?;
    if !metadata.is_dir() {
        return Ok(None);
    }
    let (manifest, bytes) = ArtifactManifest::open(&artifact.join(MANIFEST_NAME))?;
    let lists_all =
        prefixes.iter().all(|prefix| manifest.prefixes.iter().any(|line| line.as_str() == *prefix));
    Ok(lists_all.then(|| Content::of_bytes(bytes)))
}
