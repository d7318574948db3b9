//! From folders to shards and artifacts.
//!
//! A root is a shard (a folder of artifacts) or a folder of shards; its content decides which.
//! Everything is sorted by name, so the order of directories never matters, and all faults of a
//! scan are reported together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::ArtifactName;
use super::listing::{Listed, list};
use super::manifest::{MANIFEST_NAME, Manifest, module_of};
use super::prefix::{Walk, locate};
use crate::content::{Content, Inputs};
use crate::error::{Error, Faults, Kind, Result};
use crate::report::{Code, Finding, Findings};
use crate::tree::{Node, Tree, TreePath};

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

/// One artifact folder.
#[derive(Debug)]
pub struct Artifact {
    /// The shard it belongs to.
    pub shard: String,
    /// What it is called.
    pub name: ArtifactName,
    /// Its folder.
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

/// File name endings of packed artifacts.
const ARCHIVE_ENDINGS: [&str; 2] = [".tar.zst", ".tar.xz"];

/// How many files outside of all prefixes a finding names.
const NAMED_FILES: usize = 5;

/// Reads `roots`, each a shard or a folder of shards.
pub fn scan(roots: &[PathBuf]) -> Result<Scan> {
    let mut scanner = Scanner::default();
    for root in roots {
        scanner.root(root);
    }
    scanner.faults.finish()?;
    let shards = scanner.shards.into_values().map(|(_, shard)| shard);
    Ok(Scan { shards: shards.collect(), inputs: scanner.inputs, findings: scanner.findings })
}

/// Reads one artifact folder, as the only one of a shard that is called like the folder around it.
/// `component` (`blas_lib`) stands for the first two fields of its name, if given.
pub fn scan_artifact(folder: &Path, component: Option<&str>) -> Result<Scan> {
    let real = std::fs::canonicalize(folder).map_err(|e| Error::io(folder, "resolve", e))?;
    let metadata = std::fs::metadata(&real).map_err(|e| Error::io(folder, "inspect", e))?;
    if !metadata.is_dir() {
        return Err(Error::new(Kind::Usage, "is no artifact folder").file(folder));
    }
    let own = real.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = match component {
        Some(component) => {
            let family = own.rsplit('_').next().unwrap_or_default();
            format!("{component}_{family}")
        }
        None => own.to_owned(),
    };
    let shard = match real.parent() {
        Some(parent) if parent.file_name().is_some() => shard_name(parent)?,
        _ => own.to_owned(),
    };
    let mut scanner = Scanner::default();
    let listed = Listed { name, path: folder.to_path_buf(), metadata };
    let artifacts = scanner.artifact(&shard, &listed).into_iter().collect();
    scanner.faults.finish()?;
    let shards = vec![Shard { name: shard, artifacts }];
    Ok(Scan { shards, inputs: scanner.inputs, findings: scanner.findings })
}

/// The name of the shard in `folder`, and the folders of its artifacts in name order.
pub fn artifact_folders(folder: &Path) -> Result<(String, Vec<PathBuf>)> {
    let mut faults = Faults::default();
    let entries = list(folder, &mut faults);
    faults.finish()?;
    let folders = entries.iter().filter(|entry| folder_kind(entry) == FolderKind::Artifact);
    let folders: Vec<PathBuf> = folders.map(|entry| entry.path.clone()).collect();
    match folders.is_empty() {
        true => Err(nothing_in(folder, &entries)),
        false => Ok((shard_name(folder)?, folders)),
    }
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
    inputs: Inputs,
    findings: Findings,
    faults: Faults,
}

/// What a folder is, seen from its entries.
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
        let entries = list(root, &mut self.faults);
        let kinds: Vec<_> = entries.iter().map(folder_kind).collect();
        let shards = kinds.contains(&FolderKind::Shard);
        match (kinds.contains(&FolderKind::Artifact), shards) {
            (true, false) => self.shard(root, entries),
            (false, true) => self.folder_of_shards(entries, &kinds),
            (true, true) => self.faults.add(mixed(root, &entries, &kinds)),
            (false, false) => self.faults.add(nothing_in(root, &entries)),
        }
    }

    fn folder_of_shards(&mut self, entries: Vec<Listed>, kinds: &[FolderKind]) {
        for (entry, kind) in entries.into_iter().zip(kinds) {
            match kind {
                FolderKind::Shard => {
                    let inside = list(&entry.path, &mut self.faults);
                    self.shard(&entry.path, inside);
                }
                _ => self.no_shard(&entry),
            }
        }
    }

    /// A folder beside the shards. One that holds packed artifacts is a shard that cannot be read,
    /// and must not be missed.
    fn no_shard(&mut self, entry: &Listed) {
        self.passed_over(entry.name.clone(), entry);
        if entry.leads_to_folder() {
            for inside in list(&entry.path, &mut self.faults) {
                if is_packed(&inside.name) {
                    self.passed_over(inside.name.clone(), &inside);
                }
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
        for entry in entries {
            if folder_kind(&entry) == FolderKind::Artifact {
                artifacts.extend(self.artifact(&name, &entry));
            } else {
                self.passed_over(format!("{name}/{}", entry.name), &entry);
            }
        }
        artifacts.sort_by(|a: &Artifact, b| a.name.cmp(&b.name));
        let shard = Shard { name: name.clone(), artifacts };
        self.shards.insert(name, (folder.to_path_buf(), shard));
    }

    /// Notes what is no artifact; a packed artifact must not be missed in silence. The subject is
    /// the same wherever the folders lie, because findings are part of the output.
    fn passed_over(&mut self, subject: String, entry: &Listed) {
        if is_packed(&entry.name) {
            let error = Error::unsupported("is a packed artifact; only folders are read");
            let hint = "unpack it into a folder of the same name without the ending";
            return self.faults.add(error.file(&entry.path).hint(hint));
        }
        let message = "is no artifact folder and is left out";
        self.findings.add(Finding::new(Code::NotAnArtifact, subject, message));
    }

    fn artifact(&mut self, shard: &str, entry: &Listed) -> Option<Artifact> {
        let root = &entry.path;
        let name = entry.name.parse::<ArtifactName>();
        let name = self.faults.keep(name.map_err(|e| e.file(root)));
        let manifest = self.faults.keep(open_manifest(root))?;
        let name = name?;
        let mut artifact = Artifact {
            shard: shard.to_owned(),
            name,
            root: root.clone(),
            prefixes: Vec::new(),
            findings: Findings::default(),
        };
        for path in &manifest.prefixes {
            self.prefix(&mut artifact, path);
        }
        if artifact.prefixes.is_empty() {
            let subject = format!("{}/{}", artifact.shard, artifact.name);
            let message = "none of its listed stage prefixes exists, so nothing of it is packed";
            artifact.findings.add(Finding::new(Code::ArtifactEmpty, subject, message));
        }
        self.outside(&mut artifact, &manifest);
        Some(artifact)
    }

    fn prefix(&mut self, artifact: &mut Artifact, path: &TreePath) {
        let Some(found) = self.faults.keep(locate(&artifact.root, path)) else {
            return;
        };
        let Some(folder) = found else {
            let subject = format!("{}/{}", artifact.shard, artifact.name);
            let message = format!("the listed stage prefix {path} does not exist");
            artifact.findings.add(Finding::new(Code::PrefixAbsent, subject, message));
            return;
        };
        let mut walk =
            Walk { tree: Tree::new(), inputs: &mut self.inputs, faults: &mut self.faults };
        walk.folder(&folder, None);
        artifact.prefixes.push(Prefix {
            path: path.to_string(),
            module: module_of(path),
            tree: walk.tree,
        });
    }

    /// One finding for all files that no prefix holds.
    fn outside(&mut self, artifact: &mut Artifact, manifest: &Manifest) {
        let mut files = Vec::new();
        let prefixes: Vec<PathBuf> =
            manifest.prefixes.iter().map(|prefix| artifact.root.join(prefix.as_str())).collect();
        self.outside_of(&artifact.root, &prefixes, &mut files);
        files.retain(|file| *file != artifact.root.join(MANIFEST_NAME));
        if files.is_empty() {
            return;
        }
        let names: Vec<String> = files
            .iter()
            .take(NAMED_FILES)
            .map(|file| file.strip_prefix(&artifact.root).unwrap_or(file))
            .map(|file| file.display().to_string())
            .collect();
        let more = match files.len() > NAMED_FILES {
            true => ", …",
            false => "",
        };
        let count = files.len();
        let message = format!(
            "{count} files lie outside of all listed prefixes and are in no package: {}{more}",
            names.join(", ")
        );
        let subject = format!("{}/{}", artifact.shard, artifact.name);
        artifact.findings.add(Finding::new(Code::OutsidePrefixes, subject, message));
    }

    fn outside_of(&mut self, folder: &Path, prefixes: &[PathBuf], files: &mut Vec<PathBuf>) {
        for entry in list(folder, &mut self.faults) {
            if prefixes.contains(&entry.path) {
                continue;
            }
            match entry.metadata.is_dir() {
                true => self.outside_of(&entry.path, prefixes, files),
                false => files.push(entry.path),
            }
        }
    }
}

fn open_manifest(root: &Path) -> Result<Manifest> {
    let path = root.join(MANIFEST_NAME);
    match std::fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => Manifest::open(&path),
        Ok(_) => Err(Error::malformed("is no regular file").file(path)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            Err(Error::malformed("the artifact has no manifest")
                .file(path)
                .hint("the manifest lists the stage prefixes of an artifact, one per line"))
        }
        Err(e) => Err(Error::io(path, "inspect", e)),
    }
}

