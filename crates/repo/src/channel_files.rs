//! The files of a channel beside its packages: indexes, and what makes them known to clients.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_core::error::Result;
use rockpack_report::{Findings, found};

use super::catalog::Catalog;
use super::channel::{Channel, REPOMD, suite_folder};
use super::channels::Channels;
use super::indexes::{ListedIndexes, add_apt_indexes, add_rpm_indexes};
use super::options::RepoOptions;
use super::state::ChannelState;
use super::store::Store;
use super::{clients, keyring, python};

/// The files of a channel, without its packages.
#[derive(Default)]
pub(super) struct ChannelFiles {
    /// Files under names that no client knows yet.
    pub hidden: Vec<(String, Arc<[u8]>)>,
    /// Files under the names that clients read, in the order in which they are replaced.
    pub visible: Vec<(String, Arc<[u8]>)>,
    /// The files that no signature covers, with pages that stay as they are.
    pub unsigned: BTreeMap<String, Arc<[u8]>>,
    /// The indexes as the state remembers them.
    pub listed: ListedIndexes,
    /// Paths of the indexes.
    pub indexes: BTreeSet<String>,
    /// Paths of those that somebody else put there.
    pub found: Vec<String>,
}

/// The values that the files of a channel are made from, beside its next state.
pub(super) struct Making<'a> {
    pub store: &'a dyn Store,
    pub channels: &'a Channels,
    pub channel: &'a Channel,
    pub earlier: &'a ChannelState,
    pub catalog: &'a Catalog,
    pub options: &'a RepoOptions<'a>,
}

impl Making<'_> {
    /// The files of the channel as it becomes `next`.
    pub fn files(&self, next: &ChannelState, findings: &mut Findings) -> Result<ChannelFiles> {
        let Self { store, channels, channel, earlier, options, .. } = self;
        if **channel == Channel::Python {
            findings.extend(python::release_findings(self.catalog));
            let states = (*earlier, next);
            return python::files(*store, channels, states, (self.catalog, options.check));
        }
        of_clients(channel, next, options, findings)?;
        index_files(channel, next, self.unchanged(next)?, options)
    }

    /// The earlier indexes, if they can stay: packages and compression are the same, and all are in place.
    fn unchanged(&self, next: &ChannelState) -> Result<Option<&ListedIndexes>> {
        let Self { store, channel, earlier, options, .. } = self;
        let listed = &earlier.listed;
        let files = listed.files(channel);
        let is_same =
            earlier.records == next.records && listed.is_compressed_by(options.list_method);
        if options.check || files.is_empty() || !is_same {
            return Ok(None);
        }
        for (path, size) in files {
            let there = store.stat(&path)?.is_some_and(|stat| stat.size == size);
            if !there || !earlier.indexes.contains(&path) {
                return Ok(None);
            }
        }
        Ok(Some(listed))
    }
}

/// Notes what is worth knowing of a channel whose indexes may be signed.
fn of_clients(
    channel: &Channel,
    next: &ChannelState,
    options: &RepoOptions<'_>,
    findings: &mut Findings,
) -> Result<()> {
    if !next.signed {
        findings.add(found::RepositoryUnsigned { channel: channel.name() });
    }
    if next.settings.url.is_none() {
        findings.add(found::ClientFilesMissing { channel: channel.name() });
    }
    if *channel == Channel::Rpm {
        let noticed = clients::of_signatures(&channel.name(), next, options)?;
        findings.extend(noticed);
    }
    Ok(())
}

/// The files of an apt suite or the rpm repository, whose indexes `listed` can stay.
fn index_files(
    channel: &Channel,
    next: &ChannelState,
    listed: Option<&ListedIndexes>,
    options: &RepoOptions<'_>,
) -> Result<ChannelFiles> {
    let visible = client_files(channel, next, options)?;
    let unsigned = visible.iter().cloned().collect();
    let mut files = ChannelFiles { visible, unsigned, ..ChannelFiles::default() };
    if let Channel::Apt(suite) = channel {
        let release = add_apt_indexes(suite, next, listed, &mut files)?;
        let path = |name: &str| format!("{}/{name}", suite_folder(suite));
        if let Some(signer) = options.signer {
            let signed = signer.sign_detached(release.as_bytes())?;
            files.visible.push((path("Release.gpg"), signed.into_bytes().into()));
        }
        files.visible.push((path("Release"), release.as_bytes().into()));
        if let Some(signer) = options.signer {
            let signed = signer.sign_clear(&release)?;
            files.visible.push((path("InRelease"), signed.into_bytes().into()));
        }
    } else {
        let repomd = add_rpm_indexes(next, listed, options.list_method, &mut files)?;
        if let Some(signer) = options.signer {
            let signed = signer.sign_detached(&repomd)?;
            files.visible.push((format!("{REPOMD}.asc"), signed.into_bytes().into()));
        }
        files.visible.push((REPOMD.to_owned(), repomd.into()));
    }
    files.indexes = files.listed.files(channel).into_iter().map(|(path, _)| path).collect();
    Ok(files)
}

/// The key, and the files that make the repository known.
fn client_files(
    channel: &Channel,
    next: &ChannelState,
    options: &RepoOptions<'_>,
) -> Result<Vec<(String, Arc<[u8]>)>> {
    let mut files = Vec::new();
    if let Some(signer) = options.signer {
        let key = signer.public_keys()?;
        files.push((keyring::file_name(next.settings.name.as_deref()), key.into_bytes().into()));
    }
    if let Channel::Apt(suite) = channel {
        files.extend(clients::sources(suite, next));
        files.extend(clients::preferences(suite, next));
    } else {
        files.extend(clients::repo(next));
    }
    Ok(files)
}
