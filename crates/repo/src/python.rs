//! The channel of wheels and source distributions: its pages and the order in which they are replaced, releases, and
//! yanked wheels.
//!
//! An installer reads the page of each project separately, so it may see pages of two publications. At any moment,
//! the wheels that a listed wheel requires are listed, too:
//!
//! 1. pages that list the new wheels and the old ones; those of device wheels before those of hosts
//! 2. the lists of projects
//! 3. pages without the old wheels; those of hosts before those of device wheels
//!
//! Unchanged pages are not written. The page of a removed project becomes empty, and is removed later.

use std::collections::BTreeMap;
use std::path::{Path, absolute};
use std::sync::Arc;

use rockpack_archive::python_index::{
    ListedWheel, Page, WheelPackage, compare_versions, metadata_of, percent_encoded, projects_html,
    projects_json, upload_time,
};
use rockpack_archive::sdist;
use rockpack_archive::wheel::normalized;
use rockpack_core::error::{Error, Faults, Kind, Result, ResultExt};
use rockpack_package::indexed::IndexMetadata;
use rockpack_package::releases::{IncompleteExtra, Releases};
use rockpack_report::{Findings, found};

use super::catalog::Catalog;
use super::channel::{
    Channel, PROJECT_LISTS, PYTHON_FOLDER, foreign_file, project_pages, unknown_index,
};
use super::channel_files::ChannelFiles;
use super::next::Publication;
use super::options::PackageChanges;
use super::state::{ChannelState, PoolRecord, PoolRecords};
use super::store::FileContent;
use super::updates::UNMET_HINT;

/// The pages, and the METADATA files next to the wheels of `catalog`. A run that checks writes all METADATA again.
pub(super) fn files(
    run: &Publication<'_>,
    next: &ChannelState,
    catalog: &Catalog<'_>,
) -> Result<ChannelFiles> {
    let Publication { store, channels, earlier, options, .. } = *run;
    let mut files = pages(run, next)?;
    for (wheel, record) in &catalog.records {
        let IndexMetadata::Wheel(package) = &record.indexed.facts else { continue };
        let Some(beside) = &package.metadata else { continue };
        let path = format!("{wheel}.metadata");
        files.indexes.insert(path.clone());
        let stat = store.stat(&path)?;
        let exists = stat.is_some_and(|stat| stat.size == beside.size);
        if exists && !options.check && earlier.indexes.contains(&path) {
            continue;
        }
        let content = catalog.open(store, wheel)?;
        let _open = content.pin()?;
        let bytes = metadata_of(&content).file(wheel)?;
        if stat.is_none() || channels.uses(&path) {
            files.hidden.push((path, bytes.into()));
        } else if store.read(&path)?.is_some_and(|there| there == bytes) {
            files.found.push(path);
        } else {
            return Err(match catalog.added.get(wheel) {
                Some(given) => foreign_file(&path, given),
                None => unknown_index(&path, &Channel::Python),
            });
        }
    }
    Ok(files)
}

/// The pages that change from the earlier wheels to those of `next`, in the order above. Some are replaced twice.
fn pages(run: &Publication<'_>, next: &ChannelState) -> Result<ChannelFiles> {
    let earlier = &run.earlier.records;
    let (before, after) = (by_project(earlier), by_project(&next.records));
    let in_both = || earlier.iter().chain(&next.records);
    let all = by_project(in_both());
    let order = releases_of(in_both()).in_order();
    let (there, changed) = (BTreeMap::new(), Vec::new());
    let mut index = Index { run, uploaded: &next.uploaded, there, changed };
    for project in order.iter().filter(|project| after.contains_key(*project)) {
        let counts = [&before, &all, &after].map(|it| it.get(project).map_or(0, BTreeMap::len));
        // A page that only loses wheels waits for those that need them.
        if counts[0] != counts[1] || counts[1] == counts[2] {
            index.put_page(project, all.get(project))?;
        }
    }
    let [html, json] = PROJECT_LISTS;
    index.put(json, projects_json(after.keys().copied()))?;
    index.put(html, projects_html(after.keys().copied()))?;
    for project in order.iter().rev() {
        index.put_page(project, after.get(project))?;
    }
    let paths = after.keys().flat_map(|project| project_pages(project));
    let indexes = paths.chain(PROJECT_LISTS.map(str::to_owned)).collect();
    let (visible, unsigned) = (index.changed, index.there);
    Ok(ChannelFiles { visible, unsigned, indexes, ..ChannelFiles::default() })
}

type Wheels<'a> = BTreeMap<&'a String, &'a PoolRecord>;

fn by_project<'a>(
    records: impl IntoIterator<Item = (&'a String, &'a Arc<PoolRecord>)>,
) -> BTreeMap<&'a str, Wheels<'a>> {
    let mut projects: BTreeMap<&str, Wheels<'_>> = BTreeMap::new();
    for (path, record) in records {
        projects.entry(record.indexed.facts.name()).or_default().insert(path, record);
    }
    projects
}

