//! Size and time of files, by which a file that was read before is known again.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// A time of modification: nanoseconds since 1970.
pub type Modified = i64;

/// Size and time of a stored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Bytes.
    pub size: u64,
    /// When it was modified.
    pub modified: Modified,
}

/// Size and time of a file.
pub(super) fn stat_of(metadata: &fs::Metadata) -> Stat {
    let seconds = metadata.mtime().saturating_mul(1_000_000_000);
    Stat { size: metadata.len(), modified: seconds.saturating_add(metadata.mtime_nsec()) }
}
