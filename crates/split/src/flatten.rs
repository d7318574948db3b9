//! Merges the stage prefixes of an artifact into one tree.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::{Node, Tree, TreePath, first_below};

use super::notes::Notes;
use crate::input::artifact::{Artifact, StagePrefix};
use rockpack_report::{Finding, SameFile};

/// A file and the module whose prefix holds it.
#[derive(Debug, Clone)]
pub(super) struct Located {
    pub content: Content,
    pub module: Option<String>,
    pub mode: u32,
}

/// A node of a tree and the stage prefix that it belongs to.
struct OwnedNode<'a> {
    prefix: &'a StagePrefix,
    node: Node<Located>,
}

/// Merges all prefixes into one tree. A node that several prefixes have alike belongs to the first of them;
/// different ones are an error that names both.
pub(super) fn flatten(artifact: &Artifact, notes: &mut Notes) -> Result<Tree<Located>> {
    let mut owned = BTreeMap::new();
    let mut faults = Faults::default();
    for prefix in &artifact.prefixes {
        for (path, node) in &prefix.tree {
            faults.keep(lay(&mut owned, prefix, path, node, notes));
        }
    }
    let shadowing = owned.iter().filter_map(|(path, own)| shadowing(&owned, path, own));
    shadowing.for_each(|fault| faults.add(fault));
    faults.finish()?;
    let mut tree = Tree::new();
    for (path, own) in owned {
        tree.insert(path, own.node)?;
    }
    Ok(tree)
}

fn lay<'a>(
    owned: &mut BTreeMap<TreePath, OwnedNode<'a>>,
    prefix: &'a StagePrefix,
    path: &TreePath,
    node: &Node<Content>,
    notes: &mut Notes,
) -> Result<()> {
    let file_mode = match node {
        Node::File { mode, .. } => *mode,
        Node::Directory { .. } | Node::Link { .. } => 0,
    };
    let node = node.clone().try_map(|content| {
        Ok(Located { content, module: prefix.module.clone(), mode: file_mode })
    })?;
    let there = match owned.entry(path.clone()) {
        Entry::Vacant(slot) => {
            slot.insert(OwnedNode { prefix, node });
            return Ok(());
        }
        Entry::Occupied(slot) => slot.into_mut(),
    };
    let alike = match (&mut there.node, &node) {
        (Node::Directory { mode }, Node::Directory { mode: other }) => {
            *mode |= other;
            return Ok(());
        }
        (Node::Link { target }, Node::Link { target: other }) => target == other,
        (Node::File { data, mode }, Node::File { data: other, mode: other_mode }) => {
            mode == other_mode && data.content.same_bytes(&other.content)?
        }
        _ => false,
    };
    if !alike {
        return Err(conflict(path, there, prefix, &node));
    }
    let same = SameFile::Prefixes(there.prefix.path.clone(), prefix.path.clone());
    notes.add(Finding::FileMerged { file: notes.file(path), same });
    Ok(())
}

fn conflict(
    path: &TreePath,
    there: &OwnedNode,
    prefix: &StagePrefix,
    node: &Node<Located>,
) -> Error {
    let (first, second) = (&there.prefix.path, &prefix.path);
    if let (Node::File { mode, .. }, Node::File { mode: other, .. }) = (&there.node, node)
        && mode != other
    {
        let message =
            format!("{path} has mode {mode:o} in the prefix {first}, {other:o} in {second}");
        return Error::new(Kind::Conflict, message);
    }
    let (one, other) = (there.node.kind(), node.kind());
    let message = if one == other {
        format!("{path} differs between the prefixes {first} and {second}")
    } else {
        format!("{path} is a {one} in the prefix {first} and a {other} in {second}")
    };
    Error::new(Kind::Conflict, message)
        .hint("all prefixes of an artifact are installed into one; a path can have one content")
}

/// An error if `path` is no directory, and another node needs one there.
fn shadowing(
    owned: &BTreeMap<TreePath, OwnedNode>,
    path: &TreePath,
    own: &OwnedNode,
) -> Option<Error> {
    if matches!(own.node, Node::Directory { .. }) {
        return None;
    }
    let (below, other) = first_below(owned, path.as_str())?;
    let message = format!(
        "{path} is a {} in the prefix {}, and {} holds {below} below it",
        own.node.kind(),
        own.prefix.path,
        other.prefix.path
    );
    Some(Error::new(Kind::Conflict, message))
}
