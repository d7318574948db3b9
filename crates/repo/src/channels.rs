//! The state of a repository: one file per *channel*, which is an apt suite, the rpm repository or the index
//! of wheels.
//!
//! ```text
//! .rockpack/apt-<suite>.json.zst, .rockpack/rpm.json.zst    the published channel
//! .rockpack/next-apt-<suite>.json.zst, …                    the one that is being published
//! .rockpack/shown-apt-<suite>.json.zst, …                   its files under names that clients read
//! ```
//!
//! A publication writes the next state and the list of shown files first, then packages and indexes whose names
//! contain their digest, then the files that clients read. When all are in place, it renames the next state to the
//! current one. A run that finds a next state completes the publication if every file that precedes the shown files
//! is in place. Otherwise clients have seen none of it, and the run removes its files. Each state has a checksum
//! ([`checked_json`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rayon::prelude::*;
use rockpack_core::checked_json;
use rockpack_core::error::{Error, Kind, Result, ResultExt};
use serde::{Deserialize, Serialize};

use super::channel::Channel;
use super::next::NextChannel;
use super::settings::ChannelSettings;
use super::state::ChannelState;
use super::store::{FileBody, FileContent, PRIVATE, Store};

/// The prefix of a next state's name. It is not a suffix, because a suite may have any name after `apt-`.
const NEXT: &str = "next-";
const CURRENT: &str = "";
/// The prefix of the name of the list of shown files.
const SHOWN: &str = "shown-";
const ENDING: &str = ".json.zst";

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

fn path(which: &str, channel: &str) -> String {
    format!("{PRIVATE}/{which}{channel}{ENDING}")
}

impl Channels {
    /// Reads the states of the last complete publications.
    pub fn read(store: &dyn Store) -> Result<Self> {
        Ok(Self(read_all(store, &store.list(PRIVATE)?, CURRENT, ChannelState::parse)?))
    }

