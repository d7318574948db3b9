//! Kernel archives and their manifests in artifacts that were split already, and archives that a component ships
//! itself.
//!
//! They are recognised by their names' endings, `.kpack` and `.kpm`, in any folder: rockpack writes
//! `lib/.kpack/`, other tools `.kpack/` of the stage prefix. Neither is kept: archives and manifests are
//! written again for the package that owns the binary.
//!
//! hipDNN's kernel provider opens archives by their paths, and looks code up by keys of its own
//! (rocm-libraries#11144, #11165; TheRock#6427): no marker of a binary names their rows, and no tool split
//! them off a binary. Such an archive is a file of its component. It keeps its bytes and its path, because
//! descriptors next to it name its path and its keys, and goes to the packages of the archs in its table of
//! contents, as a code file of a kernel database does.
//!
//! An archive was split off if it lies in a `.kpack` folder, if a manifest of its shard lists it, or if a
//! binary of any shard asks for any of its rows: by its marker, or by the name that its packages will give
//! it, which is its path. Its unclaimed rows are then dropped with a finding (`attach.rs`).

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::{Faults, Result, ResultExt};
use rockpack_core::gfx::{Target, target_error};
use rockpack_core::tree::{Node, Tree, TreePath, emptied_folders};
use rockpack_elf::kpack::{KpackReader, TocRow, split_key};
use rockpack_elf::kpm::Manifest;
use rockpack_elf::marker::{self, AnyMarker};

use super::alone::{StagedFile, split, with_hint};
use super::databases::{self, AssignedFiles};
use super::parts::{
    DatabaseFile, HostBinary, HostFile, HostKind, KernelArchive, ManifestFile, Notes,
    SplitArtifact, SplitPolicy,
};
use crate::input::artifact::Artifact;
use crate::input::database::DatabaseRules;

/// Splits `artifact` as if its shard had no other. Archives outside of `.kpack` folders that
/// no binary of the artifact asks for become its files.
pub fn split_alone(artifact: &Artifact, options: &SplitPolicy<'_>) -> Result<SplitArtifact> {
    let mut split = [split(artifact, options)?];
    let known = SplitOffArchives::of(&split);
    assign_shipped(&mut split, &known, options.rules)?;
    let [split] = split;
    Ok(split)
}

/// The kernel names and manifests that identify archives split off binaries.
pub(super) struct SplitOffArchives {
    /// The kernel names that binaries ask for.
    kernel_names: BTreeSet<String>,
    /// Shard → the archives that its manifests list.
    listed: BTreeMap<String, BTreeSet<TreePath>>,
}

impl SplitOffArchives {
    /// Collects the kernel names in all markers and the archives in all manifests. Skips markers that cannot be
    /// read: joining their binaries with archives refuses them.
    pub(super) fn of(split: &[SplitArtifact]) -> Self {
        let mut known = Self { kernel_names: BTreeSet::new(), listed: BTreeMap::new() };
        for artifact in split {
            for (path, fat) in artifact.binaries() {
                known.kernel_names.insert(path.to_string());
                let HostBinary::Transformed(transformed) = &fat.binary else { continue };
                if let Ok(AnyMarker::Map(marker)) = marker::parse(transformed.marker()) {
                    known.kernel_names.insert(marker.kernel_name);
                }
            }
            let listed = known.listed.entry(artifact.shard.clone()).or_default();
            for ManifestFile { path, manifest } in &artifact.archive_manifests {
                // The listed archives are next to the manifest.
                let archives = manifest.archives.values();
                listed.extend(archives.filter_map(|archive| path.sibling(&archive.file).ok()));
            }
        }
        known
    }

    fn has(&self, archive: &KernelArchive, shard: &str) -> bool {
        let keys = archive.reader.toc().rows.keys();
        let mut names = keys.map(|key| split_key(key).map_or(key.as_str(), |(name, _)| name));
        archive.is_in_archive_folder()
            || self.listed.get(shard).is_some_and(|all| all.contains(&archive.path))
            || names.any(|name| self.kernel_names.contains(name))
    }
}

/// Makes database files of the archives that the component of `artifacts` ships itself. An archive
/// without code for any arch becomes a host file.
pub(super) fn assign_shipped(
    artifacts: &mut [SplitArtifact],
    known: &SplitOffArchives,
    rules: &DatabaseRules,
) -> Result<()> {
    let mut faults = Faults::default();
    for artifact in artifacts {
        let archives = std::mem::take(&mut artifact.archives);
        let (split_off, shipped) =
            archives.into_iter().partition(|archive| known.has(archive, &artifact.shard));
        artifact.archives = split_off;
        let context = format!("splitting {}", artifact.label());
        let settled = assign_shipped_in(artifact, shipped, rules);
        faults.keep(settled.map_err(|error| error.context(context)));
    }
    faults.finish()
}