/// Whether a file name is that of a packed artifact.
fn is_packed(name: &str) -> bool {
    ARCHIVE_ENDINGS.iter().any(|end| name.ends_with(end))
}

/// An artifact has a manifest, or at least an artifact's name. A shard holds artifacts: by their
/// manifests where it is named like an artifact itself.
fn folder_kind(entry: &Listed) -> FolderKind {
    if !entry.leads_to_folder() {
        return FolderKind::Other;
    }
    if std::fs::symlink_metadata(entry.path.join(MANIFEST_NAME)).is_ok() {
        return FolderKind::Artifact;
    }
    // Faults of this look ahead are met again, and reported, by the scan of what it decides on.
    let inside = list(&entry.path, &mut Faults::default());
    let manifests = inside
        .iter()
        .any(|entry| std::fs::symlink_metadata(entry.path.join(MANIFEST_NAME)).is_ok());
    if manifests {
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

fn nothing_in(root: &Path, entries: &[Listed]) -> Error {
    let packed =
        entries.iter().find(|entry| ARCHIVE_ENDINGS.iter().any(|end| entry.name.ends_with(end)));
    let (message, hint) = match packed {
        Some(entry) => (
            format!("holds packed artifacts ({}); only folders are read", entry.name),
            "unpack each into a folder of the same name without the ending",
        ),
        None => (
            "holds neither artifacts nor shards".to_owned(),
            "an artifact is a folder named {name}_{component}_{family} with an \
             artifact_manifest.txt; a shard is a folder of artifacts",
        ),
    };
    Error::new(Kind::Usage, message).file(root).hint(hint)
}
