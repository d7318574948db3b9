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
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::listed::Listed;
use super::recovery::{self, Shown};
use super::settings::Settings;
use super::store::{Modified, PRIVATE, Store};
use crate::error::{Error, Kind, Result, ResultExt};
use crate::package::indexed::Indexed;

/// Version of the state's shape.
pub(super) const SCHEMA: u32 = 2;

/// In front, because a suite may be called anything behind `apt-`.
const NEXT: &str = "next-";
const CURRENT: &str = "";
const ENDING: &str = ".json";

const RESTORE_HINT: &str =
    "restore the file from a backup, or publish all packages to a new folder";

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
    #[serde(with = "shared_records")]
    pub records: Records,
    /// Paths of the indexes.
    pub indexes: BTreeSet<String>,
    /// What `Release` or `repomd.xml` says of them.
    #[serde(default)]
    pub listed: Listed,
    /// Packages and indexes of earlier generations that are still there, by path.
    #[serde(deserialize_with = "crate::once::map")]
    pub retired: BTreeMap<String, Retired>,
    /// Packages whose files were in the pool before, put there by somebody else: what this publication
    /// did not write stays if it is taken back.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub found: BTreeSet<String>,
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
    #[serde(with = "shared")]
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

/// What is shared is written as if it were not.
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

/// As [`shared`], for maps.
mod shared_records {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde::{Deserializer, Serializer};

    use super::{Record, Records};

    pub(super) fn serialize<S: Serializer>(
        records: &Records,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(records.iter().map(|(path, record)| (path, &**record)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Records, D::Error> {
        let records: BTreeMap<String, Record> = crate::once::map(deserializer)?;
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
}

impl State {
    /// Every file that belongs to the channel.
    pub fn files(&self) -> impl Iterator<Item = &String> {
        self.records.keys().chain(&self.indexes).chain(self.retired.keys())
    }

    /// Whether the channel has the file, or had it and has not removed it yet.
    pub fn uses(&self, file: &str) -> bool {
        self.has(file) || self.retired.contains_key(file)
    }

    /// Whether the file is a package or an index of the channel as it is.
    pub fn has(&self, file: &str) -> bool {
        self.records.contains_key(file) || self.indexes.contains(file)
    }

    /// Whether the channel has the package, whose file was modified at that time.
    pub fn knows(&self, file: &str, modified: Modified) -> bool {
        self.records.get(file).is_some_and(|record| record.modified == modified)
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let state: Self = serde_json::from_slice(bytes).map_err(|error| {
            Error::malformed("is no state of a repository").cause(error).hint(RESTORE_HINT)
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
        let names = store.list(PRIVATE)?;
        let states: Vec<_> = names.par_iter().filter_map(|name| read(store, name)).collect();
        let mut channels = Self::default();
        let (mut begun, mut shown) = (Vec::new(), Vec::new());
        for state in states {
            match state? {
                (channel, Remembered::Current(state)) => {
                    channels.0.insert(channel, state);
                }
                (channel, Remembered::Next(state)) => begun.push((channel, state)),
                (channel, Remembered::Shown) => shown.push(channel),
            }
        }
        // Of runs that ended right before they said that they began, or right after.
        shown.retain(|channel| !begun.iter().any(|(other, _)| other == channel));
        let over: Vec<String> = shown.iter().map(|channel| recovery::path(channel)).collect();
        store.remove(&over)?;
        for (channel, state) in begun {
            channels.settle(store, &channel, state)?;
        }
        Ok(channels)
    }

    /// Decides about the publication `next` of a run that was interrupted.
    fn settle(&mut self, store: &dyn Store, channel: &str, next: State) -> Result<()> {
        let nothing = State::default();
        let now = self.0.get(channel).unwrap_or(&nothing);
        if let Some(rest) = recovery::rest(store, channel, (now, &next))? {
            store.put(rest)?;
            let body = next.to_body()?;
            return self.put(store, vec![(channel.to_owned(), next)], vec![body]);
        }
        let written = next.files().filter(|file| !next.found.contains(*file));
        let left: Vec<String> = written.filter(|file| !self.uses(file)).cloned().collect();
        store.remove(&left)?;
        store.remove(&begun(channel))
    }

    /// Whether a channel has the file.
    pub fn uses(&self, file: &str) -> bool {
        self.0.values().any(|state| state.uses(file))
    }

    /// Notes what is about to be published; returns what [`Channels::put`] takes then.
    pub fn announce(store: &dyn Store, next: &[Announced<'_>]) -> Result<Vec<Body>> {
        let bodies: Vec<_> = next.par_iter().map(|(_, state, _)| state.to_body()).collect();
        let bodies: Vec<Body> = bodies.into_iter().collect::<Result<_>>()?;
        let mut files = Vec::new();
        for ((channel, _, shown), body) in next.iter().zip(&bodies) {
            files.push(recovery::remembered(channel, shown)?);
            files.push((path(NEXT, channel), body.clone()));
        }
        store.put(files)?;
        Ok(bodies)
    }

    /// Notes what was published: channels with their states, and these as they are written.
    pub fn put(
        &mut self,
        store: &dyn Store,
        published: Vec<(String, State)>,
        bodies: Vec<Body>,
    ) -> Result<()> {
        let names = published.iter().map(|(channel, _)| path(CURRENT, channel));
        store.put(names.zip(bodies).collect())?;
        let begun: Vec<String> = published.iter().flat_map(|(channel, _)| begun(channel)).collect();
        store.remove(&begun)?;
        self.0.extend(published);
        Ok(())
    }
}

/// A channel's name, the state that it will have, and the files that clients will read.
pub(super) type Announced<'a> = (&'a str, &'a State, &'a [Shown]);

/// A file that remembers something of a channel.
enum Remembered {
    Current(State),
    Next(State),
    /// For an interrupted run; read when it is needed.
    Shown,
}

/// What is in the file `name`, and of which channel, if it is such a file.
fn read(store: &dyn Store, name: &str) -> Option<Result<(String, Remembered)>> {
    let stem = name.strip_suffix(ENDING)?;
    if let Some(channel) = stem.strip_prefix(recovery::PREFIX) {
        return Some(Ok((channel.to_owned(), Remembered::Shown)));
    }
    let file = format!("{PRIVATE}/{name}");
    let parse = |bytes: Option<Vec<u8>>| State::parse(&bytes.unwrap_or_default()).file(&file);
    let no_file = |error: Error| match error.kind() {
        Kind::Unsupported => error.hint(RESTORE_HINT),
        _ => error,
    };
    let state = store.read(&file).map_err(no_file).and_then(parse);
    Some(state.map(|state| match stem.strip_prefix(NEXT) {
        Some(channel) => (channel.to_owned(), Remembered::Next(state)),
        None => (stem.to_owned(), Remembered::Current(state)),
    }))
}
