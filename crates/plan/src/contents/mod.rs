//! Assigns every host file, code object and database to the portion of one package.
//!
//! [`ContentOwners`] finds the owner of a path. Code objects follow their binaries.

mod exclude;
pub(super) mod selectors;

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use rockpack_core::content::{Content, Sha256Digest};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::{Node, TreePath, folders_around};

use crate::naming::parts::PackagePart;
use crate::naming::{Naming, PackageNames};
use crate::recombine::{Component, Group, Kernel};
use crate::settings::PlanSettings;
use rockpack_report::{Finding, Findings, found};
use rockpack_split::{DatabaseFile, HostFile, standalone_code};

/// The portions without the archs that the configuration leaves out; empty portions are dropped.
/// Notes host packages without host files.
pub(super) fn without_excluded<'a>(
    mut portions: Vec<Portion<'a>>,
    groups: &[Group],
    setting: &PlanSettings,
    findings: &mut Findings,
) -> Result<Vec<Portion<'a>>> {
    exclude::apply(&mut portions, groups, setting, findings)?;
    portions.retain(|portion| !portion.files.is_empty() || portion.has_device_code());
    // Kernel packages need a host package to depend on.
    for portion in portions.iter().filter(|portion| portion.files.is_empty()) {
        let package = portion.host_names(&setting.names)?.deb.into();
        findings.add(found::HostPackageEmpty { package });
    }
    Ok(portions)
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct PortionNode<'a> {
    pub component: &'a Component,
    pub node: &'a Node<HostFile>,
}

#[derive(Debug, Clone)]
pub(crate) struct OwnedDatabase<'a> {
    pub component: &'a Component,
    pub file: &'a DatabaseFile,
    /// The archs whose kernel packages it goes into, a subset of its own.
    pub archs: Vec<BaseArch>,
}

/// Everything that goes into one part of a family: its host package and its kernel packages.
#[derive(Debug)]
pub(crate) struct Portion<'a> {
    pub family: String,
    pub stem: PackageNames,
    pub part: &'a PackagePart,
    /// Host files, links and empty folders by install-relative path.
    pub files: BTreeMap<&'a TreePath, PortionNode<'a>>,
    pub kernels: Vec<&'a Kernel>,
    pub databases: Vec<OwnedDatabase<'a>>,
    /// The ids of the components it is made of, e.g. `blas_lib`.
    pub components: BTreeSet<String>,
    pub artifacts: BTreeSet<String>,
}

impl<'a> Portion<'a> {
    pub fn new(family: String, stem: PackageNames, part: &'a PackagePart) -> Self {
        Self {
            family,
            stem,
            part,
            files: BTreeMap::new(),
            kernels: Vec::new(),
            databases: Vec::new(),
            components: BTreeSet::new(),
            artifacts: BTreeSet::new(),
        }
    }

    pub fn has_device_code(&self) -> bool {
        !self.kernels.is_empty() || !self.databases.is_empty()
    }

    pub fn host_names(&self, names: &Naming) -> Result<PackageNames> {
        let templates = &names.scheme.names;
        let is_split = self.has_device_code() && !self.part.is_whole;
        names.of_stem(if is_split { &templates.host } else { &templates.package }, &self.stem)
    }
}

/// The name of a portion, and an index that distinguishes portions of the same name; portions are in this order.
pub(crate) type PortionKey = (String, usize);

pub(crate) type Portions<'a> = BTreeMap<PortionKey, Portion<'a>>;

pub(crate) trait ContentOwners<'a> {
    type Owner;

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
pub(crate) fn assign<'a, O: ContentOwners<'a>>(
    component: &'a Component,
    owners: &O,
    portions: &mut Portions<'a>,
) -> Result<UnassignedContent<'a>> {
    let mut left = UnassignedContent::default();
    // A folder with content is created along with the content.
    let folders = folders_around(component.host.keys());
    for (path, node) in component.host.iter().filter(|(path, _)| !folders.contains(path.as_str())) {
        let Some(owner) = owners.of(component, path, module_of(node)) else {
            left.paths.insert(path);
            left.plain.extend(node.data().and_then(HostFile::plain));
            continue;
        };
        let portion = portion_of(component, owners, owner, portions)?;
        // Components of one package may share folders.
        if let Some(other) = portion.files.insert(path, PortionNode { component, node })
            && !(matches!(node, Node::Directory { .. })
                && matches!(other.node, Node::Directory { .. }))
        {
            let message = format!("{path} is in {} and in {}", other.component.id, component.id);
            let hint = "packages that can be installed together cannot own the same path";
            return Err(Error::new(Kind::Conflict, message).hint(hint));
        }
    }
    for kernel in &component.kernels {
        let node = component.host.get(&kernel.binary);
        match node.and_then(|node| owners.of(component, &kernel.binary, module_of(node))) {
            Some(owner) => portion_of(component, owners, owner, portions)?.kernels.push(kernel),
            None => {
                left.paths.insert(&kernel.binary);
                left.kernels.push(&kernel.content);
            }
        }
    }
    for file in &component.databases {
        match owners.of(component, &file.path, file.module.as_deref()) {
            Some(owner) => {
                let database = OwnedDatabase { component, file, archs: file.archs.clone() };
                portion_of(component, owners, owner, portions)?.databases.push(database);
            }
            None => {
                left.paths.insert(&file.path);
                left.plain.push(&file.content);
            }
        }
    }
    Ok(left)
}

/// The portion of `owner`, with `component` added to its components.
fn portion_of<'a, 'b, O: ContentOwners<'a>>(
    component: &Component,
    owners: &O,
    owner: O::Owner,
    portions: &'b mut Portions<'a>,
) -> Result<&'b mut Portion<'a>> {
    let (key, new) = owners.portion(component, owner)?;
    let portion = portions.entry(key).or_insert(new);
    portion.components.insert(component.id.to_string());
    portion.artifacts.insert(component.artifact.clone());
    Ok(portion)
}

fn module_of(node: &Node<HostFile>) -> Option<&str> {
    node.data()?.module.as_deref()
}

#[derive(Default)]
pub(crate) struct UnassignedContent<'a> {
    pub paths: BTreeSet<&'a TreePath>,
    pub kernels: Vec<&'a Content>,
    /// Files that may be device code, directly or as offload bundles.
    pub plain: Vec<&'a Content>,
}

impl UnassignedContent<'_> {
    pub fn not_listed(&self, component: &Component) -> Result<Finding> {
        Ok(Finding::from(found::NotListed {
            component: (&*component.id).into(),
            paths: self.paths.iter().copied().cloned().collect(),
            code_objects: self.digests()?,
        }))
    }

    pub fn left_out(&self, component: &str) -> Result<Finding> {
        let (component, files) = (component.into(), self.paths.len());
        let code_objects = self.digests()?;
        Ok(Finding::from(found::ComponentLeftOut { component, files, code_objects }))
    }

    fn digests(&self) -> Result<Vec<Sha256Digest>> {
        let kernels = self.kernels.par_iter().map(|content| content.digest());
        let mut digests = kernels.collect::<Result<BTreeSet<_>>>()?;
        for content in &self.plain {
            for code in standalone_code(content, None)? {
                digests.insert(code.digest(content)?);
            }
        }
        Ok(digests.into_iter().collect())
    }
}
