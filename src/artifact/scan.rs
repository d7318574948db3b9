//! From folders to shards and artifacts.
//!
//! A root is a shard (a folder of artifacts, each a folder itself or packed) or a folder of shards;
//! its content decides which. Everything is sorted by name, so the order of directories never
//! matters, and all faults of a scan are reported together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::ArtifactName;
use super::contents::{Contents as _, Whereabouts, assemble};
use super::folder::Folder;
use super::listing::{Listed, list, look_into};
use super::manifest::MANIFEST_NAME;
use super::packed::{CHECKSUM_ENDING, parse_name};
use super::unpacking::{Pending, unpack};
use crate::content::{Content, Inputs};
use crate::error::{Error, Faults, Kind, Result};
use crate::formats::compression::Method;
use crate::report::{Code, Finding, Findings};
use crate::tree::{Node, Tree};

/// What lies in the folders that a build was given.
#[derive(Debug)]
pub struct Scan {
    /// The shards in name order.
    pub shards: Vec<Shard>,
    /// Every file that was opened, to be checked again at the end of the run.
    pub inputs: Inputs,
    /// What was noticed.
    pub findings: Findings,
}

/// The artifacts of one build job.
#[derive(Debug)]
pub struct Shard {
    /// The folder's name.
    pub name: String,
    /// In name order.
    pub artifacts: Vec<Artifact>,
}

/// One artifact.
#[derive(Debug)]
pub struct Artifact {
    /// The shard it belongs to.
    pub shard: String,
    /// What it is called.
    pub name: ArtifactName,
    /// Its folder, or the file that it is packed in.
    pub root: PathBuf,
    /// The stage prefixes that exist, in path order.
    pub prefixes: Vec<Prefix>,
    /// What was noticed.
    pub findings: Findings,
}

impl Artifact {
    /// Bytes of all its files.
    pub fn bytes(&self) -> u64 {
        let nodes = self.prefixes.iter().flat_map(|prefix| prefix.tree.iter());
        let sizes = nodes.map(|(_, node)| match node {
            Node::File { data, .. } => data.len(),
            Node::Directory { .. } | Node::Link { .. } => 0,
        });
        sizes.sum()
    }
}

/// One stage prefix.
#[derive(Debug)]
pub struct Prefix {
    /// As the manifest writes it, e.g. `math-libs/BLAS/rocBLAS/stage`.
    pub path: String,
    /// The path component before `stage`, e.g. `rocBLAS`.
    pub module: Option<String>,
    /// What is below.
    pub tree: Tree<Content>,
}

/// How to scan.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// An existing folder. On its file system, in a file without a name, what packed artifacts
    /// hold is kept while the scan lives: about as many bytes as the archives have.
    pub spool_dir: PathBuf,
}

impl Default for ScanOptions {
    /// The system's folder for temporary files.
    fn default() -> Self {
        Self { spool_dir: std::env::temp_dir() }
    }
}

impl ScanOptions {
    /// Keeps the content of packed artifacts where the output folder `out` is, or will be.
    pub fn beside(out: &Path) -> Self {
        let existing = out.ancestors().find(|path| path.is_dir());
        // A relative path without a folder of its own is below the current one.
        Self { spool_dir: existing.unwrap_or(Path::new(".")).to_path_buf() }
    }
}

/// Reads `roots`, each a shard or a folder of shards.
pub fn scan(roots: &[PathBuf]) -> Result<Scan> {
    scan_with(roots, &ScanOptions::default())
}

/// [`scan`] with options.
pub fn scan_with(roots: &[PathBuf], options: &ScanOptions) -> Result<Scan> {
    let mut scanner = Scanner::default();
    for root in roots {
        scanner.root(root);
    }
    scanner.unpack(options);
    scanner.faults.finish()?;
    let shards = scanner.shards.into_values().map(|(_, mut shard)| {
        shard.artifacts.sort_by(|a, b| a.name.cmp(&b.name));
        shard
    });
    Ok(Scan { shards: shards.collect(), inputs: scanner.inputs, findings: scanner.findings })
}

/// Fails if the output folder `out` lies inside of one of `roots`: a second run would read what
/// the first wrote.
pub fn refuse_output_inside(roots: &[PathBuf], out: &Path) -> Result<()> {
    let there = out.ancestors().find_map(|path| path.canonicalize().ok());
    // A relative path without a folder of its own is below the current one.
    let Some(there) = there.or_else(|| Path::new(".").canonicalize().ok()) else {
        return Ok(());
    };
    let inside = |root: &&PathBuf| root.canonicalize().is_ok_and(|root| there.starts_with(root));
    match roots.iter().find(inside) {
        None => Ok(()),
        Some(root) => {
            let message = format!("the output folder lies inside of {}", root.display());
            let hint = "give an --out outside of all --artifacts";
            Err(Error::new(Kind::Usage, message).file(out).hint(hint))
        }
    }
}

