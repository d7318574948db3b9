//! The state of a repository: one file per *channel*, which is an apt suite, the rpm repository or the index
//! of wheels.
//!
//! ```text
//! .rockpack/apt-<suite>.json.zst, .rockpack/rpm.json.zst    the published channel
//! .rockpack/next-apt-<suite>.json.zst, …                    the one that is being published
//! .rockpack/shown-apt-<suite>.json.zst, …                   its files under names that clients read
//! ```
//!
//! A publication writes the next state and the list of shown files before anything else, then packages and indexes
//! under names that say their content, and then what clients read; it renames the next state to the state when all
//! are in place. A run that finds a next state has read all states first. It completes the publication if everything
//! that is written before the shown files is in place. Otherwise clients have seen nothing of it, and the run removes
//! what it wrote. Each state has a checksum ([`checked_json`]). States of earlier versions have none, and may be plain
//! JSON in a file that ends with `.json`; the next publication replaces them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rayon::prelude::*;
use rockpack_core::checked_json;
use rockpack_core::error::{Error, Kind, Result, ResultExt};
use serde::{Deserialize, Serialize};

use super::channel::Channel;
use super::next::NextChannel;
use super::settings::ChannelSettings;
use super::state::ChannelState;
use super::store::{Body, FileContent, PRIVATE, Store};

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
     indexes, and publish all packages again: yanked wheels, settings, digests of removed wheels and the \
     times of first publication are lost";

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
    /// Reads the states of the last publications, whatever has been begun since.
    pub fn read(store: &dyn Store) -> Result<Self> {
        Ok(Self(all(store, &store.list(PRIVATE)?, CURRENT, ChannelState::parse)?))
    }

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
        let nothing = ChannelState::default();
        for (channel, next) in begun {
            let (now, shown) = (channels.0.get(&channel), shown.remove(&channel));
            let now = now.unwrap_or(&nothing);
            let rest = shown.map(|shown| rest(store, shown, now, &next)).transpose();
            let rest = rest.file(path(SHOWN, &channel));
            let rest = rest.map_err(|error| error.hint(INTERRUPTED_HINT))?;
            // `next-` first: it says that a publication has begun.
            let done = [paths(NEXT, &channel), paths(SHOWN, &channel)].concat();
            if let Some(rest) = rest.flatten() {
                store.put(rest)?;
                channels.put(store, vec![(channel, next)])?;
            } else {
                let written = next.files().filter(|file| !next.found.contains(*file));
                let left = written.filter(|file| !channels.uses(file)).cloned();
                store.remove(&left.collect::<Vec<String>>())?;
            }
            store.remove(&done)?;
        }
        Ok(channels)
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

/// The file of a state, or of the files that clients read. That of 20,000 packages is a seventh to a twelfth of
/// its JSON, which has 20 to 40 MB.
fn body(value: &impl Serialize) -> Result<Body> {
    Ok(Body::Made(checked_json::write(value)?.into()))
}

/// Path and content of a file under a name that clients read.
pub(super) type ShownFile = (String, ShownContent);

/// The place of the content of a shown file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ShownContent {
    /// The content itself: of `Release`, `repomd.xml`, signatures, keys and files for clients.
    Text(String),
    /// The content of the file at this path, whose name says it.
    Same(String),
}

/// The files that clients read: those that are the same as one of `hidden` by its path.
pub(super) fn shown(
    visible: &[(String, FileContent)],
    hidden: &[(String, FileContent)],
) -> Result<Vec<ShownFile>> {
    // Of several with one content, the first.
    let hidden: HashMap<&FileContent, &String> =
        hidden.iter().rev().map(|(path, content)| (content, path)).collect();
    let shown = visible.iter().map(|(path, content)| {
        let found = match hidden.get(content) {
            Some(path) => Ok(ShownContent::Same((*path).clone())),
            None => String::from_utf8(content.to_vec()?).map(ShownContent::Text),
        };
        let content =
            found.map_err(|error| Error::bug("an index has no name of its own").cause(error))?;
        Ok((path.clone(), content))
    });
    shown.collect()
}

/// The files to put in place to finish the publication `next` of a channel that is `now`, where clients will read
/// `shown`, if all of its new files exist.
fn rest(
    store: &dyn Store,
    shown: Vec<ShownFile>,
    now: &ChannelState,
    next: &ChannelState,
) -> Result<Option<Vec<(String, Body)>>> {
    let odd =
        shown.iter().find(|(path, _)| path.starts_with(PRIVATE) || next.records.contains_key(path));
    if let Some((path, _)) = odd {
        let message = format!("says that `{}` is published last", path.escape_debug());
        return Err(Error::malformed(message));
    }
    // What clients read may lie there in part, or not yet.
    let late: BTreeSet<&String> = shown.iter().map(|(path, _)| path).collect();
    let early = next.records.keys().chain(&next.indexes).filter(|path| !late.contains(path));
    for path in early {
        if !now.has(path) && store.stat(path)?.is_none() {
            return Ok(None);
        }
    }
    // None for a file that is unchanged and lost: the next publication rewrites it.
    let body = |(path, content): ShownFile| -> Result<Option<(String, Body)>> {
        let other = match content {
            ShownContent::Text(text) => {
                return Ok(Some((path, Body::Made(text.into_bytes().into()))));
            }
            ShownContent::Same(other) => other,
        };
        match store.read(&other)? {
            Some(bytes) => Ok(Some((path, Body::Same(other, bytes.into())))),
            None if now.has(&other) => Ok(None),
            None => Err(Error::new(Kind::Changed, "is gone from the repository").file(&other)),
        }
    };
    let bodies = shown.into_iter().filter_map(|file| body(file).transpose());
    let bodies: Result<Vec<_>> = bodies.collect();
    bodies.context(|| "finishing an interrupted publication".to_owned()).map(Some)
}
