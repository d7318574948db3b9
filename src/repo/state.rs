//! The state of a published channel (`channels` says where it is stored).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, Read};
use std::sync::Arc;

use rockpack_base::error::{Error, Kind, Result};
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::listed_indexes::ListedIndexes;
use super::settings::ChannelSettings;
use super::stat::Modified;
use crate::package::indexed::Indexed;

/// Version of the state's shape.
pub(super) const SCHEMA: u32 = 3;

/// Most bytes of a state, a bound for damaged files. Those of 20,000 packages have 20 to 40 MB.
const TEXT_MAX: u64 = 4 << 30;

/// The level of zstd for states. Higher ones take longer and save nothing: most of a state are digests.
const LEVEL: i32 = 3;

/// The hint for files in `.rockpack` that nobody can use.
pub(super) const RESTORE_HINT: &str =
    "restore the file from a backup, or publish all packages to a new folder";

/// A published channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChannelState {
    pub schema: u32,
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
    #[serde(with = "shared_records")]
    pub records: PoolRecords,
    /// Paths of the indexes.
    pub indexes: BTreeSet<String>,
    /// The entries of `Release` or `repomd.xml`.
    #[serde(default)]
    pub listed: ListedIndexes,
    /// Packages and indexes of earlier generations that are still there, by path.
    #[serde(deserialize_with = "rockpack_base::once::map")]
    pub retired: BTreeMap<String, Retired>,
    /// The digests of wheels that were removed, by path: caches and lock files keep the bytes for good.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub used: BTreeMap<String, String>,
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
    pub source: PublishedFile,
    /// For debs, the component.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component: String,
    /// When the file in the pool was modified.
    pub modified: Modified,
    /// The reason why nobody should install the wheel, maybe empty; none if it may be installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yanked: Option<String>,
    /// The file in the pool.
    #[serde(with = "shared")]
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

/// Serialises shared values as plain ones.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        value: &Arc<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        T::serialize(value, serializer)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<T>, D::Error> {
        T::deserialize(deserializer).map(Arc::new)
    }
}

/// Serialises maps of shared values as plain ones.
mod shared_records {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde::{Deserializer, Serializer};

    use super::{PoolRecord, PoolRecords};

    pub(super) fn serialize<S: Serializer>(
        records: &PoolRecords,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(records.iter().map(|(path, record)| (path, &**record)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PoolRecords, D::Error> {
        let records: BTreeMap<String, PoolRecord> = rockpack_base::once::map(deserializer)?;
        Ok(records.into_iter().map(|(path, record)| (path, Arc::new(record))).collect())
    }
}

/// When a file went out of use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Retired {
    /// The first generation without it.
    pub generation: u64,
    /// When that was published, in seconds since 1970.
    pub date: i64,
    /// For packages: SHA-256 of the file that was published, in hex.
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

    /// Whether the channel has the package, whose file was modified at that time.
    pub fn knows(&self, file: &str, modified: Modified) -> bool {
        self.records.get(file).is_some_and(|record| record.modified == modified)
    }

    /// Reads the file of a state: JSON in a zstd frame.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut text = Vec::new();
        let mut decoder = zstd::Decoder::new(bytes).map_err(no_state)?.take(TEXT_MAX + 1);
        decoder.read_to_end(&mut text).map_err(no_state)?;
        if text.len() as u64 > TEXT_MAX {
            let message =
                format!("unpacks to more than the {TEXT_MAX} bytes that a state may have");
            return Err(Error::new(Kind::Limit, message).hint(RESTORE_HINT));
        }
        Self::parse_text(&text)
    }

    /// Reads the JSON of a state.
    pub fn parse_text(text: &[u8]) -> Result<Self> {
        let state: Self = serde_json::from_slice(text).map_err(no_state)?;
        match state.schema {
            SCHEMA => Ok(state),
            other => {
                let message = format!("state schema {other} is unknown, expected {SCHEMA}");
                Err(Error::new(Kind::Unsupported, message)
                    .hint("publish with the version of rockpack that wrote the repository"))
            }
        }
    }

    /// The file of the state. That of 20,000 packages is a seventh to a twelfth of its JSON.
    pub fn to_body(&self) -> Result<Body> {
        let encoder = zstd::Encoder::new(Vec::new(), LEVEL).map_err(unwritable)?;
        let mut sink = BufWriter::with_capacity(1 << 16, encoder);
        serde_json::to_writer(&mut sink, self).map_err(unwritable)?;
        let encoder = sink.into_inner().map_err(|error| unwritable(error.into_error()))?;
        Ok(Body::Bytes(encoder.finish().map_err(unwritable)?.into()))
    }
}

fn no_state(cause: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::malformed("is no state of a repository").cause(cause).hint(RESTORE_HINT)
}

fn unwritable(cause: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::bug("the state cannot be written").cause(cause)
}
