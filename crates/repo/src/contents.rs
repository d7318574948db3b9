//! The packages that clients find in a repository.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rockpack_core::error::{Result, ResultExt};
use rockpack_core::run::{Budget, threads};
use rockpack_package::indexed::IndexedPackage;

use super::channel::Channel;
use super::channels::Channels;
use super::local_store::LocalStore;
use super::python::index_url;

#[derive(Debug)]
pub struct Contents {
    pub suites: BTreeMap<String, Vec<Arc<IndexedPackage>>>,
    /// The other packages, without yanked wheels.
    pub others: Vec<Arc<IndexedPackage>>,
    /// The URL of the index of wheels, if there is one.
    pub index_url: Option<String>,
}

/// Reads the last complete publication in `folder`; `None` if there is none. Writes nothing.
pub fn contents(folder: &Path, budget: &Budget) -> Result<Option<Contents>> {
    let store = LocalStore::open_to_read(folder, budget);
    let read = threads::in_current_pool(|| Channels::read(&store));
    let Channels(states) = read.context(|| format!("reading {}", folder.display()))?;
    let python = states.get(&Channel::Python.name());
    let index_url = python.map(|state| index_url(state.settings.url.as_deref(), folder));
    let mut contents = Contents { suites: BTreeMap::new(), others: Vec::new(), index_url };
    for (channel, state) in &states {
        let packages = match channel.strip_prefix("apt-") {
            Some(suite) => contents.suites.entry(suite.to_owned()).or_default(),
            None => &mut contents.others,
        };
        let offered = state.records.values().filter(|record| record.yanked.is_none());
        packages.extend(offered.map(|record| Arc::clone(&record.indexed)));
    }
    Ok((!states.is_empty()).then_some(contents))
}
