//! A package set's files become content: every size is known afterwards.

use std::collections::BTreeMap;

use super::{PackedArchive, Packer, kpm, marker};
use crate::content::{Content, hex};
use crate::dependencies::runpath;
use crate::error::{Error, Result, ResultExt};
use crate::plan::package::{Package, PackageEntry, Role};
use crate::plan::{ArchiveSet, Plan, Source};
use crate::receipt::{CodeObjectRecord, Place};
use crate::recombine::{Component, Kernel, Recombined};
use crate::split::{DatabaseFile, HostKind, LooseCode, loose_code};
use crate::tree::{Node, TreePath};

/// A package whose files are content, and the code objects that it holds.
#[derive(Debug)]
pub struct PackedPackage {
    /// The package.
    pub package: Package<Content>,
    /// Every code object of the input that is in its archives and files.
    pub code_objects: Vec<CodeObjectRecord>,
    /// Number of distinct code objects in its archives.
    pub distinct: u64,
}

/// Makes the packages of a plan, one after the other. The archives of a set are packed when its
/// first package is made and let go after its last.
pub struct SetPacker<'a> {
    recombined: &'a Recombined,
    plan: &'a Plan,
    packer: Packer<'a>,
    packed: BTreeMap<&'a str, PackedSet>,
    /// How many packages still need each set.
    waiting: BTreeMap<&'a str, usize>,
}

/// The archives of one [`ArchiveSet`].
struct PackedSet {
    archives: Vec<PackedArchive>,
    manifest: Content,
    /// Key and target → shard of the code object.
    shards: BTreeMap<(String, String), String>,
}

impl<'a> SetPacker<'a> {
    /// Nothing is packed yet.
    pub fn new(recombined: &'a Recombined, plan: &'a Plan, packer: Packer<'a>) -> Self {
        let mut waiting = BTreeMap::new();
        for name in plan.packages.iter().flat_map(sets_of) {
            *waiting.entry(name).or_default() += 1;
        }
        Self { recombined, plan, packer, packed: BTreeMap::new(), waiting }
    }

    /// Bytes of device code that making all packages goes through.
    pub fn device_bytes(&self) -> u64 {
        let kernels = self.plan.archives.iter().flat_map(|set| self.kernels(set));
        kernels.map(|kernel| kernel.content.len()).sum()
    }

    /// Makes `package`, one of the plan's.
    pub fn pack(&mut self, package: &'a Package<Source>) -> Result<PackedPackage> {
        let sets = sets_of(package);
        for name in &sets {
            if !self.packed.contains_key(name) {
                let set = self.pack_set(name)?;
                self.packed.insert(name, set);
            }
        }
        let packed = self.make(package).context(|| format!("packing {}", package.id));
        for name in sets {
            if let Some(left) = self.waiting.get_mut(name) {
                *left -= 1;
                if *left == 0 {
                    self.packed.remove(name);
                }
            }
        }
        packed
    }

    fn pack_set(&self, name: &str) -> Result<PackedSet> {
        let set = self.plan.archives.iter().find(|set| set.name == name);
        let set = set.ok_or_else(|| Error::bug(format!("no archive set is called {name}")))?;
        let kernels: Vec<Kernel> = self.kernels(set).cloned().collect();
        let archives = self.packer.pack(&set.name, &kernels)?;
        let manifest = kpm(&set.name, &archives, &set.manifest_prefix)?;
        let shards = kernels.into_iter().map(|kernel| {
            let key = crate::formats::kpack::key(kernel.binary.as_str(), kernel.co_index);
            ((key, kernel.target.to_string()), kernel.shard)
        });
        Ok(PackedSet { archives, manifest, shards: shards.collect() })
    }