    /// Reads all states, and completes or rolls back an interrupted publication.
    pub fn load(store: &dyn Store) -> Result<Self> {
        let names = store.list(PRIVATE)?;
        let mut channels = Self(read_all(store, &names, CURRENT, ChannelState::parse)?);
        let begun = read_all(store, &names, NEXT, ChannelState::parse)?;
        let read_shown = |_: &str, bytes: &[u8]| checked_json::read(bytes);
        let mut shown: BTreeMap<_, Vec<ShownFile>> = read_all(store, &names, SHOWN, read_shown)?;
        // From runs that ended just before they wrote the next state, or just after they renamed it.
        let over = shown.keys().filter(|channel| !begun.contains_key(*channel));
        store.remove(&over.map(|channel| path(SHOWN, channel)).collect::<Vec<String>>())?;
        let nothing = ChannelState::default();
        for (channel, next) in begun {
            let (now, shown) = (channels.0.get(&channel), shown.remove(&channel));
            let now = now.unwrap_or(&nothing);
            let rest = shown.map(|shown| remaining_files(store, shown, now, &next)).transpose();
            let rest = rest.file(path(SHOWN, &channel));
            let rest = rest.map_err(|error| error.hint(INTERRUPTED_HINT))?;
            // `next-` first: it marks a publication as begun.
            let done = [NEXT, SHOWN].map(|which| path(which, &channel));
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

    /// The settings of `channel`: those `given`, then its earlier ones. Without a name, it gets that of another
    /// channel.
    pub fn settings(&self, channel: &Channel, given: &ChannelSettings) -> ChannelSettings {
        let own = self.0.get(&channel.name()).map(|state| state.settings.clone());
        let mut earlier = own.unwrap_or_default();
        let mut names = self.0.values().filter_map(|state| state.settings.name.clone());
        earlier.name = earlier.name.or_else(|| names.next());
        given.or(&earlier)
    }

    /// Whether a channel has the file, or has retired but not yet removed it.
    pub fn uses(&self, file: &str) -> bool {
        self.0.values().any(|state| state.uses(file))
    }

    /// Writes the next states and the lists of shown files.
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
        let over = published.iter().map(|(channel, _)| path(SHOWN, channel));
        store.remove(&over.collect::<Vec<String>>())?;
        self.0.extend(published);
        Ok(())
    }

    pub fn put(&mut self, store: &dyn Store, states: Vec<(String, ChannelState)>) -> Result<()> {
        let files = states.iter().map(|(name, state)| Ok((path(CURRENT, name), body(state)?)));
        store.put(files.collect::<Result<_>>()?)?;
        self.0.extend(states);
        Ok(())
    }
}

/// Reads the files whose names begin with `which`, by their channels.
fn read_all<T: Send>(
    store: &dyn Store,
    names: &[String],
    which: &str,
    parse: impl Fn(&str, &[u8]) -> Result<T> + Sync,
) -> Result<BTreeMap<String, T>> {
    let read = names.par_iter().filter_map(|name| {
        let stem = name.strip_suffix(ENDING)?;
        let found = [NEXT, SHOWN].into_iter().find(|start| stem.starts_with(start));
        let channel = stem.strip_prefix(which).filter(|_| found.unwrap_or(CURRENT) == which)?;
        let file = format!("{PRIVATE}/{name}");
        let bytes = store.read(&file).map(Option::unwrap_or_default);
        let value = bytes.and_then(|bytes| parse(channel, &bytes));
        let hint = if which == CURRENT { RESTORE_HINT } else { INTERRUPTED_HINT };
        Some(value.map(|value| (channel.to_owned(), value)).map_err(|error| {
            let hint = (!error.is_read_failure()).then_some(hint);
            error.file(file).hint_if(hint)
        }))
    });
    read.collect::<Vec<Result<_>>>().into_iter().collect()
}

/// The compressed JSON of a state or a list. For 20,000 packages it is a seventh to a twelfth of the JSON, which has
/// 20 to 40 MB.
fn body(value: &impl Serialize) -> Result<FileBody> {
    Ok(FileBody::Made(checked_json::write(value)?.into()))
}

/// Path and content of a file under a name that clients read.
pub(super) type ShownFile = (String, ShownContent);

/// Where a shown file's content is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ShownContent {
    /// The content itself: for `Release`, `repomd.xml`, signatures, keys and files for clients.
    Text(String),
    /// That of the file at this path, whose name contains its digest.
    Same(String),
}

/// The files that clients read. One with the content of a `hidden` file refers to that file's path.
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

/// The files that complete the publication `next` of a channel in the state `now`: those of `shown`. `None` unless
/// all other new files exist.
fn remaining_files(
    store: &dyn Store,
    shown: Vec<ShownFile>,
    now: &ChannelState,
    next: &ChannelState,
) -> Result<Option<Vec<(String, FileBody)>>> {
    let odd =
        shown.iter().find(|(path, _)| path.starts_with(PRIVATE) || next.records.contains_key(path));
    if let Some((path, _)) = odd {
        let message = format!("lists `{}` as a file that is published last", path.escape_debug());
        return Err(Error::malformed(message));
    }
    // Shown files may be in place already, some or none.
    let late: BTreeSet<&String> = shown.iter().map(|(path, _)| path).collect();
    let early = next.records.keys().chain(&next.indexes).filter(|path| !late.contains(path));
    for path in early {
        if !now.has(path) && store.stat(path)?.is_none() {
            return Ok(None);
        }
    }
    // None for a file that is unchanged and lost: the next publication rewrites it.
    let body = |(path, content): ShownFile| -> Result<Option<(String, FileBody)>> {
        let other = match content {
            ShownContent::Text(text) => {
                return Ok(Some((path, FileBody::Made(text.into_bytes().into()))));
            }
            ShownContent::Same(other) => other,
        };
        match store.read(&other)? {
            Some(bytes) => Ok(Some((path, FileBody::Same(other, bytes.into())))),
            None if now.has(&other) => Ok(None),
            None => Err(Error::new(Kind::Changed, "is missing from the repository").file(&other)),
        }
    };
    let bodies = shown.into_iter().filter_map(|file| body(file).transpose());
    let bodies: Result<Vec<_>> = bodies.collect();
    bodies.context(|| "finishing an interrupted publication".to_owned()).map(Some)
}
