//! The report of a run about a channel that it is about to publish.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::body::Body;
use super::catalog::Catalog;
use super::channel::Channel;
use super::input::GivenPackage;
use super::keyring;
use super::published::{ChannelReport, ClientDownload, MirrorDownload};
use super::state::{ChannelState, PoolRecord};

/// Files of a channel that are put in place.
pub(super) struct Made<'a> {
    pub packages: &'a [(String, Body)],
    pub hidden: &'a [(String, Arc<[u8]>)],
    pub visible: &'a [(String, Arc<[u8]>)],
}

/// The report about `channel` as it becomes `next`.
pub(super) fn report(
    channel: &Channel,
    (earlier, next): (&ChannelState, &ChannelState),
    given: &[&GivenPackage],
    (catalog, made, clients): (&Catalog, Made<'_>, Vec<ClientDownload>),
) -> ChannelReport {
    let gone = earlier.records.iter().filter(|(path, _)| !next.records.contains_key(*path));
    let key = |record: &PoolRecord| {
        [record.indexed.facts.name(), record.indexed.facts.arch()].map(str::to_owned)
    };
    let added = catalog.added.keys().filter_map(|path| Some((key(next.records.get(path)?), path)));
    let added: BTreeMap<_, _> = added.collect();
    let replaced = gone.clone().filter_map(|(path, old)| Some((path, *added.get(&key(old))?)));
    let yanked = next.records.iter().filter(|(_, record)| record.yanked.is_some());
    ChannelReport {
        channel: channel.name(),
        generation: next.generation,
        packages: next.records.len(),
        bytes: next.records.values().map(|record| record.indexed.size).sum(),
        added: catalog.added.keys().cloned().collect(),
        removed: gone.map(|(path, _)| path.clone()).collect(),
        replaced: replaced.map(|(old, new)| (old.clone(), new.clone())).collect(),
        indexes: Vec::new(),
        read: given.iter().filter(|given| given.read).count(),
        yanked: yanked.map(|(path, _)| path.clone()).collect(),
        signed: next.signed,
        keyring: next.signed.then(|| keyring::file_name(next.settings.name.as_deref())),
        mirror: mirror(next, &made),
        clients,
    }
}

fn mirror(next: &ChannelState, made: &Made<'_>) -> MirrorDownload {
    let new = made.packages.iter().filter_map(|(path, _)| next.records.get(path));
    let indexes = made.hidden.iter().chain(made.visible);
    MirrorDownload {
        packages: made.packages.len(),
        bytes: new.map(|record| record.indexed.size).sum(),
        index_bytes: indexes.map(|(_, bytes)| bytes.len() as u64).sum(),
    }
}
