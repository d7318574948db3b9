//! The search for shards and their artifacts in folders.
//!
//! A root is a shard (a folder of artifacts, each a folder itself or packed) or a folder of shards; its
//! content decides which. An entry with the name of a packed artifact is one, so that no unreadable archive
//! is passed over. A folder is an artifact if it has a manifest, or at least an artifact's name. It is a
//! shard if it contains artifacts; if its own name is an artifact's, these need manifests. A scan skips
//! entries that only begin like an artifact's name (`blas_lib_gfx1151.tar.gz`) with a warning. It refuses a
//! checksum without its archive: the artifact was lost on the way.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rockpack_core::compression::Method;
use rockpack_core::content::{Inputs, is_there};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::run::Budget;
use rockpack_core::tree::ArtifactName;

use super::folder::{FolderEntry, list, look_into};
use super::manifest::MANIFEST_NAME;
use super::packed::{CHECKSUM_ENDING, parse_name};
use rockpack_report::{Findings, found};

/// The shards and artifacts found in the roots.
pub(super) struct Roots {
    /// The shards by name.
    pub shards: BTreeMap<String, FoundShard>,
    pub inputs: Inputs,
    pub findings: Findings,
    pub faults: Faults,
}

/// A shard that was found.
pub(super) struct FoundShard {
    pub folder: PathBuf,
    /// The artifacts in name order, not yet read.
    pub artifacts: Vec<FolderEntry>,
}

/// The kind of an entry of a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FolderEntryKind {
    Artifact,
    Shard,
    Other,
    /// The entry could not be read, as a fault says.
    Unknown,
}

impl Roots {
    /// An empty value. The lists of the input count against `budget`.
    fn within(budget: &Budget) -> Self {
        Self {
            shards: BTreeMap::new(),
            inputs: Inputs::within(budget),
            findings: Findings::default(),
            faults: Faults::default(),
        }
    }

    /// Searches `roots`.
    pub fn find(roots: &[PathBuf], budget: &Budget) -> Self {
        let mut found = Self::within(budget);
        for root in roots {
            found.root(root);
        }
        found
    }

    /// The artifact at `path` as the only one of the shard `shard`.
    pub fn of_artifact(path: &Path, shard: String, entry: FolderEntry, budget: &Budget) -> Self {
        let only = FoundShard { folder: path.to_path_buf(), artifacts: vec![entry] };
        Self { shards: [(shard, only)].into(), ..Self::within(budget) }
    }

    /// Searches a folder that is a shard.
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

    /// Adds the fault of a folder without artifacts. Entries packed in another format may have been meant.
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

    /// Handles an entry of a folder of shards that is no shard. A folder in which all artifacts have an
    /// unsupported packing was meant as one.
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

    /// The kind of each entry of a folder. Reports faults of the look ahead once.
    fn kinds(&mut self, entries: &[FolderEntry]) -> Vec<FolderEntryKind> {
        let kinds = entries.iter().map(|entry| self.faults.keep(kind_of(entry)));
        kinds.map(|kind| kind.unwrap_or(FolderEntryKind::Unknown)).collect()
    }

    /// Reports an entry of `shard` that is not one of its `artifacts`.
    fn no_artifact(&mut self, shard: &str, entry: &FolderEntry, artifacts: &[FolderEntry]) {
        let Some(name) = artifact_in(&entry.name) else {
            return self.passed_over(Some(shard), entry);
        };
        // Beside an artifact may be the archive that it was unpacked from, its checksum, or a build log.
        if artifacts.iter().any(|artifact| artifact_in(&artifact.name) == Some(name)) {
            return self.passed_over(Some(shard), entry);
        }
        if let Some(archive) = archive_of(entry) {
            return self.faults.add(without_archive(entry, archive));
        }
        let (shard, entry) = (shard.to_owned(), entry.name.clone());
        self.findings.add(found::PackingUnknown { shard, entry });
    }

    /// Notes an entry that is no artifact.
    fn passed_over(&mut self, shard: Option<&str>, entry: &FolderEntry) {
        let (shard, entry) = (shard.map(str::to_owned), entry.name.clone());
        self.findings.add(found::NotAnArtifact { shard, entry });
    }
}

/// Fails if the folder cannot be listed.
fn refuse_unlisted(root: &Path) -> Result<()> {
    let listed = std::fs::read_dir(root).map(drop).map_err(|e| Error::io(root, "list", e));
    let hint = "give a folder of artifacts (a shard) or a folder of shards";
    listed.map_err(|error| error.of_named().hint(hint).context("looking for artifacts"))
}

/// Refuses two artifacts with the same name in a shard. Reading them reports invalid names.
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

