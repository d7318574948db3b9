//! The state of a repository: one file per *channel*, which is an apt suite, the rpm repository or the index
//! of wheels.
//!
//! ```text
//! .rockpack/apt-<suite>.json.zst, .rockpack/rpm.json.zst    the published channel
//! .rockpack/next-apt-<suite>.json.zst, …                    the one that is being published
//! ```
//!
//! The next state is written before the first of its files, and renamed to the state when all are in place. A run
//! that finds a next state completes or undoes it (`recovery`) when it has read all states. Each has a checksum
//! ([`checked_json`]). States of earlier versions have none, and may be plain JSON in a file that ends with `.json`;
//! the next publication replaces them.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rockpack_core::checked_json;
use rockpack_core::error::{Result, ResultExt};

use super::channel::Channel;
use super::next::NextChannel;
use super::recovery::{self, ShownFile};
use super::settings::ChannelSettings;
use super::state::{ChannelState, body};
use super::store::{PRIVATE, Store};

/// The start of the name of a next state. It stands in front, as a suite may have any name behind `apt-`.
const NEXT: &str = "next-";
const CURRENT: &str = "";
/// The start of the name of the list of files that clients read.
const SHOWN: &str = "shown-";
/// The endings of the names, and those of earlier versions.
const ENDINGS: [&str; 2] = [".json.zst", ".json"];

/// The hint for a state that cannot be used.
const RESTORE_HINT: &str = "restore the file from a backup made after the last publication, and compare it with the \
     indexes by `rockpack verify`; without a backup, remove it, move the packages out of the repository, remove the \
     indexes, and publish all packages again: yanked wheels, settings and digests of removed wheels are lost";

/// The hint for a file of an interrupted publication that cannot be used.
const INTERRUPTED_HINT: &str = "remove the files next-… and shown-… of this publication, and publish its packages again: it was \
     interrupted, and no complete publication is lost; pages that `repo` then refuses as another tool's are its own: \
     remove them";

/// The channels of a repository by name (`apt-<suite>`, `rpm`).
#[derive(Debug, Default)]
pub(super) struct Channels(pub BTreeMap<String, ChannelState>);

/// The path of a file, and the one of earlier versions.
fn paths(which: &str, channel: &str) -> [String; 2] {
    ENDINGS.map(|ending| format!("{PRIVATE}/{which}{channel}{ending}"))
}

fn path(which: &str, channel: &str) -> String {
    let [path, _] = paths(which, channel);
    path
}

impl Channels {
    /// Reads all states, and finishes or takes back what an interrupted run had begun.
    pub fn load(store: &dyn Store) -> Result<Self> {
        let names = store.list(PRIVATE)?;
        let mut channels = Self(all(store, &names, CURRENT, ChannelState::parse)?);
        let begun = all(store, &names, NEXT, ChannelState::parse)?;
        let read_shown = |_: &str, bytes: &[u8]| checked_json::read(bytes, |_| false);
        let mut shown: BTreeMap<_, Vec<ShownFile>> = all(store, &names, SHOWN, read_shown)?;
        // Of runs that ended right before they said that they began, or right after they were done.
        let over = shown.keys().filter(|channel| !begun.contains_key(*channel));
        store.remove(&over.flat_map(|channel| paths(SHOWN, channel)).collect::<Vec<String>>())?;
        for (channel, state) in begun {
            let shown = shown.remove(&channel);
            channels.settle(store, &channel, state, shown)?;
        }
        Ok(channels)
    }

    /// Decides about the publication `next` of a run that was interrupted.
    fn settle(
        &mut self,
        store: &dyn Store,
        channel: &str,
        next: ChannelState,
        shown: Option<Vec<ShownFile>>,
    ) -> Result<()> {
        let nothing = ChannelState::default();
        let now = self.0.get(channel).unwrap_or(&nothing);
        let rest = shown.map(|shown| recovery::rest(store, shown, now, &next)).transpose();
        let rest = rest.file(path(SHOWN, channel)).map_err(|error| error.hint(INTERRUPTED_HINT))?;
        if let Some(rest) = rest.flatten() {
            store.put(rest)?;
            self.put(store, vec![(channel.to_owned(), next)])?;
        } else {
            let written = next.files().filter(|file| !next.found.contains(*file));
            let left: Vec<String> = written.filter(|file| !self.uses(file)).cloned().collect();
            store.remove(&left)?;
        }
        // `next-` first: it says that a publication has begun.
        store.remove(&[paths(NEXT, channel), paths(SHOWN, channel)].concat())
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
        self.0.values().flat_map(ChannelState::files).map(String::as_str).collect()
    }

    /// Writes the states that channels are about to have.
    pub fn announce(store: &dyn Store, next: &[NextChannel]) -> Result<()> {
        let bodies: Vec<_> = next.par_iter().map(|channel| body(&channel.next)).collect();
        let mut files = Vec::new();
        for (channel, state) in next.iter().zip(bodies) {
            files.push((path(SHOWN, &channel.name), body(&channel.shown)?));
            files.push((path(NEXT, &channel.name), state?));
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
        let over = published.iter().flat_map(|(channel, _)| {
            let [_, earlier] = paths(CURRENT, channel);
            [path(SHOWN, channel), earlier]
        });
        store.remove(&over.collect::<Vec<String>>())?;
        self.0.extend(published);
        Ok(())
    }

    /// Replaces the current states of channels.
    pub fn put(&mut self, store: &dyn Store, states: Vec<(String, ChannelState)>) -> Result<()> {
        let files = states.iter().map(|(name, state)| Ok((path(CURRENT, name), body(state)?)));
        store.put(files.collect::<Result<_>>()?)?;
        self.0.extend(states);
        Ok(())
    }
}

/// Reads the files whose names begin with `which`, by their channels.
fn all<T: Send>(
    store: &dyn Store,
    names: &[String],
    which: &str,
    parse: impl Fn(&str, &[u8]) -> Result<T> + Sync,
) -> Result<BTreeMap<String, T>> {
    let read = names.par_iter().filter_map(|name| {
        let stem = name.strip_suffix(ENDINGS[0]).or_else(|| name.strip_suffix(ENDINGS[1]))?;
        let found = [NEXT, SHOWN].into_iter().find(|start| stem.starts_with(start));
        let channel = stem.strip_prefix(which).filter(|_| found.unwrap_or(CURRENT) == which)?;
        let file = format!("{PRIVATE}/{name}");
        let bytes = store.read(&file).map(Option::unwrap_or_default);
        let value = bytes.and_then(|bytes| parse(channel, &bytes));
        let hint = if which == CURRENT { RESTORE_HINT } else { INTERRUPTED_HINT };
        Some(value.map(|value| (channel.to_owned(), value)).map_err(|error| {
            let hint = (!error.is_of_reading()).then_some(hint);
            error.file(file).hint_if(hint)
        }))
    });
    // A file without an earlier ending comes last, and counts.
    read.collect::<Vec<Result<_>>>().into_iter().collect()
}
