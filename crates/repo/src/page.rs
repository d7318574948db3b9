//! `index.html`, a page with the commands that install packages of the repository, by distribution and GPU.
//!
//! It covers all channels, so each publication writes it again, and the state of one channel has its digest. rockpack
//! never replaces an `index.html` that it did not write.

use std::collections::BTreeSet;
use std::slice;

use rockpack_core::content::hex;
use rockpack_core::error::Result;
use rockpack_core::gfx::BaseArch;
use rockpack_hardware::products;
use rockpack_package::Format;
use rockpack_package::for_gpu::{GpuPackage, GpuPackages};
use rockpack_package::indexed::IndexMetadata;
use rockpack_report::{Findings, found, page};
use rockpack_signing::fingerprints;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::channel::Channel;
use super::channels::{Channels, shown};
use super::keyring;
use super::next::NextChannel;
use super::options::RepoOptions;
use super::state::ChannelState;
use super::store::{FileBody, FileContent, Store};

const PAGE: &str = "index.html";

const VERSIONS: usize = 6;

#[derive(Serialize)]
struct Section<'a> {
    /// The format of its packages; `None` for wheels.
    format: Option<Format>,
    suite: Option<&'a str>,
    /// The URL, for use between single quotes in a shell.
    url: String,
    name: &'a str,
    pin: Option<u16>,
    /// The file with the keys, if the channel is signed.
    keyring: Option<String>,
    packages: usize,
    /// The newest versions of packages with device code, or of all, the newest first.
    versions: Vec<String>,
    gpus: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    targets: Vec<BaseArch>,
    products: Vec<&'static str>,
    install: Vec<&'a str>,
}

/// Adds the page, or its removal, to the last channel of the publication.
pub(super) fn add(
    store: &dyn Store,
    options: &RepoOptions<'_>,
    channels: &Channels,
    next: &mut [NextChannel],
) -> Result<Findings> {
    let mut findings = Findings::default();
    // rockpack did not write a page that cannot be read.
    let there = store.read(PAGE).unwrap_or_else(|_| Some(Vec::new()));
    let digest = there.map(|bytes| hex(&Sha256::digest(bytes)));
    let mut known = channels.0.values().filter_map(|state| state.unsigned_files.get(PAGE));
    let is_own = digest.as_ref().is_none_or(|digest| known.any(|own| own == digest));
    let text = options.index_page.then(|| text(store, options, channels, next)).transpose()?;
    // Valid until the page is replaced: a channel may be completed without the last one.
    for NextChannel { name, next, .. } in &mut *next {
        let earlier = channels.0.get(name).and_then(|state| state.unsigned_files.get(PAGE));
        next.unsigned_files.extend(earlier.map(|digest| (PAGE.to_owned(), digest.clone())));
    }
    let Some(last) = next.last_mut() else { return Ok(findings) };
    match text.flatten() {
        Some(_) if !is_own => findings.add(found::IndexPageKept { path: PAGE.to_owned() }),
        Some(text) => {
            let digest = hex(&Sha256::digest(&text));
            last.next.unsigned_files.insert(PAGE.to_owned(), digest);
            let page = (PAGE.to_owned(), FileContent::from(text.into_bytes()));
            last.shown.splice(0..0, shown(slice::from_ref(&page), &[])?);
            if options.dry_run {
                last.report.indexes.insert(0, PAGE.to_owned());
            }
            last.visible.insert(0, (page.0, FileBody::Made(page.1)));
        }
        None if is_own && digest.is_some() => last.outdated.push(PAGE.to_owned()),
        None => {}
    }
    Ok(findings)
}

/// Removes digests of earlier pages from the states. The state of `last` has that of the current page.
pub(super) fn forget(store: &dyn Store, channels: &mut Channels, last: Option<&str>) -> Result<()> {
    let there = store.read(PAGE).ok().flatten().map(|bytes| hex(&Sha256::digest(bytes)));
    let others = channels.0.iter().filter(|(name, state)| {
        let own = state.unsigned_files.get(PAGE);
        own.is_some() && (Some(name.as_str()) != last || own != there.as_ref())
    });
    let others = others.map(|(name, state)| {
        let mut state = state.clone();
        state.unsigned_files.remove(PAGE);
        (name.clone(), state)
    });
    let others: Vec<_> = others.collect();
    if others.is_empty() { Ok(()) } else { channels.put(store, others) }
}

