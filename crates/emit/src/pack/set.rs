//! The packing of a package set: its files become content of known size.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rockpack_core::content::{Content, Sha256Digest};
use rockpack_core::error::{Error, Faults, Result, ResultExt};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::Node;

use super::frames::FrameStore;
use super::{PackedArchive, Packer, Sources, kpm};
use rockpack_package::receipt::{CodeObjectPlace, CodeObjectRecord};
use rockpack_package::{Format, Formats, Package, PackageEntry};
use rockpack_plan::config::ArchiveLevels;
use rockpack_plan::recombine::{Kernel, Recombined};
use rockpack_plan::{ArchiveSet, FileSource, Plan};
use rockpack_report::Stage;
use rockpack_split::{StandaloneCode, standalone_code};

/// A package whose files are content, with the records of its code objects.
#[derive(Debug)]
pub struct PackedPackage {
    pub package: Package<Content>,
    /// The code objects of the input in its archives.
    pub code_objects: Vec<CodeObjectRecord>,
    /// The code objects of the input in its other files.
    pub code_files: Vec<PackedCode>,
    /// Bytes of its archives, their manifests and its compressed code files.
    pub made: u64,
}

/// Packs the packages of a plan, one after the other. The archives of a set are packed for its first package
/// and dropped after its last.
pub struct SetPacker<'a> {
    plan: &'a Plan,
    sources: Sources<'a>,
    packer: &'a Packer<'a>,
    levels: ArchiveLevels,
    packed: BTreeMap<&'a str, Vec<PackedSet>>,
    /// The number of packages that still need each set.
    waiting: BTreeMap<&'a str, usize>,
}

struct PackedSet {
    formats: Formats,
    archives: Vec<PackedArchive>,
    manifest: Content,
}

impl<'a> SetPacker<'a> {
    pub fn new(
        recombined: &'a Recombined,
        plan: &'a Plan,
        packer: &'a Packer<'a>,
        levels: ArchiveLevels,
    ) -> Self {
        let mut waiting = BTreeMap::new();
        for name in plan.packages.iter().flat_map(sets_of) {
            *waiting.entry(name).or_default() += 1;
        }
        let sources = Sources::new(recombined, plan);
        Self { plan, sources, packer, levels, packed: BTreeMap::new(), waiting }
    }

    /// The bytes of device code that packing all packages reads.
    pub fn device_bytes(&self) -> u64 {
        let kernels = self.plan.archives.iter().flat_map(|set| self.sources.kernels(set));
        kernels.map(|kernel| kernel.content.len()).sum()
    }

    /// The bytes of all files of all packages, without those that packing makes or compresses.
    pub fn known_bytes(&self) -> Result<u64> {
        let files = self.plan.packages.iter().flat_map(|package| &package.entries);
        let sources = files.filter_map(|entry| entry.node.data());
        let sources = sources.filter(|source| !self.sources.is_compressed(source));
        sources.map(|source| Ok(self.sources.known_len(source)?.unwrap_or(0))).sum()
    }

