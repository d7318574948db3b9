//! Finds the files and code objects of a component that no package takes.

use std::collections::BTreeSet;

use rayon::prelude::*;
use rockpack_core::content::{Content, Sha256Digest};
use rockpack_core::error::Result;
use rockpack_core::tree::{Node, TreePath};

use crate::recombine::{Component, Kernel};
use rockpack_report::Finding;
use rockpack_split::{DatabaseFile, HostFile, HostKind, loose_code};

/// The part of a component that is in no package.
#[derive(Default)]
pub(crate) struct Missing<'a> {
    pub files: usize,
    /// Code objects of binaries.
    pub kernels: Vec<&'a Content>,
    /// Files that may be device code, directly or as offload bundles.
    pub plain: Vec<&'a Content>,
}

/// The part of a component that no selector and no entry of a package list takes.
#[derive(Default)]
pub(crate) struct UnassignedContent<'a> {
    paths: BTreeSet<&'a TreePath>,
    missing: Missing<'a>,
}

impl<'a> UnassignedContent<'a> {
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub fn paths(&self) -> &BTreeSet<&'a TreePath> {
        &self.paths
    }

    /// The finding for content that no entry of a package list takes.
    pub fn not_listed(&self, component: &Component) -> Result<Finding> {
        Ok(Finding::NotListed {
            component: component.id().into(),
            paths: self.paths.iter().copied().cloned().collect(),
            code_objects: self.missing.digests()?.into_iter().collect(),
        })
    }

    pub fn add_node(&mut self, path: &'a TreePath, node: &'a Node<HostFile>) {
        self.paths.insert(path);
        if let Node::File { data, .. } = node {
            self.missing.files += 1;
            if let HostKind::Plain(content) = &data.kind {
                self.missing.plain.push(content);
            }
        }
    }

    pub fn add_kernel(&mut self, kernel: &'a Kernel) {
        self.paths.insert(&kernel.binary);
        self.missing.kernels.push(&kernel.content);
    }

    pub fn add_database(&mut self, file: &'a DatabaseFile) {
        self.paths.insert(&file.path);
        self.missing.files += 1;
        self.missing.plain.push(&file.content);
    }
}

impl Missing<'_> {
    /// The finding about the component with this id.
    pub fn finding(&self, component: &str) -> Result<Finding> {
        let (component, digests) = (component.into(), self.digests()?);
        let code_objects = digests.into_iter().collect();
        Ok(Finding::ComponentLeftOut { component, files: self.files, code_objects })
    }

    /// The digest of every code object.
    fn digests(&self) -> Result<BTreeSet<Sha256Digest>> {
        let kernels = self.kernels.par_iter().map(|content| content.digest());
        let mut digests = kernels.collect::<Result<BTreeSet<_>>>()?;
        for content in &self.plain {
            for code in loose_code(content, None)? {
                digests.insert(code.digest(content)?);
            }
        }
        Ok(digests)
    }
}
