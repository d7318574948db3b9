//! Groups of archs.

use rockpack_base::gfx::BaseArch;

/// The archs that share a kernel package, and the shard whose host files are packed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grouping {
    /// In order; none means that each arch is its own group.
    pub groups: Vec<ArchitectureGroup>,
    /// The shard; the first by name if unset.
    pub primary_shard: Option<String>,
}

/// Archs that share a kernel package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchitectureGroup {
    /// E.g. `gfx110X`.
    pub name: String,
    /// E.g. `ROCm gfx110X (RDNA3)`.
    pub display_name: String,
    /// In file order.
    pub architectures: Vec<BaseArch>,
}
