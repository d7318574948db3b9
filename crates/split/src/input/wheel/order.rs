//! The order in which wheels are split: each after those that it requires.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rockpack_archive::wheel::{Metadata, Requirement, WheelArchive, normalized};
use rockpack_core::content::Content;
use rockpack_core::run::Budget;

/// Sorts wheels so that those of distributions that METADATA or `further` always require come first. Their reader
/// reports those that cannot be read.
pub fn sort_required_first(paths: &mut [PathBuf], further: &[String], budget: &Budget) {
    let (mut names, mut required) = (BTreeMap::new(), BTreeMap::<String, BTreeSet<String>>::new());
    for path in paths.iter() {
        let archive = Content::open(path, budget).and_then(WheelArchive::open);
        let Ok(WheelArchive { metadata, .. }) = archive else { continue };
        let name = normalized(metadata.name());
        let needed = always_required(&metadata, further).map(|it| it.project);
        required.entry(name.clone()).or_default().extend(needed);
        names.insert(path.clone(), name);
    }
    // A wheel reaches more than a wheel that it requires does, unless they require each other.
    paths.sort_by_cached_key(|path| {
        let (mut open, mut reached) = (Vec::from_iter(names.get(path)), BTreeSet::new());
        while let Some(name) = open.pop() {
            if let Some(needed) = required.get(name).filter(|_| reached.insert(name)) {
                open.extend(needed);
            }
        }
        reached.len()
    });
}

/// The requirements in METADATA and `further` that are for no extra, and for other distributions.
pub fn always_required<'a>(
    metadata: &'a Metadata,
    further: impl IntoIterator<Item = &'a String>,
) -> impl Iterator<Item = Requirement> {
    let own = normalized(metadata.name());
    let lines = metadata.all("Requires-Dist").chain(further.into_iter().map(String::as_str));
    let read = lines.filter_map(|line| Requirement::parse(line).ok());
    read.filter(move |it| it.condition.extras().is_empty() && it.project != own)
}
