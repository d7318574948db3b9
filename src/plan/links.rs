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
                && !set.resolves(path, target, 0)
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

    fn resolves(&self, path: &TreePath, target: &str, followed: usize) -> bool {
        match path.resolve_link(target) {
            Some(path) => self.exists(&path, followed + 1),
            // The prefix itself, which every package brings.
            None => !target.starts_with('/'),
        }
    }

    /// Whether something stands at `path`, on the way to which may be links.
    fn exists(&self, path: &TreePath, followed: usize) -> bool {
        if followed > LINK_LIMIT {
            return false;
        }
        let mut above = String::new();
        for part in path.components() {
            let here = match above.is_empty() {
                true => part.to_owned(),
                false => format!("{above}/{part}"),
            };
            let rest = path.as_str().get(here.len()..).unwrap_or_default();
            let Ok(place) = TreePath::new(here.as_str()) else {
                return false;
            };
            if let Some(target) = self.links.get(&place) {
                let target = format!("{target}{rest}");
                return self.resolves(&place, &target, followed);
            }
            above = here;
        }
        self.paths.contains(path)
    }
}
