//! Groups of archs.

use rockpack_core::gfx::Group;

/// The archs that share a kernel package, and the shard whose host files are packed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grouping {
    /// The groups, in file order. If there are no groups, each arch is a group.
    pub groups: Vec<Group>,
    /// The shard whose host files are packed; the first by name if unset.
    pub primary_shard: Option<String>,
}