/// The artifact's name and the compression, if an entry has the name of a packed artifact.
pub(super) fn packed_name(entry: &FolderEntry) -> Result<Option<(&str, Method)>> {
    Ok(match parse_name(&entry.name) {
        Some(named) if !entry.leads_to_folder()? => Some(named),
        _ => None,
    })
}

/// Tells whether an entry is the checksum file of one of `artifacts`.
fn is_checksum(entry: &FolderEntry, artifacts: &[FolderEntry]) -> Result<bool> {
    let archive = entry.name.strip_suffix(CHECKSUM_ENDING);
    match artifacts.iter().find(|artifact| Some(artifact.name.as_str()) == archive) {
        Some(artifact) => Ok(packed_name(artifact)?.is_some()),
        None => Ok(false),
    }
}

/// The content of an entry that has the name of an artifact, if it is a folder.
fn named_like_artifacts(entry: &FolderEntry) -> Result<Vec<FolderEntry>> {
    if !entry.leads_to_folder()? {
        return Ok(Vec::new());
    }
    let mut faults = Faults::default();
    let named =
        look_into(&entry.path, &mut faults, |inside| Ok(artifact_in(&inside.name).is_some()));
    refuse_unread(faults).map(|()| named)
}

/// Fails if a fault of a look ahead is a read error; the other faults need no report here.
fn refuse_unread(faults: Faults) -> Result<()> {
    match faults.finish() {
        Err(error) if error.flattened().any(Error::is_of_reading) => Err(error),
        _ => Ok(()),
    }
}

/// The artifact's name that an entry's name equals, or has before its first dot.
fn artifact_in(entry: &str) -> Option<&str> {
    let stem = entry.split('.').next()?;
    stem.parse::<ArtifactName>().ok().map(|_| stem)
}

/// The name of the archive that a checksum file belongs to, by the file's name.
fn archive_of(entry: &FolderEntry) -> Option<&str> {
    let archive = entry.name.strip_suffix(CHECKSUM_ENDING)?;
    parse_name(archive).map(|_| archive)
}

fn without_archive(entry: &FolderEntry, archive: &str) -> Error {
    let message = format!("is the checksum of {archive}, which is not there");
    let hint = "fetch the archive again, or remove its checksum";
    Error::new(Kind::Conflict, message).file(&entry.path).hint(hint)
}

/// The kind of an entry. The scan of an artifact or a shard meets faults of this look ahead again and reports
/// them. Other entries are not read again, so one that cannot be read is an error.
fn kind_of(entry: &FolderEntry) -> Result<FolderEntryKind> {
    if packed_name(entry)?.is_some() {
        return Ok(FolderEntryKind::Artifact);
    }
    if !entry.leads_to_folder()? {
        return Ok(FolderEntryKind::Other);
    }
    let found = has_manifest(entry);
    if has_artifact_name(entry) && found.is_err() || found? {
        return Ok(FolderEntryKind::Artifact);
    }
    let mut faults = Faults::default();
    let inside = look_into(&entry.path, &mut faults, |entry| {
        Ok(packed_name(entry)?.is_some() || entry.leads_to_folder()?)
    });
    let holds_artifact = |entry: &FolderEntry| -> Result<bool> {
        Ok(packed_name(entry)?.is_some() || entry.leads_to_folder()? && has_manifest(entry)?)
    };
    if inside.iter().any(|entry| faults.keep(holds_artifact(entry)) == Some(true)) {
        return Ok(FolderEntryKind::Shard);
    }
    refuse_unread(faults)?;
    if has_artifact_name(entry) {
        return Ok(FolderEntryKind::Artifact);
    }
    for inner in inside.iter().filter(|inner| has_artifact_name(inner)) {
        if inner.leads_to_folder()? {
            return Ok(FolderEntryKind::Shard);
        }
    }
    Ok(FolderEntryKind::Other)
}

fn has_artifact_name(entry: &FolderEntry) -> bool {
    entry.name.parse::<ArtifactName>().is_ok()
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
    // A link to a shard keeps the name of the link; `.` gets that of the folder.
    let os_name = folder.file_name().or(real.file_name());
    let name = os_name.and_then(|name| name.to_str()).map(str::to_owned);
    name.ok_or_else(|| Error::malformed("the shard's folder has no name in UTF-8").file(folder))
}

fn mixed(root: &Path, entries: &[FolderEntry], kinds: &[FolderEntryKind]) -> Error {
    let [artifact, shard] = [FolderEntryKind::Artifact, FolderEntryKind::Shard].map(|kind| {
        let at = kinds.iter().position(|k| *k == kind);
        at.map_or("", |at| entries[at].name.as_str())
    });
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
