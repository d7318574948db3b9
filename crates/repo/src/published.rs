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
use super::store::{Body, FileContent};

/// The publications of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Published {
    /// Whether nothing was written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The channels that were published.
    pub channels: Vec<ChannelReport>,
    /// The findings.
    pub findings: Findings,
}

/// The result for a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChannelReport {
    /// `apt-<suite>`, `rpm` or `python`.
    pub channel: String,
    /// How often it was published, this time included.
    pub generation: u64,
    /// Packages that it has.
    pub packages: usize,
    /// Bytes of them.
    pub bytes: u64,
    /// Paths of packages that it did not have.
    pub added: Vec<String>,
    /// Paths of packages that it has no longer.
    pub removed: Vec<String>,
    /// Paths of removed packages → paths of the added packages of their names and architectures.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub replaced: BTreeMap<String, String>,
    /// Paths of the indexes and other files for clients that a dry run would replace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<String>,
    /// Packages that had to be read.
    pub read: usize,
    /// Paths of wheels that nobody should install any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub yanked: Vec<String>,
    /// The URL of an index of wheels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_url: Option<String>,
    /// Whether its indexes are signed.
    pub signed: bool,
    /// The file with the public keys that its indexes are signed by, relative to the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyring: Option<String>,
    /// The script that says which packages the GPUs of a machine need, relative to the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_script: Option<String>,
    /// The files that mirrors of the repository download.
    pub mirror: MirrorDownload,
    /// The packages that clients with everything that the channel had download, for each architecture
    /// in it.
    pub clients: Vec<ClientDownload>,
}

/// The files that a publication adds to a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MirrorDownload {
    /// The package files that are new there.
    #[serde(flatten)]
    pub new: Download,
    /// Bytes of indexes, in all their forms, and of other files for clients.
    pub index_bytes: u64,
}

/// The packages that an update downloads on a client that had the newest version of every package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClientDownload {
    /// The client's architecture.
    pub architecture: String,
    /// All of them.
    #[serde(flatten)]
    pub all: Download,
    /// The part of them that has no device code.
    pub without_gpu_code: Download,
    /// The part with device code for the arch that gets most of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_gpu: Option<GpuDownload>,
}

/// Packages to download.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Download {
    /// Packages.
    pub packages: usize,
    /// Bytes of them.
    pub bytes: u64,
}

/// Packages with device code for one arch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GpuDownload {
    /// The arch, e.g. `gfx1100`.
    pub arch: String,
    /// The packages.
    #[serde(flatten)]
    pub own: Download,
}

impl Download {
    /// One more of `bytes`.
    pub fn add(&mut self, bytes: u64) {
        self.packages += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// The report about `channel` as it becomes `next`.
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

/// The download of a mirror that gets these files of a channel.
pub(super) fn mirror<'a>(
    next: &ChannelState,
    packages: &[(String, Body)],
    indexes: impl Iterator<Item = &'a (String, FileContent)>,
) -> MirrorDownload {
    let records = packages.iter().filter_map(|(path, _)| next.records.get(path));
    let mut new = Download::default();
    records.for_each(|record| new.add(record.indexed.size));
    MirrorDownload { new, index_bytes: indexes.map(|(_, content)| content.size()).sum() }
}