#[derive(Default)]
struct Scanner {
    shards: BTreeMap<String, (PathBuf, Shard)>,
    pending: Vec<Pending>,
    inputs: Inputs,
    findings: Findings,
    faults: Faults,
}

/// What an entry is, seen from its entries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FolderKind {
    Artifact,
    Shard,
    Other,
}

impl Scanner {
    fn root(&mut self, root: &Path) {
        if let Err(e) = std::fs::read_dir(root) {
            let hint = "give a folder of artifacts (a shard) or a folder of shards";
            return self.faults.add(Error::io(root, "list", e).hint(hint));
        }
        if root.join(MANIFEST_NAME).exists() {
            let error = Error::new(Kind::Usage, "is one artifact, not a folder of artifacts");
            let hint = "give the folder that holds the artifact: it is the shard";
            return self.faults.add(error.file(root).hint(hint));
        }
        let entries = list(root, &mut self.inputs, &mut self.faults);
        let kinds: Vec<_> = entries.iter().map(kind_of).collect();
        let shards = kinds.contains(&FolderKind::Shard);
        match (kinds.contains(&FolderKind::Artifact), shards) {
            (true, false) => self.shard(root, entries),
            (false, true) => self.folder_of_shards(entries, &kinds),
            (true, true) => self.faults.add(mixed(root, &entries, &kinds)),
            (false, false) => self.faults.add(nothing_in(root)),
        }
    }

    fn folder_of_shards(&mut self, entries: Vec<Listed>, kinds: &[FolderKind]) {
        for (entry, kind) in entries.into_iter().zip(kinds) {
            match kind {
                FolderKind::Shard => {
                    let inside = list(&entry.path, &mut self.inputs, &mut self.faults);
                    self.shard(&entry.path, inside);
                }
                _ => self.passed_over(entry.name),
            }
        }
    }

    fn shard(&mut self, folder: &Path, entries: Vec<Listed>) {
        let Some(name) = self.faults.keep(shard_name(folder)) else {
            return;
        };
        if let Some((other, _)) = self.shards.get(&name) {
            let message = format!("a shard named {name} was read from {} too", other.display());
            let hint = "shards are told apart by the names of their folders; rename one";
            return self.faults.add(Error::new(Kind::Conflict, message).file(folder).hint(hint));
        }
        let mut artifacts = Vec::new();
        let mut claimed = BTreeMap::new();
        for entry in &entries {
            if kind_of(entry) == FolderKind::Artifact {
                artifacts.extend(self.artifact(&name, entry, &mut claimed));
            } else if !is_checksum(entry, &entries) {
                self.passed_over(format!("{name}/{}", entry.name));
            }
        }
        let shard = Shard { name: name.clone(), artifacts };
        self.shards.insert(name, (folder.to_path_buf(), shard));
    }

    /// Notes what is no artifact. The subject is the same wherever the folders lie, because
    /// findings are part of the output.
    fn passed_over(&mut self, subject: String) {
        let message = "is no artifact and is left out";
        self.findings.add(Finding::new(Code::NotAnArtifact, subject, message));
    }

    /// Reads an artifact that is a folder; one that is packed waits for the others.
    fn artifact(
        &mut self,
        shard: &str,
        entry: &Listed,
        claimed: &mut BTreeMap<ArtifactName, PathBuf>,
    ) -> Option<Artifact> {
        let packed = packed_name(entry);
        let stem = packed.map_or(entry.name.as_str(), |(stem, _)| stem);
        let name = stem.parse::<ArtifactName>().and_then(|name| claim(claimed, name, entry));
        let name = self.faults.keep(name.map_err(|e| e.file(&entry.path)));
        if let Some((_, method)) = packed {
            let pending = Pending::new(shard, name?, &entry.path, method, &mut self.inputs);
            self.pending.extend(self.faults.keep(pending));
            return None;
        }
        let Some(name) = name else {
            // What else is wrong with it is told at once.
            Folder { root: &entry.path, inputs: &mut self.inputs }.manifest(&mut self.faults);
            return None;
        };
        let mut folder = Folder { root: &entry.path, inputs: &mut self.inputs };
        let whereabouts = Whereabouts { shard, name, root: &entry.path };
        assemble(whereabouts, &mut folder, &mut self.faults)
    }

