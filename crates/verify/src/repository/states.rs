//! Compares the states that rockpack keeps of a repository with its indexes. Only the necessary values are read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rockpack_core::checked_json;
use rockpack_core::content::{is_folder, list};
use rockpack_core::error::Result;
use rockpack_package::indexed::PackageKind;
use serde_json::Value;

use crate::problem::{Check, Problem};
use crate::repository::context::{self, Context, DIGEST_DIFFERS};
use crate::repository::{REPOMD_SIGNATURE, python};

/// The folder of states in a repository.
const FOLDER: &str = ".rockpack";

/// The name prefix of states whose publication is not finished.
const NEXT: &str = "next-";

pub(super) struct State {
    pub file: String,
    /// `apt-<suite>`, `rpm` or `python`.
    pub channel: String,
    /// Whether its publication was interrupted; the next run finishes it or rolls it back.
    pub is_next: bool,
    pub value: Value,
}

impl State {
    /// The signature files of a finished publication.
    pub fn signatures(&self) -> Vec<String> {
        let is_signed = self.value.get("signed") == Some(&Value::Bool(true));
        match self.channel.strip_prefix("apt-") {
            _ if self.is_next || !is_signed => Vec::new(),
            Some(suite) => {
                ["InRelease", "Release.gpg"].map(|name| format!("dists/{suite}/{name}")).to_vec()
            }
            None => vec![REPOMD_SIGNATURE.to_owned()],
        }
    }
}

/// Reads all states of the repository. Reports damaged ones, and those without indexes.
pub(super) fn read(context: &mut Context<'_>) -> Result<()> {
    let folder = context.files.root.join(FOLDER);
    if !is_folder(&folder)? {
        return Ok(());
    }
    for entry in list(&folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".json.zst") else { continue };
        let (file, next) = (format!("{FOLDER}/{name}"), stem.strip_prefix(NEXT));
        let channel = next.unwrap_or(stem).to_owned();
        let folder = match channel.strip_prefix("apt-") {
            Some(suite) => format!("dists/{suite}"),
            None if channel == "rpm" => "repodata".to_owned(),
            None => "simple".to_owned(),
        };
        let bytes = context.files.read(&path, "a state");
        match bytes.and_then(|bytes| checked_json::read::<Value>(&bytes)) {
            Err(error) => {
                let reason = format!("cannot be read, and `repo` refuses it: {error}");
                context.problems.add(Problem::StateMismatch { file, reason });
            }
            // Lists of an interrupted publication are arrays, not objects.
            Ok(value) if value.is_object() => {
                let is_next = next.is_some();
                if !is_next && !is_folder(&context.files.root.join(folder))? {
                    let reason = "is the state of indexes that do not exist".to_owned();
                    context.problems.add(Problem::StateMismatch { file: file.clone(), reason });
                }
                context.states.push(State { file, channel, is_next, value });
            }
            Ok(_) => {}
        }
    }
    Ok(())
}

/// Compares the state of a channel with its indexes: `listed` has the paths of packages with their SHA-256. Skipped if
/// the indexes have problems.
pub(super) fn compare(context: &mut Context<'_>, channel: &str, mut listed: BTreeMap<&str, &str>) {
    let states: Vec<&State> =
        context.states.iter().filter(|state| state.channel == channel).collect();
    // After an interrupted publication, the indexes may match either state.
    let [State { file, is_next: false, value, .. }] = states.as_slice() else { return };
    if context.problems.have_any(Check::BadIndex..=Check::PackageMismatch) {
        return;
    }
    let mut differing = Vec::new();
    for (path, record) in value.get("records").and_then(Value::as_object).into_iter().flatten() {
        let stated = record.get("indexed").and_then(|it| it.get("sha256")?.as_str());
        if stated.is_none() || stated != listed.remove(path.as_str()) {
            differing.push(path.clone());
        }
    }
    differing.extend(listed.into_keys().map(str::to_owned));
    for package in differing {
        let reason = format!(
            "contradicts the indexes about {package}: it may be from an earlier publication"
        );
        context.problems.add(Problem::StateMismatch { file: file.clone(), reason });
    }
}

/// Folders that contain only packages and indexes.
const FOLDERS: [&str; 4] = ["pool", "dists", "packages", "repodata"];

/// Reports files that no index names and that will not be removed. Earlier indexes under their digests are skipped if
/// another program wrote the repository. Packages at the top of the repository are orphans, too.
pub(super) fn check_orphans(context: &mut Context<'_>) -> Result<()> {
    for entry in list(context.files.root)? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        let kind = PackageKind::of_file_name(Path::new(&file));
        if kind.is_some() && !context.named.contains(&file) {
            context.problems.add(Problem::OrphanFile { file });
        }
    }
    let waiting = waiting(&context.states);
    let remembers = is_folder(&context.files.root.join(FOLDER))?;
    let wheels = if python::is_index(context.files.root)? { &python::FOLDERS[..] } else { &[] };
    for folder in FOLDERS.iter().chain(wheels) {
        let mut found = Vec::new();
        walk(context.files.root, folder, &mut found)?;
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

/// Compares an index of another publication, which clients may still use, with the digest in its name.
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
        context.index_differs(path, DIGEST_DIFFERS);
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

/// Files that will be removed, or that belong to an interrupted publication.
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
