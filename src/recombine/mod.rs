//! The recombine stage: split artifacts of all shards become components with grouped device code.

use crate::content::Content;
use crate::gfx::{BaseArch, Target};
use crate::report::Findings;
use crate::split::{DatabaseFile, HostFile};
use crate::tree::{Tree, TreePath};

/// All components of a build, in name order, and its groups, in configuration order.
#[derive(Debug)]
pub struct Recombined {
    /// The arch groups.
    pub groups: Vec<Group>,
    /// The components.
    pub components: Vec<Component>,
    /// What was noticed.
    pub findings: Findings,
}

/// An arch group: the archs that share a kernel package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Name in the configuration, e.g. `gfx110X`.
    pub name: String,
    /// For people, e.g. `ROCm gfx110X (RDNA3)`.
    pub display_name: String,
    /// Base archs in configuration order.
    pub archs: Vec<BaseArch>,
}

/// A component (`blas_lib`): host files of one artifact name and component kind, and the device
/// code of its binaries from all shards.
#[derive(Debug)]
pub struct Component {
    /// Artifact name, e.g. `blas`.
    pub artifact: String,
    /// Component kind, e.g. `lib`.
    pub kind: crate::artifact::ComponentKind,
    /// Host files. Fat binaries are the primary shard's; their device code is in `kernels`.
    pub host: Tree<HostFile>,
    /// Code objects of grouped archs, sorted by (binary, co_index, target).
    pub kernels: Vec<Kernel>,
    /// Database files of grouped archs, sorted by path.
    pub databases: Vec<DatabaseFile>,
}

/// A code object with the key under which the runtime looks it up.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Install-relative path of the host binary.
    pub binary: TreePath,
    /// Index of the wrapper in the *primary* binary.
    pub co_index: u32,
    /// What it is for.
    pub target: Target,
    /// Its bytes.
    pub content: Content,
    /// The shard it came from.
    pub shard: String,
}
