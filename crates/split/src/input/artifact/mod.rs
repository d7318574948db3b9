//! Build artifacts: names, manifests, scanning.
//!
//! Owns the form of an artifact, as a folder and packed, and reads it into trees of content handles. Refuses
//! everything that would not survive as a file of a package: devices, pipes and sockets, setuid and setgid
//! files, files with capabilities, names that are not UTF-8, links and manifest lines that leave their
//! prefix.

mod folder;
mod kind;
mod manifest;
mod packed;
mod remote;
mod roots;
mod scan;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rockpack_core::content::{Content, Inputs};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::Budget;
use rockpack_core::tree::{ArtifactName, Tree, TreePath};
use rockpack_remote::Remote;
use rockpack_report::Findings;
use rockpack_report::words::list;

pub(in crate::input) use folder::lone_node;
pub use folder::read_folder;
pub(crate) use folder::refuse_deep;
pub use manifest::{ArtifactManifest, MANIFEST_NAME};
pub(in crate::input) use packed::parse_name;
pub use packed::{ArchiveForm, Packed, parse_checksum};
pub use remote::{FoundObjects, RemoteArtifact, find_objects, is_address};
pub use rockpack_core::tree::ComponentKind;
pub(in crate::input) use roots::same_name;
pub(in crate::input) use scan::Contents;
pub use scan::{
    FoundArtifacts, find_all, find_shard, is_artifact, name_artifact, refuse_inside, scan,
    scan_artifact, scan_artifact_readable, scan_readable,
};

#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// An existing folder. An anonymous temporary file on its file system keeps the content of packed
    /// artifacts while the scan lives. It takes somewhat more bytes than the archives.
    pub spool_dir: PathBuf,
    /// The budget for reading the artifacts and for keeping their lists of files.
    pub budget: Budget,
    /// The install prefix of the run, without its first `/`: it selects one of several prefixes in an install
    /// tree.
    pub prefix: Option<TreePath>,
    /// The client for addresses.
    pub remote: Arc<Remote>,
    /// A folder that caches objects by their digests.
    pub fetch_cache: Option<PathBuf>,
    /// GPU families that must each have an artifact.
    pub expect: Vec<String>,
}

impl ScanOptions {
    /// Keeps the content of packed artifacts in the system's folder for temporary files.
    pub fn within(budget: &Budget) -> Self {
        Self::of(std::env::temp_dir(), budget)
    }

    /// Keeps the content of packed artifacts on the file system of the output folder `out`, which need not
    /// exist yet.
    pub fn next_to_output(out: &Path, budget: &Budget) -> Self {
        let existing = out.ancestors().find(|path| path.is_dir());
        // A relative path without a folder is below the current one.
        let spool_dir = existing.unwrap_or(Path::new(".")).to_path_buf();
        Self::of(spool_dir, budget)
    }

    fn of(spool_dir: PathBuf, budget: &Budget) -> Self {
        let (budget, remote) = (budget.clone(), Arc::default());
        Self { spool_dir, budget, prefix: None, remote, fetch_cache: None, expect: Vec::new() }
    }
}

/// The content of the inputs given to a build.
#[derive(Debug)]
pub struct Scan {
    pub shards: Vec<Shard>,
    /// Every file, folder and link that was read, for the check at the end of the run.
    pub inputs: Inputs,
    pub findings: Findings,
}

impl Scan {
    /// Returns `result`; an error gets the findings of the scan and of its artifacts.
    pub fn explain<T>(&self, result: Result<T>) -> Result<T> {
        let artifacts = self.shards.iter().flat_map(|shard| &shard.artifacts);
        let own = self.findings.explain(result);
        artifacts.fold(own, |result, artifact| artifact.findings.explain(result))
    }
}

/// Fails unless the artifacts `there` include each of the families in `expected`.
pub fn refuse_missing<'a>(
    there: impl Iterator<Item = &'a ArtifactName>,
    expected: &[String],
) -> Result<()> {
    let there: BTreeSet<&str> = there.map(|name| name.gpu_family.as_str()).collect();
    let missing = expected.iter().map(String::as_str).filter(|family| !there.contains(family));
    let missing: Vec<&str> = missing.collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("no artifact is for {}, which --expect names", list(missing));
    let hint = format!(
        "there are artifacts for {}; wait for the missing jobs, or build without them",
        list(there)
    );
    Err(Error::new(Kind::Conflict, message).hint(hint))
}

/// The artifacts of one build job.
#[derive(Debug)]
pub struct Shard {
    pub name: String,
    pub artifacts: Vec<Artifact>,
}

#[derive(Debug)]
pub struct Artifact {
    pub shard: String,
    pub name: ArtifactName,
    /// The folder of the artifact, or its archive; for an install tree, the path that the user gave.
    pub root: PathBuf,
    /// The SHA-256 of the archive; `None` for a folder.
    pub sha256: Option<[u8; 32]>,
    /// The stage prefixes that exist, in path order.
    pub prefixes: Vec<StagePrefix>,
    pub findings: Findings,
}

impl Artifact {
    /// An artifact without findings in the folder or file `root`.
    pub fn new(shard: &str, name: ArtifactName, root: &Path, prefixes: Vec<StagePrefix>) -> Self {
        let (shard, root) = (shard.to_owned(), root.to_path_buf());
        Self { shard, name, root, sha256: None, prefixes, findings: Findings::default() }
    }

    pub fn bytes(&self) -> u64 {
        let nodes = self.prefixes.iter().flat_map(|prefix| prefix.tree.iter());
        nodes.filter_map(|(_, node)| node.data()).map(Content::len).sum()
    }
}

#[derive(Debug)]
pub struct StagePrefix {
    /// The path in the manifest, e.g. `math-libs/BLAS/rocBLAS/stage`.
    pub path: String,
    /// The path component before `stage`, e.g. `rocBLAS`.
    pub module: Option<String>,
    pub tree: Tree<Content>,
}

/// The name of a member of the archive at `archive` in messages.
pub(crate) fn member_name(archive: &Path, member: &str) -> PathBuf {
    let mut name = archive.as_os_str().to_owned();
    name.push(format!("({member})"));
    name.into()
}
