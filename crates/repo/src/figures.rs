//! The report of a run about a channel that it is about to publish.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::body::Body;
use super::catalog::Catalog;
use super::channel::Channel;
use super::input::GivenPackage;
use super::keyring;
use super::published::{ChannelReport, ClientDownload, Download, MirrorDownload};
use super::state::{ChannelState, PoolRecord};

/// The report about `channel` as it becomes `next`.
pub(super) fn report(
    channel: &Channel,
    (earlier, next): (&ChannelState, &ChannelState),
    given: &[&GivenPackage],
    (catalog, mirror, clients): (&Catalog, MirrorDownload, Vec<ClientDownload>),
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
        mirror,
        clients,
    }
}

/// The download of a mirror that gets these files of a channel.
pub(super) fn mirror<'a>(
    next: &ChannelState,
    packages: &[(String, Body)],
    indexes: impl Iterator<Item = &'a (String, Arc<[u8]>)>,
) -> MirrorDownload {
    let records = packages.iter().filter_map(|(path, _)| next.records.get(path));
    let mut new = Download::default();
    records.for_each(|record| new.add(record.indexed.size));
    MirrorDownload { new, index_bytes: indexes.map(|(_, bytes)| bytes.len() as u64).sum() }
}