    /// The kernels of a set's binaries, sorted by binary, co_index and target.
    fn kernels(&self, set: &ArchiveSet) -> impl Iterator<Item = &'a Kernel> {
        let mut kernels = Vec::new();
        for component in &self.recombined.components {
            let id = component.id();
            let own = |kernel: &&Kernel| {
                set.archs.contains(kernel.target.base())
                    && set.binaries.contains(&(id.clone(), kernel.binary.clone()))
            };
            kernels.extend(component.kernels.iter().filter(own));
        }
        kernels.sort_by(|a, b| {
            (&a.binary, a.co_index, &a.target).cmp(&(&b.binary, b.co_index, &b.target))
        });
        kernels.into_iter()
    }

    fn make(&self, package: &Package<Source>) -> Result<PackedPackage> {
        let mut entries = Vec::new();
        let mut code_objects = Vec::new();
        let mut distinct = 0;
        for entry in &package.entries {
            if let Node::File { data: Source::Archive { archives, arch }, .. } = &entry.node {
                let (set, archive) = self.archive(archives, arch.as_str())?;
                distinct += archive.code_objects;
                code_objects.extend(records(package, &entry.path, set, archive));
            }
            let node = entry.node.clone().try_map(|source| self.content(&source))?;
            let node = node.try_map(|content| self.rewritten(&entry.path, content))?;
            if let (Node::File { data: source, .. }, Node::File { data, .. }) = (&entry.node, &node)
            {
                code_objects.extend(self.loose(package, &entry.path, source, data)?);
            }
            let PackageEntry { path, treatment, formats, .. } = entry.clone();
            entries.push(PackageEntry { path, node, treatment, formats });
        }
        let package = package.with_entries(entries);
        Ok(PackedPackage { package, code_objects, distinct })
    }

    /// The file at the absolute path `path`, with other library search paths where the plan says so.
    fn rewritten(&self, path: &TreePath, content: Content) -> Result<Content> {
        let prefix = self.plan.prefix.path();
        let below = path.as_str().strip_prefix(prefix.as_str());
        let below = below.and_then(|rest| rest.strip_prefix('/'));
        let Some(below) = below.and_then(|rest| TreePath::new(rest).ok()) else {
            return Ok(content);
        };
        if !self.plan.rewritten.contains(&below) {
            return Ok(content);
        }
        let rewriting = runpath::rewrite(&content, &below, prefix)?;
        rewriting.content.ok_or_else(|| {
            Error::bug("the search paths of a file cannot be changed after all")
                .structure(path.as_str())
        })
    }

    fn content(&self, source: &Source) -> Result<Content> {
        Ok(match source {
            Source::Text(text) => Content::of_bytes(text.as_bytes()),
            Source::Bytes(bytes) => Content::of_bytes(bytes.as_slice()),
            Source::Archive { archives, arch } => {
                self.archive(archives, arch.as_str())?.1.content.clone()
            }
            Source::Manifest { archives } => self.set(archives)?.manifest.clone(),
            Source::Database { component, path } => self.database(component, path)?.content.clone(),
            Source::Host { component, path } => match self.host(component, path)? {
                HostKind::Plain(content) => content.clone(),
                HostKind::Fat(_) => {
                    return Err(Error::bug(format!("{path} is fat but planned as it is")));
                }
            },
            Source::Fat { component, path, archives } => {
                self.transformed(self.host(component, path)?, path, archives)?
            }
        })
    }

    /// The receipt's lines about a file that is packed as it is.
    fn loose(
        &self,
        package: &Package<Source>,
        path: &TreePath,
        source: &Source,
        content: &Content,
    ) -> Result<Vec<CodeObjectRecord>> {
        let (arch, shard) = match source {
            Source::Database { component, path } => {
                let file = self.database(component, path)?;
                let arch = file.archs.first().filter(|_| file.archs.len() == 1);
                (arch, Some(file.shard.clone()))
            }
            // What serves several archs lies among the host files, and may be all shards'.
            Source::Host { .. } => (None, None),
            _ => return Ok(Vec::new()),
        };
        let record = |code: LooseCode| CodeObjectRecord {
            sha256: code.sha256,
            size: code.size,
            target: code.target,
            shard: shard.clone(),
            package: package.id.clone(),
            place: Place::File { file: format!("/{path}"), entry: code.entry },
        };
        Ok(loose_code(content, arch)?.into_iter().map(record).collect())
    }

    fn transformed(&self, kind: &HostKind, path: &TreePath, archives: &str) -> Result<Content> {
        let HostKind::Fat(fat) = kind else {
            return Err(Error::bug(format!("{path} is planned as fat but is not")));
        };
        let set = self.plan.archives.iter().find(|set| set.name == archives);
        let set = set.ok_or_else(|| Error::bug(format!("no archive set is called {archives}")))?;
        fat.binary.with_marker(&marker(path, &set.folder, &set.name)?)
    }

    fn component(&self, id: &str) -> Result<&'a Component> {
        let mut components = self.recombined.components.iter();
        components
            .find(|component| component.id() == id)
            .ok_or_else(|| Error::bug(format!("no component is called {id}")))
    }

    fn host(&self, component: &str, path: &TreePath) -> Result<&'a HostKind> {
        match self.component(component)?.host.get(path) {
            Some(Node::File { data, .. }) => Ok(&data.kind),
            _ => Err(Error::bug(format!("{component} has no file {path}"))),
        }
    }

    fn database(&self, component: &str, path: &TreePath) -> Result<&'a DatabaseFile> {
        let databases = &self.component(component)?.databases;
        let file = databases.iter().find(|file| file.path == *path);
        file.ok_or_else(|| Error::bug(format!("{component} has no database {path}")))
    }

    fn set(&self, name: &str) -> Result<&PackedSet> {
        let set = self.packed.get(name);
        set.ok_or_else(|| Error::bug(format!("the archives {name} are not packed")))
    }

    fn archive(&self, name: &str, arch: &str) -> Result<(&PackedSet, &PackedArchive)> {
        let set = self.set(name)?;
        let archive = set.archives.iter().find(|archive| archive.arch.as_str() == arch);
        let missing = || Error::bug(format!("the archives {name} have none for {arch}"));
        Ok((set, archive.ok_or_else(missing)?))
    }
}

/// The sets that a package's files refer to, each once.
fn sets_of(package: &Package<Source>) -> Vec<&str> {
    let files = package.entries.iter().filter_map(|entry| match &entry.node {
        Node::File { data, .. } => data.archives(),
        Node::Directory { .. } | Node::Link { .. } => None,
    });
    let mut sets: Vec<&str> = files.collect();
    sets.sort_unstable();
    sets.dedup();
    sets
}

/// The receipt's lines about the archive at `path`. Aliases repeat a code object that has a row of
/// its own.
fn records(
    package: &Package<Source>,
    path: &TreePath,
    set: &PackedSet,
    archive: &PackedArchive,
) -> Vec<CodeObjectRecord> {
    debug_assert!(matches!(package.role, Role::Kernels { .. }));
    let own = archive.rows.iter().filter(|row| !row.alias);
    own.map(|row| {
        let target = row.target.to_string();
        let shard = set.shards.get(&(row.key.clone(), target.clone())).cloned();
        let binary = row.key.rsplit_once('#').map_or(row.key.as_str(), |(binary, _)| binary);
        CodeObjectRecord {
            sha256: hex(&row.sha256),
            size: row.original_size,
            target,
            shard,
            package: package.id.clone(),
            place: Place::Archive {
                binary: binary.to_owned(),
                archive: format!("/{path}"),
                key: row.key.clone(),
            },
        }
    })
    .collect()
}
