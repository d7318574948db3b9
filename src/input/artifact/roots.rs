//! From folders to shards and their artifacts.
//!
//! A root is a shard (a folder of artifacts, each a folder itself or packed) or a folder of shards;
//! its content decides which. A packed artifact goes by its file name: what cannot be read must not
//! be passed over. A folder is an artifact if it has a manifest, or at least an artifact's name; a
//! shard if it holds artifacts, by their manifests where it is named like an artifact itself.
//! What only begins like an artifact's name (`blas_lib_gfx1151.tar.gz`) is left out with a warning;
//! refused is a checksum without its archive: the artifact was lost on the way.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rockpack_base::content::{Inputs, is_there};
use rockpack_base::error::{Error, Faults, Kind, Result};
use rockpack_base::formats::compression::Method;
use rockpack_base::run::Budget;
use rockpack_base::tree::ArtifactName;

use super::listing::{FolderEntry, list, look_into};
use super::manifest::MANIFEST_NAME;
use super::packed::{CHECKSUM_ENDING, parse_name};
use crate::report::{Finding, Findings};

/// What was found in the roots.
pub(super) struct Roots {
    /// By name.
    pub shards: BTreeMap<String, FoundShard>,
    pub inputs: Inputs,
    pub findings: Findings,
    pub faults: Faults,
}

/// A shard that was found.
pub(super) struct FoundShard {
    pub folder: PathBuf,
    /// Its artifacts in name order; nothing of them was read.
    pub artifacts: Vec<FolderEntry>,
}

/// What an entry of a folder is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FolderEntryKind {
    Artifact,
    Shard,
    Other,
    /// It could not be looked at, as a fault says.
    Unknown,
}

impl Roots {
    /// Nothing yet; what is remembered of the input is drawn from `budget`.
    fn within(budget: &Budget) -> Self {
        Self {
            shards: BTreeMap::new(),
            inputs: Inputs::within(budget),
            findings: Findings::default(),
            faults: Faults::default(),
        }
    }

    /// Looks through `roots`.
    pub fn find(roots: &[PathBuf], budget: &Budget) -> Self {
        let mut found = Self::within(budget);
        for root in roots {
            found.root(root);
        }
        found
    }

    /// The artifact at `path` as the only one of the shard of this name.
    pub fn of_artifact(path: &Path, shard: String, entry: FolderEntry, budget: &Budget) -> Self {
        let only = FoundShard { folder: path.to_path_buf(), artifacts: vec![entry] };
        Self { shards: [(shard, only)].into(), ..Self::within(budget) }
    }

    /// Looks through a folder that is a shard.
    pub fn find_shard(folder: &Path, budget: &Budget) -> Self {
        let mut found = Self::within(budget);
        if found.faults.keep(refuse_unlisted(folder)).is_none() {
            return found;
        }
        let entries = list(folder, &mut found.inputs, &mut found.faults);
        let kinds = found.kinds(&entries);
        found.shard(folder, entries, &kinds);
        found
    }

    fn root(&mut self, root: &Path) {
        if self.faults.keep(refuse_unlisted(root)).is_none() {
            return;
        }
        let is_artifact = is_there(&root.join(MANIFEST_NAME));
        if self.faults.keep(is_artifact) == Some(true) {
            let error = Error::new(Kind::Usage, "is one artifact, not a folder of artifacts");
            let hint = "give the folder that holds the artifact: it is the shard";
            return self.faults.add(error.file(root).hint(hint));
        }
        let entries = list(root, &mut self.inputs, &mut self.faults);
        let kinds = self.kinds(&entries);
        let shards = kinds.contains(&FolderEntryKind::Shard);
        match (kinds.contains(&FolderEntryKind::Artifact), shards) {
            (true, false) => self.shard(root, entries, &kinds),
            (false, true) => self.folder_of_shards(entries, &kinds),
            (true, true) => self.faults.add(mixed(root, &entries, &kinds)),
            (false, false) if kinds.contains(&FolderEntryKind::Unknown) => {}
            (false, false) => self.nothing_in(root, &entries),
        }
    }

    /// A folder without artifacts; those that are packed in another way may have been meant.
    fn nothing_in(&mut self, root: &Path, entries: &[FolderEntry]) {
        self.faults.add(nothing_in(root));
        let shard = root.file_name().unwrap_or_default().to_string_lossy();
        for entry in entries.iter().filter(|entry| artifact_in(&entry.name).is_some()) {
            self.no_artifact(&shard, entry, &[]);
        }
    }

    fn folder_of_shards(&mut self, entries: Vec<FolderEntry>, kinds: &[FolderEntryKind]) {
        for (entry, kind) in entries.into_iter().zip(kinds) {
            match kind {
                FolderEntryKind::Shard => {
                    let inside = list(&entry.path, &mut self.inputs, &mut self.faults);
                    let kinds = self.kinds(&inside);
                    self.shard(&entry.path, inside, &kinds);
                }
                FolderEntryKind::Unknown => {}
                FolderEntryKind::Artifact | FolderEntryKind::Other => self.no_shard(&entry),
            }
        }
    }