fn assign_shipped_in(
    artifact: &mut SplitArtifact,
    shipped: Vec<KernelArchive>,
    rules: &DatabaseRules,
) -> Result<()> {
    let mut notes = Notes::new(artifact.label(), std::mem::take(&mut artifact.findings));
    let mut candidates = Vec::new();
    let mut faults = Faults::default();
    for archive in shipped {
        let claimed = databases::claim_archive(&archive, rules, &mut notes)
            .map_err(|error| with_hint(error).context(format!("reading {}", archive.path)));
        match faults.keep(claimed) {
            Some(Some(candidate)) => candidates.push(candidate),
            Some(None) => {
                let KernelArchive { path, module, mode, content, .. } = archive;
                let data = HostFile { module, kind: HostKind::Plain(content) };
                artifact.host.insert(path, Node::File { data, mode })?;
            }
            None => {}
        }
    }
    let settled = databases::assign_files(candidates, &mut artifact.host, &mut notes);
    artifact.findings = notes.finish();
    let AssignedFiles { databases, shared } = settled?;
    artifact.databases.extend(databases);
    artifact.databases.sort_by(|one, other| one.path.cmp(&other.path));
    artifact.shared.extend(shared);
    let SplitArtifact { host, archives, archive_manifests, databases, .. } = artifact;
    drop_folders(host, &*archives, archive_manifests, databases);
    faults.finish()
}

const ARCHIVE_ENDING: &str = ".kpack";
const MANIFEST_ENDING: &str = ".kpm";

/// The archive folder of tools that split artifacts.
const ARCHIVE_FOLDER: &str = ".kpack";

impl KernelArchive {
    /// Whether the archive is in the folder where tools put the archives that they split off.
    pub(super) fn is_in_archive_folder(&self) -> bool {
        self.path.parent().is_some_and(|folder| folder.name() == ARCHIVE_FOLDER)
    }
}

#[derive(Debug, Clone)]
pub(super) struct DistinctRow<'a> {
    pub target: Target,
    /// The target as the archive spells it.
    pub spelled: &'a str,
    /// Index of the code object in the archive.
    pub ordinal: u32,
}

/// The stored code objects of one key, each once, under the targets that no other target of the key covers.
pub(super) fn distinct_rows(targets: &BTreeMap<String, TocRow>) -> Result<Vec<DistinctRow<'_>>> {
    let mut all = Vec::new();
    for (spelled, row) in targets {
        let target = Target::parse_spelling(spelled).map_err(target_error)?;
        all.push(DistinctRow { target, spelled, ordinal: row.ordinal });
    }
    Ok(all.iter().filter(|row| !is_alias(row, &all)).cloned().collect())
}

fn is_alias(row: &DistinctRow<'_>, all: &[DistinctRow<'_>]) -> bool {
    let mut others = all.iter().filter(|it| it.ordinal == row.ordinal && it.target != row.target);
    others.any(|other| other.target.runs_on(&row.target))
}

pub(super) fn is_archive(path: &TreePath) -> bool {
    [ARCHIVE_ENDING, MANIFEST_ENDING].iter().any(|ending| path.as_str().ends_with(ending))
}

#[derive(Default)]
pub(super) struct ArchiveFiles {
    pub archives: Vec<KernelArchive>,
    pub manifests: Vec<ManifestFile>,
}

impl ArchiveFiles {
    pub fn add(&mut self, path: TreePath, file: StagedFile) -> Result<()> {
        let StagedFile { content, module, mode } = file;
        if path.name().ends_with(MANIFEST_ENDING) {
            let manifest = Manifest::parse(&content).context(|| format!("reading {path}"))?;
            self.manifests.push(ManifestFile { path, manifest });
        } else {
            let reader =
                KpackReader::open(content.clone()).context(|| format!("reading {path}"))?;
            self.archives.push(KernelArchive { path, module, mode, content, reader });
        }
        Ok(())
    }
}

/// Removes the folders from `host` that held nothing but archives, manifests and database files, which are not host
/// files: packages with device code make their own folders, and host packages get no empty ones.
pub(super) fn drop_folders<'a>(
    host: &mut Tree<HostFile>,
    archives: impl IntoIterator<Item = &'a KernelArchive>,
    manifests: &'a [ManifestFile],
    databases: &'a [DatabaseFile],
) {
    let archives = archives.into_iter().map(|archive| &archive.path);
    let manifests = manifests.iter().map(|manifest| &manifest.path);
    let device = archives.chain(manifests).chain(databases.iter().map(|file| &file.path));
    for folder in emptied_folders(device, host.keys()) {
        if matches!(host.get(&folder), Some(Node::Directory { .. })) {
            host.remove(&folder);
        }
    }
}
