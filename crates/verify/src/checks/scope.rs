//! How much of a release is there when it is verified.

/// The packages that are checked together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A package set: all groups, with the manifests of their archives.
    Set,
    /// The artifacts of a component: all archs of a shard. Not all tools write manifests.
    Artifacts,
    /// A host wheel and the device wheels that are pinned to it.
    Wheels,
    /// An installed prefix: the groups that somebody chose.
    Prefix,
}

impl Scope {
    /// Whether an archive that a manifest lists has to be there.
    pub(crate) fn has_all_archives(self) -> bool {
        self != Self::Prefix
    }

    /// Whether every binary has to be there that an archive has code of.
    pub(crate) fn has_all_binaries(self) -> bool {
        matches!(self, Self::Prefix | Self::Wheels)
    }

    /// Whether what is for several archs may be in the part of each of them.
    pub(crate) fn has_copies(self) -> bool {
        self == Self::Artifacts
    }

    /// Whether every archive has to be in a manifest.
    pub(crate) fn has_all_manifests(self) -> bool {
        self == Self::Set
    }
}
