//! Rules of single components, and choices of archs.

use std::collections::BTreeSet;

use rockpack_base::gfx::BaseArch;

use super::keys::ValidationOverrides;

/// Rules of one component, or of all components of one artifact. What is unset is as for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComponentRules {
    /// Which contradictions fail a run.
    pub validation: ValidationOverrides,
    /// Which of its archs are packed.
    pub architectures: ArchFilter,
}

/// A choice of archs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchFilter {
    /// The archs that are chosen from; all if unset.
    pub include: Option<BTreeSet<BaseArch>>,
    /// The archs that are not chosen.
    pub exclude: BTreeSet<BaseArch>,
}

impl ArchFilter {
    /// Whether `arch` is chosen.
    pub fn has(&self, arch: &BaseArch) -> bool {
        let included = self.include.as_ref().is_none_or(|archs| archs.contains(arch));
        included && !self.exclude.contains(arch)
    }
}
