//! The packing of a package set: its files become content of known size.

use std::collections::BTreeMap;

use rockpack_core::content::{Content, Sha256Digest};
use rockpack_core::error::{Error, Result, ResultExt};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::Node;

use super::{PackedArchive, Packer, Sources, kpm};
use rockpack_package::receipt::{CodeObjectPlace, CodeObjectRecord};
use rockpack_package::{Package, PackageEntry};
use rockpack_plan::recombine::{Kernel, Recombined};
use rockpack_plan::{FileSource, Plan};
use rockpack_report::Stage;
use rockpack_split::{LooseCode, loose_code};

/// A package whose files are content, with the records of its code objects.
#[derive(Debug)]
pub struct PackedPackage {
    /// The package.
    pub package: Package<Content>,
    /// The code objects of the input in its archives.
    pub code_objects: Vec<CodeObjectRecord>,
    /// The code objects of the input in its other files.
    pub code_files: Vec<PackedCode>,
    /// The bytes of its archives and their manifests.
    pub made: u64,
}

/// Packs the packages of a plan, one after the other. The archives of a set are packed for its first package
/// and dropped after its last.
pub struct SetPacker<'a> {
    plan: &'a Plan,
    sources: Sources<'a>,
    packer: &'a Packer<'a>,
    packed: BTreeMap<&'a str, PackedSet>,
    /// The number of packages that still need each set.
    waiting: BTreeMap<&'a str, usize>,
}

/// The archives of one [`ArchiveSet`].
struct PackedSet {
    archives: Vec<PackedArchive>,
    manifest: Content,
}

impl<'a> SetPacker<'a> {
    /// A packer that has packed nothing yet.
    pub fn new(recombined: &'a Recombined, plan: &'a Plan, packer: &'a Packer<'a>) -> Self {
        let mut waiting = BTreeMap::new();
        for name in plan.packages.iter().flat_map(sets_of) {
            *waiting.entry(name).or_default() += 1;
        }
        let sources = Sources::new(recombined, plan);
        Self { plan, sources, packer, packed: BTreeMap::new(), waiting }
    }

    /// The bytes of device code that packing all packages reads.
    pub fn device_bytes(&self) -> u64 {
        let kernels = self.plan.archives.iter().flat_map(|set| self.sources.kernels(set));
        kernels.map(|kernel| kernel.content.len()).sum()
    }

    /// The bytes of all files of all packages, without archives and their manifests.
    pub fn known_bytes(&self) -> Result<u64> {
        let files = self.plan.packages.iter().flat_map(|package| &package.entries);
        let sources = files.filter_map(|entry| entry.node.data());
        sources.map(|source| Ok(self.sources.known_len(source)?.unwrap_or(0))).sum()
    }