/// The text of the page; `None` if no channel has a URL.
fn text(
    store: &dyn Store,
    options: &RepoOptions<'_>,
    channels: &Channels,
    next: &[NextChannel],
) -> Result<Option<String>> {
    let new = next.iter().map(|channel| &channel.next);
    let is_new = |name: &String| next.iter().any(|channel| channel.name == *name);
    let others = channels.0.iter().filter(|(name, _)| !is_new(name)).map(|(_, state)| state);
    let mut states: Vec<&ChannelState> = new.chain(others).collect();
    states.sort_by_key(|state| (state.channel == Channel::Python.name(), &state.channel));
    let offers: Vec<GpuPackages> = states.iter().map(|state| offers(state)).collect();
    let sections = states.iter().zip(&offers).filter_map(|(state, offers)| section(state, offers));
    let sections: Vec<Section<'_>> = sections.collect();
    let Some(first) = sections.first() else { return Ok(None) };
    let mut keys = BTreeSet::new();
    for keyring in sections.iter().filter_map(|it| it.keyring.as_ref()).collect::<BTreeSet<_>>() {
        let is_new = next.iter().any(|it| it.next.unsigned_files.contains_key(keyring));
        let bytes = match &options.signer {
            Some(signer) if is_new => signer.public_keys()?.into_bytes(),
            _ => store.read(keyring)?.unwrap_or_default(),
        };
        keys.extend(if bytes.is_empty() { Vec::new() } else { fingerprints(&bytes)? });
    }
    let title = states.iter().find_map(|state| state.settings.description.as_deref());
    let values =
        json!({ "title": title.unwrap_or(first.name), "keys": keys, "sections": sections });
    page::render("repository.html", include_str!("../../../templates/repository.html"), values)
        .map(Some)
}

fn section<'a>(state: &'a ChannelState, offers: &'a GpuPackages) -> Option<Section<'a>> {
    let settings = &state.settings;
    let (url, name) = (settings.url.as_deref()?, settings.name.as_deref()?);
    let offered = || state.records.values().filter(|record| record.yanked.is_none());
    let facts = || offered().map(|record| &record.indexed.facts);
    let kind = facts().next()?.kind();
    let has_code = facts().any(|facts| !facts.gpu_archs().is_empty());
    let named = facts().filter(|facts| !has_code || !facts.gpu_archs().is_empty());
    let versions: BTreeSet<String> = named.map(IndexMetadata::version).collect();
    let mut versions = Vec::from_iter(versions);
    versions.sort_by(|a, b| kind.compare_versions(b, a));
    versions.truncate(VERSIONS);
    let mut gpus: Vec<Row<'_>> = Vec::new();
    for (target, install) in offers.targets_with_packages() {
        match gpus.iter_mut().find(|row| row.install == install) {
            Some(row) => row.targets.push(target),
            None => gpus.push(Row { targets: vec![target], products: Vec::new(), install }),
        }
    }
    gpus.iter_mut().for_each(|row| row.products = products(&row.targets));
    Some(Section {
        format: kind.format(),
        suite: state.channel.strip_prefix("apt-"),
        url: url.trim_end_matches('/').replace('\'', "%27"),
        name,
        pin: settings.pin,
        keyring: state.signed.then(|| keyring::file_name(Some(name))),
        packages: offered().count(),
        versions,
        gpus,
    })
}

/// The packages of a channel, by the GPUs that they serve.
fn offers(state: &ChannelState) -> GpuPackages {
    let records = state.records.values().filter(|record| record.yanked.is_none());
    let facts = records.map(|record| &record.indexed.facts);
    match state.records.values().next().and_then(|first| first.indexed.facts.kind().format()) {
        Some(format) => GpuPackages::new(format, facts.filter_map(GpuPackage::of)),
        None => GpuPackages::of_wheels(facts.filter_map(|facts| match facts {
            IndexMetadata::Wheel(package) => Some(&**package),
            IndexMetadata::Deb(_) | IndexMetadata::Rpm(_) => None,
        })),
    }
}
