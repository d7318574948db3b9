//! What findings are about: artifacts, files, packages.

use derive_more::Display;
use rockpack_base::content::Sha256Digest;
use rockpack_base::tree::{ArtifactName, TreePath};
use serde::{Deserialize, Serialize};

use crate::report::{ComponentName, PackageName};

/// An artifact of a shard. `<shard>/<artifact>` is the same wherever the input lies, and findings are
/// part of the output.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[display("{shard}/{artifact}")]
pub struct InputArtifact {
    /// The name of the shard.
    pub shard: String,
    /// E.g. `blas_lib_gfx1151`.
    pub artifact: ArtifactName,
}

impl InputArtifact {
    /// The artifact called `artifact`.
    pub fn new(shard: &str, artifact: &ArtifactName) -> Self {
        Self { shard: shard.to_owned(), artifact: artifact.clone() }
    }

    /// Its file at `path`.
    pub fn file(&self, path: &TreePath) -> InputFile {
        let Self { shard, artifact } = self.clone();
        InputFile { shard, artifact, path: path.clone() }
    }
}

/// A file or folder of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[display("{shard}/{artifact}/{path}")]
pub struct InputFile {
    /// The name of the shard.
    pub shard: String,
    /// E.g. `blas_lib_gfx1151`.
    pub artifact: ArtifactName,
    /// Its path below the prefix.
    pub path: TreePath,
}

/// A file or folder of a component, from whichever shard.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[display("{component}/{path}")]
pub struct ComponentFile {
    /// E.g. `blas_lib`.
    pub component: ComponentName,
    /// Its path below the prefix.
    pub path: TreePath,
}

impl ComponentFile {
    /// The file at `path`.
    pub fn new(component: impl Into<ComponentName>, path: &TreePath) -> Self {
        Self { component: component.into(), path: path.clone() }
    }
}

/// How much device code one file holds of what is left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[display("{file}: {count}")]
pub struct LeftOutFile {
    /// The file, below its component where that is known.
    pub file: String,
    /// Code objects, or 1 for a database file.
    pub count: usize,
}

/// One of the files that were merged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[display("{artifact} ({sha256})")]
pub struct MergedPart {
    /// Whose it is.
    pub artifact: InputArtifact,
    /// The digest of its bytes.
    pub sha256: Sha256Digest,
}

/// A package of an earlier set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EarlierPackage {
    /// Its name.
    pub package: PackageName,
    /// Its version there.
    pub version: String,
}
