//! Rules of single components, and choices of archs.

use std::collections::BTreeSet;

use rockpack_core::gfx::BaseArch;

use super::keys::ValidationOverrides;

/// Rules of one component, or of all components of one artifact. Unset rules are as for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComponentRules {
    /// Contradictions that fail a run.
    pub validation: ValidationOverrides,
    /// The archs that are packed.
    pub architectures: ArchFilter,
}

/// A choice of archs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchFilter {
    /// The archs to choose from; all if unset.
    pub include: Option<BTreeSet<BaseArch>>,
    /// The archs to leave out.
    pub exclude: BTreeSet<BaseArch>,
}

impl ArchFilter {
    /// Whether `arch` is chosen.
    pub fn has(&self, arch: &BaseArch) -> bool {
        let included = self.include.as_ref().is_none_or(|archs| archs.contains(arch));
        included && !self.exclude.contains(arch)
    }
}
