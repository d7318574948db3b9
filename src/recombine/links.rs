//! Links that lead to nothing in the whole set.

use std::collections::{BTreeMap, BTreeSet};

use crate::recombine::Recombined;
use crate::report::{Code, Finding, Findings};
use crate::tree::{Node, TreePath};

/// How many links in a row are followed, as many as Linux follows.
const LINK_LIMIT: usize = 40;

/// Notes every link whose end is in no component: `libx.so` of a development component may well
/// lead to a library component's file, so only the set as a whole can tell.
pub(super) fn find_dangling(recombined: &Recombined, findings: &mut Findings) {
    let set = Set::of(recombined);
    for component in &recombined.components {
        for (path, node) in &component.host {
            if let Node::Link { target } = node
                && !set.resolves(path, target)
            {
                let subject = format!("{}/{path}", component.id());
                let message = format!("leads to {target}, which no component has");
                findings.add(Finding::new(Code::LinkDangling, subject, message));
            }
        }
    }
}

/// Every path of a set, and where its links lead.
struct Set<'a> {
    paths: BTreeSet<TreePath>,
    links: BTreeMap<&'a TreePath, &'a str>,
}

impl<'a> Set<'a> {
    fn of(recombined: &'a Recombined) -> Self {
        let mut set = Self { paths: BTreeSet::new(), links: BTreeMap::new() };
        for component in &recombined.components {
            for (path, node) in &component.host {
                set.add(path);
                if let Node::Link { target } = node {
                    set.links.insert(path, target);
                }
            }
            for file in &component.databases {
                set.add(&file.path);
            }
        }
        set
    }

    fn add(&mut self, path: &TreePath) {
        let above = std::iter::successors(Some(path.clone()), TreePath::parent);
        self.paths.extend(above);
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
                            let target = self.links[place];
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
