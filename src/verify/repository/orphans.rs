//! Files that no index names.

use std::collections::BTreeSet;
use std::path::Path;

use rockpack_base::content::{is_folder, list};
use rockpack_base::error::{Error, Result};

use super::context::{Context, NamedFiles};
use super::python;
use crate::verify::problem::Problem;

/// Folders of packages and indexes, which hold nothing else.
const FOLDERS: [&str; 4] = ["pool", "dists", "packages", "repodata"];

/// The folder in which the writer of a repository records files that wait for their removal.
const STATES: &str = ".rockpack";

/// The start of the names of states that are being published.
const NEXT: &str = "next-";

/// Looks for files that are neither named nor about to be removed. Which earlier indexes another
/// writer keeps for clients under their digests, only that knows.
pub(super) fn check(context: &mut Context<'_>) -> Result<()> {
    let waiting = waiting(context.files)?;
    let remembers = is_folder(&context.root.join(STATES))?;
    let wheels = if python::is_there(context.files)? { &python::FOLDERS[..] } else { &[] };
    for folder in FOLDERS.iter().chain(wheels) {
        let mut found = Vec::new();
        walk(context.root, folder, &mut found)?;
        for path in found.into_iter().filter(|path| remembers || !path.contains("/by-hash/")) {
            if !context.named.contains(&path) && !waiting.contains(&path) {
                context.problems.add(Problem::OrphanFile { file: path });
            }
        }
    }
    Ok(())
}

fn walk(root: &Path, folder: &str, found: &mut Vec<String>) -> Result<()> {
    let path = root.join(folder);
    if !is_folder(&path)? {
        return Ok(());
    }
    for entry in list(&path)? {
        let entry = entry?;
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if is_folder(&entry.path())? { walk(root, &name, found)? } else { found.push(name) }
    }
    found.sort();
    Ok(())
}

fn waiting(files: NamedFiles<'_>) -> Result<BTreeSet<String>> {
    let folder = files.root.join(STATES);
    let mut waiting = BTreeSet::new();
    if !is_folder(&folder)? {
        return Ok(waiting);
    }
    for entry in list(&folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let bytes = files.read(&path, "a state")?;
        let state: serde_json::Value = serde_json::from_slice(&bytes)
            .map_err(|e| Error::malformed("is no state of a repository").file(&path).cause(e))?;
        let retired = state.get("retired").and_then(serde_json::Value::as_object);
        waiting.extend(retired.into_iter().flat_map(|retired| retired.keys().cloned()));
        // Of a publication that was interrupted, which the next run finishes or takes back.
        let begun = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(NEXT));
        if begun {
            let records = state.get("records").and_then(serde_json::Value::as_object);
            waiting.extend(records.into_iter().flat_map(|records| records.keys().cloned()));
            let indexes = state
                .get("indexes")
                .and_then(serde_json::Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(serde_json::Value::as_str);
            waiting.extend(indexes.map(str::to_owned));
        }
    }
    Ok(waiting)
}
