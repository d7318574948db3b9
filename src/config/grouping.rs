//! Groups of archs.

use rockpack_base::gfx::BaseArch;

/// The archs that share a kernel package, and the shard whose host files are packed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grouping {
    /// The groups, in file order. If there are no groups, each arch is a group.
    pub groups: Vec<ArchitectureGroup>,
    /// The shard whose host files are packed; the first by name if unset.
    pub primary_shard: Option<String>,
}

/// Archs that share a kernel package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchitectureGroup {
    /// The name, e.g. `gfx110X`.
    pub name: String,
    /// The name for people, e.g. `ROCm gfx110X (RDNA3)`.
    pub display_name: String,
    /// The archs, in file order.
    pub architectures: Vec<BaseArch>,
}
