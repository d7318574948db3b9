//! The files of a channel other than its packages: indexes, signatures, and configuration files for clients.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_archive::rpm_md::Repomd;
use rockpack_core::error::Result;
use rockpack_report::{Findings, found};

use super::channel::{Channel, REPOMD, suite_folder};
use super::indexes::{ListedIndexes, add_apt_indexes};
use super::next::Publication;
use super::rpm_lists::add_rpm_lists;
use super::state::ChannelState;
use super::store::FileContent;
use super::{clients, keyring};

#[derive(Default)]
pub(super) struct ChannelFiles {
    /// Files that no client refers to yet.
    pub hidden: Vec<(String, FileContent)>,
    /// Files under the names that clients read, in the order in which they are replaced.
    pub visible: Vec<(String, FileContent)>,
    /// The files that no signature covers, including unchanged pages.
    pub unsigned: BTreeMap<String, FileContent>,
    pub listed: ListedIndexes,
    pub indexes: BTreeSet<String>,
    /// Paths of files that rockpack did not write.
    pub found: Vec<String>,
}

/// The files of an apt suite or the rpm repository in the state `next`. Adds findings about its signatures.
pub(super) fn files(
    run: &Publication<'_>,
    next: &ChannelState,
    findings: &mut Findings,
) -> Result<ChannelFiles> {
    let Publication { channel, options, .. } = *run;
    if !next.signed {
        findings.add(found::RepositoryUnsigned { channel: channel.name() });
    }
    if next.settings.url.is_none() {
        findings.add(found::ClientFilesMissing { channel: channel.name() });
    }
    if *channel == Channel::Rpm {
        clients::add_signature_findings(run, next, findings)?;
    }
    let listed = unchanged(run, next)?;
    let visible = client_files(run, next)?;
    let unsigned = visible.iter().cloned().collect();
    let mut files = ChannelFiles { visible, unsigned, ..ChannelFiles::default() };
    if let Channel::Apt(suite) = channel {
        let release = add_apt_indexes(suite, next, listed, &mut files)?;
        let path = |name: &str| format!("{}/{name}", suite_folder(suite));
        if let Some(signer) = &options.signer {
            let signed = signer.sign_detached(release.as_bytes())?;
            files.visible.push((path("Release.gpg"), signed.into_bytes().into()));
        }
        files.visible.push((path("Release"), release.as_bytes().to_vec().into()));
        if let Some(signer) = &options.signer {
            let signed = signer.sign_clear(&release)?;
            files.visible.push((path("InRelease"), signed.into_bytes().into()));
        }
    } else {
        match listed {
            Some(listed) => files.listed.clone_from(listed),
            None => add_rpm_lists(run, &next.records, &mut files)?,
        }
        let data = files.listed.repomd.clone();
        let repomd = Repomd { revision: next.date, keys: next.keys.clone(), data }.render()?;
        if let Some(signer) = &options.signer {
            let signed = signer.sign_detached(&repomd)?;
            files.visible.push((format!("{REPOMD}.asc"), signed.into_bytes().into()));
        }
        files.visible.push((REPOMD.to_owned(), repomd.into()));
    }
    files.indexes = files.listed.files(channel).into_iter().map(|(path, _)| path).collect();
    Ok(files)
}

/// The earlier indexes, if they are still valid: packages, compression and the names in DEP-11 are the same, and all
/// files exist.
fn unchanged<'a>(run: &Publication<'a>, next: &ChannelState) -> Result<Option<&'a ListedIndexes>> {
    let Publication { store, channel, earlier, options, .. } = *run;
    let listed = &earlier.listed;
    let files = listed.files(channel);
    let [before, after] = [earlier, next].map(|it| (&it.settings.url, &it.settings.name));
    let is_same = before == after
        && earlier.records == next.records
        && listed.is_compressed_by(options.list_method);
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

/// The keyring, the configuration files for clients, and the GPU script.
fn client_files(run: &Publication<'_>, next: &ChannelState) -> Result<Vec<(String, FileContent)>> {
    let Publication { channel, options, .. } = *run;
    let mut files = Vec::new();
    if let Some(signer) = &options.signer {
        let key = signer.public_keys()?;
        files.push((keyring::file_name(next.settings.name.as_deref()), key.into_bytes().into()));
    }
    if let Channel::Apt(suite) = channel {
        files.extend(clients::sources(suite, next));
        files.extend(clients::preferences(suite, next));
    } else {
        files.extend(clients::repo(next));
    }
    files.extend(clients::gpu_script(channel, next));
    Ok(files)
}
