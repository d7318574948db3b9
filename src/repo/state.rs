//! What a repository remembers of itself: one file per *channel*, which is an apt suite or the rpm
//! repository.
//!
//! ```text
//! .rockpack/apt-<suite>.json, .rockpack/rpm.json        the published channel
//! .rockpack/apt-<suite>.next.json, …                    the one that is being published
//! ```
//!
//! The next state is written before the first of its files, and becomes the state when they are
//! all in place. A run that finds a next state finds an interrupted run: if the last file of that
//! publication is there, the publication happened; otherwise what it has left is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::settings::Settings;
use super::store::{Body, Modified, PRIVATE, Store};
use crate::content::hex;
use crate::error::{Error, Kind, Result, ResultExt};
use crate::indexed::Indexed;

/// Version of the state's shape.
pub(super) const SCHEMA: u32 = 2;

const NEXT: &str = ".next.json";
const CURRENT: &str = ".json";

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
    pub records: Records,
    /// Paths of the indexes.
    pub indexes: BTreeSet<String>,
    /// Packages and indexes of earlier generations that are still there, by path.
    pub retired: BTreeMap<String, Retired>,
    /// Path and SHA-256 of the file that was put in place last: with it, all is published.
    pub seal: (String, String),
}

/// Packages by their paths; shared between a channel as it is and as it will be.
pub(super) type Records = BTreeMap<String, Arc<Record>>;

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
    pub indexed: Arc<Indexed>,
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

    /// Whether the channel has the file.
    pub fn uses(&self, file: &str) -> bool {
        self.records.contains_key(file)
            || self.indexes.contains(file)
            || self.retired.contains_key(file)
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

    /// The file that remembers it.
    pub fn to_body(&self) -> Result<Body> {
        let bytes = serde_json::to_vec(self)
            .map_err(|error| Error::bug("the state cannot be written").cause(error))?;
        Ok(Body::Bytes(bytes.into()))
    }
}

/// The channels of a repository by name (`apt-<suite>`, `rpm`).
#[derive(Debug, Default)]
pub(super) struct Channels(pub BTreeMap<String, State>);

fn path(channel: &str, ending: &str) -> String {
    format!("{PRIVATE}/{channel}{ending}")
}

impl Channels {
    /// Reads all states, and finishes or takes back what an interrupted run had begun.
    pub fn load(store: &dyn Store) -> Result<Self> {
        let names = store.list(PRIVATE)?;
        let states: Vec<_> = names.par_iter().filter_map(|name| read(store, name)).collect();
        let mut channels = Self::default();
        let mut begun = Vec::new();
        for state in states {
            match state? {
                (channel, Stage::Current, state) => {
                    channels.0.insert(channel, state);
                }
                (channel, Stage::Next, state) => begun.push((channel, state)),
            }
        }
        for (channel, state) in begun {
            channels.settle(store, &channel, state)?;
        }
        Ok(channels)
    }

    /// Decides about the publication `next` of a run that was interrupted.
    fn settle(&mut self, store: &dyn Store, channel: &str, next: State) -> Result<()> {
        let (file, digest) = &next.seal;
        let there = store.read(file)?.map(|bytes| hex(&Sha256::digest(&bytes)));
        if there.as_ref() == Some(digest) {
            let body = next.to_body()?;
            self.put(store, vec![(channel.to_owned(), next)], vec![body])?;
        } else {
            let left: Vec<String> = next.files().filter(|file| !self.uses(file)).cloned().collect();
            store.remove(&left)?;
        }
        store.remove(&[path(channel, NEXT)])
    }

    /// Whether a channel has the file.
    pub fn uses(&self, file: &str) -> bool {
        self.0.values().any(|state| state.uses(file))
    }

    /// Notes what is about to be published; returns what [`Channels::put`] takes then.
    pub fn announce(store: &dyn Store, next: &[(&str, &State)]) -> Result<Vec<Body>> {
        let bodies: Vec<_> = next.par_iter().map(|(_, state)| state.to_body()).collect();
        let bodies: Vec<Body> = bodies.into_iter().collect::<Result<_>>()?;
        let names = next.iter().map(|(name, _)| path(name, NEXT));
        store.put(names.zip(bodies.iter().cloned()).collect())?;
        Ok(bodies)
    }

    /// Notes what was published: channels with their states, and these as they are written.
    pub fn put(
        &mut self,
        store: &dyn Store,
        published: Vec<(String, State)>,
        bodies: Vec<Body>,
    ) -> Result<()> {
        let names = published.iter().map(|(name, _)| path(name, CURRENT));
        store.put(names.zip(bodies).collect())?;
        let begun: Vec<String> = published.iter().map(|(name, _)| path(name, NEXT)).collect();
        store.remove(&begun)?;
        self.0.extend(published);
        Ok(())
    }
}

/// Which of the two files of a channel.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Current,
    Next,
}

/// The state in the file `name`, if it is one of a channel.
fn read(store: &dyn Store, name: &str) -> Option<Result<(String, Stage, State)>> {
    let (channel, stage) = match name.strip_suffix(NEXT) {
        Some(channel) => (channel, Stage::Next),
        None => (name.strip_suffix(CURRENT)?, Stage::Current),
    };
    let file = format!("{PRIVATE}/{name}");
    let parse = |bytes: Option<Vec<u8>>| State::parse(&bytes.unwrap_or_default()).file(&file);
    let state = store.read(&file).and_then(parse);
    Some(state.map(|state| (channel.to_owned(), stage, state)))
}
