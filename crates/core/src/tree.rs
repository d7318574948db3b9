//! Install trees (path → file, link or directory), and the names of the artifacts that hold them.
//!
//! A [`Tree`] is sorted by path and holds every path once. It owns the rules for paths: relative,
//! normal, inside the prefix. What a file *is* differs by stage, so it is a type parameter.

mod links;

use std::borrow::Borrow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;

use derive_more::{Deref, Display, From, IntoIterator};
use serde::{Deserialize, Serialize};

pub use links::{DanglingLink, LINK_LIMIT, LinkSet, outside_link_error};

use crate::error::{Error, Kind, Result};
use crate::named_enum;

/// A normal relative path: no empty, `.` or `..` component, no leading or trailing slash. Control characters
/// are refused: they would forge lines in lists or on a terminal. Clones share the text: every stage keeps the paths
/// of all files.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Display, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TreePath(Arc<str>);

impl TreePath {
    pub fn new(text: impl AsRef<str>) -> Result<Self> {
        let text = text.as_ref();
        let has_odd_part = text.split('/').any(|part| matches!(part, "" | "." | ".."));
        let is_plain = text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_control());
        if has_odd_part || !is_plain && text.contains(char::is_control) {
            let message = format!("`{}` is not a path inside the prefix", text.escape_debug());
            return Err(Error::malformed(message).hint(
                "paths are relative, without `.`, `..`, empty parts, line breaks or other \
                       control characters",
            ));
        }
        Ok(Self(text.into()))
    }

    /// The path as text, with `/` between its components.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn join(&self, further: &str) -> Result<Self> {
        Self::new(format!("{}/{further}", self.0))
    }

    pub fn name(&self) -> &str {
        let start = self.folder().map_or(0, |folder| folder.len() + 1);
        self.0.get(start..).unwrap_or_default()
    }

    pub fn parent(&self) -> Option<Self> {
        self.folder().map(|folder| Self(folder.into()))
    }

    /// The text of [`parent`](Self::parent).
    pub fn folder(&self) -> Option<&str> {
        // The search for a character takes longer for names, which are short.
        self.0.get(..self.0.bytes().rposition(|byte| byte == b'/')?)
    }

    /// The path of `name` in the folder of this path.
    pub fn sibling(&self, name: &str) -> Result<Self> {
        self.parent().map_or_else(|| Self::new(name), |folder| folder.join(name))
    }

    /// Whether the path lies in `folder`, at any depth.
    pub fn is_below(&self, folder: &Self) -> bool {
        self.0.strip_prefix(&*folder.0).is_some_and(|rest| rest.starts_with('/'))
    }

    pub fn components(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// Resolves the text of a link at this path; `None` if it is absolute, or leads to the root or above.
    pub fn resolve_link(&self, target: &str) -> Option<Self> {
        let mut parts: Vec<&str> = self.components().collect();
        parts.pop();
        if target.starts_with('/') {
            return None;
        }
        for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
            match part {
                ".." => drop(parts.pop()?),
                part => parts.push(part),
            }
        }
        Self::new(parts.join("/")).ok()
    }
}

/// The folders around `paths`. They are slices of the paths: owned paths of all folders would need memory for
/// the depth of each file times the length of its path.
pub fn folders_around<'a>(paths: impl IntoIterator<Item = &'a TreePath>) -> BTreeSet<&'a str> {
    let mut folders = BTreeSet::new();
    let mut last = None;
    for path in paths {
        if path.folder() == last {
            continue;
        }
        last = path.folder();
        let path = path.as_str();
        let above = path.rmatch_indices('/').filter_map(|(end, _)| path.get(..end));
        for folder in above {
            // The folders around a known one are known.
            if !folders.insert(folder) {
                break;
            }
        }
    }
    folders
}

/// The folders among `paths` that hold nothing but `gone`.
pub fn emptied_folders<'a, 'b>(
    gone: impl IntoIterator<Item = &'a TreePath>,
    paths: impl Iterator<Item = &'b TreePath> + Clone,
) -> BTreeSet<TreePath> {
    let around = folders_around(gone);
    if around.is_empty() {
        return BTreeSet::new();
    }
    let others = paths.clone().filter(|path| !around.contains(path.as_str()));
    let kept = folders_around(others);
    let is_emptied = |path: &str| around.contains(path) && !kept.contains(path);
    paths.filter(|path| is_emptied(path.as_str())).cloned().collect()
}

