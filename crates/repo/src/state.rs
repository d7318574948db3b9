//! The state of a published channel (`channels` says where it is stored).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_core::checked_json;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_package::indexed::Indexed;
use serde::{Deserialize, Serialize};

use super::indexes::ListedIndexes;
use super::settings::ChannelSettings;
use super::store::Modified;

/// Version of the state's shape. The one before had all texts and paths of `.rpm`s.
pub(super) const SCHEMA: u32 = 5;

/// The first version that is read, of which files may lack a checksum: the next publication of the channel makes one.
/// Damage cannot pretend to be that version, since the number is part of the content that has the checksum.
const UNCHECKED: u32 = 3;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChannelState {
    pub schema: u32,
    /// The channel's name; empty in states of earlier versions.
    #[serde(default)]
    pub channel: String,
    /// How often the channel was published.
    pub generation: u64,
    /// When, in seconds since 1970.
    pub date: i64,
    pub settings: ChannelSettings,
    /// Whether its indexes are signed.
    pub signed: bool,
    /// Fingerprints of the keys that clients get, where they are several: what one of them signs names all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// The packages by their paths.
    #[serde(deserialize_with = "rockpack_core::once::map")]
    pub records: PoolRecords,
    /// Paths of the indexes.
    pub indexes: BTreeSet<String>,
    /// The entries of `Release` or `repomd.xml`.
    #[serde(default)]
    pub listed: ListedIndexes,
    /// The SHA-256 of visible files that no signature covers, by path: those for clients and pages of wheels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unsigned_files: BTreeMap<String, String>,
    /// Packages and indexes of earlier generations that are still there, by path.
    #[serde(deserialize_with = "rockpack_core::once::map")]
    pub retired: BTreeMap<String, Retired>,
    /// The digests of wheels that were removed, by path: caches and lock files keep the bytes for good.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub used: BTreeMap<String, String>,
    /// When wheels were first published, as pages state it, by path; removed ones may come back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uploaded: BTreeMap<String, String>,
    /// Packages whose files were in the pool before, put there by somebody else: what this publication
    /// did not write stays if it is taken back.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub found: BTreeSet<String>,
}

/// Packages by their paths; shared between the current and the next state of a channel.
pub(super) type PoolRecords = BTreeMap<String, Arc<PoolRecord>>;

/// A package of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PoolRecord {
    /// The file it came from.
    pub source: Arc<PublishedFile>,
    /// For debs, the component.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component: String,
    /// When the file in the pool was modified.
    pub modified: Modified,
    /// The reason why nobody should install the wheel, maybe empty; none if it may be installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yanked: Option<String>,
    /// The file in the pool.
    pub indexed: Arc<Indexed>,
}

/// A file that was published; one of the same name, size and time is not read again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct PublishedFile {
    /// File name without folders.
    pub name: String,
    pub size: u64,
    pub modified: Modified,
    /// SHA-256 in hex; another one than the published file's if that was signed meanwhile.
    pub sha256: String,
}

/// When a file went out of use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Retired {
    /// The first generation without it.
    pub generation: u64,
    /// When that was published, in seconds since 1970.
    pub date: i64,
    /// The SHA-256 of the package file that was published, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The version, of packages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl ChannelState {
    /// Every file that belongs to the channel.
    pub fn files(&self) -> impl Iterator<Item = &String> {
        self.records.keys().chain(&self.indexes).chain(self.retired.keys())
    }

    /// Whether the channel has the file, or had it and has not removed it yet.
    pub fn uses(&self, file: &str) -> bool {
        self.has(file) || self.retired.contains_key(file)
    }

    /// Tells whether the file is a package or an index of the current channel.
    pub fn has(&self, file: &str) -> bool {
        self.records.contains_key(file) || self.indexes.contains(file)
    }

    /// Reads the file of the state of `channel`.
    pub fn parse(channel: &str, bytes: &[u8]) -> Result<Self> {
        let state = checked_json::read(bytes, |state: &Self| state.schema == UNCHECKED)?;
        if !(UNCHECKED..=SCHEMA).contains(&state.schema) {
            let message = format!("state schema {} is unknown, expected {SCHEMA}", state.schema);
            return Err(Error::new(Kind::Unsupported, message)
                .hint("publish with the version of rockpack that wrote the repository"));
        }
        if !["", channel].contains(&state.channel.as_str()) {
            let message = format!("is the state of `{}`", state.channel.escape_debug());
            return Err(Error::malformed(message));
        }
        Ok(Self { schema: SCHEMA, channel: channel.to_owned(), ..state })
    }
}
