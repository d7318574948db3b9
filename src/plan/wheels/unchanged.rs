//! Wheels that nothing is made of.

use std::collections::BTreeSet;

use rockpack_base::gfx::BaseArch;

use crate::input::wheel::Wheel;
use crate::split::{HostBinary, SplitArtifact};

/// Tells if nothing is to be done with `wheel`: it has no device code, or is one half of a split wheel. Archives
/// without a binary that claims them are of no use but beside one.
pub fn is_unchanged(wheel: &Wheel, taken: &[SplitArtifact]) -> bool {
    let binaries = || taken.iter().flat_map(SplitArtifact::binaries);
    let is_fat = binaries().any(|(_, fat)| matches!(fat.binary, HostBinary::Fat(_)));
    let has_host = binaries().next().is_some();
    let has_archives = taken.iter().any(|part| !part.archives.is_empty());
    let databases = || taken.iter().flat_map(|part| &part.databases);
    let has_databases = databases().next().is_some();
    if is_fat || (has_host && (has_archives || has_databases)) {
        return false;
    }
    let archs: BTreeSet<&[BaseArch]> = databases().map(|file| file.archs.as_slice()).collect();
    !has_databases
        || has_archives
        || wheel.belongs_to_another()
        || (archs.len() == 1 && wheel.pins_another())
}