    /// Packs `package`, one of the plan's.
    pub fn pack(&mut self, package: &'a Package<FileSource>) -> Result<PackedPackage> {
        let sets = sets_of(package);
        for name in &sets {
            if !self.packed.contains_key(name) {
                let progress = self.packer.progress;
                progress.begin(Stage::Pack);
                let set = self.pack_set(name)?;
                progress.end(Stage::Pack);
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
        let set = self.sources.archive_set(name)?;
        let kernels: Vec<Kernel> = self.sources.kernels(set).cloned().collect();
        let mut archives = self.packer.pack(&set.name, &kernels)?;
        archives.retain(|archive| set.archs.contains(&archive.arch));
        let manifest = kpm(&set.name, &archives, &set.kept, &set.manifest_prefix)?;
        Ok(PackedSet { archives, manifest })
    }

    fn make(&self, package: &Package<FileSource>) -> Result<PackedPackage> {
        let mut entries = Vec::with_capacity(package.entries.len());
        let (mut code_objects, mut code_files) = (Vec::new(), Vec::new());
        let mut made = 0;
        for entry in &package.entries {
            if let Node::File { data: FileSource::Archive { archives, arch }, .. } = &entry.node {
                let archive = self.archive(archives, arch)?;
                code_objects.extend(archive.records(&format!("/{}", entry.path), &package.id));
            }
            let node = entry.node.clone().try_map(|source| self.content(&source))?;
            if let (Node::File { data: source, .. }, Node::File { data, .. }) = (&entry.node, &node)
            {
                code_files.extend(packed_code(&self.sources, package, entry, source, data)?);
                if matches!(source, FileSource::Archive { .. } | FileSource::Manifest { .. }) {
                    made += data.len();
                }
            }
            let PackageEntry { path, treatment, formats, .. } = entry.clone();
            entries.push(PackageEntry { path, node, treatment, formats });
        }
        let package = package.with_entries(entries);
        Ok(PackedPackage { package, code_objects, code_files, made })
    }

    fn content(&self, source: &FileSource) -> Result<Content> {
        if let Some(known) = self.sources.known(source)? {
            return Ok(known);
        }
        match source {
            FileSource::Archive { archives, arch } => {
                Ok(self.archive(archives, arch)?.content.clone())
            }
            FileSource::Manifest { archives } => Ok(self.set(archives)?.manifest.clone()),
            other => Err(Error::bug(format!("{other:?} has no bytes"))),
        }
    }

    fn set(&self, name: &str) -> Result<&PackedSet> {
        let set = self.packed.get(name);
        set.ok_or_else(|| Error::bug(format!("the archives {name} are not packed")))
    }

    fn archive(&self, name: &str, arch: &BaseArch) -> Result<&PackedArchive> {
        let archive = self.set(name)?.archives.iter().find(|archive| archive.arch == *arch);
        archive.ok_or_else(|| Error::bug(format!("the archives {name} have none for {arch}")))
    }
}

/// The sets that a package's files refer to, deduplicated.
fn sets_of(package: &Package<FileSource>) -> Vec<&str> {
    let files = package.entries.iter().filter_map(|entry| entry.node.data());
    let mut sets: Vec<&str> = files.filter_map(FileSource::archives).collect();
    sets.sort_unstable();
    sets.dedup();
    sets
}

/// A code object in a file of a package that is no archive.
#[derive(Debug)]
pub struct PackedCode {
    code: LooseCode,
    shard: Option<String>,
    package: String,
    /// The absolute install path of the file.
    file: String,
}

impl PackedCode {
    /// The receipt's line. If the code object is a whole file, its digest is that of the written file in
    /// `files`, by absolute install path, so that the file is read only once.
    pub fn record(self, files: &BTreeMap<&str, &[u8; 32]>) -> Result<CodeObjectRecord> {
        let Self { code, shard, package, file } = self;
        let LooseCode { entry, target, size, sha256 } = code;
        let sha256 = sha256
            .or_else(|| files.get(file.as_str()).map(|digest| Sha256Digest::from(**digest)))
            .ok_or_else(|| Error::bug(format!("{file} of {package} was written without a digest")))?
            .to_string();
        let place = CodeObjectPlace::File { file, entry };
        Ok(CodeObjectRecord { sha256, size, target, shard, package, place })
    }
}

/// The code objects of `entry`, a file with the bytes `content`, if such a file can have any.
fn packed_code(
    sources: &Sources<'_>,
    package: &Package<FileSource>,
    entry: &PackageEntry<FileSource>,
    source: &FileSource,
    content: &Content,
) -> Result<Vec<PackedCode>> {
    let (arch, shard) = match source {
        FileSource::Database { component, path } => {
            let file = sources.database(component, path)?;
            let arch = file.archs.first().filter(|_| file.archs.len() == 1);
            (arch, Some(file.shard.clone()))
        }
        // Code for several archs is among the host files, and may belong to all shards.
        FileSource::Host { .. } => (None, None),
        _ => return Ok(Vec::new()),
    };
    if !package.formats().any(|format| entry.formats.has(format)) {
        return Ok(Vec::new());
    }
    let packed = loose_code(content, arch)?.into_iter().map(|code| PackedCode {
        code,
        shard: shard.clone(),
        package: package.id.clone(),
        file: format!("/{}", entry.path),
    });
    Ok(packed.collect())
}
