//! How much of a release is there when it is verified.

/// What is checked together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// A package set: all groups, with the manifests of their archives.
    Set,
    /// The artifacts of a component: all archs of a shard. Not all tools write manifests.
    Artifacts,
    /// An installed prefix: the groups that somebody chose.
    Prefix,
}

impl Scope {
    /// Whether an archive that a manifest lists has to be there.
    pub(super) fn has_all_archives(self) -> bool {
        self != Self::Prefix
    }

    /// Whether every archive has to be in a manifest.
    pub(super) fn has_all_manifests(self) -> bool {
        self == Self::Set
    }
}
