//! Which host file, code object and database goes into which family and part.
//!
//! An artifact that no selector names is a family of its own. One that a selector names is cut by
//! the selectors alone, in file order: the first that fits a file takes it, and what none fits is
//! an error that lists it. Links follow what they lead to; folders follow what is in them.

use std::collections::{BTreeMap, BTreeSet};

use super::naming::{family_of, package_name};
use super::parts::{Part, Parts};
use crate::config::{Config, Selector};
use crate::error::{Error, Faults, Kind, Result};
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

/// Everything that goes into one part of a family: its host package and its kernel packages.
#[derive(Debug)]
pub(super) struct Bundle<'a> {
    pub family: String,
    pub part: &'a Part,
    /// Host files, links and empty folders by install-relative path.
    pub files: BTreeMap<&'a TreePath, Owned<'a>>,
    pub kernels: Vec<&'a Kernel>,
    pub databases: Vec<(&'a Component, &'a DatabaseFile)>,
    /// The ids of the components it is made of, e.g. `blas_lib`.
    pub components: BTreeSet<String>,
    /// The artifacts it is made of.
    pub artifacts: BTreeSet<String>,
}

/// By family and place of the part.
type Bundles<'a> = BTreeMap<(String, usize), Bundle<'a>>;

/// Assigns everything, in the order of families and parts.
pub(super) fn assign<'a>(
    recombined: &'a Recombined,
    config: &Config,
    parts: &'a Parts,
) -> Result<Vec<Bundle<'a>>> {
    let mut faults = Faults::default();
    check_selectors(recombined, config, &mut faults);
    let mut bundles = Bundles::new();
    for component in &recombined.components {
        let cut = is_cut(config, &component.artifact);
        if !cut && faults.keep(family_of(&component.artifact)).is_none() {
            continue;
        }
        let left = Vec::new();
        let assigner = Assigner { component, config, parts, left };
        faults.keep(assigner.add(&mut bundles));
    }
    refuse_merged_families(&bundles, config, &mut faults);
    faults.finish()?;
    Ok(bundles.into_values().collect())
}

struct Assigner<'a, 'c> {
    component: &'a Component,
    config: &'c Config,
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
                bundle.databases.push((component, file));
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
        if !is_cut(self.config, &self.component.artifact) {
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
        let artifact = &self.component.artifact;
        if !is_cut(self.config, artifact) {
            return family_of(artifact).ok();
        }
        let fits = |selector: &Selector| {
            let kinds = selector.components.as_ref();
            let kind = self.component.kind.as_str();
            let modules = selector.modules.as_ref();
            selector.artifact == *artifact
                && kinds.is_none_or(|kinds| kinds.iter().any(|known| known == kind))
                && modules.is_none_or(|known| module.is_some_and(|m| known.iter().any(|k| k == m)))
        };
        let selectors = self.config.selectors.iter();
        let taken = selectors.filter(|(_, selectors)| selectors.iter().any(fits));
        taken.map(|(package, _)| package.clone()).next()
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

fn is_cut(config: &Config, artifact: &str) -> bool {
    let mut selectors = config.selectors.iter().flat_map(|(_, selectors)| selectors);
    selectors.any(|selector| selector.artifact == artifact)
}

fn twice(path: &TreePath, one: &Component, other: &Component) -> Error {
    let message = format!("{path} is in {} and in {}", one.id(), other.id());
    Error::new(Kind::Conflict, message)
        .hint("two packages that can be installed together cannot own one path")
}

/// A selector that names what does not exist is a typo; one that names no package is useless.
fn check_selectors(recombined: &Recombined, config: &Config, faults: &mut Faults) {
    let artifacts: BTreeSet<&str> =
        recombined.components.iter().map(|c| c.artifact.as_str()).collect();
    for (package, selectors) in &config.selectors {
        if package_name(package).as_ref().ok() != Some(package) {
            let message = format!("`{package}` cannot be a package name");
            faults.add(config.fault(&["selectors", package], message));
        }
        for (index, selector) in selectors.iter().enumerate() {
            if !artifacts.contains(selector.artifact.as_str()) {
                let index = index.to_string();
                let keys = ["selectors", package, &index, "artifact"];
                let known: Vec<&str> = artifacts.iter().copied().collect();
                let fault =
                    config.fault(&keys, format!("there is no artifact `{}`", selector.artifact));
                faults.add(fault.hint(format!("the artifacts are {}", known.join(", "))));
            }
        }
    }
}

/// Two artifacts in one family are one package by accident, unless a selector asks for it.
fn refuse_merged_families(bundles: &Bundles<'_>, config: &Config, faults: &mut Faults) {
    let mut families: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for bundle in bundles.values() {
        let artifacts = bundle.artifacts.iter().map(String::as_str);
        families.entry(&bundle.family).or_default().extend(artifacts);
    }
    for (family, artifacts) in families {
        let accidental = artifacts.iter().any(|artifact| !is_cut(config, artifact));
        if artifacts.len() > 1 && accidental {
            let artifacts: Vec<&str> = artifacts.into_iter().collect();
            let message = format!("the artifacts {} all become {family}", artifacts.join(", "));
            let hint = "name their packages with selectors in the configuration";
            faults.add(Error::new(Kind::Conflict, message).hint(hint));
        }
    }
}

/// Components of one package may share folders.
fn is_folder<F>(node: &Node<F>) -> bool {
    matches!(node, Node::Directory { .. })
}
