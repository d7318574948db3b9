//! The next state of a channel: everything computed, nothing written.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use rayon::prelude::*;
use rockpack_core::content::hex;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_package::indexed::PackageKind;
use rockpack_report::Findings;
use rockpack_signing::{IndexSigner, fingerprints};
use sha2::{Digest, Sha256};

use super::catalog::Catalog;
use super::channel::{Channel, foreign_file};
use super::channels::{Channels, ShownFile, shown};
use super::clients::GPU_SCRIPT;
use super::input::GivenPackage;
use super::options::RepoOptions;
use super::published::{ChannelReport, mirror, report};
use super::settings::check_continuity;
use super::state::{ChannelState, PoolRecord, PoolRecords, Retired, SCHEMA};
use super::store::{ExpectedFile, FileBody, FileContent, Modified, Store};
use super::{channel_files, owners, package_findings, python, updates};

/// Seconds that unused files stay at least, for clients with an older index.
pub(super) const GRACE: i64 = 3600;

pub(super) struct Publication<'a> {
    pub store: &'a dyn Store,
    pub options: &'a RepoOptions<'a>,
    pub channels: &'a Channels,
    pub channel: &'a Channel,
    /// The state of the channel before it.
    pub earlier: &'a ChannelState,
}

#[derive(Debug)]
pub(super) struct NextChannel {
    pub name: String,
    pub next: ChannelState,
    pub packages: Vec<(String, FileBody)>,
    /// Indexes that no client refers to yet.
    pub hidden: Vec<(String, FileBody)>,
    /// Files under the names that clients read. The one that clients read first is the last.
    pub visible: Vec<(String, FileBody)>,
    /// The visible files, for the next run if this one is interrupted.
    pub shown: Vec<ShownFile>,
    /// Paths of files that have been out of use long enough to be removed.
    pub outdated: Vec<String>,
    pub report: ChannelReport,
    pub findings: Findings,
}

impl NextChannel {
    /// Computes the next state of `channel` with the packages `given`.
    pub fn new(
        store: &dyn Store,
        channel: &Channel,
        channels: &Channels,
        given: &[GivenPackage],
        options: &RepoOptions<'_>,
    ) -> Result<Self> {
        let name = channel.name();
        let nothing = ChannelState::default();
        let earlier = channels.0.get(&name).unwrap_or(&nothing);
        let run = Publication { store, options, channels, channel, earlier };
        let own: Vec<&GivenPackage> =
            given.iter().filter(|g| g.indexed.facts.kind() == channel.kind()).collect();
        let mut catalog = Catalog::merge(&run, &own)?;
        check_pool(&run, &mut catalog)?;
        updates::check_requirements(&run, &catalog.records, &own)?;
        let in_pool = in_pool(&run, &mut catalog)?;
        let mut next = next_state(&run, &catalog.records)?;
        next.found = in_pool.iter().filter(|path| !channels.uses(path)).cloned().collect();
        let mut findings = catalog.findings.clone();
        findings.extend(package_findings::given_findings(&own));
        let (files, clients) = match channel.format() {
            Some(format) => {
                // First: compressors take most of the memory of a run.
                let files = channel_files::files(&run, &next, &mut findings)?;
                findings.extend(owners::findings(&run, format, &catalog));
                let (noticed, clients) = updates::of(&run, format, &next.records);
                findings.extend(noticed);
                (files, clients)
            }
            None => {
                findings.extend(python::release_findings(&catalog));
                (python::files(&run, &next, &catalog)?, Vec::new())
            }
        };
        next.found.extend(files.found);
        next.indexes = files.indexes;
        next.listed.clone_from(&files.listed);
        let digest = |(path, content): (String, FileContent)| -> Result<_> {
            Ok((path, hex(&Sha256::digest(content.to_vec()?))))
        };
        next.unsigned_files = files.unsigned.into_iter().map(digest).collect::<Result<_>>()?;
        retire(earlier, &mut next);
        let shown = shown(&files.visible, &files.hidden)?;
        let hidden = missing(&run, files.hidden)?;
        let packages = packages(&catalog, &in_pool);
        let mirror = mirror(&next, &packages, hidden.iter().chain(&files.visible));
        let mut report = report(channel, (earlier, &next), &own, (&catalog, mirror, clients));
        if *channel == Channel::Python {
            report.index_url = Some(python::index_url(next.settings.url.as_deref(), &options.out));
        }
        if options.dry_run {
            report.indexes = files.visible.iter().map(|(path, _)| path.clone()).collect();
        }
        let outdated = outdated(&next, options.generations);
        let [hidden, visible] = bodies([hidden, files.visible]);
        Ok(Self { packages, hidden, visible, shown, name, next, outdated, report, findings })
    }

