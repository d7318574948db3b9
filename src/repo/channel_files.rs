//! The files of a channel beside its packages: indexes, and what makes them known to clients.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_base::error::Result;

use super::apt::Suite;
use super::catalog::Catalog;
use super::channel::Channel;
use super::channels::Channels;
use super::clients;
use super::index_paths::{self, REPOMD};
use super::listed_indexes::ListedIndexes;
use super::options::RepoOptions;
use super::python;
use super::releases;
use super::rpm::RpmIndexes;
use super::state::ChannelState;
use super::store::Store;
use super::unchanged::unchanged;
use crate::repo::keyring;
use crate::report::{Finding, Findings};

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
        let Self { channel, options, .. } = self;
        match channel {
            Channel::Apt(suite) => {
                of_clients(channel, next, options, findings)?;
                apt_files(suite, next, self.unchanged(next)?, options)
            }
            Channel::Rpm => {
                of_clients(channel, next, options, findings)?;
                rpm_files(next, self.unchanged(next)?, options)
            }
            Channel::Python => {
                findings.extend(releases::findings(&next.records));
                self.python_files(next)
            }
        }
    }

    /// The indexes that need no rewriting.
    fn unchanged(&self, next: &ChannelState) -> Result<Option<&ListedIndexes>> {
        if self.options.check {
            return Ok(None);
        }
        unchanged(self.store, self.channel, self.earlier, next, self.options.list_method)
    }

    fn python_files(&self, next: &ChannelState) -> Result<ChannelFiles> {
        let Self { store, channels, earlier, .. } = self;
        let of = (self.catalog, self.options.check);
        let metadata = python::metadata_files(*store, channels, earlier, of)?;
        let pages = python::pages(*store, earlier, &next.records)?;
        let beside = next.records.keys().map(|wheel| index_paths::metadata_path(wheel));
        Ok(ChannelFiles {
            hidden: metadata.missing,
            visible: pages.changed,
            unsigned: pages.all,
            indexes: pages.paths.into_iter().chain(beside).collect(),
            found: metadata.found,
            ..ChannelFiles::default()
        })
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
        findings.add(Finding::RepositoryUnsigned { channel: channel.name() });
    }
    if next.settings.url.is_none() {
        findings.add(Finding::ClientFilesMissing { channel: channel.name() });
    }
    if *channel == Channel::Rpm {
        let noticed = clients::of_signatures(&channel.name(), next, options)?;
        noticed.into_iter().for_each(|finding| findings.add(finding));
    }
    Ok(())
}

fn apt_files(
    suite: &str,
    next: &ChannelState,
    listed: Option<&ListedIndexes>,
    options: &RepoOptions<'_>,
) -> Result<ChannelFiles> {
    let made = match listed {
        Some(listed) => Suite::of_lists(suite, next, listed.release.clone())?,
        None => Suite::of_state(suite, next)?,
    };
    let listed = ListedIndexes { release: made.listed, ..ListedIndexes::default() };
    let sources = clients::sources(suite, next);
    let files = sources.into_iter().chain(clients::preferences(suite, next));
    let mut visible = client_files(files, next, options)?;
    let unsigned = visible.iter().cloned().collect();
    visible.extend(made.named);
    let folder = index_paths::suite_folder(suite);
    if let Some(signer) = options.signer {
        let signed = signer.sign_detached(made.release.as_bytes())?;
        visible.push((format!("{folder}/Release.gpg"), signed.into_bytes().into()));
    }
    visible.push((format!("{folder}/Release"), made.release.as_bytes().into()));
    if let Some(signer) = options.signer {
        let signed = signer.sign_clear(&made.release)?;
        visible.push((format!("{folder}/InRelease"), signed.into_bytes().into()));
    }
    let indexes = listed.paths(&Channel::Apt(suite.to_owned()));
    Ok(ChannelFiles { hidden: made.by_hash, visible, unsigned, listed, indexes, found: Vec::new() })
}

fn rpm_files(
    next: &ChannelState,
    listed: Option<&ListedIndexes>,
    options: &RepoOptions<'_>,
) -> Result<ChannelFiles> {
    let made = match listed {
        Some(listed) => RpmIndexes::of_lists(next, listed.repomd.clone())?,
        None => RpmIndexes::of_state(next, options.list_method)?,
    };
    let listed = ListedIndexes { repomd: made.data, ..ListedIndexes::default() };
    let mut visible = client_files(clients::repo(next), next, options)?;
    let unsigned = visible.iter().cloned().collect();
    if let Some(signer) = options.signer {
        let signed = signer.sign_detached(&made.repomd)?;
        visible.push((format!("{REPOMD}.asc"), signed.into_bytes().into()));
    }
    visible.push((REPOMD.to_owned(), made.repomd.into()));
    let indexes = listed.paths(&Channel::Rpm);
    Ok(ChannelFiles { hidden: made.lists, visible, unsigned, listed, indexes, found: Vec::new() })
}

/// The key, and the files that make the repository known.
fn client_files(
    made: impl IntoIterator<Item = (String, Arc<[u8]>)>,
    next: &ChannelState,
    options: &RepoOptions<'_>,
) -> Result<Vec<(String, Arc<[u8]>)>> {
    let mut files = Vec::new();
    if let Some(signer) = options.signer {
        let key = signer.public_keys()?;
        files.push((keyring::file_name(next.settings.name.as_deref()), key.into_bytes().into()));
    }
    files.extend(made);
    Ok(files)
}
