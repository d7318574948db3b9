//! Resolves paths of the installed set through links.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::tree::{LINK_LIMIT, Node, TreePath};

use crate::contents::portion::Portion;
use crate::placed::file_mode;
use rockpack_package::dependencies::search::normal;
use rockpack_split::HostFile;

/// The host files of a set by their paths below the prefix.
pub(super) struct SetPaths<'a> {
    prefix: &'a TreePath,
    by_path: BTreeMap<&'a str, (usize, &'a Node<HostFile>)>,
}

/// The result of looking up a program in the set.
pub(super) enum ProgramLookup {
    /// A program of the set.
    InSet {
        /// The portions of the file, and of the links to it.
        portions: BTreeSet<usize>,
        /// A path by which some package has it, absolute: the one asked for, unless a link to a folder
        /// leads there.
        installed: String,
        /// Whether it can be run.
        is_executable: bool,
    },
    /// A program outside of the set: at this absolute path, if anywhere.
    Outside(String),
}

impl<'a> SetPaths<'a> {
    /// The paths of `portions` below `prefix`.
    pub fn new(portions: &'a [Portion<'a>], prefix: &'a TreePath) -> Self {
        let files = portions.iter().enumerate().flat_map(|(index, portion)| {
            let files = portion.files.iter();
            files.map(move |(path, owned)| (path.as_str(), (index, owned.node)))
        });
        Self { prefix, by_path: files.collect() }
    }

    /// Looks up the absolute `path`.
    pub fn find(&self, path: &str) -> ProgramLookup {
        let mut at = format!("/{}", normal(path).join("/"));
        let asked = at.clone();
        let mut portions = BTreeSet::new();
        for _ in 0..LINK_LIMIT {
            let Some(inside) = self.inside(&at) else { break };
            if let Some((portion, next)) = self.link_on_the_way(inside) {
                portions.insert(portion);
                at = next;
                continue;
            }
            let Some((portion, Node::File { mode, .. })) = self.by_path.get(inside) else { break };
            portions.insert(*portion);
            let is_own = self.inside(&asked).is_some_and(|own| self.by_path.contains_key(own));
            let installed = if is_own { asked } else { at.clone() };
            let is_executable = file_mode(*mode) & 0o111 != 0;
            return ProgramLookup::InSet { portions, installed, is_executable };
        }
        ProgramLookup::Outside(at)
    }

    /// An absolute path below the prefix, relative to it.
    fn inside<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix('/')?.strip_prefix(self.prefix.as_str())?.strip_prefix('/')
    }

    /// The portion of the first link on the way to `inside`, and the absolute path with that link resolved.
    fn link_on_the_way(&self, inside: &str) -> Option<(usize, String)> {
        let ends = inside.match_indices('/').map(|(at, _)| at).chain([inside.len()]);
        for end in ends {
            let (folder, rest) = inside.split_at_checked(end)?;
            if let Some((portion, Node::Link { target })) = self.by_path.get(folder) {
                let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
                let next = format!("/{}/{above}/{target}/{rest}", self.prefix);
                return Some((*portion, format!("/{}", normal(&next).join("/"))));
            }
        }
        None
    }
}
