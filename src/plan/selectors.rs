//! Which host file, code object and database goes into which family and part.
//!
//! [`Families`] says which family takes a module. Code objects follow their binaries, links what
//! they lead to, folders what is in them. What no family takes is an error that lists it.

use std::collections::{BTreeMap, BTreeSet};

use super::families::Families;
use super::naming::{Names, Naming};
use super::parts::{Part, Parts};
use crate::config::Config;
use crate::error::{Error, Faults, Kind, Result};
use crate::gfx::BaseArch;
use crate::recombine::{Component, Kernel, Recombined};
use crate::split::{DatabaseFile, HostFile};
use crate::tree::{Node, TreePath};

/// How many links in a row are followed, as many as Linux follows.
const LINK_LIMIT: usize = 40;

/// How many left over paths an error lists.
const NAMED_PATHS: usize = 20;

/// A host node and the component that has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owned<'a> {
    pub component: &'a Component,
    pub node: &'a Node<HostFile>,
}

/// A database file and the component that has it.
#[derive(Debug, Clone)]
pub(super) struct OwnedDatabase<'a> {
    pub component: &'a Component,
    pub file: &'a DatabaseFile,
    /// The archs whose packages it is for; some of its own.
    pub archs: Vec<BaseArch>,
}

/// Everything that goes into one part of a family: its host package and its kernel packages.
#[derive(Debug)]
pub(super) struct Bundle<'a> {
    pub family: String,
    /// What the names of its packages are made of.
    pub stem: Names,
    pub part: &'a Part,
    /// Host files, links and empty folders by install-relative path.
    pub files: BTreeMap<&'a TreePath, Owned<'a>>,
    pub kernels: Vec<&'a Kernel>,
    pub databases: Vec<OwnedDatabase<'a>>,
    /// The ids of the components it is made of, e.g. `blas_lib`.
    pub components: BTreeSet<String>,
    /// The artifacts it is made of.
    pub artifacts: BTreeSet<String>,
}

impl Bundle<'_> {
    /// Whether there is nothing to make a package of.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.has_kernels()
    }

    /// Whether it has device code for kernel packages.
    pub fn has_kernels(&self) -> bool {
        !self.kernels.is_empty() || !self.databases.is_empty()
    }
}

/// By family and place of the part.
type Bundles<'a> = BTreeMap<(String, usize), Bundle<'a>>;

/// Assigns everything, in the order of families and parts.
pub(super) fn assign<'a>(
    recombined: &'a Recombined,
    config: &Config,
    (parts, naming): (&'a Parts, &Naming),
) -> Result<Vec<Bundle<'a>>> {
    let mut faults = Faults::default();
    let families = Families::new(config, parts, naming);
    families.check_selectors(recombined, &mut faults);
    let mut bundles = Bundles::new();
    for component in &recombined.components {
        if faults.keep(families.check_name(&component.artifact)).is_none() {
            continue;
        }
        let assigner = Assigner { component, families: &families, parts, left: Vec::new() };
        faults.keep(assigner.add(&mut bundles));
    }
    let made = bundles.values().map(|bundle| (bundle.family.as_str(), &bundle.artifacts));
    families.refuse_merged(made, &mut faults);
    faults.finish()?;
    Ok(bundles.into_values().collect())
}

struct Assigner<'a, 'c> {
    component: &'a Component,
    families: &'c Families<'c>,
    parts: &'a Parts,
    left: Vec<String>,
}

