//! The report of a run.

use std::collections::BTreeMap;

use rockpack_report::Findings;
use serde::Serialize;

use super::catalog::Catalog;
use super::channel::Channel;
use super::clients::GPU_SCRIPT;
use super::input::GivenPackage;
use super::keyring;
use super::state::{ChannelState, PoolRecord};
use super::store::{FileBody, FileContent};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Published {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    pub channels: Vec<ChannelReport>,
    pub findings: Findings,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChannelReport {
    /// `apt-<suite>`, `rpm` or `python`.
    pub channel: String,
    pub generation: u64,
    pub packages: usize,
    pub bytes: u64,
    pub added: Vec<String>,
    pub removed: Vec<String>,
    /// Paths of removed packages → paths of added packages with the same name and architecture.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub replaced: BTreeMap<String, String>,
    /// Paths of the indexes and other files for clients that a dry run would replace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<String>,
    /// Number of packages that the run read.
    pub read: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub yanked: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_url: Option<String>,
    pub signed: bool,
    /// The file with the public keys of its signatures, relative to the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyring: Option<String>,
    /// The script that prints the packages for the GPUs of a machine, relative to the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_script: Option<String>,
    pub mirror: MirrorDownload,
    /// The update of clients that have all packages of the previous publication, by architecture.
    pub clients: Vec<ClientDownload>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MirrorDownload {
    #[serde(flatten)]
    pub new: Download,
    /// Bytes of indexes, in all their forms, and of other files for clients.
    pub index_bytes: u64,
}

/// What an update downloads on a client that has the newest version of every package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClientDownload {
    pub architecture: String,
    #[serde(flatten)]
    pub all: Download,
    pub without_gpu_code: Download,
    /// The part with device code for the arch with the largest download.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_gpu: Option<GpuDownload>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Download {
    pub packages: usize,
    pub bytes: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GpuDownload {
    pub arch: String,
    #[serde(flatten)]
    pub own: Download,
}

impl Download {
    pub fn add(&mut self, bytes: u64) {
        self.packages += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// The report about the publication of `next`.
pub(super) fn report(
    channel: &Channel,
    (earlier, next): (&ChannelState, &ChannelState),
    given: &[&GivenPackage],
    (catalog, mirror, clients): (&Catalog<'_>, MirrorDownload, Vec<ClientDownload>),
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
        index_url: None,
        signed: next.signed,
        keyring: next.signed.then(|| keyring::file_name(next.settings.name.as_deref())),
        gpu_script: next.unsigned_files.keys().find(|path| path.ends_with(GPU_SCRIPT)).cloned(),
        mirror,
        clients,
    }
}

/// The files that a mirror has to download.
pub(super) fn mirror<'a>(
    next: &ChannelState,
    packages: &[(String, FileBody)],
    indexes: impl Iterator<Item = &'a (String, FileContent)>,
) -> MirrorDownload {
    let records = packages.iter().filter_map(|(path, _)| next.records.get(path));
    let mut new = Download::default();
    records.for_each(|record| new.add(record.indexed.size));
    MirrorDownload { new, index_bytes: indexes.map(|(_, content)| content.size()).sum() }
}