struct Index<'a> {
    run: &'a Publication<'a>,
    /// When the earlier and the next wheels were first published.
    uploaded: &'a BTreeMap<String, String>,
    /// The latest content of each page that was read or changed.
    there: BTreeMap<String, FileContent>,
    changed: Vec<(String, FileContent)>,
}

impl Index<'_> {
    /// Replaces the pages of a project unless they list exactly these wheels.
    fn put_page(&mut self, project: &str, wheels: Option<&Wheels<'_>>) -> Result<()> {
        let (wheels, uploaded) = (wheels.into_iter().flatten(), self.uploaded);
        let listed = wheels.filter_map(|(path, record)| {
            let IndexMetadata::Wheel(package) = &record.indexed.facts else { return None };
            let package: &WheelPackage = package;
            let (size, sha256) = (record.indexed.size, record.indexed.sha256.as_str());
            let uploaded = uploaded.get(*path).map(String::as_str);
            let yanked = record.yanked.as_deref();
            Some(ListedWheel { package, size, sha256, uploaded, yanked })
        });
        let page = Page::new(project, format!("../../wheels/{project}/"), listed.collect());
        let [html, json] = project_pages(project);
        self.put(&json, page.json())?;
        self.put(&html, page.html())
    }

    fn put(&mut self, path: &str, text: String) -> Result<()> {
        let content = FileContent::from(text.into_bytes());
        let there = match self.there.get(path) {
            Some(there) => Some(there.clone()),
            None => match self.run.store.read(path)? {
                Some(_) if !self.run.earlier.uses(path) => {
                    return Err(unknown_index(path, &Channel::Python));
                }
                read => read.map(FileContent::from),
            },
        };
        if there.is_none_or(|there| there != content) {
            self.changed.push((path.to_owned(), content.clone()));
        }
        self.there.insert(path.to_owned(), content);
        Ok(())
    }
}

/// When the earlier and the next wheels were first published; `date` for new ones. Includes wheels that are removed now,
/// because pages list them once more.
pub(super) fn uploaded(
    earlier: &ChannelState,
    next: &PoolRecords,
    date: i64,
) -> Result<BTreeMap<String, String>> {
    let (mut uploaded, now) = (earlier.uploaded.clone(), upload_time(date)?);
    for path in next.keys() {
        uploaded.entry(path.clone()).or_insert_with(|| now.clone());
    }
    Ok(uploaded)
}

pub(super) fn releases_of<'a>(
    records: impl IntoIterator<Item = (&'a String, &'a Arc<PoolRecord>)>,
) -> Releases<'a> {
    Releases::of(records.into_iter().filter_map(|(path, record)| match &record.indexed.facts {
        IndexMetadata::Wheel(package) => Some((path, &**package)),
        IndexMetadata::Deb(_) | IndexMetadata::Rpm(_) => None,
    }))
}

/// Fails if device wheels of `next` lack their host, unless that was so in `earlier`.
pub(super) fn check_hosts(earlier: &PoolRecords, next: &PoolRecords) -> Result<()> {
    let [before, after] = [earlier, next].map(|records| releases_of(records).incomplete_extras());
    let lost = after.iter().filter(|open| open.extra.is_empty() && !before.contains(*open));
    let faults = lost.map(|IncompleteExtra { wheel, extra, requires, gap }| {
        let error = Error::new(Kind::Conflict, gap.describe(extra, requires));
        error.structure(wheel.clone()).hint(UNMET_HINT)
    });
    Error::gather(faults.collect()).map_or(Ok(()), Err)
}

/// The URL of the index: below the repository's URL, or a `file://` URL of its folder.
pub(super) fn index_url(url: Option<&str>, folder: &Path) -> String {
    let of_folder = || {
        let folder = absolute(folder).unwrap_or_else(|_| folder.to_owned());
        format!("file://{}", percent_encoded(&folder.to_string_lossy()))
    };
    let base = url.map_or_else(of_folder, str::to_owned);
    format!("{}/{PYTHON_FOLDER}/", base.trim_end_matches('/'))
}

