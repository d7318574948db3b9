//! What a run says of what it published.

use serde::Serialize;

use crate::report::Findings;

/// What a run published.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Published {
    /// The channels that were published.
    pub channels: Vec<ChannelReport>,
    /// What is worth knowing.
    pub findings: Findings,
}

/// What became of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChannelReport {
    /// `apt-<suite>` or `rpm`.
    pub channel: String,
    /// How often it was published, this time included.
    pub generation: u64,
    /// Packages that it has.
    pub packages: usize,
    /// Bytes of them.
    pub bytes: u64,
    /// Paths of packages that it did not have.
    pub added: Vec<String>,
    /// Paths of packages that it has no longer.
    pub removed: Vec<String>,
    /// Packages that had to be read.
    pub read: usize,
    /// Whether its indexes are signed.
    pub signed: bool,
    /// The file with the public keys that its indexes are signed by, relative to the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyring: Option<String>,
}
