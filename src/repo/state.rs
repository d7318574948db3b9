//! What a repository remembers of itself: one file per *channel*, which is an apt suite or the rpm
//! repository.
//!
//! ```text
//! .rockpack/apt-<suite>.json, .rockpack/rpm.json        the published channel
//! .rockpack/next-apt-<suite>.json, …                    the one that is being published
//! ```
//!
//! The next state is written before the first of its files, and becomes the state when they are
//! all in place. A run that finds a next state finds an interrupted run, and finishes it or takes
//! it back (`recovery`) before it does anything else.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::recovery::{self, Shown};
use super::settings::Settings;
use super::store::{Body, Modified, PRIVATE, Store};
use crate::error::{Error, Kind, Result, ResultExt};
use crate::indexed::Indexed;

/// Version of the state's shape.
const SCHEMA: u32 = 1;

/// In front, because a suite may be called anything behind `apt-`.
const NEXT: &str = "next-";
const CURRENT: &str = "";
const ENDING: &str = ".json";

/// A published channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub schema: u32,
    /// How often the channel was published.
    pub generation: u64,
    /// When, in seconds since 1970.
    pub date: i64,
    pub settings: Settings,
    /// Whether its indexes are signed.
    pub signed: bool,
    /// The packages by their paths.
    pub records: BTreeMap<String, Record>,
    /// Paths of the indexes.
    pub indexes: BTreeSet<String>,
    /// Packages and indexes of earlier generations that are still there, by path.
    pub retired: BTreeMap<String, Retired>,
}

/// A package of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The file it came from.
    pub source: Source,
    /// For debs, the component.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component: String,
    /// When the file in the pool was modified.
    pub modified: Modified,
    /// The file in the pool.
    #[serde(flatten)]
    pub indexed: Indexed,
}

/// A file that was published; one of the same name, size and time is not read again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Source {
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
    /// For packages: SHA-256 of the file that was published, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl State {
    /// Every file that belongs to the channel.
    pub fn files(&self) -> impl Iterator<Item = &String> {
        self.records.keys().chain(&self.indexes).chain(self.retired.keys())
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let state: Self = serde_json::from_slice(bytes).map_err(|error| {
            Error::malformed("is no state of a repository")
                .cause(error)
                .hint("restore the file from a backup, or publish all packages to a new folder")
        })?;
        match state.schema {
            SCHEMA => Ok(state),
            other => {
                let message = format!("state schema {other} is unknown, expected {SCHEMA}");
                Err(Error::new(Kind::Unsupported, message)
                    .hint("publish with the version of rockpack that wrote the repository"))
            }
        }
    }

    fn to_bytes(&self) -> Result<Vec<u8>> {
        let state = Self { schema: SCHEMA, ..self.clone() };
        serde_json::to_vec(&state)
            .map_err(|error| Error::bug("the state cannot be written").cause(error))
    }
}

/// The channels of a repository by name (`apt-<suite>`, `rpm`).
#[derive(Debug, Default)]
pub(super) struct Channels(pub BTreeMap<String, State>);

fn path(which: &str, channel: &str) -> String {
    format!("{PRIVATE}/{which}{channel}{ENDING}")
}

/// The files of a publication that is not finished, the one that says so first.
fn begun(channel: &str) -> [String; 2] {
    [path(NEXT, channel), recovery::path(channel)]
}

impl Channels {
    /// Reads all states, and finishes or takes back what an interrupted run had begun.
    pub fn load(store: &dyn Store) -> Result<Self> {
        let mut channels = Self::default();
        let (mut begun, mut shown) = (BTreeMap::new(), Vec::new());
        for name in store.list(PRIVATE)? {
            let file = format!("{PRIVATE}/{name}");
            let read = || -> Result<State> {
                let bytes = store.read(&file)?.unwrap_or_default();
                State::parse(&bytes).file(&file)
            };
            let Some(name) = name.strip_suffix(ENDING) else { continue };
            if let Some(channel) = name.strip_prefix(recovery::PREFIX) {
                shown.push(channel.to_owned());
                continue;
            }
            match name.strip_prefix(NEXT) {
                Some(channel) => begun.insert(channel.to_owned(), read()?),
                None => channels.0.insert(name.to_owned(), read()?),
            };
        }
        // Of runs that ended right before they said that they began, or right after.
        shown.retain(|channel| !begun.contains_key(channel));
        let over: Vec<String> = shown.iter().map(|channel| recovery::path(channel)).collect();
        store.remove(&over)?;
        for (channel, state) in begun {
            channels.settle(store, &channel, state)?;
        }
        Ok(channels)
    }

    /// Decides about the publication `next` of a run that was interrupted.
    fn settle(&mut self, store: &dyn Store, channel: &str, next: State) -> Result<()> {
        if let Some(rest) = recovery::rest(store, channel, &next)? {
            store.put(rest)?;
            return self.put(store, channel, next);
        }
        let left: Vec<String> = next.files().filter(|file| !self.uses(file)).cloned().collect();
        store.remove(&left)?;
        store.remove(&begun(channel))
    }

    /// Whether a channel has the file.
    pub fn uses(&self, file: &str) -> bool {
        self.0.values().any(|state| {
            state.records.contains_key(file)
                || state.indexes.contains(file)
                || state.retired.contains_key(file)
        })
    }

    /// Notes what is about to be published.
    pub fn announce(
        &self,
        store: &dyn Store,
        channel: &str,
        next: &State,
        shown: &[Shown],
    ) -> Result<()> {
        let next = (path(NEXT, channel), Body::Bytes(next.to_bytes()?));
        store.put(vec![recovery::remembered(channel, shown)?, next])
    }

    /// Notes what was published.
    pub fn put(&mut self, store: &dyn Store, channel: &str, state: State) -> Result<()> {
        store.put(vec![(path(CURRENT, channel), Body::Bytes(state.to_bytes()?))])?;
        store.remove(&begun(channel))?;
        self.0.insert(channel.to_owned(), state);
        Ok(())
    }
}