/// Findings about extras that lack code of a GPU, about mixed builds, and about added wheels that installers skip.
pub(super) fn release_findings(catalog: &Catalog<'_>) -> Findings {
    let releases = releases_of(&catalog.records);
    let mut findings = Findings::default();
    for IncompleteExtra { wheel, extra, requires, gap } in releases.incomplete_extras() {
        findings.add(found::WheelExtraOpen { wheel, extra, requires, gap });
    }
    findings.extend(releases.mixed_builds());
    let offered = catalog.records.iter().filter(|(_, record)| record.yanked.is_none());
    findings.extend(releases_of(offered).passed_over(|path| catalog.added.contains_key(path)));
    findings
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Yank {
    /// The wheels and source distributions: `NAME=VERSION`, or a file name.
    pub wheels: String,
    /// Why; maybe empty.
    pub reason: String,
}

impl Yank {
    /// Parses `NAME=VERSION[=REASON]` or `FILE[=REASON]`.
    pub fn parse(text: &str) -> Result<Self> {
        let (first, rest) = text.split_once('=').unwrap_or((text, ""));
        let (wheels, reason) = if is_file_name(first) {
            (first.to_owned(), rest)
        } else {
            let (version, reason) = rest.split_once('=').unwrap_or((rest, ""));
            (format!("{first}={version}"), reason)
        };
        if !is_wheel_spec(&wheels) {
            return Err(no_wheel_named("--yank", text));
        }
        if reason.contains(char::is_control) {
            let message = format!("the reason of --yank {wheels} has control characters");
            return Err(Error::new(Kind::Usage, message));
        }
        Ok(Self { wheels, reason: reason.trim().to_owned() })
    }
}

/// Refuses a value of `option` that is neither a file name nor `NAME=VERSION`.
pub fn check_wheel_spec(option: &str, wheels: &str) -> Result<()> {
    if is_wheel_spec(wheels) { Ok(()) } else { Err(no_wheel_named(option, wheels)) }
}

fn is_wheel_spec(text: &str) -> bool {
    is_file_name(text)
        || text.split_once('=').is_some_and(|(name, version)| {
            !name.is_empty() && !version.is_empty() && !version.contains('=')
        })
}

fn no_wheel_named(option: &str, text: &str) -> Error {
    let message = format!("{option} `{}` names no wheel", text.escape_debug());
    Error::new(Kind::Usage, message).hint(NAME_HINT)
}

const NAME_HINT: &str =
    "give NAME=VERSION (torch=2.13.0) or a file name; with --yank, =REASON may follow";

fn is_file_name(text: &str) -> bool {
    text.ends_with(".whl") || sdist::parts(text).is_some()
}

/// Whether `spec` is the wheel's `NAME`, `NAME=VERSION` or file name. Compares normalized names, and versions as
/// installers do.
pub(super) fn names_wheel(spec: &str, record: &PoolRecord) -> bool {
    let IndexMetadata::Wheel(package) = &record.indexed.facts else { return false };
    match spec.split_once('=') {
        _ if is_file_name(spec) => spec == package.file,
        Some((name, version)) => {
            normalized(name) == package.project
                && compare_versions(version, &package.version).is_eq()
        }
        None => normalized(spec) == package.project,
    }
}

/// Yanks and unyanks wheels (PEP 592: files of yanked wheels stay, and installers use them only for requirements of
/// exactly that version). Refuses names that match no wheel.
pub(super) fn mark(records: &mut PoolRecords, changes: &PackageChanges) -> Result<()> {
    let PackageChanges { yank, unyank, .. } = changes;
    let yank = yank.iter().map(|it| ("yank", &it.wheels, Some(&it.reason)));
    let unyank = unyank.iter().map(|it| ("unyank", it, None));
    let mut faults = Faults::default();
    for (doing, wheels, reason) in yank.chain(unyank) {
        let mut named =
            records.values_mut().filter(|record| names_wheel(wheels, record)).peekable();
        if named.peek().is_none() {
            let message = format!("the repository has no wheel {wheels} to {doing}");
            faults.add(Error::new(Kind::Usage, message).hint(NAME_HINT));
        }
        for record in named.filter(|record| record.yanked.as_ref() != reason) {
            Arc::make_mut(record).yanked = reason.cloned();
        }
    }
    faults.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_are_named_with_a_reason_or_without() {
        for (text, wheels, reason) in [
            ("demo=1.0", "demo=1.0", ""),
            ("demo=1!1.0+rocm7.1=wrong code = bad", "demo=1!1.0+rocm7.1", "wrong code = bad"),
            ("demo-1.0-py3-none-any.whl", "demo-1.0-py3-none-any.whl", ""),
            ("demo-1.0-py3-none-any.whl=old", "demo-1.0-py3-none-any.whl", "old"),
            ("demo-1.0.tar.gz=old", "demo-1.0.tar.gz", "old"),
        ] {
            let yank = Yank::parse(text).unwrap();
            assert_eq!((yank.wheels.as_str(), yank.reason.as_str()), (wheels, reason));
        }
        for text in ["demo", "demo==1.0", "=1.0", "", "demo=", "demo=1.0=a\nb"] {
            assert_eq!(Yank::parse(text).unwrap_err().kind(), Kind::Usage, "{text}");
        }
        assert!(check_wheel_spec("--unyank", "demo=1.0=reason").is_err());
    }
}
