//! The state of a published channel (`channels` says where it is stored).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_core::checked_json;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_package::indexed::IndexedPackage;
use serde::{Deserialize, Serialize};

use super::indexes::ListedIndexes;
use super::settings::ChannelSettings;
use super::store::Modified;

/// Version of the state's schema. Other versions are refused.
pub(super) const SCHEMA: u32 = 1;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChannelState {
    pub schema: u32,
    /// The channel's name.
    pub channel: String,
    pub generation: u64,
    /// The time of the last publication, in seconds since 1970.
    pub date: i64,
    pub settings: ChannelSettings,
    pub signed: bool,
    /// Fingerprints of the keys that clients get, if there are several; signed indexes name all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    #[serde(deserialize_with = "rockpack_core::unique_keys::map")]
    pub records: PoolRecords,
    pub indexes: BTreeSet<String>,
    /// The entries of `Release` or `repomd.xml`.
    pub listed: ListedIndexes,
    /// SHA-256 of visible files that no signature covers, by path: configuration files for clients, pages of wheels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unsigned_files: BTreeMap<String, String>,
    /// Packages and indexes of earlier generations that are not removed yet, by path.
    #[serde(deserialize_with = "rockpack_core::unique_keys::map")]
    pub retired: BTreeMap<String, Retired>,
    /// The digests of removed wheels, by path: caches and lock files of clients never forget them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub used: BTreeMap<String, String>,
    /// When wheels were first published, as stated on pages, by path. Removed ones stay listed: they may return.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uploaded: BTreeMap<String, String>,
    /// Packages whose pool files existed before this publication: a rollback keeps them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub found: BTreeSet<String>,
}

/// Packages by their paths; shared between the current and the next state of a channel.
pub(super) type PoolRecords = BTreeMap<String, Arc<PoolRecord>>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PoolRecord {
    pub source: Arc<PublishedFile>,
    /// For debs, the component.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component: String,
    pub modified: Modified,
    /// Why the wheel is yanked (may be empty); `None` if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yanked: Option<String>,
    pub indexed: Arc<IndexedPackage>,
}

/// A file that was published. A given file with the same name, size and time is not read again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct PublishedFile {
    /// File name without folders.
    pub name: String,
    pub size: u64,
    pub modified: Modified,
    /// SHA-256 in hex; it differs from the pool file's if publishing signed the package.
    pub sha256: String,
}

/// A file that is not used any more, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Retired {
    /// The first generation without it.
    pub generation: u64,
    /// When that was published, in seconds since 1970.
    pub date: i64,
    /// The SHA-256 of the package file that was published, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl ChannelState {
    pub fn files(&self) -> impl Iterator<Item = &String> {
        self.records.keys().chain(&self.indexes).chain(self.retired.keys())
    }

    /// Whether the channel has the file, or has retired but not yet removed it.
    pub fn uses(&self, file: &str) -> bool {
        self.has(file) || self.retired.contains_key(file)
    }

    /// Whether the file is a current package or index of the channel.
    pub fn has(&self, file: &str) -> bool {
        self.records.contains_key(file) || self.indexes.contains(file)
    }

    pub fn parse(channel: &str, bytes: &[u8]) -> Result<Self> {
        let state: Self = checked_json::read(bytes)?;
        if state.schema != SCHEMA {
            let message = format!("state schema {} is unknown, expected {SCHEMA}", state.schema);
            return Err(Error::new(Kind::Unsupported, message)
                .hint("publish with the version of rockpack that wrote the repository"));
        }
        if state.channel != channel {
            let message = format!("is the state of `{}`", state.channel.escape_debug());
            return Err(Error::malformed(message));
        }
        Ok(state)
    }
}
