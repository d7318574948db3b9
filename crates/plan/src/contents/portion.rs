//! The content of one part of a family, before it is a package.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::Result;
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::{Node, TreePath};

use crate::naming::parts::PackagePart;
use crate::naming::{Naming, PackageNames};
use crate::recombine::{Component, Kernel};
use rockpack_split::{DatabaseFile, HostFile};

/// A host node and the component that has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PortionNode<'a> {
    pub component: &'a Component,
    pub node: &'a Node<HostFile>,
}

/// A database file and the component that has it.
#[derive(Debug, Clone)]
pub(crate) struct OwnedDatabase<'a> {
    pub component: &'a Component,
    pub file: &'a DatabaseFile,
    /// The archs whose packages it goes to; some of its own.
    pub archs: Vec<BaseArch>,
}

/// Everything that goes into one part of a family: its host package and its kernel packages.
#[derive(Debug)]
pub(crate) struct Portion<'a> {
    pub family: String,
    /// Stem of the names of the portion's packages.
    pub stem: PackageNames,
    pub part: &'a PackagePart,
    /// Host files, links and empty folders by install-relative path.
    pub files: BTreeMap<&'a TreePath, PortionNode<'a>>,
    pub kernels: Vec<&'a Kernel>,
    pub databases: Vec<OwnedDatabase<'a>>,
    /// The ids of the components it is made of, e.g. `blas_lib`.
    pub components: BTreeSet<String>,
    /// The artifacts that it is made of.
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

    /// Whether the portion is empty, so that no package is made of it.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.has_device_code()
    }

    /// Whether it has device code.
    pub fn has_device_code(&self) -> bool {
        !self.kernels.is_empty() || !self.databases.is_empty()
    }

    /// The names of its host package.
    pub fn host_names(&self, names: &Naming) -> Result<PackageNames> {
        if self.has_device_code() && !self.part.is_whole {
            names.host(&self.stem)
        } else {
            names.package(&self.stem)
        }
    }
}
