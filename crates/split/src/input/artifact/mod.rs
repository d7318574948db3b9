//! Build artifacts: names, manifests, scanning.
//!
//! Owns the form of an artifact, as a folder and packed, and reads it into trees of content handles. Refuses
//! everything that would not survive as a file of a package: devices, pipes and sockets, setuid and setgid
//! files, files with capabilities, names that are not UTF-8, links and manifest lines that leave their
//! prefix.

mod contents;
mod folder;
mod listing;
mod manifest;
mod options;
mod packed;
mod prefix;
mod roots;
mod scan;
mod shard;
mod unpacking;

pub(crate) use listing::refuse_deep;
pub use manifest::{ArtifactManifest, MANIFEST_NAME};
pub use options::ScanOptions;
pub use packed::{Packed, parse_checksum};
pub use rockpack_core::tree::ComponentKind;
pub use scan::{
    FoundArtifacts, find, find_shard, is_artifact, name_artifact, refuse_inside, scan,
    scan_artifact, scan_artifact_readable, scan_readable,
};
pub use shard::{Artifact, Scan, Shard, StagePrefix};