    /// Decodes the packed artifacts.
    fn unpack(&mut self, options: &ScanOptions) {
        let pending = std::mem::take(&mut self.pending);
        let unpacked = unpack(&pending, &options.spool_dir, &mut self.faults);
        for artifact in unpacked {
            if let Some((_, shard)) = self.shards.get_mut(&artifact.shard) {
                shard.artifacts.push(artifact);
            }
        }
    }
}

/// Fails if another artifact of the shard has the name already.
fn claim(
    claimed: &mut BTreeMap<ArtifactName, PathBuf>,
    name: ArtifactName,
    entry: &Listed,
) -> Result<ArtifactName> {
    let Some(other) = claimed.get(&name) else {
        claimed.insert(name.clone(), entry.path.clone());
        return Ok(name);
    };
    let message = format!("is the artifact {name} of its shard, as is {}", other.display());
    Err(Error::new(Kind::Conflict, message)
        .hint("a shard has each artifact once, packed or as a folder: remove one of them"))
}

/// The artifact's name and the compression, if an entry is named like a packed artifact.
fn packed_name(entry: &Listed) -> Option<(&str, Method)> {
    match entry.leads_to_folder() {
        true => None,
        false => parse_name(&entry.name),
    }
}

/// Whether an entry is the checksum file of another one.
fn is_checksum(entry: &Listed, entries: &[Listed]) -> bool {
    let archive = entry.name.strip_suffix(CHECKSUM_ENDING);
    archive.is_some_and(|archive| {
        entries.iter().any(|entry| entry.name == archive && packed_name(entry).is_some())
    })
}

/// A packed artifact goes by its file name: what cannot be read must not be passed over. A folder is
/// an artifact if it has a manifest, or at least an artifact's name; a shard if it
/// holds artifacts: by their manifests where it is named like an artifact itself.
fn kind_of(entry: &Listed) -> FolderKind {
    if packed_name(entry).is_some() {
        return FolderKind::Artifact;
    }
    if !entry.leads_to_folder() {
        return FolderKind::Other;
    }
    if has_manifest(entry) {
        return FolderKind::Artifact;
    }
    // Faults of this look ahead are met again, and reported, by the scan of what it decides on.
    let inside = look_into(&entry.path, &mut Faults::default());
    if inside.iter().any(|entry| has_manifest(entry) || packed_name(entry).is_some()) {
        return FolderKind::Shard;
    }
    if entry.name.parse::<ArtifactName>().is_ok() {
        return FolderKind::Artifact;
    }
    let named =
        |entry: &Listed| entry.leads_to_folder() && entry.name.parse::<ArtifactName>().is_ok();
    match inside.iter().any(named) {
        true => FolderKind::Shard,
        false => FolderKind::Other,
    }
}

fn has_manifest(entry: &Listed) -> bool {
    std::fs::symlink_metadata(entry.path.join(MANIFEST_NAME)).is_ok()
}

fn shard_name(folder: &Path) -> Result<String> {
    let real = std::fs::canonicalize(folder).map_err(|e| Error::io(folder, "resolve", e))?;
    // A link to a shard keeps the name of the link, `.` takes that of the folder.
    let name = folder.file_name().or(real.file_name());
    let name = name.and_then(|name| name.to_str()).map(str::to_owned);
    name.ok_or_else(|| Error::malformed("the shard's folder has no name in UTF-8").file(folder))
}

fn mixed(root: &Path, entries: &[Listed], kinds: &[FolderKind]) -> Error {
    let named = |kind| {
        let at = kinds.iter().position(|k| *k == kind);
        at.map_or("", |at| entries[at].name.as_str())
    };
    let (artifact, shard) = (named(FolderKind::Artifact), named(FolderKind::Shard));
    let message = format!("holds both an artifact ({artifact}) and a shard ({shard})");
    Error::new(Kind::Usage, message)
        .file(root)
        .hint("give a folder of artifacts, or a folder of such folders")
}

fn nothing_in(root: &Path) -> Error {
    let hint = "an artifact is a folder named {name}_{component}_{family} with an \
                artifact_manifest.txt, or a .tar.zst or .tar.xz of that name; a shard is a folder \
                of artifacts";
    Error::new(Kind::Usage, "holds neither artifacts nor shards").file(root).hint(hint)
}
