//! Which host file, code object and database goes into which family and part.
//!
//! [`Families`] says which family takes a module; with a list of packages, [`ClaimedList`] says which
//! entry takes a path. Code objects follow their binaries; for families, links follow what they lead
//! to and folders what is in them. What no family takes is an error that lists it. A list may cover
//! a part of a run only, so what none of its entries takes is handed on.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::error::{Error, Faults, Kind, Result};
use rockpack_base::tree::{LINK_LIMIT, Node, TreePath};

use super::missing::UnassignedContent;
use super::portion::{OwnedDatabase, Portion, PortionNode};
use crate::config::Config;
use crate::plan::naming::Naming;
use crate::plan::naming::families::Families;
use crate::plan::naming::parts::Parts;
use crate::plan::package_list::owners::ClaimedList;
use crate::recombine::{Component, Recombined};
use crate::report::words::{are, counted};
use crate::split::HostFile;

/// How many left over paths an error lists.
const NAMED_PATHS: usize = 20;

/// By family or listed name, and place of the part.
type Portions<'a> = BTreeMap<(String, usize), Portion<'a>>;

/// Who says what goes where.
#[derive(Clone, Copy)]
enum Cut<'a, 'c> {
    Families(&'c Families<'c>, &'a Parts),
    Listed(&'a ClaimedList<'a>),
}

/// Whose something is.
enum Owner {
    Family(String),
    Entry(usize),
}

/// All portions, and what is in none.
pub(in crate::plan) struct Assigned<'a> {
    pub portions: Vec<Portion<'a>>,
    pub left: Vec<(&'a Component, UnassignedContent<'a>)>,
}

/// Assigns what the entries of a list take, in the order of their names.
pub(in crate::plan) fn assign_listed<'a>(
    recombined: &'a Recombined,
    listed: &'a ClaimedList<'a>,
) -> Result<Assigned<'a>> {
    let (mut faults, mut portions) = (Faults::default(), Portions::new());
    let mut left = Vec::new();
    for component in &recombined.components {
        let mut assigner = Assigner::new(component, Cut::Listed(listed));
        faults.keep(assigner.add(&mut portions));
        if !assigner.left.is_empty() {
            left.push((component, assigner.left));
        }
    }
    faults.finish()?;
    Ok(Assigned { portions: portions.into_values().collect(), left })
}

/// Assigns everything, in the order of families and parts.
pub(in crate::plan) fn assign<'a>(
    recombined: &'a Recombined,
    config: &Config,
    parts: &'a Parts,
    naming: &Naming,
) -> Result<Vec<Portion<'a>>> {
    let mut faults = Faults::default();
    let families = Families::new(config, parts, naming);
    families.check_selectors(recombined, &mut faults);
    let mut portions = Portions::new();
    for component in &recombined.components {
        if faults.keep(families.check_name(&component.artifact)).is_none() {
            continue;
        }
        let mut assigner = Assigner::new(component, Cut::Families(&families, parts));
        let added = assigner.add(&mut portions);
        faults.keep(added.and_then(|()| assigner.refuse_left()));
    }
    let made = portions.values().map(|portion| (portion.family.as_str(), &portion.artifacts));
    families.refuse_merged(made, &mut faults);
    faults.finish()?;
    Ok(portions.into_values().collect())
}

struct Assigner<'a, 'c> {
    component: &'a Component,
    cut: Cut<'a, 'c>,
    left: UnassignedContent<'a>,
}

impl<'a, 'c> Assigner<'a, 'c> {
    fn new(component: &'a Component, cut: Cut<'a, 'c>) -> Self {
        Self { component, cut, left: UnassignedContent::default() }
    }

