//! Kernel archives and their manifests in artifacts that were split already.
//!
//! They are recognised by their names' endings, `.kpack` and `.kpm`, wherever they lie: this
//! project writes `lib/.kpack/`, other tools `.kpack/` of the stage prefix. Both are used up here:
//! archives are written anew for the package that owns the binary, and so are manifests.

use std::collections::BTreeSet;

use super::flatten::Located;
use super::{DatabaseFile, HostFile};
use crate::content::Content;
use crate::error::{Result, ResultExt};
use crate::formats::kpack::KpackReader;
use crate::formats::kpm::Manifest;
use crate::tree::{Node, Tree, TreePath};

const ARCHIVE_ENDING: &str = ".kpack";
const MANIFEST_ENDING: &str = ".kpm";

/// A kernel archive of an artifact.
#[derive(Debug)]
pub struct KernelArchive {
    /// Path relative to the install prefix.
    pub path: TreePath,
    /// The bytes of the file.
    pub content: Content,
    /// Its table of contents and code objects.
    pub reader: KpackReader,
}

/// A manifest of kernel archives.
#[derive(Debug)]
pub struct ArchiveManifest {
    /// Path relative to the install prefix.
    pub path: TreePath,
    /// What it lists.
    pub manifest: Manifest,
}

/// Whether the file at `path` is a kernel archive or a manifest of such.
pub(super) fn is_archive(path: &TreePath) -> bool {
    [ARCHIVE_ENDING, MANIFEST_ENDING].iter().any(|ending| path.name().ends_with(ending))
}

/// The archives and manifests of one artifact.
#[derive(Default)]
pub(super) struct ArchiveFiles {
    pub archives: Vec<KernelArchive>,
    pub manifests: Vec<ArchiveManifest>,
}

impl ArchiveFiles {
    /// Opens the file at `path`; one that cannot be read is an error.
    pub fn add(&mut self, path: TreePath, file: Located) -> Result<()> {
        let content = file.content;
        let doing = || format!("reading {path}");
        if path.name().ends_with(MANIFEST_ENDING) {
            let manifest = Manifest::parse(&content).context(doing)?;
            self.manifests.push(ArchiveManifest { path, manifest });
        } else {
            let reader = KpackReader::open(content.clone()).context(doing)?;
            self.archives.push(KernelArchive { path, content, reader });
        }
        Ok(())
    }

    /// Takes the folders out of `host` that held nothing but these and `databases`: packages get
    /// folders of their own where their device code ends up, and host packages none without a use.
    pub fn drop_folders(&self, host: &mut Tree<HostFile>, databases: &[DatabaseFile]) {
        let archives = self.archives.iter().map(|archive| &archive.path);
        let manifests = self.manifests.iter().map(|manifest| &manifest.path);
        let databases = databases.iter().map(|file| &file.path);
        let emptied: BTreeSet<TreePath> =
            archives.chain(manifests).chain(databases).flat_map(folders_of).collect();
        let kept: BTreeSet<TreePath> = host
            .iter()
            .filter(|(path, _)| !emptied.contains(*path))
            .flat_map(|(path, _)| folders_of(path))
            .collect();
        for folder in emptied.difference(&kept) {
            if matches!(host.get(folder), Some(Node::Directory { .. })) {
                host.remove(folder);
            }
        }
    }
}

fn folders_of(path: &TreePath) -> impl Iterator<Item = TreePath> {
    std::iter::successors(path.parent(), TreePath::parent)
}