    /// An entry of a folder of shards that is none. A folder in which all artifacts are packed in
    /// another way was to be one.
    fn no_shard(&mut self, entry: &FolderEntry) {
        let Some(named) = self.faults.keep(named_like_artifacts(entry)) else {
            return;
        };
        if named.is_empty() {
            self.passed_over(None, entry);
        }
        for lost in &named {
            self.no_artifact(&entry.name, lost, &[]);
        }
    }

    fn shard(&mut self, folder: &Path, entries: Vec<FolderEntry>, kinds: &[FolderEntryKind]) {
        let Some(name) = self.faults.keep(shard_name(folder)) else {
            return;
        };
        if let Some(FoundShard { folder: other, .. }) = self.shards.get(&name) {
            let message = format!("a shard named {name} was read from {} too", other.display());
            let hint = "shards are told apart by the names of their folders; rename one";
            return self.faults.add(Error::new(Kind::Conflict, message).file(folder).hint(hint));
        }
        let (mut artifacts, mut others) = (Vec::new(), Vec::new());
        for (entry, kind) in entries.into_iter().zip(kinds) {
            match kind {
                FolderEntryKind::Artifact => artifacts.push(entry),
                FolderEntryKind::Shard | FolderEntryKind::Other => others.push(entry),
                FolderEntryKind::Unknown => {}
            }
        }
        for entry in &others {
            if self.faults.keep(is_checksum(entry, &artifacts)) == Some(false) {
                self.no_artifact(&name, entry, &artifacts);
            }
        }
        refuse_same_name(&artifacts, &mut self.faults);
        self.shards.insert(name, FoundShard { folder: folder.to_path_buf(), artifacts });
    }

    /// What each entry of a folder is; faults of looking are told here, once.
    fn kinds(&mut self, entries: &[FolderEntry]) -> Vec<FolderEntryKind> {
        let kind = |entry| self.faults.keep(kind_of(entry)).unwrap_or(FolderEntryKind::Unknown);
        entries.iter().map(kind).collect()
    }

    /// Says what an entry of `shard` is that is none of its `artifacts`.
    fn no_artifact(&mut self, shard: &str, entry: &FolderEntry, artifacts: &[FolderEntry]) {
        let Some(name) = artifact_in(&entry.name) else {
            return self.passed_over(Some(shard), entry);
        };
        // Beside an artifact lie what it was unpacked from, its checksum, a log of its build.
        if artifacts.iter().any(|artifact| artifact_in(&artifact.name) == Some(name)) {
            return self.passed_over(Some(shard), entry);
        }
        if let Some(archive) = archive_of(entry) {
            return self.faults.add(without_archive(entry, archive));
        }
        let (shard, entry) = (shard.to_owned(), entry.name.clone());
        self.findings.add(Finding::PackingUnknown { shard, entry });
    }

    /// Notes what is no artifact.
    fn passed_over(&mut self, shard: Option<&str>, entry: &FolderEntry) {
        let (shard, entry) = (shard.map(str::to_owned), entry.name.clone());
        self.findings.add(Finding::NotAnArtifact { shard, entry });
    }
}

/// Refuses what cannot be listed, and so is no folder of artifacts.
fn refuse_unlisted(root: &Path) -> Result<()> {
    let listed = std::fs::read_dir(root).map(drop).map_err(|e| Error::io(root, "list", e));
    let hint = "give a folder of artifacts (a shard) or a folder of shards";
    listed.map_err(|error| error.of_named().hint(hint).context("looking for artifacts"))
}

/// A shard has each artifact once. Names that are none are told when their artifacts are read.
fn refuse_same_name(artifacts: &[FolderEntry], faults: &mut Faults) {
    let mut claimed: BTreeMap<ArtifactName, &Path> = BTreeMap::new();
    for entry in artifacts {
        let Some(packed) = faults.keep(packed_name(entry)) else {
            continue;
        };
        let stem = packed.map_or(entry.name.as_str(), |(stem, _)| stem);
        let Ok(name) = stem.parse::<ArtifactName>() else {
            continue;
        };
        if let Some(other) = claimed.get(&name) {
            let message = format!("is the artifact {name} of its shard, as is {}", other.display());
            let hint = "a shard has each artifact once, packed or as a folder: remove one of them";
            faults.add(Error::new(Kind::Conflict, message).file(&entry.path).hint(hint));
        } else {
            claimed.insert(name, &entry.path);
        }
    }
}

/// The artifact's name and the compression, if an entry is named like a packed artifact.
pub(super) fn packed_name(entry: &FolderEntry) -> Result<Option<(&str, Method)>> {
    Ok(match parse_name(&entry.name) {
        Some(named) if !entry.leads_to_folder()? => Some(named),
        _ => None,
    })
}

/// Whether an entry is the checksum file of one of `artifacts`.
fn is_checksum(entry: &FolderEntry, artifacts: &[FolderEntry]) -> Result<bool> {
    let archive = entry.name.strip_suffix(CHECKSUM_ENDING);
    match artifacts.iter().find(|artifact| Some(artifact.name.as_str()) == archive) {
        Some(artifact) => Ok(packed_name(artifact)?.is_some()),
        None => Ok(false),
    }
}