/// The first of `nodes` that lies below `path`.
pub fn first_below<'a, K: Ord + Borrow<TreePath>, V>(
    nodes: &'a BTreeMap<K, V>,
    path: &str,
) -> Option<(&'a K, &'a V)> {
    let start = TreePath(format!("{path}/").into());
    let (below, node) = nodes.range::<TreePath, _>(&start..).next()?;
    let found: &TreePath = below.borrow();
    found.0.starts_with(&*start.0).then_some((below, node))
}

impl TryFrom<String> for TreePath {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        Self::new(text)
    }
}

/// Paths are looked up by their text, so both must compare and hash alike.
impl Borrow<str> for TreePath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<TreePath> for Arc<str> {
    fn from(path: TreePath) -> Self {
        path.0
    }
}

impl From<TreePath> for String {
    fn from(path: TreePath) -> Self {
        path.as_str().to_owned()
    }
}

/// The node at a path of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node<F> {
    Directory {
        mode: u32,
    },
    Link {
        /// Link text, as stored.
        target: String,
    },
    File {
        /// The data of the file at this stage.
        data: F,
        mode: u32,
    },
}

impl<F> Node<F> {
    /// The data of a regular file; `None` for other nodes.
    pub fn data(&self) -> Option<&F> {
        match self {
            Self::File { data, .. } => Some(data),
            Self::Directory { .. } | Self::Link { .. } => None,
        }
    }

    /// Converts the data of a file; other nodes stay as they are.
    pub fn try_map<G>(self, map: impl FnOnce(F) -> Result<G>) -> Result<Node<G>> {
        Ok(match self {
            Node::Directory { mode } => Node::Directory { mode },
            Node::Link { target } => Node::Link { target },
            Node::File { data, mode } => Node::File { data: map(data)?, mode },
        })
    }

    pub fn kind(&self) -> MemberKind {
        match self {
            Node::Directory { .. } => MemberKind::Directory,
            Node::Link { .. } => MemberKind::Link,
            Node::File { .. } => MemberKind::File,
        }
    }
}

/// Files, links and directories by path, in path order.
#[derive(Debug, Clone, PartialEq, Eq, Deref, From, IntoIterator)]
pub struct Tree<F> {
    #[into_iterator(owned, ref, ref_mut)]
    nodes: BTreeMap<TreePath, Node<F>>,
}

impl<F> Default for Tree<F> {
    fn default() -> Self {
        Self { nodes: BTreeMap::new() }
    }
}

impl<F> Tree<F> {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `node` at `path`; an error if the path is taken.
    pub fn insert(&mut self, path: TreePath, node: Node<F>) -> Result<()> {
        match self.nodes.entry(path) {
            Entry::Vacant(slot) => {
                slot.insert(node);
                Ok(())
            }
            Entry::Occupied(slot) => {
                let (there, path) = (slot.get().kind(), slot.key());
                let message = format!("a {} and a {there} both claim {path}", node.kind());
                Err(Error::new(Kind::Conflict, message))
            }
        }
    }

    pub fn get(&self, path: &TreePath) -> Option<&Node<F>> {
        self.nodes.get(path)
    }

    pub fn get_mut(&mut self, path: &TreePath) -> Option<&mut Node<F>> {
        self.nodes.get_mut(path)
    }

    pub fn remove(&mut self, path: &TreePath) -> Option<Node<F>> {
        self.nodes.remove(path)
    }
}

named_enum! {
    /// The part of a project that an artifact holds, by its word in artifact names.
    pub enum ComponentKind {
        Lib = "lib",
        Run = "run",
        Dbg = "dbg",
        Dev = "dev",
        Doc = "doc",
        Test = "test",
    }
}

impl ComponentKind {
    pub const ALL: [Self; 6] = [Self::Lib, Self::Run, Self::Dbg, Self::Dev, Self::Doc, Self::Test];
}

impl FromStr for ComponentKind {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            Error::malformed(format!("`{text}` is not a component kind"))
                .hint("the component kinds are lib, run, dbg, dev, doc and test")
        })
    }
}

