//! Kernel archives and their manifests in artifacts that were split already.
//!
//! They are recognised by their names' endings, `.kpack` and `.kpm`, in any folder: rockpack writes
//! `lib/.kpack/`, other tools `.kpack/` of the stage prefix. Neither is passed on: archives and manifests are
//! written anew for the package that owns the binary. Archives that no tool split off are files of their
//! component (`shipped.rs`).

use std::collections::BTreeMap;

use rockpack_core::error::{Result, ResultExt};
use rockpack_core::gfx::{Target, no_target};
use rockpack_core::tree::{Node, Tree, TreePath, emptied_folders};
use rockpack_elf::kpack::{KpackReader, TocRow};
use rockpack_elf::kpm::Manifest;

use super::flatten::Located;
use super::parts::{DatabaseFile, HostFile, KernelArchive, ManifestFile};

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

impl ManifestFile {
    /// The paths of the listed archives, which are beside the manifest.
    pub(super) fn listed(&self) -> impl Iterator<Item = TreePath> {
        let folder = self.path.parent();
        let files = self.manifest.archives.values().map(|archive| archive.file.as_str());
        files.filter_map(move |file| match &folder {
            Some(folder) => folder.join(file).ok(),
            None => TreePath::new(file).ok(),
        })
    }
}

/// A row of one key.
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
        let target = Target::parse_spelling(spelled).map_err(no_target)?;
        all.push(DistinctRow { target, spelled, ordinal: row.ordinal });
    }
    Ok(all.iter().filter(|row| !is_alias(row, &all)).cloned().collect())
}

fn is_alias(row: &DistinctRow<'_>, all: &[DistinctRow<'_>]) -> bool {
    let mut others = all.iter().filter(|it| it.ordinal == row.ordinal && it.target != row.target);
    others.any(|other| other.target.runs_on(&row.target))
}

/// Whether the file at `path` is a kernel archive or a manifest of archives.
pub(super) fn is_archive(path: &TreePath) -> bool {
    [ARCHIVE_ENDING, MANIFEST_ENDING].iter().any(|ending| path.name().ends_with(ending))
}

/// The archives and manifests of one artifact.
#[derive(Default)]
pub(super) struct ArchiveFiles {
    pub archives: Vec<KernelArchive>,
    pub manifests: Vec<ManifestFile>,
}

impl ArchiveFiles {
    /// Opens the file at `path`; fails if it cannot be read.
    pub fn add(&mut self, path: TreePath, file: Located) -> Result<()> {
        let Located { content, module, mode } = file;
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

/// Removes the folders from `host` that held nothing but `device`, which is not part of it: packages with
/// device code make their own folders, and host packages get no useless ones.
pub(super) fn drop_folders<'a>(
    host: &mut Tree<HostFile>,
    device: impl Iterator<Item = &'a TreePath>,
) {
    let paths = host.iter().map(|(path, _)| path);
    for folder in emptied_folders(device, paths) {
        if matches!(host.get(&folder), Some(Node::Directory { .. })) {
            host.remove(&folder);
        }
    }
}

/// The paths of archives, manifests and database files of an artifact.
pub(super) fn device_paths<'a>(
    archives: impl IntoIterator<Item = &'a KernelArchive>,
    manifests: &'a [ManifestFile],
    databases: &'a [DatabaseFile],
) -> impl Iterator<Item = &'a TreePath> {
    let archives = archives.into_iter().map(|archive| &archive.path);
    let manifests = manifests.iter().map(|manifest| &manifest.path);
    archives.chain(manifests).chain(databases.iter().map(|file| &file.path))
}
