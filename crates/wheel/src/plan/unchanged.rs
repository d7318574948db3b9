//! Recognises wheels that are not split.

use std::collections::BTreeSet;

use rockpack_archive::wheel::normalized;
use rockpack_core::gfx::BaseArch;

use super::DeviceName;
use rockpack_package::device_wheel::{group, is_named_after};
use rockpack_split::SplitArtifact;
use rockpack_split::input::wheel::Wheel;

/// Whether `wheel`, which has no binaries with device code, is a device wheel: its kernel archives or databases are
/// for those of another wheel. Device wheels are named by `pattern`.
pub fn is_device_wheel(wheel: &Wheel, taken: &[SplitArtifact], pattern: &DeviceName) -> bool {
    let (own, hosts) = (normalized(wheel.metadata.name()), wheel.pinned());
    if taken.iter().any(|part| !part.archives.is_empty()) {
        return !hosts.is_empty() || group(&own).is_some();
    }
    // A device wheel of databases has nothing else, and requires its host.
    let databases = taken.iter().flat_map(|part| &part.databases);
    let archs: BTreeSet<&[BaseArch]> = databases.map(|file| file.archs.as_slice()).collect();
    let has_host_files =
        taken.iter().any(|part| part.host.iter().any(|(_, it)| it.data().is_some()));
    !has_host_files
        && !archs.is_empty()
        && hosts
            .iter()
            .any(|host| archs.len() == 1 || is_named_after(&own, host) || pattern.makes(&own, host))
}

/// Whether nothing of a wheel goes to device wheels: no binary has device code, in it or in archives, and no file
/// belongs to a kernel database. Archives that no binary claims stay with everything else.
pub fn is_unchanged(joined: &[SplitArtifact]) -> bool {
    joined.iter().all(|part| {
        part.binaries().next().is_none() && (part.databases.is_empty() || !part.archives.is_empty())
    })
}
