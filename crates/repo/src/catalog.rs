//! The packages of a channel after a run: the earlier ones, without removed ones and versions that are not kept, and
//! the given ones.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_package::indexed::{IndexMetadata, PackageKind};
use rockpack_report::{Findings, PackageLeftOut, found};

use super::channels::Channels;
use super::input::GivenPackage;
use super::next::Publication;
use super::options::RepoOptions;
use super::python;
use super::state::{ChannelState, PoolRecord, PoolRecords};
use super::store::{Modified, Store};

#[derive(Debug, Default)]
pub(super) struct Catalog<'a> {
    pub records: PoolRecords,
    /// New paths in the channel, with their packages.
    pub added: BTreeMap<String, &'a GivenPackage>,
    /// Paths of the given packages, with the first package for each; emptied after the merge.
    pub given: BTreeMap<String, &'a GivenPackage>,
    pub findings: Findings,
}

impl<'a> Catalog<'a> {
    pub fn merge(run: &Publication<'_>, given: &[&'a GivenPackage]) -> Result<Self> {
        let RepoOptions { component, changes, .. } = run.options;
        let (kind, earlier) = (run.channel.kind(), &run.earlier.records);
        let mut catalog = Self { records: earlier.clone(), ..Self::default() };
        let mut faults = Faults::default();
        catalog.records.retain(|_, it| !changes.remove.iter().any(|spec| matches_spec(spec, it)));
        // Installers choose among all listed versions of a wheel, so a lower one is not a downgrade.
        if !changes.allow_downgrade && kind != PackageKind::Wheel {
            faults.keep(catalog.refuse_downgrades(given));
        }
        for given in given {
            faults.keep(catalog.add(given, component));
        }
        faults.keep(catalog.refuse_duplicates());
        if kind == PackageKind::Wheel {
            faults.keep(python::mark(&mut catalog.records, changes));
        }
        faults.finish()?;
        if let Some(keep) = changes.keep {
            catalog.keep(kind, keep);
        }
        catalog.refuse_other_content(run.channels)?;
        catalog.given.clear();
        catalog.added.retain(|path, _| !earlier.contains_key(path));
        Ok(catalog)
    }

    /// The content of the package at `path`, which is added or in the pool.
    pub fn open(&self, store: &dyn Store, path: &str) -> Result<Content> {
        let added = self.added.get(path).map(|given| given.content.clone());
        added.map_or_else(|| store.open(path), Ok)
    }

    /// Sets the modification time of a package's pool file.
    pub fn set_modified(&mut self, path: &str, modified: Modified) {
        let record = self.records.get_mut(path).filter(|record| record.modified != modified);
        record.into_iter().for_each(|record| Arc::make_mut(record).modified = modified);
    }

    fn add(&mut self, given: &'a GivenPackage, component: &str) -> Result<()> {
        let (path, name) = (given.indexed.facts.pool_path(component), &given.source.name);
        let first: &'a GivenPackage = self.given.entry(path.clone()).or_insert(given);
        if let Some(there) = self.records.get_mut(&path) {
            if there.source.sha256 != given.source.sha256 {
                return Err(content_conflict(&path, given, there));
            }
            let first = &first.source.name;
            if first != name {
                let file = if path.ends_with(name) { first.clone() } else { name.clone() };
                let reason = PackageLeftOut::Duplicate(path.clone());
                self.findings.add(found::PackageFileLeftOut { file, reason });
            }
            if there.source != given.source {
                // The same content with another name or time, by which the next run recognises it.
                Arc::make_mut(there).source = Arc::clone(&given.source);
            }
            let is_same = there.indexed.sha256 == given.indexed.sha256;
            if is_same && !Arc::ptr_eq(&there.indexed, &given.indexed) {
                // Read again: a later rockpack may record more facts.
                Arc::make_mut(there).indexed = Arc::clone(&given.indexed);
            }
            return Ok(());
        }
        let record = PoolRecord {
            source: Arc::clone(&given.source),
            component: match given.indexed.facts {
                IndexMetadata::Deb(_) => component.to_owned(),
                IndexMetadata::Rpm(_) | IndexMetadata::Wheel(_) => String::new(),
            },
            modified: given.source.modified,
            yanked: None,
            indexed: Arc::clone(&given.indexed),
        };
        self.added.insert(path.clone(), given);
        self.records.insert(path, Arc::new(record));
        Ok(())
    }

    /// Refuses added packages whose path a channel has, or had recently, with other content: clients with that index
    /// would get the wrong file.
    fn refuse_other_content(&self, channels: &Channels) -> Result<()> {
        let mut faults = Faults::default();
        for (path, given) in &self.added {
            // The digest of the published file, which signing may have changed.
            let Some(own) = self.records.get(path).map(|record| &record.indexed) else { continue };
            let mut held = channels.0.values().filter_map(|state| recorded_file(state, path));
            if let Some((_, version)) = held.find(|(sha256, _)| *sha256 != own.sha256) {
                let version = version.as_deref();
                let error = version.and_then(|version| epoch_conflict(path, &own.facts, version));
                let differs = format!("differs from the {path} that the repository has or had");
                let other = || Error::new(Kind::Conflict, differs).hint(CONFLICT_HINT);
                faults.add(error.unwrap_or_else(other).file(&given.file));
            }
        }
        faults.finish()
    }

    /// Refuses different files with the same name, version and architecture, in any component.
    fn refuse_duplicates(&self) -> Result<()> {
        let mut first: BTreeMap<_, (&String, &PoolRecord)> = BTreeMap::new();
        let mut faults = Faults::default();
        let added = self.added.keys().filter_map(|path| self.records.get(path));
        let names: BTreeSet<&str> = added.map(|record| record.indexed.facts.name()).collect();
        let records = self.records.iter();
        let named = records.filter(|(_, record)| names.contains(record.indexed.facts.name()));
        for (path, record) in named {
            let facts = &record.indexed.facts;
            let wheel = facts.wheel_identity();
            let package = (facts.name(), facts.version(), facts.arch());
            let key = (wheel.is_none().then_some(package), wheel);
            let (other_path, other) = *first.entry(key).or_insert((path, record));
            if other.source.sha256 != record.source.sha256 {
                let message = format!(
                    "{path} and {other_path} are different packages with one name, version and architecture"
                );
                faults.add(Error::new(Kind::Conflict, message).hint(CONFLICT_HINT));
            }
        }
        faults.finish()
    }

    /// Refuses packages whose highest given version is lower than the channel's: clients would never install it, or
    /// it would break dependents of the higher one.
    fn refuse_downgrades(&self, given: &[&GivenPackage]) -> Result<()> {
        let mut highest: BTreeMap<(&str, &str), &GivenPackage> = BTreeMap::new();
        for given in given {
            let facts = &given.indexed.facts;
            let best = highest.entry((facts.name(), facts.arch())).or_insert(given);
            if facts.compare_versions(&best.indexed.facts) == Ordering::Greater {
                *best = given;
            }
        }
        let mut faults = Faults::default();
        for record in self.records.values() {
            let held = &record.indexed.facts;
            let Some(given) = highest.get(&(held.name(), held.arch())) else {
                continue;
            };
            let facts = &given.indexed.facts;
            if held.kind() == facts.kind() && held.compare_versions(facts) == Ordering::Greater {
                let message = format!(
                    "is version {} of {}, but the repository already has {}",
                    facts.version(),
                    facts.name(),
                    held.version()
                );
                faults.add(Error::new(Kind::Conflict, message).file(&given.file).hint(
                    "no client would upgrade to it: publish a higher version, or allow it with \
                     --allow=downgrade",
                ));
            }
        }
        faults.finish()
    }

    /// Drops all but the highest `keep` versions of each package and the given ones. Wheels that the kept ones require
    /// stay.
    fn keep(&mut self, kind: PackageKind, keep: usize) {
        let dropped: BTreeSet<String> = match kind {
            PackageKind::Wheel => {
                let releases = python::releases_of(&self.records);
                let kept = releases.kept(keep, |path| self.given.contains_key(path));
                self.records.keys().filter(|path| !kept.contains(path)).cloned().collect()
            }
            PackageKind::Deb | PackageKind::Rpm => self.lower_versions(keep),
        };
        for path in dropped {
            self.records.remove(&path);
            self.findings.add(found::VersionNotKept { file: path, keep });
        }
    }

    /// Paths of all but the highest versions of each package, without those that were given.
    fn lower_versions(&self, keep: usize) -> BTreeSet<String> {
        let mut packages: BTreeMap<_, Vec<(&String, &IndexMetadata)>> = BTreeMap::new();
        for (path, record) in &self.records {
            let facts = &record.indexed.facts;
            let key = (&record.component, facts.name(), facts.arch());
            packages.entry(key).or_default().push((path, facts));
        }
        let lower = packages.into_values().flat_map(|mut versions| {
            versions.sort_by(|(_, a), (_, b)| b.compare_versions(a));
            versions.into_iter().skip(keep)
        });
        let dropped = lower.filter(|(path, _)| !self.given.contains_key(*path));
        dropped.map(|(path, _)| path.clone()).collect()
    }
}

