//! Links that dangle in several overlaid trees.

use std::collections::{BTreeMap, BTreeSet};

use super::{Node, Tree, TreePath, first_below};
use crate::error::{Error, Faults, Kind, Result};

/// Number of links in a row that are followed, as in Linux.
pub const LINK_LIMIT: usize = 40;

/// Most path components that one link may pass through, including those of links on its way. Forty links
/// of PATH_MAX in a row would lead over 80,000, and an archive can have a million such links.
const PART_LIMIT: usize = 4096;

/// The paths of several overlaid trees, and the targets of their links.
#[derive(Debug, Default)]
pub struct LinkSet {
    paths: BTreeMap<TreePath, Option<String>>,
    /// Every link with the name of its tree.
    named: BTreeSet<(String, TreePath, String)>,
}

/// A link to a path that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DanglingLink {
    /// The name of its tree.
    pub owner: String,
    /// The path of the link in the tree.
    pub path: TreePath,
    pub target: String,
}

impl LinkSet {
    /// Adds the paths of a tree; messages put `name` before the paths of its links.
    pub fn add_tree<D>(&mut self, tree: &Tree<D>, name: &str) {
        tree.iter().for_each(|(path, node)| self.add_node(path, node, name));
    }

    /// Adds a node of a tree of this name.
    pub fn add_node<D>(&mut self, path: &TreePath, node: &Node<D>, name: &str) {
        self.add(path);
        if let Node::Link { target } = node {
            self.paths.insert(path.clone(), Some(target.clone()));
            self.named.insert((name.to_owned(), path.clone(), target.clone()));
        }
    }

    /// Adds a path, and with it the folders around it.
    pub fn add(&mut self, path: &TreePath) {
        self.paths.entry(path.clone()).or_default();
    }

    /// The links that lead to no path of the set.
    pub fn dangling(&self) -> Vec<DanglingLink> {
        let lost = self.named.iter().filter(|(_, path, target)| {
            follow(path, target, |place| self.lookup(place)) != LinkEnd::Inside
        });
        lost.cloned().map(|(owner, path, target)| DanglingLink { owner, path, target }).collect()
    }

    fn lookup(&self, place: &str) -> LinkLookup<'_> {
        match self.paths.get(place) {
            Some(Some(target)) => LinkLookup::Link(target),
            Some(None) => LinkLookup::Other,
            None if first_below(&self.paths, place).is_some() => LinkLookup::Other,
            None => LinkLookup::Nothing,
        }
    }

    /// Fails if a link is absolute, leads above the root of the trees, or leads over too many folders. A path
    /// that the set lacks counts as a folder: it may exist where the set is installed.
    pub fn refuse_outside_links(&self) -> Result<()> {
        let mut faults = Faults::default();
        for (name, path, target) in &self.named {
            let stayed = check_link_end(path, target, |place| self.link_at(place));
            if let Err(fault) = stayed {
                faults.add(fault.structure(format!("{name}/{path}")));
            }
        }
        faults.finish()
    }

    /// The link at `place`. A missing path counts as a folder.
    fn link_at(&self, place: &str) -> LinkLookup<'_> {
        let target = self.paths.get(place).and_then(Option::as_ref);
        target.map_or(LinkLookup::Other, |target| LinkLookup::Link(target))
    }
}

impl<D> Tree<D> {
    /// The links that are absolute, lead above the root or lead over too many folders, each with its error. A
    /// path that the tree lacks counts as a folder.
    pub fn outside_links(&self) -> Vec<(&TreePath, Error)> {
        let links = self.nodes.iter().filter_map(|(path, node)| match node {
            Node::Link { target } => Some((path, target)),
            _ => None,
        });
        let leaving = links.filter_map(|(path, target)| {
            let error = check_link_end(path, target, |place| self.link_at(place)).err()?;
            Some((path, error))
        });
        leaving.collect()
    }

    /// The link at `place`. A missing path counts as a folder.
    fn link_at(&self, place: &str) -> LinkLookup<'_> {
        match self.nodes.get(place) {
            Some(Node::Link { target }) => LinkLookup::Link(target),
            _ => LinkLookup::Other,
        }
    }
}

/// Fails if a link leads outside, or over too many folders to resolve.
fn check_link_end<'a>(
    path: &'a TreePath,
    target: &'a str,
    lookup: impl Fn(&str) -> LinkLookup<'a>,
) -> Result<()> {
    match follow(path, target, lookup) {
        LinkEnd::Inside | LinkEnd::Nowhere => Ok(()),
        LinkEnd::Outside => Err(outside_link_error(target)),
        LinkEnd::TooFar => {
            let message = format!("the link leads over more than {PART_LIMIT} folders and links");
            Err(Error::new(Kind::Limit, message).hint("point it directly at its target"))
        }
    }
}

/// An error for a link with the text `target` that leads above the root of a tree.
pub fn outside_link_error(target: &str) -> Error {
    let message = format!("the link leads to `{target}`, outside of the install prefix");
    let hint = "once installed, it would point to a file of another package or of the system; make it \
                a relative link to a file in the same prefix";
    Error::unsupported(message).hint(hint)
}

