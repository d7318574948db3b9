//! The content of a plan's files. It is known before packing for all files except archives and their manifests.

use std::collections::HashMap;

use rayon::prelude::*;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::{Node, TreePath};
use rockpack_elf::kpack;

use super::marker;
use rockpack_package::dependencies::runpath;
use rockpack_package::receipt::listing::{CodeRow, code_digest};
use rockpack_plan::config::Runpath;
use rockpack_plan::recombine::{Component, Kernel, Recombined};
use rockpack_plan::{ArchiveSet, FileSource, Plan};
use rockpack_split::host_binary::SHIM;
use rockpack_split::{DatabaseFile, HostKind, code_file};

/// The input of a plan, by the names in the plan.
pub struct Sources<'a> {
    plan: &'a Plan,
    components: HashMap<&'a str, &'a Component>,
    archives: HashMap<&'a str, &'a ArchiveSet>,
}

impl<'a> Sources<'a> {
    pub fn new(recombined: &'a Recombined, plan: &'a Plan) -> Self {
        let components = recombined.components.iter().map(|component| (&*component.id, component));
        let archives = plan.archives.iter().map(|set| (set.name.as_str(), set));
        Self { plan, components: components.collect(), archives: archives.collect() }
    }

    /// The content of a file in its package: transformed if it was fat, with other library search paths or
    /// another first line if planned. `None` for archives and manifests, which packing makes.
    pub fn known(&self, source: &FileSource) -> Result<Option<Content>> {
        self.known_by(source, |bytes| Ok(Content::of_bytes(bytes)))
    }

    /// [`Self::known`], which stores compressed code files with `keep`.
    pub(super) fn known_by(
        &self,
        source: &FileSource,
        keep: impl FnOnce(Vec<u8>) -> Result<Content>,
    ) -> Result<Option<Content>> {
        let content = self.as_built(source)?;
        match source {
            FileSource::Database { .. } if self.is_compressed(source) => {
                let Some(content) = content else { return Ok(None) };
                code_file::compressed(&content)?.map_or(Ok(content), keep).map(Some)
            }
            FileSource::Host { path, .. }
            | FileSource::Fat { path, .. }
            | FileSource::Database { path, .. } => {
                content.map(|content| self.rewritten(path, content)).transpose()
            }
            _ => Ok(content),
        }
    }

    pub fn is_compressed(&self, source: &FileSource) -> bool {
        matches!(source, FileSource::Database { path, .. } if self.plan.compressed.contains(path))
    }

    /// The bytes of a file as in the input, with device code; `None` for files that a run makes.
    pub fn original(&self, source: &FileSource) -> Result<Option<Content>> {
        match source {
            FileSource::Fat { component, path, .. } => {
                Ok(Some(self.host(component, path)?.original().clone()))
            }
            FileSource::Host { .. } | FileSource::Database { .. } => self.as_built(source),
            _ => Ok(None),
        }
    }

    /// The length of [`known`](Self::known), where possible without a transformation: new search paths use the space of
    /// the old ones, and only a new first line or other options of clang change the length. For a code file to
    /// compress, it is the uncompressed length.
    pub fn known_len(&self, source: &FileSource) -> Result<Option<u64>> {
        if let FileSource::Fat { component, path, .. } = source
            && let HostKind::Fat(fat) = self.host(component, path)?
        {
            return Ok(Some(fat.binary.output_len()));
        }
        if let FileSource::Host { path, .. } = source
            && (self.plan.first_lines.contains_key(path) || path.name() == runpath::COMPILER_CONFIG)
        {
            return Ok(self.known(source)?.map(|content| content.len()));
        }
        Ok(self.as_built(source)?.map(|content| content.len()))
    }

    /// The file at `path` below the prefix with the library search paths, or the first line, of the plan.
    fn rewritten(&self, path: &TreePath, content: Content) -> Result<Content> {
        if let Some(line) = self.plan.first_lines.get(path) {
            return line.put_into(&content);
        }
        if !self.plan.rewritten.contains(path) {
            return Ok(content);
        }
        let changed = match self.plan.runpath {
            Runpath::Rpath => runpath::with_rpath(&content, path)?,
            _ => runpath::rewrite(&content, path, self.plan.prefix.path())?.content,
        };
        changed.ok_or_else(|| {
            Error::bug("the search paths of a file cannot be changed after all")
                .structure(path.as_str())
        })
    }