/// Whether a `--remove` specification matches the package.
fn matches_spec(spec: &str, record: &PoolRecord) -> bool {
    let facts = &record.indexed.facts;
    if facts.kind() == PackageKind::Wheel {
        return python::names_wheel(spec, record);
    }
    match spec.split_once('=') {
        Some((name, version)) => name == facts.name() && version == facts.version(),
        None => spec == facts.name(),
    }
}

/// Refuses `--remove` specifications that match no package of any channel.
pub(super) fn check_removals(specs: &[String], states: &[&PoolRecords]) -> Result<()> {
    let mut faults = Faults::default();
    for spec in specs {
        let mut records = states.iter().flat_map(|state| state.values());
        if !records.any(|record| matches_spec(spec, record)) {
            let message = format!("the repository has no package {spec} to remove");
            let hint = "give its name (rocm-blas), or name and full version (rocm-blas=7.1.0-1)";
            faults.add(Error::new(Kind::Usage, message).hint(hint));
        }
    }
    faults.finish()
}

const CONFLICT_HINT: &str = "clients that have one refuse the other: raise the release of the package that was built again, or the \
     version of the wheel";

fn content_conflict(path: &str, given: &GivenPackage, there: &PoolRecord) -> Error {
    let facts = &given.indexed.facts;
    if let Some(error) = epoch_conflict(path, facts, &there.indexed.facts.version()) {
        return error.file(&given.file);
    }
    let other = if there.source.name == given.source.name { path } else { &there.source.name };
    let [own, others] =
        [&given.source.sha256, &there.source.sha256].map(|it| it.get(..12).unwrap_or(it));
    let (name, version, arch) = (facts.name(), facts.version(), facts.arch());
    let message = format!(
        "is {name} {version} for {arch}, like {other}, but has other content (SHA-256 {own} and {others})"
    );
    Error::new(Kind::Conflict, message).file(&given.file).hint(CONFLICT_HINT)
}

/// The error for two versions with the same path, because file names leave out the epoch. `None` if the versions are
/// equal.
fn epoch_conflict(path: &str, facts: &IndexMetadata, other: &str) -> Option<Error> {
    let (name, version) = (facts.name(), facts.version());
    if facts.kind().compare_versions(&version, other).is_eq() {
        return None;
    }
    let message = format!(
        "is {name} {version}, and the repository has or is given {name} {other}: they differ only in \
         the epoch, which file names leave out, so both would be {path}"
    );
    Some(Error::new(Kind::Conflict, message).hint(
        "clients cache files by path: raise the version or the release as well as the epoch, or \
         publish one of the two in another repository",
    ))
}

/// The digest of the file that a channel has or had at `path`, and its version if known.
pub(super) fn recorded_file<'a>(
    state: &'a ChannelState,
    path: &str,
) -> Option<(&'a str, Option<String>)> {
    if let Some(record) = state.records.get(path) {
        return Some((&record.indexed.sha256, Some(record.indexed.facts.version())));
    }
    if let Some(sha256) = state.used.get(path) {
        return Some((sha256, None));
    }
    let retired = state.retired.get(path)?;
    Some((retired.sha256.as_deref()?, retired.version.clone()))
}
