//! The indexes of an apt suite.
//!
//! Packages of architecture `all` are in the index of every architecture, as in Debian's own
//! archive, and in one of their own; `No-Support-for-Architecture-all` tells apt that the former
//! is enough. A suite with nothing else has the index of `all` alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;
use rockpack_archive::apt_index::{IndexFile, KEYRING_KEYS, Release, Stanza, format_date};
use rockpack_archive::deb;
use rockpack_core::compression::Method;
use rockpack_core::content::hex;
use rockpack_core::error::Result;
use sha2::{Digest, Sha256, Sha512};

use super::channel_files::ChannelFiles;
use super::compress::{compress, ending};
use super::index_paths::apt_index_paths;
use super::listed_indexes::ListedIndexes;
use super::state::ChannelState;
use rockpack_package::indexed::Facts;

const ALL: &str = "all";

const SECONDS_PER_DAY: i64 = 86_400;

/// The forms of an index. Not `.xz`: at levels that do not slow publications down it is not smaller than `.gz`, and
/// every apt that does not read `.zst` reads that.
const METHODS: [Method; 3] = [Method::Stored, Method::Gzip, Method::Zstd];

/// Adds the indexes of `state`, which has packages, settings and date, to `files`, unless those that are `listed` can
/// stay. Returns `Release`, without a signature.
pub(super) fn add_indexes(
    suite: &str,
    state: &ChannelState,
    listed: Option<&ListedIndexes>,
    files: &mut ChannelFiles,
) -> Result<String> {
    let made = if listed.is_some() { Vec::new() } else { indexes(state)? };
    let mut entries: Vec<IndexFile> = made.iter().map(|(file, _)| file.clone()).collect();
    entries.sort();
    for (file, bytes) in made {
        let mut names = apt_index_paths(suite, &file);
        files.visible.extend(names.pop().map(|name| (name, bytes.clone())));
        files.hidden.extend(names.into_iter().map(|name| (name, bytes.clone())));
    }
    let entries = listed.map_or(entries, |listed| listed.release.clone());
    let fields = fields(suite, state, &components(state), &archs(state))?;
    let release = Release { fields, files: entries };
    let text = release.render()?;
    files.listed.release = release.files;
    Ok(text)
}

/// All indexes, in all forms.
fn indexes(state: &ChannelState) -> Result<Vec<(IndexFile, Arc<[u8]>)>> {
    let archs = archs(state);
    let components = components(state);
    let pairs: Vec<(&str, &str)> =
        components.iter().flat_map(|c| archs.iter().map(move |a| (*c, *a))).collect();
    let texts: Vec<Arc<[u8]>> = pairs
        .par_iter()
        .map(|(component, arch)| text(state, component, arch).into_bytes().into())
        .collect();
    let mut jobs: Vec<(Method, String, &Arc<[u8]>)> = Vec::new();
    for ((component, arch), text) in pairs.iter().zip(&texts) {
        let path = format!("{component}/binary-{arch}/Packages");
        jobs.extend(METHODS.map(|m| (m, format!("{path}{}", ending(m)), text)));
    }
    let files: Vec<Result<_>> =
        jobs.into_par_iter().map(|(method, path, text)| index(method, path, text)).collect();
    files.into_iter().collect()
}

/// One form of an index, and its line in `Release`.
fn index(method: Method, path: String, text: &Arc<[u8]>) -> Result<(IndexFile, Arc<[u8]>)> {
    let bytes = match method {
        Method::Stored => Arc::clone(text),
        _ => compress(text, method)?,
    };
    let file = IndexFile {
        path,
        size: bytes.len() as u64,
        sha256: hex(&Sha256::digest(&bytes)),
        sha512: Some(hex(&Sha512::digest(&bytes))),
    };
    Ok((file, bytes))
}

/// The components of a suite.
fn components(state: &ChannelState) -> BTreeSet<&str> {
    if state.records.is_empty() {
        BTreeSet::from(["main"])
    } else {
        state.records.values().map(|r| r.component.as_str()).collect()
    }
}

/// The architectures of a suite, `all` first.
fn archs(state: &ChannelState) -> Vec<&str> {
    let found: BTreeSet<&str> =
        state.records.values().map(|record| record.indexed.facts.arch()).collect();
    let others = found.iter().copied().filter(|arch| *arch != ALL);
    let all = (found.contains(ALL) || found.is_empty()).then_some(ALL);
    all.into_iter().chain(others).collect()
}

/// The index of a component and an architecture.
fn text(state: &ChannelState, component: &str, arch: &str) -> String {
    let records = state.records.iter().filter(|(_, record)| {
        let own = record.indexed.facts.arch();
        record.component == component && (own == arch || own == ALL)
    });
    let mut stanzas: Vec<Stanza<'_>> = records
        .filter_map(|(path, record)| {
            let indexed = &record.indexed;
            let Facts::Deb(package) = &indexed.facts else { return None };
            let (sha256, sha512) = (&*indexed.sha256, indexed.sha512.as_deref());
            Some(Stanza { package, path, size: indexed.size, sha256, sha512 })
        })
        .collect();
    stanzas.sort_by(|a, b| {
        let (a, b) = (a.package, b.package);
        a.name
            .cmp(&b.name)
            .then_with(|| deb::compare_versions(&a.version, &b.version))
            .then_with(|| a.architecture.cmp(&b.architecture))
    });
    let mut text = String::new();
    for stanza in stanzas {
        stanza.render(&mut text);
    }
    text
}

fn fields(
    suite: &str,
    state: &ChannelState,
    components: &BTreeSet<&str>,
    archs: &[&str],
) -> Result<Vec<(String, String)>> {
    let settings = &state.settings;
    let mut fields: Vec<(&str, Option<String>)> = vec![
        ("Origin", settings.origin.clone()),
        ("Label", settings.label.clone()),
        ("Suite", Some(suite.to_owned())),
        ("Codename", Some(settings.codename(suite).to_owned())),
        ("Date", Some(format_date(state.date)?)),
    ];
    if let Some(days) = settings.valid_days.filter(|days| *days > 0) {
        let until = state.date.saturating_add(i64::from(days) * SECONDS_PER_DAY);
        fields.push(("Valid-Until", Some(format_date(until)?)));
    }
    fields.push(("Acquire-By-Hash", Some("yes".to_owned())));
    if archs.first() == Some(&ALL) && archs.len() > 1 {
        fields.push(("No-Support-for-Architecture-all", Some("Packages".to_owned())));
    }
    fields.push(("Architectures", Some(archs.join(" "))));
    let components: Vec<&str> = components.iter().copied().collect();
    fields.push(("Components", Some(components.join(" "))));
    fields.push(("Description", settings.description.clone()));
    fields.push((KEYRING_KEYS, (!state.keys.is_empty()).then(|| state.keys.join(" "))));
    let set = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Ok(set.collect())
}