named_enum! {
    /// The kind of an installed member of a package.
    pub enum MemberKind {
        Directory = "directory",
        File = "file",
        Link = "link",
    }
}

/// The name of an artifact: `{name}_{kind}_{gpu_family}`, e.g. `blas_lib_gfx110X-dgpu`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Display, Serialize, Deserialize)]
#[display("{name}_{kind}_{gpu_family}")]
#[serde(try_from = "String", into = "String")]
pub struct ArtifactName {
    /// The project, e.g. `blas`, `host-suite-sparse`.
    pub name: String,
    pub kind: ComponentKind,
    /// The label of the build job: `generic`, a target, several GPUs. Empty for a wheel.
    pub gpu_family: String,
}

impl ArtifactName {
    /// The component of the artifact, e.g. `blas_lib`.
    pub fn component(&self) -> String {
        format!("{}_{}", self.name, self.kind)
    }

    /// Whether the artifact was read from a wheel.
    pub fn is_wheel(&self) -> bool {
        self.gpu_family.is_empty()
    }

    /// Whether it is for all GPUs, and so provides the host files.
    pub fn is_generic(&self) -> bool {
        self.is_wheel() || self.gpu_family == "generic"
    }
}

rockpack_kpack::as_text!(ArtifactName);

impl FromStr for ArtifactName {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text.split('_').collect::<Vec<_>>()[..] {
            [name, kind, gpu_family] if !name.is_empty() && !gpu_family.is_empty() => {
                let (name, gpu_family) = (name.to_owned(), gpu_family.to_owned());
                Ok(Self { name, kind: kind.parse()?, gpu_family })
            }
            _ => Err(Error::malformed(format!("`{text}` is not an artifact name")).hint(
                "artifacts are named {name}_{kind}_{gpu_family}, as in blas_lib_gfx110X-dgpu; write `-` \
                 instead of `_` inside {name}, as in host-suite-sparse",
            )),
        }
    }
}

/// The names in an absolute path, with `.` and `..` resolved.
pub fn resolved_names(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_prefix_are_refused() {
        for text in ["", "/lib", "lib/", "lib//x", "./lib", "lib/../x", "..", "a\nb", "a\0b"] {
            assert!(TreePath::new(text).is_err(), "{text:?}");
        }
        assert_eq!(TreePath::new("lib/x.so").unwrap().name(), "x.so");
    }

    #[test]
    fn links_resolve_inside_the_tree_only() {
        let link = TreePath::new("lib/a/link").unwrap();
        for (target, expected) in [
            ("x.so", Some("lib/a/x.so")),
            ("../../bin/./x", Some("bin/x")),
            ("../../../etc/passwd", None),
            ("/etc/passwd", None),
        ] {
            let path = link.resolve_link(target).map(|path| path.to_string());
            assert_eq!(path.as_deref(), expected, "{target}");
        }
    }

    #[test]
    fn folders_around_paths_are_there_once() {
        let paths = ["a/b/c/x", "a/b/y", "a-b/x", "z"].map(|path| TreePath::new(path).unwrap());
        assert_eq!(Vec::from_iter(folders_around(&paths)), ["a", "a-b", "a/b", "a/b/c"]);
    }

    #[test]
    fn the_first_path_below_another_is_found() {
        let nodes = ["a", "a-b", "a/b", "ab/x"].map(|path| (TreePath::new(path).unwrap(), ()));
        let nodes = BTreeMap::from(nodes);
        for (path, below) in [("a", Some("a/b")), ("ab", Some("ab/x")), ("a-b", None)] {
            let found = first_below(&nodes, path);
            assert_eq!(found.map(|(path, ())| path.as_str()), below, "{path}");
        }
    }

    #[test]
    fn a_path_is_taken_once() {
        let mut tree = Tree::<u8>::new();
        let path = TreePath::new("x").unwrap();
        tree.insert(path.clone(), Node::Directory { mode: 0o755 }).unwrap();
        let error = tree.insert(path, Node::File { data: 1, mode: 0o644 }).unwrap_err();
        assert_eq!(error.kind(), Kind::Conflict);
    }
}