/// What lies in an entry, if that is a folder, and is named like an artifact.
fn named_like_artifacts(entry: &FolderEntry) -> Result<Vec<FolderEntry>> {
    if !entry.leads_to_folder()? {
        return Ok(Vec::new());
    }
    let mut faults = Faults::default();
    let is_named = |inside: &FolderEntry| Ok(artifact_in(&inside.name).is_some());
    let named = look_into(&entry.path, &mut faults, is_named);
    refuse_unread(faults).map(|()| named)
}

/// Fails if one of the faults of a look ahead is one of reading: the others say what is there.
fn refuse_unread(faults: Faults) -> Result<()> {
    match faults.finish() {
        Err(error) if error.flattened().any(Error::is_of_reading) => Err(error),
        _ => Ok(()),
    }
}

/// The artifact's name that an entry's name consists of, or begins with before its first dot.
fn artifact_in(entry: &str) -> Option<&str> {
    let stem = entry.split('.').next()?;
    stem.parse::<ArtifactName>().ok().map(|_| stem)
}

/// The name of the archive whose checksum file an entry is, by its name.
fn archive_of(entry: &FolderEntry) -> Option<&str> {
    let archive = entry.name.strip_suffix(CHECKSUM_ENDING)?;
    parse_name(archive).map(|_| archive)
}

fn without_archive(entry: &FolderEntry, archive: &str) -> Error {
    let message = format!("is the checksum of {archive}, which is not there");
    let hint = "fetch the archive again, or remove its checksum";
    Error::new(Kind::Conflict, message).file(&entry.path).hint(hint)
}

/// What an entry is. Faults of this look ahead are met again, and reported, by the scan of an
/// artifact or a shard; anything else is not read again, so what cannot be looked into is an error.
fn kind_of(entry: &FolderEntry) -> Result<FolderEntryKind> {
    if packed_name(entry)?.is_some() {
        return Ok(FolderEntryKind::Artifact);
    }
    if !entry.leads_to_folder()? {
        return Ok(FolderEntryKind::Other);
    }
    let is_named = |entry: &FolderEntry| entry.name.parse::<ArtifactName>().is_ok();
    let found = has_manifest(entry);
    if is_named(entry) && found.is_err() || found? {
        return Ok(FolderEntryKind::Artifact);
    }
    let mut faults = Faults::default();
    let may_hold =
        |entry: &FolderEntry| Ok(packed_name(entry)?.is_some() || entry.leads_to_folder()?);
    let inside = look_into(&entry.path, &mut faults, may_hold);
    if inside.iter().any(|entry| faults.keep(holds_artifact(entry)) == Some(true)) {
        return Ok(FolderEntryKind::Shard);
    }
    refuse_unread(faults)?;
    if is_named(entry) {
        return Ok(FolderEntryKind::Artifact);
    }
    for inner in inside.iter().filter(|inner| is_named(inner)) {
        if inner.leads_to_folder()? {
            return Ok(FolderEntryKind::Shard);
        }
    }
    Ok(FolderEntryKind::Other)
}

/// Whether an entry is packed, or a folder with a manifest.
fn holds_artifact(entry: &FolderEntry) -> Result<bool> {
    Ok(packed_name(entry)?.is_some() || entry.leads_to_folder()? && has_manifest(entry)?)
}

fn has_manifest(entry: &FolderEntry) -> Result<bool> {
    let path = entry.path.join(MANIFEST_NAME);
    match std::fs::symlink_metadata(&path) {
        Ok(_) => Ok(true),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(e) => Err(Error::io(path, "inspect", e)),
    }
}

/// The name of the shard in `folder`.
pub(super) fn shard_name(folder: &Path) -> Result<String> {
    let real = std::fs::canonicalize(folder).map_err(|e| Error::io(folder, "resolve", e))?;
    // A link to a shard keeps the name of the link, `.` takes that of the folder.
    let name = folder.file_name().or(real.file_name());
    let name = name.and_then(|name| name.to_str()).map(str::to_owned);
    name.ok_or_else(|| Error::malformed("the shard's folder has no name in UTF-8").file(folder))
}

fn mixed(root: &Path, entries: &[FolderEntry], kinds: &[FolderEntryKind]) -> Error {
    let named = |kind| {
        let at = kinds.iter().position(|k| *k == kind);
        at.map_or("", |at| entries[at].name.as_str())
    };
    let (artifact, shard) = (named(FolderEntryKind::Artifact), named(FolderEntryKind::Shard));
    let message = format!("holds both an artifact ({artifact}) and a shard ({shard})");
    Error::new(Kind::Usage, message)
        .file(root)
        .hint("give a folder of artifacts, or a folder of such folders")
}

/// An error for a folder without artifacts.
pub(super) fn nothing_in(root: &Path) -> Error {
    let hint = "an artifact is a folder named {name}_{kind}_{gpu_family} with an \
                artifact_manifest.txt, or a .tar.zst or .tar.xz of that name; a shard is a folder \
                of artifacts";
    Error::new(Kind::Usage, "holds neither artifacts nor shards").file(root).hint(hint)
}
