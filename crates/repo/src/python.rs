//! The pages of the index of wheels, and the order in which they are replaced.
//!
//! An installer reads the page of each project by itself, so it may see pages of two publications. At any moment,
//! a listed wheel finds the wheels that it requires on their pages:
//!
//! 1. pages that list the new wheels beside the old ones; those of device wheels before those of hosts
//! 2. the lists of projects
//! 3. pages without the old wheels; those of hosts before those of device wheels
//!
//! Unchanged pages are not written. The page of a removed project becomes empty, and is removed later.

use std::collections::BTreeMap;
use std::sync::Arc;

use rockpack_archive::python_index::{
    ListedWheel, Page, WheelPackage, metadata_of, projects_html, projects_json,
};
use rockpack_core::content::Content;
use rockpack_core::error::{Result, ResultExt};

use super::catalog::{Addition, Catalog};
use super::channel::Channel;
use super::channel_files::ChannelFiles;
use super::channels::Channels;
use super::foreign::{other_file, unknown_index};
use super::index_paths::{PROJECT_LISTS, metadata_path, project_pages};
use super::releases::releases_of;
use super::state::{ChannelState, PoolRecord, PoolRecords};
use super::store::Store;
use rockpack_package::indexed::Facts;

/// The files beside the wheels of `catalog`. If the run checks, all METADATA is written anew.
pub(super) fn files(
    store: &dyn Store,
    channels: &Channels,
    earlier: &ChannelState,
    (catalog, check): (&Catalog, bool),
) -> Result<ChannelFiles> {
    let mut files = pages(store, earlier, &catalog.records)?;
    for (wheel, record) in &catalog.records {
        let Facts::Wheel(package) = &record.indexed.facts else { continue };
        let path = metadata_path(wheel);
        files.indexes.insert(path.clone());
        let stat = store.stat(&path)?;
        let is_there = stat.is_some_and(|stat| stat.size == package.metadata.size);
        if is_there && !check && earlier.indexes.contains(&path) {
            continue;
        }
        let addition = catalog.added.get(wheel);
        let bytes = metadata(store, wheel, addition)?;
        if stat.is_none() || channels.uses(&path) {
            files.hidden.push((path, bytes.into()));
        } else if store.read(&path)?.is_some_and(|there| there == bytes) {
            files.found.push(path);
        } else {
            return Err(match addition {
                Some(addition) => other_file(&path, addition),
                None => unknown_index(&path, &Channel::Python),
            });
        }
    }
    Ok(files)
}

fn metadata(store: &dyn Store, wheel: &str, addition: Option<&Addition>) -> Result<Vec<u8>> {
    let content: Content = match addition {
        Some(addition) => addition.content.clone(),
        None => store.open(wheel)?,
    };
    let _open = content.pin()?;
    metadata_of(&content).file(wheel)
}

/// The pages of the index that had the wheels of `earlier` and will have those of `next`. Some are replaced twice.
fn pages(store: &dyn Store, earlier: &ChannelState, next: &PoolRecords) -> Result<ChannelFiles> {
    let (before, after) = (by_project(&earlier.records), by_project(next));
    let in_both = || earlier.records.iter().chain(next);
    let all = by_project(in_both());
    let order = releases_of(in_both()).in_order();
    let mut index = Index { store, earlier, there: BTreeMap::new(), changed: Vec::new() };
    for project in order.iter().filter(|project| after.contains_key(*project)) {
        let counts = [&before, &all, &after].map(|it| it.get(project).map_or(0, BTreeMap::len));
        // A page that only loses wheels waits for those that need them.
        if counts[0] != counts[1] || counts[1] == counts[2] {
            index.put_page(project, all.get(project))?;
        }
    }
    let [html, json] = PROJECT_LISTS;
    index.put(json, projects_json(after.keys().copied())?)?;
    index.put(html, projects_html(after.keys().copied()))?;
    for project in order.iter().rev() {
        index.put_page(project, after.get(project))?;
    }
    let paths = after.keys().flat_map(|project| project_pages(project));
    let indexes = paths.chain(PROJECT_LISTS.map(str::to_owned)).collect();
    let (visible, unsigned) = (index.changed, index.there);
    Ok(ChannelFiles { visible, unsigned, indexes, ..ChannelFiles::default() })
}

/// The wheels of a project by their paths.
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

/// The pages as they are, and as they become.
struct Index<'a> {
    store: &'a dyn Store,
    earlier: &'a ChannelState,
    /// The last content of each page that was looked at.
    there: BTreeMap<String, Arc<[u8]>>,
    changed: Vec<(String, Arc<[u8]>)>,
}

impl Index<'_> {
    /// Replaces the pages of a project, where they do not list just these wheels.
    fn put_page(&mut self, project: &str, wheels: Option<&Wheels<'_>>) -> Result<()> {
        let listed = wheels.into_iter().flatten().filter_map(|(_, record)| listed(record));
        let page = Page::new(project, format!("../../wheels/{project}/"), listed.collect());
        let [html, json] = project_pages(project);
        self.put(&json, page.json()?)?;
        self.put(&html, page.html())
    }

    fn put(&mut self, path: &str, text: String) -> Result<()> {
        let bytes: Arc<[u8]> = text.into_bytes().into();
        let there = match self.there.get(path) {
            Some(there) => Some(Arc::clone(there)),
            None => self.look(path)?,
        };
        let is_same = there.is_some_and(|there| there == bytes);
        if !is_same {
            self.changed.push((path.to_owned(), Arc::clone(&bytes)));
        }
        self.there.insert(path.to_owned(), bytes);
        Ok(())
    }

    /// The current page; a foreign one is refused.
    fn look(&self, path: &str) -> Result<Option<Arc<[u8]>>> {
        let there = self.store.read(path)?;
        if there.is_some() && !self.earlier.uses(path) {
            return Err(unknown_index(path, &Channel::Python));
        }
        Ok(there.map(Arc::from))
    }
}

fn listed(record: &PoolRecord) -> Option<ListedWheel<'_>> {
    let Facts::Wheel(package) = &record.indexed.facts else { return None };
    let package: &WheelPackage = package;
    let (size, sha256) = (record.indexed.size, record.indexed.sha256.as_str());
    Some(ListedWheel { package, size, sha256, yanked: record.yanked.as_deref() })
}
