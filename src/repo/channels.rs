//! The state of a repository: one file per *channel*, which is an apt suite or the rpm
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

use std::collections::BTreeMap;

use rayon::prelude::*;
use rockpack_base::error::{Kind, Result, ResultExt};

use super::body::Body;
use super::recovery::{self, ShownFile};
use super::state::{ChannelState, RESTORE_HINT};
use super::store::{PRIVATE, Store};

/// The start of the name of a next state. It stands in front, as a suite may have any name behind `apt-`.
const NEXT: &str = "next-";
const CURRENT: &str = "";
const ENDING: &str = ".json";

/// The channels of a repository by name (`apt-<suite>`, `rpm`).
#[derive(Debug, Default)]
pub(super) struct Channels(pub BTreeMap<String, ChannelState>);

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
        // Of runs that ended right before they said that they began, or right after they were done.
        shown.retain(|channel| !begun.iter().any(|(other, _)| other == channel));
        let over: Vec<String> = shown.iter().map(|channel| recovery::path(channel)).collect();
        store.remove(&over)?;
        for (channel, state) in begun {
            channels.settle(store, &channel, state)?;
        }
        Ok(channels)
    }

    /// Decides about the publication `next` of a run that was interrupted.
    fn settle(&mut self, store: &dyn Store, channel: &str, next: ChannelState) -> Result<()> {
        let nothing = ChannelState::default();
        let now = self.0.get(channel).unwrap_or(&nothing);
        if let Some(rest) = recovery::rest(store, channel, now, &next)? {
            store.put(rest)?;
            let body = next.to_body()?;
            return self.put(store, vec![(channel.to_owned(), next)], vec![body]);
        }
        let written = next.files().filter(|file| !next.found.contains(*file));
        let left: Vec<String> = written.filter(|file| !self.uses(file)).cloned().collect();
        store.remove(&left)?;
        store.remove(&begun(channel))
    }

    /// Whether a channel has the file, or had it and has not removed it yet.
    pub fn uses(&self, file: &str) -> bool {
        self.0.values().any(|state| state.uses(file))
    }

    /// Paths of all files that the channels have, or had and have not removed yet.
    pub fn paths(&self) -> Vec<&str> {
        let packages = self.0.values().flat_map(|state| state.records.keys());
        let indexes = self.0.values().flat_map(|state| &state.indexes);
        let retired = self.0.values().flat_map(|state| state.retired.keys());
        packages.chain(indexes).chain(retired).map(String::as_str).collect()
    }

    /// Notes what is about to be published; returns what [`Channels::put`] takes then.
    pub fn announce(store: &dyn Store, next: &[Announcement<'_>]) -> Result<Vec<Body>> {
        let bodies: Vec<_> = next.par_iter().map(|next| next.state.to_body()).collect();
        let bodies: Vec<Body> = bodies.into_iter().collect::<Result<_>>()?;
        let mut files = Vec::new();
        for (next, body) in next.iter().zip(&bodies) {
            files.push(recovery::remembered(next.channel, next.shown)?);
            files.push((path(NEXT, next.channel), body.clone()));
        }
        store.put(files)?;
        Ok(bodies)
    }

    /// Notes what was published: channels with their states, and these as they are written.
    pub fn put(
        &mut self,
        store: &dyn Store,
        published: Vec<(String, ChannelState)>,
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

/// The announced publication of a channel.
pub(super) struct Announcement<'a> {
    /// The channel's name.
    pub channel: &'a str,
    /// The state that it will have.
    pub state: &'a ChannelState,
    /// The files that clients will read.
    pub shown: &'a [ShownFile],
}

/// A file that remembers something of a channel.
enum Remembered {
    Current(ChannelState),
    Next(ChannelState),
    /// The shown files of an interrupted run, which are read when they are needed.
    Shown,
}

/// Reads the file `name`, with the name of its channel; `None` if it is no state.
fn read(store: &dyn Store, name: &str) -> Option<Result<(String, Remembered)>> {
    let stem = name.strip_suffix(ENDING)?;
    if let Some(channel) = stem.strip_prefix(recovery::PREFIX) {
        return Some(Ok((channel.to_owned(), Remembered::Shown)));
    }
    let file = format!("{PRIVATE}/{name}");
    let bytes = store.read(&file).map_err(|error| match error.kind() {
        Kind::Unsupported => error.hint(RESTORE_HINT),
        _ => error,
    });
    let state = bytes.and_then(|bytes| ChannelState::parse(&bytes.unwrap_or_default()).file(&file));
    Some(state.map(|state| match stem.strip_prefix(NEXT) {
        Some(channel) => (channel.to_owned(), Remembered::Next(state)),
        None => (stem.to_owned(), Remembered::Current(state)),
    }))
}
