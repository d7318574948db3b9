//! The tree below one stage prefix.

use std::path::{Path, PathBuf};

use rockpack_core::content::{Content, Inputs, if_there};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::{Node, Tree, TreePath, link_leaves};

use super::listing::{FolderEntry, list, refuse_deep};

/// Most bytes of the text of a link on Linux: PATH_MAX without the terminating NUL.
const LINK_TEXT_MAX: usize = 4095;

/// A walk over a prefix, with the tree that it collects.
pub(super) struct PrefixWalk<'a> {
    pub tree: Tree<Content>,
    pub inputs: &'a mut Inputs,
    pub faults: &'a mut Faults,
}

impl PrefixWalk<'_> {
    /// Reads the folder at `path`, which is `at` within the prefix (`None` for the prefix itself).
    pub fn folder(&mut self, path: &Path, at: Option<&TreePath>) {
        let entries = list(path, self.inputs, self.faults);
        let above = at.map_or(0, |at| at.as_str().len() * entries.len());
        let room = self.inputs.budget().charge_paths(above).map_err(|error| error.file(path));
        if self.faults.keep(room).is_none() {
            return;
        }
        for entry in entries {
            let joined = match at {
                Some(at) => at.join(&entry.name),
                None => TreePath::new(entry.name.as_str()),
            };
            let place = joined
                .and_then(|place| refuse_deep(&place).map(|()| place))
                .map_err(|error| error.file(&entry.path));
            if let Some(place) = self.faults.keep(place) {
                self.entry(&entry, place);
            }
        }
    }

    fn entry(&mut self, entry: &FolderEntry, place: TreePath) {
        let node = node_of(entry, &place, self.inputs);
        let Some(node) = self.faults.keep(node) else {
            return;
        };
        let inserted = self.tree.insert(place.clone(), node);
        self.faults.keep(inserted);
        if entry.metadata.is_dir() {
            self.folder(&entry.path, Some(&place));
        }
    }
}

fn node_of(entry: &FolderEntry, place: &TreePath, inputs: &mut Inputs) -> Result<Node<Content>> {
    entry.refuse_special()?;
    let mode = entry.mode();
    if entry.metadata.is_dir() {
        return Ok(Node::Directory { mode });
    }
    if entry.metadata.is_symlink() {
        return link_of(entry, place, inputs);
    }
    Ok(Node::File { data: inputs.content(&entry.path)?, mode })
}

fn link_of(entry: &FolderEntry, place: &TreePath, inputs: &mut Inputs) -> Result<Node<Content>> {
    let target_path =
        std::fs::read_link(&entry.path).map_err(|e| Error::io(&entry.path, "read the link", e))?;
    inputs.add_link(&entry.path, &target_path);
    let target = target_path.into_os_string().into_string().map_err(|target| {
        let message = format!("the link leads to {target:?}, which is not UTF-8");
        Error::malformed(message).file(&entry.path)
    })?;
    check_target(place, &target).map_err(|error| error.file(&entry.path))?;
    inputs.budget().charge_paths(target.len()).map_err(|error| error.file(&entry.path))?;
    Ok(Node::Link { target })
}

/// Fails unless `target` may be the text of a link at `place` of a stage prefix.
pub(super) fn check_target(place: &TreePath, target: &str) -> Result<()> {
    if target.is_empty() || target.contains(char::is_control) {
        let message = format!("the link leads to `{}`", target.escape_debug());
        return Err(Error::malformed(message));
    }
    if target.len() > LINK_TEXT_MAX {
        let message = format!("has a link of {} bytes, beyond PATH_MAX", target.len());
        return Err(Error::new(Kind::Limit, message));
    }
    if leaves(place, target) {
        return Err(link_leaves(target));
    }
    Ok(())
}

/// Refuses links that leave their prefix through other links; `name` returns the names of files.
pub(super) fn refuse_leaving(
    tree: &Tree<Content>,
    faults: &mut Faults,
    name: impl Fn(&TreePath) -> PathBuf,
) {
    for (place, fault) in tree.leaving_links() {
        faults.add(fault.file(name(place)));
    }
}

/// Tells whether a link at `place` with the text `target` leads above the root of the tree.
fn leaves(place: &TreePath, target: &str) -> bool {
    let mut depth = place.components().count() - 1;
    if target.starts_with('/') {
        return true;
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

/// The folder of `prefix` below `root`; `None` if it does not exist. A link on the way is refused: its
/// content would have two paths, or lies outside of the artifact.
pub(super) fn locate(root: &Path, prefix: &TreePath) -> Result<Option<PathBuf>> {
    let mut path = root.to_path_buf();
    for part in prefix.components() {
        path.push(part);
        let metadata = if_there(&path, "inspect", std::fs::symlink_metadata(&path))?;
        let Some(metadata) = metadata else { return Ok(None) };
        if metadata.is_symlink() {
            return Err(through_link(prefix).file(&path));
        }
        if !metadata.is_dir() {
            return Err(no_folder(prefix).file(&path));
        }
    }
    Ok(Some(path))
}

/// An error for a stage prefix behind a link.
pub(super) fn through_link(prefix: &TreePath) -> Error {
    Error::unsupported(format!("the stage prefix `{prefix}` leads through a symbolic link"))
        .hint("list the real folder in the manifest, and keep it inside the artifact")
}

/// An error for a stage prefix that is a file, or below one.
pub(super) fn no_folder(prefix: &TreePath) -> Error {
    Error::malformed(format!("the stage prefix `{prefix}` is no folder"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_may_lead_to_the_root_and_no_further() {
        for (place, target, expected) in [
            ("lib/x", "../bin/y", false),
            ("lib/x", "..", false),
            ("x", ".", false),
            ("lib/x", "../..", true),
            ("lib/x", "../../lib/y", true),
            ("x", "/usr/lib/y", true),
        ] {
            let path = TreePath::new(place).unwrap();
            assert_eq!(leaves(&path, target), expected, "{place} {target}");
        }
    }

    #[test]
    fn links_longer_than_any_are_refused() {
        let place = TreePath::new("lib/link").unwrap();
        let longest = format!("{}b", "a/".repeat(2047));
        check_target(&place, &longest).unwrap();
        let error = check_target(&place, &format!("a/{longest}")).unwrap_err();
        assert!(error.to_string().contains("beyond PATH_MAX"), "{error}");
    }
}