    fn add(&mut self, portions: &mut Portions<'a>) -> Result<()> {
        let component = self.component;
        // A folder that something stands in is made for what stands there.
        let paths = component.host.iter().map(|(path, _)| path);
        let folders: BTreeSet<TreePath> = paths.filter_map(TreePath::parent).collect();
        for (path, node) in component.host.iter().filter(|(path, _)| !folders.contains(*path)) {
            let Some(owner) = self.owner_of_node(path, node, 0) else {
                self.left.add_node(path, node);
                continue;
            };
            let portion = self.portion(owner, portions)?;
            if let Some(other) = portion.files.insert(path, PortionNode { component, node })
                && !(is_folder(node) && is_folder(other.node))
            {
                return Err(twice(path, other.component, component));
            }
        }
        for kernel in &component.kernels {
            let node = component.host.get(&kernel.binary);
            match node.and_then(|node| self.owner_of_node(&kernel.binary, node, 0)) {
                Some(owner) => self.portion(owner, portions)?.kernels.push(kernel),
                None => self.left.add_kernel(kernel),
            }
        }
        for file in &component.databases {
            let Some(owner) = self.owner(&file.path, file.module.as_deref()) else {
                self.left.add_database(file);
                continue;
            };
            let archs = file.archs.clone();
            let database = OwnedDatabase { component, file, archs };
            self.portion(owner, portions)?.databases.push(database);
        }
        Ok(())
    }

    fn portion<'b>(
        &self,
        owner: Owner,
        portions: &'b mut Portions<'a>,
    ) -> Result<&'b mut Portion<'a>> {
        let made = match (owner, self.cut) {
            (Owner::Family(family), Cut::Families(_, parts)) => {
                let (place, part) = parts.of(self.component.kind)?;
                ((family.clone(), place), Portion::new(family.clone(), part.stem(&family), part))
            }
            (Owner::Entry(index), Cut::Listed(listed)) => {
                let found = listed.portion(index);
                let (family, stem, part) =
                    found.ok_or_else(|| Error::bug(format!("no entry {index} is listed")))?;
                let portion = Portion::new(family.to_owned(), stem.clone(), part);
                let is_devel = listed.is_devel(index);
                ((stem.rpm.clone(), index), Portion { entry: Some(index), is_devel, ..portion })
            }
            _ => return Err(Error::bug("an owner of another cut")),
        };
        let (key, new) = made;
        let portion = portions.entry(key).or_insert(new);
        portion.components.insert(self.component.id());
        portion.artifacts.insert(self.component.artifact.clone());
        Ok(portion)
    }

    fn owner_of_node(&self, path: &TreePath, node: &Node<HostFile>, links: usize) -> Option<Owner> {
        let Cut::Families(families, _) = self.cut else {
            return self.owner(path, module_of(node));
        };
        if !families.are_cut(&self.component.artifact) {
            return self.owner(path, None);
        }
        let host = &self.component.host;
        match node {
            Node::File { data, .. } => self.owner(path, data.module.as_deref()),
            Node::Link { target } if links < LINK_LIMIT => {
                let target = path.resolve_link(target);
                let found = target.and_then(|to| Some((host.get(&to)?, to)));
                match found {
                    Some((node, to)) => self.owner_of_node(&to, node, links + 1),
                    None => self.owner(path, None),
                }
            }
            Node::Link { .. } => self.owner(path, None),
            Node::Directory { .. } => {
                let inside = host.iter().find(|(other, node)| {
                    matches!(node, Node::File { .. }) && other.is_below(path)
                });
                self.owner(path, inside.and_then(|(_, node)| module_of(node)))
            }
        }
    }

    fn owner(&self, path: &TreePath, module: Option<&str>) -> Option<Owner> {
        match self.cut {
            Cut::Families(families, _) => families.of(self.component, module).map(Owner::Family),
            Cut::Listed(listed) => listed.owner(self.component, path, module).map(Owner::Entry),
        }
    }

    fn refuse_left(&self) -> Result<()> {
        if self.left.is_empty() {
            return Ok(());
        }
        let paths = self.left.paths();
        let named: Vec<&str> = paths.iter().take(NAMED_PATHS).map(|path| path.as_str()).collect();
        let (id, count) = (self.component.id(), paths.len());
        let (paths, are) = (counted(count, "path"), are(count));
        let message = format!("{paths} of {id} {are} in no package: {}", named.join(", "));
        Err(Error::new(Kind::Config, message)
            .hint("add a selector for the artifact without `modules`; it takes what is left"))
    }
}

fn module_of(node: &Node<HostFile>) -> Option<&str> {
    node.data()?.module.as_deref()
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
