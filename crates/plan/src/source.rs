//! Sources of the bytes of packages.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::gfx::{BaseArch, generic_of};
use rockpack_core::tree::TreePath;

/// The source of a file's bytes in a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSource {
    /// A host file, unchanged: the one at `path` in the host tree of `component` (`blas_lib`).
    Host {
        /// Id of the component.
        component: String,
        /// Path in its host tree.
        path: TreePath,
    },
    /// A fat binary, transformed, with a marker for the archives named `archives`.
    Fat {
        /// Id of the component.
        component: String,
        /// Path in its host tree.
        path: TreePath,
        /// Name of its [`ArchiveSet`].
        archives: String,
    },
    /// A database file.
    Database {
        /// Id of the component.
        component: String,
        /// Path of the file in the component.
        path: TreePath,
    },
    /// The kernel archive of one arch.
    Archive {
        /// Name of its [`ArchiveSet`].
        archives: String,
        /// The arch.
        arch: BaseArch,
    },
    /// The manifest of all archives of a set.
    Manifest {
        /// Name of its [`ArchiveSet`].
        archives: String,
    },
    /// A text.
    Text(String),
    /// The changelog of a `.deb`, which names its version.
    Changelog(Vec<u8>),
}

impl FileSource {
    /// The name of the archive set that it refers to.
    pub fn archives(&self) -> Option<&str> {
        match self {
            Self::Fat { archives, .. }
            | Self::Archive { archives, .. }
            | Self::Manifest { archives } => Some(archives),
            _ => None,
        }
    }
}

/// The kernel archives of one part of a family: one per arch, over all groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveSet {
    /// Prefix of the archives' names, e.g. `blas_lib`.
    pub name: String,
    /// Folder of the archives relative to the prefix, e.g. `lib/.kpack`.
    pub folder: TreePath,
    /// Further folders relative to the prefix where binaries look for them, in this order.
    pub search: Vec<TreePath>,
    /// The manifest's name for the folder above it, e.g. `lib`.
    pub manifest_prefix: String,
    /// The binaries whose device code they hold, as (component id, path in its host tree). A
    /// kernel belongs to the set if its component and binary are among them, and its arch among
    /// `archs`.
    pub binaries: BTreeSet<(String, TreePath)>,
    /// Archs with code, sorted, except those whose archives are kept.
    pub archs: Vec<BaseArch>,
    /// Facts for the manifest about archives of earlier builds that the set keeps, by arch.
    pub kept: BTreeMap<BaseArch, KeptArchive>,
}

impl ArchiveSet {
    /// Whether packing the set reads kernels of `arch`: for its archive, or for copies in the archive of an
    /// arch that `arch` is the generic target of.
    pub fn packs(&self, arch: &BaseArch) -> bool {
        let mut made = self.archs.iter();
        self.archs.contains(arch)
            || self.kept.contains_key(arch) && made.any(|made| generic_of(made) == Some(arch))
    }

    /// The folders where binaries look for the archives, the install folder first.
    pub fn folders(&self) -> impl Iterator<Item = &TreePath> {
        std::iter::once(&self.folder).chain(&self.search)
    }
}

/// A kernel archive of an earlier build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptArchive {
    /// Bytes of the file.
    pub size: u64,
    /// Code objects that wrappers name in it.
    pub kernel_count: u64,
}