    /// Paths of all files that are put in place or removed.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let put = self.packages.iter().chain(&self.hidden).chain(&self.visible);
        put.map(|(path, _)| path).chain(&self.outdated).map(String::as_str)
    }
}

/// Makes the bodies of indexes, in the order of writing. Files that share content refer to the first.
fn bodies<const N: usize>(files: [Vec<(String, FileContent)>; N]) -> [Vec<(String, FileBody)>; N] {
    let mut first = HashMap::new();
    let mut body = |(path, content): (String, FileContent)| {
        let key = (Arc::as_ptr(&content.bytes), content.unpacked);
        match first.entry(key) {
            Entry::Occupied(other) => (path, FileBody::Same(String::clone(other.get()), content)),
            Entry::Vacant(entry) => {
                entry.insert(path.clone());
                (path, FileBody::Made(content))
            }
        }
    };
    files.map(|files| files.into_iter().map(&mut body).collect())
}

/// Checks that the pool has every remaining package, unchanged. Records the times of those that it read, so that the
/// next run need not read them.
fn check_pool(run: &Publication<'_>, catalog: &mut Catalog<'_>) -> Result<()> {
    let mut faults = Faults::default();
    let earlier = run.earlier.records.iter();
    let stay: Vec<_> = earlier.filter(|(path, _)| catalog.records.contains_key(*path)).collect();
    let checked: Vec<(&String, Result<Modified>)> = stay
        .into_par_iter()
        .map(|(path, record)| (path, check_pool_file(run, path, record)))
        .collect();
    for (path, result) in checked {
        if let Some(modified) = faults.keep(result) {
            catalog.set_modified(path, modified);
        }
    }
    faults.finish()
}

/// Modification time of a package file in the pool. Fails if the file is missing or changed. A run that checks
/// compares its digest even if size and time are the same.
fn check_pool_file(run: &Publication<'_>, path: &str, record: &PoolRecord) -> Result<Modified> {
    let hint = "put the file back, or remove the package with --remove";
    let Some(stat) = run.store.stat(path)? else {
        let message = format!("{path} is missing from the repository");
        return Err(Error::new(Kind::Changed, message).hint(hint));
    };
    let same = stat.size == record.indexed.size && stat.modified == record.modified;
    if same && !run.options.check {
        return Ok(stat.modified);
    }
    if run.store.open(path)?.digest()?.to_string() == record.indexed.sha256 {
        Ok(stat.modified)
    } else {
        let message = format!("{path} is not the package that was published");
        Err(Error::new(Kind::Changed, message).hint(hint))
    }
}

/// Added packages whose file is already in the pool; it keeps its time. A different file is rewritten if a channel
/// knows it, and refused otherwise.
fn in_pool(run: &Publication<'_>, catalog: &mut Catalog<'_>) -> Result<BTreeSet<String>> {
    let Publication { store, channels, options, .. } = run;
    let (mut there, mut faults) = (BTreeMap::new(), Faults::default());
    for (path, given) in &catalog.added {
        let (Some(record), Some(stat)) = (catalog.records.get(path), store.stat(path)?) else {
            continue;
        };
        let mut records = channels.0.values().filter_map(|state| state.records.get(path));
        let known = !options.check && records.any(|record| record.modified == stat.modified);
        let is_it = stat.size == record.indexed.size
            && (known || store.open(path)?.digest()?.to_string() == record.indexed.sha256);
        if is_it {
            there.insert(path.clone(), stat.modified);
        } else if !channels.uses(path) {
            faults.add(foreign_file(path, given));
        }
    }
    faults.finish()?;
    there.iter().for_each(|(path, modified)| catalog.set_modified(path, *modified));
    Ok(there.into_keys().collect())
}

