//! The assignment of host files, code objects and databases to portions.
//!
//! [`Owners`] finds the owner of a path. Code objects follow their binaries.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::{Node, TreePath};

use super::missing::UnassignedContent;
use super::portion::{OwnedDatabase, Portion, PortionNode};
use crate::recombine::Component;
use rockpack_split::HostFile;

/// A name of the portion, and an index that tells portions with the same name apart; portions are in this
/// order.
pub(crate) type PortionKey = (String, usize);

pub(crate) type Portions<'a> = BTreeMap<PortionKey, Portion<'a>>;

/// The owners of the content of components.
pub(crate) trait Owners<'a> {
    type Owner;

    /// The owner of a path that came from `module`.
    fn of(
        &self,
        component: &Component,
        path: &TreePath,
        module: Option<&str>,
    ) -> Option<Self::Owner>;

    /// The portion, still empty, for the content of a component that `owner` takes.
    fn portion(
        &self,
        component: &Component,
        owner: Self::Owner,
    ) -> Result<(PortionKey, Portion<'a>)>;
}

/// Assigns the content of `component` to the portions of its `owners`; returns the content without owner.
pub(crate) fn assign<'a, O: Owners<'a>>(
    component: &'a Component,
    owners: &O,
    portions: &mut Portions<'a>,
) -> Result<UnassignedContent<'a>> {
    let mut left = UnassignedContent::default();
    // A folder with content is created along with the content.
    let paths = component.host.iter().map(|(path, _)| path);
    let folders: BTreeSet<TreePath> = paths.filter_map(TreePath::parent).collect();
    for (path, node) in component.host.iter().filter(|(path, _)| !folders.contains(*path)) {
        let Some(owner) = owners.of(component, path, module_of(node)) else {
            left.add_node(path, node);
            continue;
        };
        let portion = portion_of(component, owners, owner, portions)?;
        if let Some(other) = portion.files.insert(path, PortionNode { component, node })
            && !(is_folder(node) && is_folder(other.node))
        {
            return Err(twice(path, other.component, component));
        }
    }
    for kernel in &component.kernels {
        let node = component.host.get(&kernel.binary);
        match node.and_then(|node| owners.of(component, &kernel.binary, module_of(node))) {
            Some(owner) => portion_of(component, owners, owner, portions)?.kernels.push(kernel),
            None => left.add_kernel(kernel),
        }
    }
    for file in &component.databases {
        match owners.of(component, &file.path, file.module.as_deref()) {
            Some(owner) => {
                let archs = file.archs.clone();
                portion_of(component, owners, owner, portions)?.databases.push(OwnedDatabase {
                    component,
                    file,
                    archs,
                });
            }
            None => left.add_database(file),
        }
    }
    Ok(left)
}

/// The portion of `owner`, with `component` added to its components.
fn portion_of<'a, 'b, O: Owners<'a>>(
    component: &Component,
    owners: &O,
    owner: O::Owner,
    portions: &'b mut Portions<'a>,
) -> Result<&'b mut Portion<'a>> {
    let (key, new) = owners.portion(component, owner)?;
    let portion = portions.entry(key).or_insert(new);
    portion.components.insert(component.id());
    portion.artifacts.insert(component.artifact.clone());
    Ok(portion)
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
