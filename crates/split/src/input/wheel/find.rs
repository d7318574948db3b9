//! The search for the wheels that arguments name, and the order in which they are split: each after those that it
//! requires.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rockpack_archive::wheel::{
    Metadata, Requirement, WheelArchive, WheelIdentity, WheelName, normalized,
};
use rockpack_core::content::{Content, is_folder, list, real_path};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::run::Budget;

use crate::input::artifact::refuse_inside;

/// The wheels at `roots`, each a wheel or a folder with wheels, in the order of their names. Two with the same
/// distribution, version, build and tags, however spelled, are a fault in `doubles`: their device wheels
/// would have the same names.
pub fn find(roots: &[PathBuf], doubles: &mut Faults) -> Result<Vec<PathBuf>> {
    let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut names: BTreeMap<WheelIdentity, String> = BTreeMap::new();
    let mut faults = Faults::default();
    for root in roots {
        let Some(wheels) = faults.keep(wheels_at(root)) else { continue };
        for wheel in wheels {
            let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let identity = name.parse().ok().and_then(|name: WheelName| name.identity());
            let known = identity.map(|it| names.entry(it).or_insert_with(|| name.clone()).clone());
            match found.get(known.as_ref().unwrap_or(&name)) {
                Some(other) if !is_same(other, &wheel) => {
                    let message =
                        format!("is the same version of the same wheel as {}", other.display());
                    let error = Error::new(Kind::Conflict, message).file(&wheel);
                    doubles.add(error.hint("give one of the two"));
                }
                Some(_) => {}
                None => drop(found.insert(name, wheel)),
            }
        }
    }
    faults.finish()?;
    Ok(found.into_values().collect())
}

/// Refuses an output folder that contains one of the wheels: a host wheel has the name of its input.
pub fn refuse_among(roots: &[PathBuf], out: &Path) -> Result<()> {
    let folders: Vec<PathBuf> = roots.iter().filter(|root| root.is_dir()).cloned().collect();
    refuse_inside(&folders, out, "output folder")?;
    let there = real_path(out)?;
    for root in roots.iter().filter(|root| !root.is_dir()) {
        let folder = real_path(root)?.and_then(|real| real.parent().map(Path::to_path_buf));
        if there.is_some() && folder == there {
            let message = "is in the output folder, where the host wheel would have the same name";
            return Err(Error::new(Kind::Usage, message).file(root).hint("give another folder"));
        }
    }
    Ok(())
}

fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

fn wheels_at(root: &Path) -> Result<Vec<PathBuf>> {
    // The reader of a missing file reports it.
    if !is_folder(root)? {
        if WheelName::is_one(root) {
            return Ok(vec![root.to_path_buf()]);
        }
        let error = Error::new(Kind::Usage, "is neither a wheel nor a folder with wheels");
        return Err(error.file(root).hint("names of wheels end in .whl"));
    }
    let mut wheels = Vec::new();
    for entry in list(root)? {
        let path = entry?.path();
        if WheelName::is_one(&path) {
            wheels.push(path);
        }
    }
    wheels.sort();
    if wheels.is_empty() {
        let error = Error::new(Kind::Usage, "is a folder without wheels");
        return Err(error.file(root).hint("give wheels, or folders with wheels"));
    }
    Ok(wheels)
}

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