    pub fn pack(&mut self, package: &'a Package<FileSource>) -> Result<PackedPackage> {
        let sets = sets_of(package);
        for name in &sets {
            if !self.packed.contains_key(name) {
                let progress = self.packer.progress;
                progress.begin(Stage::Pack);
                let sets = self.pack_set(name)?;
                progress.end(Stage::Pack);
                self.packed.insert(name, sets);
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

    /// The archives of a set, for both formats, or for each if they differ.
    fn pack_set(&self, name: &str) -> Result<Vec<PackedSet>> {
        let set = self.sources.archive_set(name)?;
        let ArchiveLevels { deb, rpm } = self.levels;
        if deb == rpm && set.kept.deb == set.kept.rpm {
            return Ok(vec![self.packed_set(set, Formats::All, Format::Deb)?]);
        }
        let sets = Format::ALL.into_iter();
        sets.map(|format| self.packed_set(set, Formats::Only(format), format)).collect()
    }

    fn packed_set(&self, set: &ArchiveSet, formats: Formats, like: Format) -> Result<PackedSet> {
        let kernels: Vec<Kernel> = self.sources.kernels(set).cloned().collect();
        let mut archives = self.packer.pack(&set.name, &kernels, self.levels.of(like))?;
        archives.retain(|archive| set.archs.contains(&archive.arch));
        let kept = set.kept.of(like);
        let manifest = kpm(&set.name, &archives, kept, &set.manifest_prefix)?;
        Ok(PackedSet { formats, archives, manifest })
    }

    fn make(&self, package: &Package<FileSource>) -> Result<PackedPackage> {
        let mut entries = Vec::with_capacity(package.entries.len());
        let (mut code_objects, mut code_files) = (Vec::new(), Vec::new());
        let mut made = 0;
        // Compressed code files count as frames in the budget: those of hipBLASLt for one arch take a gigabyte.
        let store = FrameStore::new(self.packer.spool_dir, &self.packer.budget);
        let known = package.entries.par_iter().map(|entry| {
            let known = |source| self.sources.known_by(source, |bytes| store.keep(bytes));
            entry.node.data().map_or(Ok(None), known)
        });
        let known: Vec<Result<Option<Content>>> = known.collect();
        for (entry, known) in package.entries.iter().zip(Faults::all(known)?) {
            let forms = self.forms_of(entry)?;
            let set = forms.first().and_then(|(_, set)| *set);
            if let Some(((_, arch), set)) = entry.node.data().and_then(FileSource::archive).zip(set)
            {
                let path = format!("/{}", entry.path);
                code_objects.extend(set.archive(arch)?.records(&path, &package.id));
            }
            for (formats, set) in forms {
                let node = entry.node.clone().try_map(|source| {
                    known.clone().map_or_else(|| made_content(&source, set), Ok)
                })?;
                if let (Node::File { data: source, .. }, Node::File { data, .. }) =
                    (&entry.node, &node)
                {
                    code_files.extend(packed_code(&self.sources, package, entry, source, data)?);
                    if is_made(source) || self.sources.is_compressed(source) {
                        made += data.len();
                    }
                }
                let PackageEntry { path, treatment, .. } = entry.clone();
                entries.push(PackageEntry { path, node, treatment, formats });
            }
        }
        let package = package.with_entries(entries);
        Ok(PackedPackage { package, code_objects, code_files, made })
    }

    /// The formats in which an entry has the same bytes, each with the packed set of these bytes.
    fn forms_of(
        &self,
        entry: &PackageEntry<FileSource>,
    ) -> Result<Vec<(Formats, Option<&PackedSet>)>> {
        let made = entry.node.data().filter(|source| is_made(source));
        let Some(name) = made.and_then(FileSource::archives) else {
            return Ok(vec![(entry.formats, None)]);
        };
        let sets = self.packed.get(name);
        let sets =
            sets.ok_or_else(|| Error::bug(format!("the archives {name} are not packed")))?.iter();
        Ok(match entry.formats {
            Formats::All => sets.map(|set| (set.formats, Some(set))).collect(),
            Formats::Only(format) => {
                let own = sets.filter(|set| set.formats.has(format));
                own.map(|set| (entry.formats, Some(set))).collect()
            }
        })
    }
}

impl PackedSet {
    fn archive(&self, arch: &BaseArch) -> Result<&PackedArchive> {
        let archive = self.archives.iter().find(|archive| archive.arch == *arch);
        archive.ok_or_else(|| Error::bug(format!("no archive is for {arch}")))
    }
}

fn made_content(source: &FileSource, set: Option<&PackedSet>) -> Result<Content> {
    match (source, set) {
        (FileSource::Archive { arch, .. }, Some(set)) => Ok(set.archive(arch)?.content.clone()),
        (FileSource::Manifest { .. }, Some(set)) => Ok(set.manifest.clone()),
        (other, _) => Err(Error::bug(format!("{other:?} has no bytes"))),
    }
}

fn is_made(source: &FileSource) -> bool {
    matches!(source, FileSource::Archive { .. } | FileSource::Manifest { .. })
}

fn sets_of(package: &Package<FileSource>) -> Vec<&str> {
    let files = package.entries.iter().filter_map(|entry| entry.node.data());
    let mut sets: Vec<&str> = files.filter_map(FileSource::archives).collect();
    sets.sort_unstable();
    sets.dedup();
    sets
}

/// A code object in a packaged file that is not an archive.
#[derive(Debug)]
pub struct PackedCode {
    code: StandaloneCode,
    shard: Option<String>,
    package: String,
    /// The absolute install path of the file.
    file: String,
}

impl PackedCode {
    /// The record for the receipt. If the code object is a whole file, its digest is that of the written file in
    /// `files`, by absolute install path, so that the file is read only once.
    pub fn record(self, files: &BTreeMap<&str, &[u8; 32]>) -> Result<CodeObjectRecord> {
        let Self { code, shard, package, file } = self;
        let StandaloneCode { entry, target, size, sha256 } = code;
        let sha256 = sha256
            .or_else(|| files.get(file.as_str()).map(|digest| Sha256Digest::from(**digest)))
            .ok_or_else(|| Error::bug(format!("{file} of {package} was written without a digest")))?
            .to_string();
        let place = CodeObjectPlace::File { file, entry };
        Ok(CodeObjectRecord { sha256, size, stored_size: None, target, shard, package, place })
    }
}

/// The code objects in `content`, the file of `entry`, if such a file can have any.
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
    let packed = standalone_code(content, arch)?.into_iter().map(|code| PackedCode {
        code,
        shard: shard.clone(),
        package: package.id.clone(),
        file: format!("/{}", entry.path),
    });
    Ok(packed.collect())
}
