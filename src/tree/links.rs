//! Which links of several trees lead to nothing in any of them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Node, Tree, TreePath};

/// How many links in a row are followed, as many as Linux follows.
pub const LINK_LIMIT: usize = 40;

/// Every path of several trees that are laid over one another, and where their links lead.
#[derive(Debug, Default)]
pub struct LinkSet {
    paths: BTreeSet<TreePath>,
    links: BTreeMap<TreePath, String>,
    /// Every link with the name of its tree.
    named: BTreeSet<(String, TreePath, String)>,
}

impl LinkSet {
    /// Adds the paths of a tree, whose name goes before the paths of its links in messages.
    pub fn add_tree<D>(&mut self, tree: &Tree<D>, name: &str) {
        for (path, node) in tree {
            self.add(path);
            if let Node::Link { target } = node {
                self.links.insert(path.clone(), target.clone());
                self.named.insert((name.to_owned(), path.clone(), target.clone()));
            }
        }
    }

    /// Adds a path, and the directories above it.
    pub fn add(&mut self, path: &TreePath) {
        let above = std::iter::successors(Some(path.clone()), TreePath::parent);
        self.paths.extend(above);
    }

    /// The links that lead to no path of the set, as `name/path`, and what they say.
    pub fn dangling(&self) -> Vec<(String, &str)> {
        let lost = self.named.iter().filter(|(_, path, target)| !self.resolves(path, target));
        lost.map(|(name, path, target)| (format!("{name}/{path}"), target.as_str())).collect()
    }

    /// Whether a link at `path` with the text `target` leads to something of the set, followed as a
    /// kernel does: `..` behind a link goes up from where that link leads.
    fn resolves(&self, path: &TreePath, target: &str) -> bool {
        let mut here: Vec<&str> = path.components().collect();
        here.pop();
        // What is still to be followed, the next part at the end. It may end at the prefix itself,
        // which every package brings.
        let mut ahead: Vec<&str> = target.split('/').rev().collect();
        let mut followed = 1;
        let mut lost = target.starts_with('/');
        while let Some(part) = ahead.pop() {
            match part {
                _ if lost || followed > LINK_LIMIT => return false,
                "" | "." => {}
                ".." => lost = here.pop().is_none(),
                part => {
                    here.push(part);
                    match TreePath::new(here.join("/")).ok().as_ref() {
                        Some(place) if self.links.contains_key(place) => {
                            let target = &self.links[place];
                            here.pop();
                            ahead.extend(target.split('/').rev());
                            lost = target.starts_with('/');
                            followed += 1;
                        }
                        place => lost = !place.is_some_and(|p| self.paths.contains(p)),
                    }
                }
            }
        }
        !lost
    }
}
