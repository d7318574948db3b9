//! Subjects of findings: artifacts, files, packages.

use derive_more::Display;
use rockpack_core::content::Sha256Digest;
use rockpack_core::tree::{ArtifactName, TreePath};
use serde::{Deserialize, Serialize};

use crate::{ComponentName, PackageName};

/// An artifact of a shard. Written as `<shard>/<artifact>`, which does not depend on the place of the input,
/// because findings are part of the output.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[display("{shard}/{artifact}")]
pub struct InputArtifact {
    /// The name of the shard.
    pub shard: String,
    /// The name of the artifact, e.g. `blas_lib_gfx1151`.
    pub artifact: ArtifactName,
}

impl InputArtifact {
    /// The artifact `artifact` in `shard`.
    pub fn new(shard: &str, artifact: &ArtifactName) -> Self {
        Self { shard: shard.to_owned(), artifact: artifact.clone() }
    }

    /// The file at `path` in the artifact.
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
    /// The name of the artifact, e.g. `blas_lib_gfx1151`.
    pub artifact: ArtifactName,
    /// The path below the prefix.
    pub path: TreePath,
}

/// A file or folder of a component, from any shard.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[display("{component}/{path}")]
pub struct ComponentFile {
    /// The name of the component, e.g. `blas_lib`.
    pub component: ComponentName,
    /// The path below the prefix.
    pub path: TreePath,
}

impl ComponentFile {
    /// The file at `path` of the component.
    pub fn new(component: impl Into<ComponentName>, path: &TreePath) -> Self {
        Self { component: component.into(), path: path.clone() }
    }
}

/// A file, and the amount of its device code that is left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[display("{file}: {count}")]
pub struct LeftOutFile {
    /// The file, after its component if that is known.
    pub file: String,
    /// Number of code objects, or 1 for a database file.
    pub count: usize,
}

/// One of several merged files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[display("{artifact} ({sha256})")]
pub struct MergedPart {
    /// The artifact that has it.
    pub artifact: InputArtifact,
    /// SHA-256 of its content.
    pub sha256: Sha256Digest,
}

/// A package of an earlier set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EarlierPackage {
    /// The name.
    pub package: PackageName,
    /// The version in the earlier set.
    pub version: String,
}
