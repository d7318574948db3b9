//! The state of a repository: one file per *channel*, which is an apt suite, the rpm repository or the index
//! of wheels.
//!
//! ```text
//! .rockpack/apt-<suite>.json.zst, .rockpack/rpm.json.zst    the published channel
//! .rockpack/next-apt-<suite>.json.zst, …                    the one that is being published
//! ```
//!
//! The next state is written before the first of its files, and is renamed to the state when they are
//! all in place. A run that finds a next state finds an interrupted run, and finishes it or takes it back
//! (`recovery`) before it does anything else. Earlier versions of rockpack wrote the JSON as it is, in files
//! that end with `.json`: a run compresses these first.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rockpack_base::error::{Error, Kind, Result, ResultExt};

use super::channel::Channel;
use super::recovery::{self, ShownFile};
use super::settings::ChannelSettings;
use super::state::{ChannelState, RESTORE_HINT};
use super::store::{PRIVATE, Store};

/// The start of the name of a next state. It stands in front, as a suite may have any name behind `apt-`.
const NEXT: &str = "next-";
const CURRENT: &str = "";
const ENDING: &str = ".json.zst";
const EARLIER_ENDING: &str = ".json";

/// The channels of a repository by name (`apt-<suite>`, `rpm`).
#[derive(Debug, Default)]
pub(super) struct Channels(pub BTreeMap<String, ChannelState>);

fn path(which: &str, channel: &str) -> String {
    format!("{PRIVATE}/{which}{channel}{ENDING}")
}

impl Channels {
    /// Reads all states, and finishes or takes back what an interrupted run had begun.
    pub fn load(store: &dyn Store) -> Result<Self> {
        update_earlier(store)?;
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
            return self.finish(store, vec![(channel.to_owned(), next)]);
        }
        let written = next.files().filter(|file| !next.found.contains(*file));
        let left: Vec<String> = written.filter(|file| !self.uses(file)).cloned().collect();
        store.remove(&left)?;
        // `next-` first: it says that a publication has begun.
        store.remove(&[path(NEXT, channel), recovery::path(channel)])
    }

    /// The settings of `channel` in a run with those `given`. One without a name is called like the others.
    pub fn settings(&self, channel: &Channel, given: &ChannelSettings) -> ChannelSettings {
        let own = self.0.get(&channel.name()).map(|state| state.settings.clone());
        let mut earlier = own.unwrap_or_default();
        let mut names = self.0.values().filter_map(|state| state.settings.name.clone());
        earlier.name = earlier.name.or_else(|| names.next());
        given.or(&earlier)
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

    /// Writes the states that channels are about to have.
    pub fn announce(store: &dyn Store, next: &[Announcement<'_>]) -> Result<()> {
        let bodies: Vec<_> = next.par_iter().map(|next| next.state.to_body()).collect();
        let mut files = Vec::new();
        for (next, body) in next.iter().zip(bodies) {
            files.push(recovery::remembered(next.channel, next.shown)?);
            files.push((path(NEXT, next.channel), body?));
        }
        store.put(files)
    }

    /// Makes the announced states of published channels the current ones.
    pub fn finish(
        &mut self,
        store: &dyn Store,
        published: Vec<(String, ChannelState)>,
    ) -> Result<()> {
        for (channel, _) in &published {
            store.rename(&path(NEXT, channel), &path(CURRENT, channel))?;
        }
        let over: Vec<String> =
            published.iter().map(|(channel, _)| recovery::path(channel)).collect();
        store.remove(&over)?;
        self.0.extend(published);
        Ok(())
    }

    /// Replaces the current states of channels.
    pub fn put(&mut self, store: &dyn Store, states: Vec<(String, ChannelState)>) -> Result<()> {
        let files = states.iter().map(|(name, state)| Ok((path(CURRENT, name), state.to_body()?)));
        store.put(files.collect::<Result<_>>()?)?;
        self.0.extend(states);
        Ok(())
    }
}

/// Compresses the states that earlier versions of rockpack wrote.
fn update_earlier(store: &dyn Store) -> Result<()> {
    let names = store.list(PRIVATE)?;
    let earlier = names.iter().filter(|name| {
        let is_state = name.ends_with(EARLIER_ENDING) && !name.starts_with(recovery::PREFIX);
        is_state && !names.contains(&format!("{name}.zst"))
    });
    for name in earlier {
        let file = format!("{PRIVATE}/{name}");
        let Some(text) = store.read(&file).map_err(with_restore_hint)? else { continue };
        let body = ChannelState::parse_text(&text).file(&file)?.to_body()?;
        store.put(vec![(format!("{file}.zst"), body)])?;
        store.remove(&[file])?;
    }
    Ok(())
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
    if let Some(channel) = recovery::channel_of(name) {
        return Some(Ok((channel.to_owned(), Remembered::Shown)));
    }
    let stem = name.strip_suffix(ENDING)?;
    let file = format!("{PRIVATE}/{name}");
    let bytes = store.read(&file).map_err(with_restore_hint);
    let state = bytes.and_then(|bytes| ChannelState::parse(&bytes.unwrap_or_default()).file(&file));
    Some(state.map(|state| match stem.strip_prefix(NEXT) {
        Some(channel) => (channel.to_owned(), Remembered::Next(state)),
        None => (stem.to_owned(), Remembered::Current(state)),
    }))
}

fn with_restore_hint(error: Error) -> Error {
    match error.kind() {
        Kind::Unsupported => error.hint(RESTORE_HINT),
        _ => error,
    }
}