    /// The bytes of a file in its package, but with the search paths of the input.
    fn as_built(&self, source: &FileSource) -> Result<Option<Content>> {
        Ok(match source {
            FileSource::Text(text) => Some(Content::of_bytes(text.as_bytes())),
            FileSource::Changelog(bytes) => Some(Content::of_bytes(bytes.as_slice())),
            FileSource::Archive { .. } | FileSource::Manifest { .. } => None,
            FileSource::Database { component, path } => {
                Some(self.database(component, path)?.content.clone())
            }
            FileSource::Host { component, path } => match self.host(component, path)? {
                HostKind::Plain(content) => Some(content.clone()),
                HostKind::Fat(_) => {
                    return Err(Error::bug(format!("{path} is fat but planned unchanged")));
                }
            },
            FileSource::Fat { component, path, archives } => {
                Some(self.transformed(self.host(component, path)?, path, archives)?)
            }
        })
    }

    pub fn archive_set(&self, name: &str) -> Result<&'a ArchiveSet> {
        let set = self.archives.get(name).copied();
        set.ok_or_else(|| Error::bug(format!("no archive set is called {name}")))
    }

    /// The kernels that packing a set reads, sorted by binary, co_index and target.
    pub fn kernels(&self, set: &ArchiveSet) -> impl Iterator<Item = &'a Kernel> + use<'a> {
        let binaries = set.binaries.iter();
        let of_binaries = binaries.flat_map(|(id, path)| self.kernels_of(id, path));
        let mut kernels: Vec<&Kernel> =
            of_binaries.filter(|kernel| set.packs(kernel.target.base())).collect();
        kernels.sort_by(|a, b| {
            (&a.binary, a.co_index, &a.target).cmp(&(&b.binary, b.co_index, &b.target))
        });
        kernels.into_iter()
    }

    fn kernels_of(&self, component: &str, binary: &TreePath) -> &'a [Kernel] {
        let Some(component) = self.components.get(component) else { return &[] };
        let kernels = &component.kernels;
        let start = kernels.partition_point(|kernel| kernel.binary < *binary);
        let end = kernels.partition_point(|kernel| kernel.binary <= *binary);
        kernels.get(start..end).unwrap_or_default()
    }

    /// The code objects of the archive for `arch` of the set `archives`.
    pub fn kernels_for(&self, archives: &str, arch: &BaseArch) -> Result<Vec<&'a Kernel>> {
        let kernels = self.kernels(self.archive_set(archives)?);
        Ok(kernels.filter(|kernel| kernel.target.base() == arch).collect())
    }

    /// The digest of the code in the archive for `arch` of the set `archives`, see [`code_digest`].
    pub fn code_digest(&self, archives: &str, arch: &BaseArch) -> Result<String> {
        let kernels = self.kernels_for(archives, arch)?;
        let rows: Vec<Result<CodeRow>> = kernels
            .par_iter()
            .map(|kernel| {
                let key = kpack::key(kernel.binary.as_str(), kernel.co_index);
                Ok((key, kernel.target.to_string(), kernel.content.digest()?.to_string()))
            })
            .collect();
        Ok(code_digest(&rows.into_iter().collect::<Result<_>>()?))
    }

    pub fn database(&self, component: &str, path: &TreePath) -> Result<&'a DatabaseFile> {
        let databases = &self.component(component)?.databases;
        let index = databases.binary_search_by(|file| file.path.cmp(path)).ok();
        let file = index.and_then(|index| databases.get(index));
        file.ok_or_else(|| Error::bug(format!("{component} has no database {path}")))
    }

    fn transformed(&self, kind: &HostKind, path: &TreePath, archives: &str) -> Result<Content> {
        let HostKind::Fat(fat) = kind else {
            return Err(Error::bug(format!("{path} is planned as fat but is not")));
        };
        let set = self.archive_set(archives)?;
        fat.binary.with_marker(&marker(path, set.folders(), &set.name)?, SHIM)
    }

    fn component(&self, id: &str) -> Result<&'a Component> {
        let component = self.components.get(id).copied();
        component.ok_or_else(|| Error::bug(format!("no component is called {id}")))
    }

    fn host(&self, component: &str, path: &TreePath) -> Result<&'a HostKind> {
        match self.component(component)?.host.get(path) {
            Some(Node::File { data, .. }) => Ok(&data.kind),
            _ => Err(Error::bug(format!("{component} has no file {path}"))),
        }
    }
}
