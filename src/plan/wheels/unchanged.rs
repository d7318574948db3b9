//! Recognises wheels that are not split.

use std::collections::BTreeSet;

use rockpack_base::formats::wheel::normalized;
use rockpack_base::gfx::BaseArch;

use super::DeviceName;
use crate::input::wheel::Wheel;
use crate::package::device_wheel::is_named_after;
use crate::split::{HostBinary, SplitArtifact};

/// Whether `wheel` stays unchanged: it has no device code, or is one half of a split wheel, whose device
/// wheels are named by `pattern`. Archives are only useful with a binary that claims them.
pub fn is_unchanged(wheel: &Wheel, taken: &[SplitArtifact], pattern: &DeviceName) -> bool {
    let mut binaries = taken.iter().flat_map(SplitArtifact::binaries);
    let is_fat = binaries.any(|(_, fat)| matches!(fat.binary, HostBinary::Fat(_)));
    let has_host = taken.iter().any(|part| part.binaries().next().is_some());
    let has_archives = taken.iter().any(|part| !part.archives.is_empty());
    let has_databases = taken.iter().any(|part| !part.databases.is_empty());
    if is_fat || (has_host && (has_archives || has_databases)) {
        return false;
    }
    if !has_databases || has_archives {
        return true;
    }
    // A device wheel of databases has nothing else, and requires its host.
    let databases = taken.iter().flat_map(|part| &part.databases);
    let archs: BTreeSet<&[BaseArch]> = databases.map(|file| file.archs.as_slice()).collect();
    let has_host_files =
        taken.iter().any(|part| part.host.iter().any(|(_, it)| it.data().is_some()));
    let own = normalized(wheel.metadata.name());
    !has_host_files
        && wheel
            .pinned()
            .iter()
            .any(|host| archs.len() == 1 || is_named_after(&own, host) || pattern.makes(&own, host))
}
