//! Files that no index names.

use std::collections::BTreeSet;
use std::path::Path;

use rockpack_core::content::{is_folder, list};
use rockpack_core::error::Result;
use serde_json::Value;

use super::context::{self, Context, NOT_ITS_NAME};
use super::python;
use super::states::{self, State};
use crate::problem::Problem;
use rockpack_package::indexed::PackageKind;

/// Folders of packages and indexes, which hold nothing else.
const FOLDERS: [&str; 4] = ["pool", "dists", "packages", "repodata"];

/// Looks for files that are neither named nor about to be removed. Which earlier indexes another
/// writer keeps for clients under their digests, only that knows. Packages next to the folders are not named, either,
/// if they are a set that somebody put there.
pub(super) fn check(context: &mut Context<'_>) -> Result<()> {
    for entry in list(context.root)? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        let kind = PackageKind::of_file_name(Path::new(&file));
        if kind.is_some() && !context.named.contains(&file) {
            context.problems.add(Problem::OrphanFile { file });
        }
    }
    let waiting = waiting(&context.states);
    let remembers = states::are_kept(context.root)?;
    let wheels = if python::is_index(context.root)? { &python::FOLDERS[..] } else { &[] };
    for folder in FOLDERS.iter().chain(wheels) {
        let mut found = Vec::new();
        walk(context.root, folder, &mut found)?;
        for path in found.into_iter().filter(|path| remembers || !path.contains("/by-hash/")) {
            if context.named.contains(&path) {
                continue;
            }
            if waiting.contains(&path) {
                check_digest(context, &path)?;
            } else {
                context.problems.add(Problem::OrphanFile { file: path });
            }
        }
    }
    Ok(())
}

/// Compares an index of another publication, which clients may still read, with the digest in its name.
fn check_digest(context: &mut Context<'_>, path: &str) -> Result<()> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let digest = name.split('-').next().unwrap_or(name);
    let hash: fn(&[u8]) -> String = match digest.len() {
        64 => context::sha256,
        128 => context::sha512,
        _ => return Ok(()),
    };
    let is_hex = digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some(file) = context.files.find(path)?.filter(|_| is_hex) else { return Ok(()) };
    if hash(&context.files.read(&file, "an index")?) != digest {
        context.index_differs(path, NOT_ITS_NAME);
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

/// Files that wait for their removal, or belong to a publication that was interrupted.
fn waiting(states: &[State]) -> BTreeSet<String> {
    let mut waiting = BTreeSet::new();
    for State { is_next, value, .. } in states {
        let keys = if *is_next { &["retired", "records"][..] } else { &["retired"] };
        let maps = keys.iter().filter_map(|key| value.get(*key)?.as_object());
        waiting.extend(maps.flat_map(|map| map.keys().cloned()));
        let listed = value.get("indexes").filter(|_| *is_next).and_then(Value::as_array);
        let indexes = listed.into_iter().flatten().filter_map(Value::as_str);
        waiting.extend(indexes.map(str::to_owned));
    }
    waiting
}