impl<'a> Assigner<'a, '_> {
    fn add(mut self, bundles: &mut Bundles<'a>) -> Result<()> {
        let component = self.component;
        // A folder that something stands in is made for what stands there.
        let paths = component.host.iter().map(|(path, _)| path);
        let folders: BTreeSet<TreePath> = paths.filter_map(TreePath::parent).collect();
        for (path, node) in component.host.iter().filter(|(path, _)| !folders.contains(path)) {
            let family = self.family_of_node(path, node, 0);
            let owned = Owned { component, node };
            if let Some(bundle) = self.bundle(path, family, bundles)?
                && let Some(other) = bundle.files.insert(path, owned)
                && !(is_folder(node) && is_folder(other.node))
            {
                return Err(twice(path, other.component, component));
            }
        }
        for kernel in &component.kernels {
            let node = component.host.get(&kernel.binary);
            let family = node.and_then(|node| self.family_of_node(&kernel.binary, node, 0));
            if let Some(bundle) = self.bundle(&kernel.binary, family, bundles)? {
                bundle.kernels.push(kernel);
            }
        }
        for file in &component.databases {
            let family = self.family(file.module.as_deref());
            if let Some(bundle) = self.bundle(&file.path, family, bundles)? {
                let archs = file.archs.clone();
                bundle.databases.push(OwnedDatabase { component, file, archs });
            }
        }
        self.finish()
    }

    /// The bundle of `family`, or a note that `path` is left over.
    fn bundle<'b>(
        &mut self,
        path: &TreePath,
        family: Option<String>,
        bundles: &'b mut Bundles<'a>,
    ) -> Result<Option<&'b mut Bundle<'a>>> {
        let Some(family) = family else {
            self.left.push(path.to_string());
            return Ok(None);
        };
        let (place, part) = self.parts.of(self.component.kind)?;
        let bundle = bundles.entry((family.clone(), place)).or_insert_with(|| Bundle {
            stem: part.stem(&family),
            family,
            part,
            files: BTreeMap::new(),
            kernels: Vec::new(),
            databases: Vec::new(),
            components: BTreeSet::new(),
            artifacts: BTreeSet::new(),
        });
        bundle.components.insert(self.component.id());
        bundle.artifacts.insert(self.component.artifact.clone());
        Ok(Some(bundle))
    }

    fn family_of_node(
        &self,
        path: &TreePath,
        node: &Node<HostFile>,
        links: usize,
    ) -> Option<String> {
        if !self.families.are_cut(&self.component.artifact) {
            return self.family(None);
        }
        let host = &self.component.host;
        match node {
            Node::File { data, .. } => self.family(data.module.as_deref()),
            Node::Link { target } if links < LINK_LIMIT => {
                let target = path.resolve_link(target);
                let found = target.and_then(|to| Some((host.get(&to)?, to)));
                match found {
                    Some((node, to)) => self.family_of_node(&to, node, links + 1),
                    None => self.family(None),
                }
            }
            Node::Link { .. } => self.family(None),
            Node::Directory { .. } => {
                let inside = host.iter().find(|(other, node)| {
                    matches!(node, Node::File { .. }) && is_below(other, path)
                });
                let module = inside.and_then(|(_, node)| module_of(node));
                self.family(module)
            }
        }
    }

    fn family(&self, module: Option<&str>) -> Option<String> {
        self.families.of(self.component, module)
    }

    fn finish(self) -> Result<()> {
        if self.left.is_empty() {
            return Ok(());
        }
        let named: Vec<&str> = self.left.iter().take(NAMED_PATHS).map(String::as_str).collect();
        let (id, count) = (self.component.id(), self.left.len());
        let message = format!("{count} paths of {id} are in no package: {}", named.join(", "));
        Err(Error::new(Kind::Config, message)
            .hint("add a selector for the artifact without `modules`; it takes what is left"))
    }
}

fn is_below(path: &TreePath, folder: &TreePath) -> bool {
    let rest = path.as_str().strip_prefix(folder.as_str());
    rest.is_some_and(|rest| rest.starts_with('/'))
}

fn module_of(node: &Node<HostFile>) -> Option<&str> {
    match node {
        Node::File { data, .. } => data.module.as_deref(),
        _ => None,
    }
}

fn twice(path: &TreePath, one: &Component, other: &Component) -> Error {
    let message = format!("{path} is in {} and in {}", one.id(), other.id());
    Error::new(Kind::Conflict, message)
        .hint("two packages that can be installed together cannot own one path")
}

/// Components of one package may share folders.
fn is_folder<F>(node: &Node<F>) -> bool {
    matches!(node, Node::Directory { .. })
}