fn next_state(run: &Publication<'_>, records: &PoolRecords) -> Result<ChannelState> {
    let Publication { options, channels, channel, earlier, .. } = *run;
    check_continuity(channel, earlier, options)?;
    let signer = options.signer.as_deref().filter(|_| channel.format().is_some());
    let is_python = *channel == Channel::Python;
    let uploaded = is_python.then(|| python::uploaded(earlier, records, options.date));
    Ok(ChannelState {
        schema: SCHEMA,
        channel: channel.name(),
        generation: earlier.generation.saturating_add(1),
        date: options.date,
        settings: channels.settings(channel, &options.settings),
        // pip and uv check no signatures.
        signed: signer.is_some(),
        keys: several_keys(signer)?,
        records: records.clone(),
        uploaded: uploaded.transpose()?.unwrap_or_default(),
        ..ChannelState::default()
    })
}

/// Fingerprints of the keys that clients get, if they get several.
fn several_keys(signer: Option<&dyn IndexSigner>) -> Result<Vec<String>> {
    let Some(signer) = signer else { return Ok(Vec::new()) };
    let keys = fingerprints(signer.public_keys()?.as_bytes())?;
    Ok(if keys.len() > 1 { keys } else { Vec::new() })
}

/// Records in `next` the files that it no longer uses.
fn retire(earlier: &ChannelState, next: &mut ChannelState) {
    let (generation, date) = (next.generation, next.date);
    let mut retired = earlier.retired.clone();
    let is_script = |path: &String| path.ends_with(GPU_SCRIPT);
    let has =
        |path: &String| next.has(path) || is_script(path) && next.unsigned_files.contains_key(path);
    retired.retain(|path, _| !has(path));
    // After a publication that was dated in the future, the hour counts from the one that corrects the date.
    retired.values_mut().for_each(|retired| retired.date = retired.date.min(date));
    let mut used = earlier.used.clone();
    for (path, record) in earlier.records.iter().filter(|(path, _)| !next.has(path)) {
        let sha256 = Some(record.indexed.sha256.clone());
        let version = Some(record.indexed.facts.version());
        if record.indexed.facts.kind() == PackageKind::Wheel {
            used.insert(path.clone(), record.indexed.sha256.clone());
        }
        retired.insert(path.clone(), Retired { generation, date, sha256, version });
    }
    // An earlier script would name removed packages.
    let scripts = earlier.unsigned_files.keys().filter(|path| is_script(path));
    for path in earlier.indexes.iter().chain(scripts).filter(|path| !has(path)) {
        retired.insert(path.clone(), Retired { generation, date, sha256: None, version: None });
    }
    (next.retired, next.used) = (retired, used);
}

/// Retired files that have been unused long enough to be removed.
fn outdated(next: &ChannelState, generations: u64) -> Vec<String> {
    let (generation, date) = (next.generation, next.date);
    let gone = next.retired.iter().filter(|(_, retired)| {
        generation.saturating_sub(retired.generation) >= generations
            && date.saturating_sub(retired.date) >= GRACE
    });
    gone.map(|(path, _)| path.clone()).collect()
}

/// Indexes that do not exist yet, by name, which contains the digest, and size. A run that checks writes all.
fn missing(
    run: &Publication<'_>,
    hidden: Vec<(String, FileContent)>,
) -> Result<Vec<(String, FileContent)>> {
    let mut missing = Vec::new();
    for (path, content) in hidden {
        let is_earlier = run.earlier.indexes.contains(&path);
        let stat = if is_earlier { run.store.stat(&path)? } else { None };
        if run.options.check || stat.is_none_or(|stat| stat.size != content.size()) {
            missing.push((path, content));
        }
    }
    Ok(missing)
}

fn packages(catalog: &Catalog<'_>, in_pool: &BTreeSet<String>) -> Vec<(String, FileBody)> {
    let new = catalog.added.iter().filter(|(path, _)| !in_pool.contains(*path));
    let bodies = new.filter_map(|(path, given)| {
        let record = catalog.records.get(path)?;
        let known =
            ExpectedFile { indexed: Arc::clone(&record.indexed), modified: record.modified };
        let link = given.link.then(|| given.file.clone());
        Some((path.clone(), FileBody::Package(given.content.clone(), known, link)))
    });
    bodies.collect()
}