/// The answer of a look-up of a path.
enum LinkLookup<'a> {
    Link(&'a str),
    Other,
    Nothing,
}

/// The end of the path that a link leads to.
#[derive(Debug, PartialEq, Eq)]
enum LinkEnd {
    /// An existing path, maybe the root itself, which every package brings.
    Inside,
    Nowhere,
    Outside,
    /// More than [`PART_LIMIT`] components away.
    TooFar,
}

/// Follows the link at `path` as the kernel does: `..` after a link goes up from that link's target.
fn follow<'a>(
    path: &'a TreePath,
    target: &'a str,
    lookup: impl Fn(&str) -> LinkLookup<'a>,
) -> LinkEnd {
    let mut here = path.as_str().rsplit_once('/').map_or("", |(above, _)| above).to_owned();
    if target.starts_with('/') {
        return LinkEnd::Outside;
    }
    // Components still to be followed, the next one at the end.
    let mut ahead: Vec<&str> = target.split('/').rev().collect();
    // Components are counted before they are followed: each link may add PATH_MAX bytes, and its first component may
    // be another link.
    let (mut links, mut parts) = (1, ahead.len());
    while let Some(part) = ahead.pop() {
        match part {
            _ if parts > PART_LIMIT => return LinkEnd::TooFar,
            "" | "." => continue,
            ".." if here.is_empty() => return LinkEnd::Outside,
            ".." => {
                pop(&mut here);
                continue;
            }
            part => push(&mut here, part),
        }
        match lookup(&here) {
            LinkLookup::Nothing => return LinkEnd::Nowhere,
            LinkLookup::Other => {}
            LinkLookup::Link(target) if target.starts_with('/') => return LinkEnd::Outside,
            LinkLookup::Link(_) if links == LINK_LIMIT => return LinkEnd::Nowhere,
            LinkLookup::Link(target) => {
                pop(&mut here);
                let waiting = ahead.len();
                ahead.extend(target.split('/').rev());
                parts += ahead.len() - waiting;
                links += 1;
            }
        }
    }
    LinkEnd::Inside
}

fn push(path: &mut String, part: &str) {
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(part);
}

/// Removes the last component; the root has none.
fn pop(path: &mut String) {
    path.truncate(path.rfind('/').unwrap_or(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(links: &[(&str, &str)]) -> Tree<()> {
        let mut tree = Tree::new();
        for (path, target) in links {
            let path = TreePath::new(*path).unwrap();
            tree.insert(path, Node::Link { target: (*target).to_owned() }).unwrap();
        }
        tree
    }

    fn leaving(links: &[(&str, &str)]) -> Vec<String> {
        let tree = tree(links);
        let leaving = tree.outside_links();
        leaving.into_iter().map(|(path, _)| path.to_string()).collect()
    }

    #[test]
    fn links_that_leave_through_other_links_are_found() {
        assert_eq!(leaving(&[("l", "."), ("n", "l/l/l/../../../etc")]), ["n"]);
        assert_eq!(leaving(&[("a/b/l", "../.."), ("n", "a/b/l/..")]), ["n"]);
        assert_eq!(leaving(&[("a/n", "l/../../x"), ("a/l", "gone/..")]), ["a/n"]);
        // Links may lead to the root, and through folders that are missing.
        assert_eq!(leaving(&[("l", "a/b"), ("n", "l/../../x"), ("a/m", "../n")]), [""; 0]);
        // A chain over too many components is not followed to its end.
        let long = "a/../".repeat(PART_LIMIT / 8);
        let steps: Vec<(String, String)> =
            (0..9).map(|n| (format!("l{n}"), format!("{long}l{}", n + 1))).collect();
        let chain: Vec<(&str, &str)> = steps.iter().map(|(path, to)| (&**path, &**to)).collect();
        let tree_of_chain = tree(&chain);
        let faults = tree_of_chain.outside_links();
        assert_eq!(faults.len(), 6, "of nine, the last three are short enough");
        assert!(faults[0].1.to_string().contains("over more than 4096 folders"), "{}", faults[0].1);
        // A chain whose components wait behind a short link is not followed to its end either.
        let hops: Vec<(String, String)> =
            (0..9).map(|n| (format!("l{n}"), format!("l{}/{long}", n + 1))).collect();
        let wide: Vec<(&str, &str)> = hops.iter().map(|(path, to)| (&**path, &**to)).collect();
        assert_eq!(tree(&wide).outside_links().len(), 6);
        // Kernels do not follow these either.
        assert_eq!(leaving(&[("one", "two/.."), ("two", "one/..")]), [""; 0]);
    }

    #[test]
    fn links_that_leave_through_those_of_another_tree_are_refused() {
        let mut set = LinkSet::default();
        set.add_tree(&tree(&[("n", "l/l/../../etc")]), "one");
        assert!(set.refuse_outside_links().is_ok());
        set.add_tree(&tree(&[("l", ".")]), "other");
        let error = set.refuse_outside_links().unwrap_err();
        assert!(error.to_string().starts_with("one/n: the link leads to `l/l/"), "{error}");
    }
}
