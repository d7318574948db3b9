//! The split stage: an artifact becomes host files, code objects per wrapper, and databases.
//!
//! Every file of the artifact ends up among the host files or among the databases, and every code
//! object in a wrapper's list, in a database file or in a finding. The stage does nothing but read
//! content.
//!
//! Artifacts may be split already: binaries whose device code was taken out are then joined with
//! the kernel archives of their shard (`attach.rs`), and what follows does not tell them from fat
//! ones.

mod archives;
mod attach;
mod code;
mod databases;
mod development;
mod fat_binary;
mod flatten;
pub mod host_binary;
mod loose;
mod machines;
mod notes;
mod partners;
mod shipped;
mod static_archive;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use rockpack_base::content::Content;
use rockpack_base::error::{Error, Faults, Kind, Result};
use rockpack_base::gfx::{BaseArch, Target};
use rockpack_base::tree::{Node, Tree, TreePath};

use crate::input::artifact::{Artifact, ArtifactName, Scan};
use crate::input::database::DatabaseRules;
use crate::report::{DevelopmentFile, Finding, Findings, Progress, Stage};
use archives::ArchiveFiles;
use attach::attach;
use databases::{DatabaseCandidate, Settled};
use development::{Sniffed, sniff};
use flatten::Located;
pub use loose::{LooseCode, loose_code};
use notes::Notes;

pub use archives::{ArchiveManifest, KernelArchive};
pub use fat_binary::HostBinary;
pub use shipped::split_alone;

/// One artifact, taken apart. Paths are relative to the install prefix.
#[derive(Debug)]
pub struct SplitArtifact {
    /// The shard it came from.
    pub shard: String,
    /// What it is called.
    pub name: ArtifactName,
    /// Host files, links and directories of all its prefixes.
    pub host: Tree<HostFile>,
    /// Kernel database files, each with the archs whose code it is.
    pub databases: Vec<DatabaseFile>,
    /// Which host files belong to kernel databases, and serve all archs of this shard.
    pub shared: BTreeMap<TreePath, SharedFile>,
    /// Kernel archives of artifacts that were split already. What a component ships itself is among the
    /// databases once all artifacts of its shard are known.
    pub archives: Vec<KernelArchive>,
    /// Manifests of such archives.
    pub archive_manifests: Vec<ArchiveManifest>,
    /// What was noticed.
    pub findings: Findings,
}

impl SplitArtifact {
    /// The binaries with device code, in it or in archives.
    pub fn binaries(&self) -> impl Iterator<Item = (&TreePath, &Arc<FatBinary>)> {
        self.host.iter().filter_map(|(path, node)| Some((path, node.data()?.fat()?)))
    }
}

/// A file that goes to the host side.
#[derive(Debug, Clone)]
pub struct HostFile {
    /// The module (`rocBLAS`) whose stage prefix holds it, if its prefix names one.
    pub module: Option<String>,
    /// What it is.
    pub kind: HostKind,
}

impl HostFile {
    /// The bytes of what is passed on as it is.
    pub fn plain(&self) -> Option<&Content> {
        match &self.kind {
            HostKind::Plain(content) => Some(content),
            HostKind::Fat(_) => None,
        }
    }

    /// The binary with device code that it is.
    pub fn fat(&self) -> Option<&Arc<FatBinary>> {
        match &self.kind {
            HostKind::Plain(_) => None,
            HostKind::Fat(fat) => Some(fat),
        }
    }
}

impl HostKind {
    /// The bytes as the input has them, with device code.
    pub fn original(&self) -> &Content {
        match self {
            Self::Plain(content) => content,
            Self::Fat(fat) => fat.binary.original(),
        }
    }
}

/// What a host file is.
#[derive(Debug, Clone)]
pub enum HostKind {
    /// Passed on as it is.
    Plain(Content),
    /// A binary with device code: it gets its marker when its install path is known.
    Fat(Arc<FatBinary>),
}

/// A binary with device code, wherever that lies: the host side, and the code by wrapper.
#[derive(Debug)]
pub struct FatBinary {
    /// The binary itself.
    pub binary: HostBinary,
    /// By wrapper index: the code objects of the bundle it points to.
    pub wrappers: Vec<WrapperCode>,
}

impl FatBinary {
    /// The code objects of all wrappers.
    pub fn code_objects(&self) -> impl Iterator<Item = &CodeObject> {
        self.wrappers.iter().flat_map(|wrapper| wrapper.code_objects.iter())
    }
}

/// The device code that belongs to one wrapper.
#[derive(Debug, Clone)]
pub struct WrapperCode {
    /// The symbol of the bundle (`__hip_fatbin_<id>`), where the binary names it.
    pub symbol: Option<String>,
    /// Its code objects in bundle order, or, from kernel archives, in the order of their targets. A target
    /// occurs once. Wrappers may share a bundle.
    pub code_objects: Arc<[CodeObject]>,
}

/// One code object.
#[derive(Debug, Clone)]
pub struct CodeObject {
    /// What it is for: the entry's target ID, corrected by the content where they disagree.
    pub target: Target,
    /// Its bytes: an AMDGPU ELF, or arch-neutral code.
    pub content: Content,
}

/// A file of a kernel database: device code of some archs, or an index of it.
#[derive(Debug, Clone)]
pub struct DatabaseFile {
    /// Path relative to the install prefix.
    pub path: TreePath,
    /// The archs whose code it is or indexes: sorted, never empty. Most files have one; offload bundles,
    /// indexes and files that serve the members of a family may have several.
    pub archs: Vec<BaseArch>,
    /// Whether these are the members of a family by name: not all of them need be in this build.
    pub for_arch_family: bool,
    /// The module whose stage prefix holds it, if its prefix names one.
    pub module: Option<String>,
    /// The shard it came from.
    pub shard: String,
    /// The rule that claimed it, e.g. `rocblas`.
    pub rule: String,
    /// Whether its library looks for it in a directory of its arch first, beside it.
    pub moves: bool,
    /// Whether it is what makes the library look there.
    pub leads: bool,
    /// Its bytes.
    pub content: Content,
    /// Permission bits.
    pub mode: u32,
}

/// What is known of a host file that serves all archs of its shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedFile {
    /// The rule that claimed it, e.g. `rocblas`.
    pub rule: String,
    /// Whether its library looks for it in a directory of its arch first, beside it.
    pub moves: bool,
    /// Whether the library works without it.
    pub cache: bool,
}

/// How artifacts are taken apart.
pub struct SplitPolicy<'a> {
    /// Which files are kernel databases.
    pub rules: &'a DatabaseRules,
    /// Whether fat binaries of an artifact that cannot be transformed stay as they are, with a
    /// finding; they are refused otherwise.
    pub keeps_fat: &'a (dyn Fn(&ArtifactName) -> bool + Sync),
    /// Whether the file at a path is packed as data although it is for another machine than x86-64;
    /// such a file is refused otherwise.
    pub allows_other_machine: &'a (dyn Fn(&TreePath) -> bool + Sync),
}

impl<'a> SplitPolicy<'a> {
    /// Refuses what cannot be transformed, and what is for another machine.
    pub fn strict(rules: &'a DatabaseRules) -> Self {
        Self { rules, keeps_fat: &|_| false, allows_other_machine: &|_| false }
    }

    /// Refuses neither: whoever looks into artifacts is told of both by findings.
    pub fn lenient(rules: &'a DatabaseRules) -> Self {
        Self { rules, keeps_fat: &|_| true, allows_other_machine: &|_| true }
    }
}

/// Takes all artifacts of a scan apart, on the threads of the current rayon pool; faults of several
/// are reported together.
pub fn split_all(
    scan: &Scan,
    options: &SplitPolicy<'_>,
    progress: &dyn Progress,
) -> Result<Vec<SplitArtifact>> {
    let artifacts: Vec<_> = scan.shards.iter().flat_map(|shard| &shard.artifacts).collect();
    progress.expect(Stage::Split, artifacts.iter().map(|artifact| artifact.bytes()).sum());
    progress.begin(Stage::Split);
    let split = split_artifacts(&artifacts, options, progress);
    progress.end(Stage::Split);
    scan.inputs.explain(split)
}

/// Takes these artifacts apart, in parallel, and joins what was split already; the caller begins
/// and ends the stage. Faults of several are reported together.
pub fn split_artifacts(
    artifacts: &[&Artifact],
    options: &SplitPolicy<'_>,
    progress: &dyn Progress,
) -> Result<Vec<SplitArtifact>> {
    let taken: Vec<_> = artifacts
        .par_iter()
        .map(|artifact| {
            let split = split(artifact, options);
            progress.advance(Stage::Split, artifact.bytes());
            split
        })
        .collect();
    let mut faults = Faults::default();
    let taken: Vec<_> = taken.into_iter().filter_map(|result| faults.keep(result)).collect();
    let noticed = Findings::of(taken.iter().map(|artifact| &artifact.findings));
    noticed.explain(faults.finish())?;
    let mut look_again =
        |component: &mut [SplitArtifact]| partners::look_again(artifacts, component, options);
    let mut attached = noticed.explain(attach(taken, options.rules, &mut look_again))?;
    attached.iter_mut().for_each(fat_binary::note_without_code);
    Ok(attached)
}

/// Takes `artifact` apart. All faults of its files are gathered into one error.
pub fn split(artifact: &Artifact, options: &SplitPolicy<'_>) -> Result<SplitArtifact> {
    let doing = || format!("splitting {}/{}", artifact.shard, artifact.name);
    split_inner(artifact, options).map_err(|error| error.context(doing()))
}

fn split_inner(artifact: &Artifact, options: &SplitPolicy<'_>) -> Result<SplitArtifact> {
    let mut notes = Notes::new(artifact);
    let split = split_noting(artifact, options, &mut notes);
    let findings = notes.finish();
    findings.explain(split).map(|split| SplitArtifact { findings, ..split })
}

/// The artifact without its findings, which are in the notes.
fn split_noting(
    artifact: &Artifact,
    options: &SplitPolicy<'_>,
    notes: &mut Notes,
) -> Result<SplitArtifact> {
    let keeps_fat = (options.keeps_fat)(&artifact.name);
    let tree = flatten::flatten(artifact, notes)?;
    let mut host = Tree::new();
    let mut candidates = Vec::new();
    let mut archives = ArchiveFiles::default();
    let mut faults = Vec::new();
    for (path, node) in tree {
        let sorted = match node {
            Node::Directory { mode } => host.insert(path, Node::Directory { mode }),
            Node::Link { target } => host.insert(path, Node::Link { target }),
            Node::File { data, .. } if archives::is_archive(&path) => {
                archives.add(path, data).map_err(advised)
            }
            Node::File { data, mode } => classify(&path, data, options, keeps_fat, notes)
                .map_err(|error| advised(error).context(format!("reading {path}")))
                .and_then(|sorted| match sorted {
                    Sorted::Host(file) => host.insert(path, Node::File { data: file, mode }),
                    Sorted::Database(candidate) => {
                        candidates.push(*candidate);
                        Ok(())
                    }
                }),
        };
        faults.extend(sorted.err());
    }
    if let Some(error) = Error::gather(faults) {
        return Err(error);
    }
    databases::pair(&mut candidates, notes);
    let Settled { databases, shared } = databases::settle(candidates, &mut host, notes)?;
    let ArchiveFiles { archives, manifests: archive_manifests } = archives;
    // Others may yet become host files (`shipped.rs`).
    let split_off = archives.iter().filter(|archive| archive.is_in_archive_folder());
    let device = archives::device_paths(split_off, &archive_manifests, &databases);
    archives::drop_folders(&mut host, device);
    Ok(SplitArtifact {
        shard: artifact.shard.clone(),
        name: artifact.name.clone(),
        host,
        databases,
        shared,
        archives,
        archive_manifests,
        findings: Findings::default(),
    })
}

/// Says what to do about a file whose bytes are at fault, unless the fault says it itself.
fn advised(error: Error) -> Error {
    match error.kind() {
        Kind::Malformed | Kind::Truncated => error.hint(
            "the file is damaged or was copied only in part: build it or copy it again; \
             `rockpack inspect` shows what can be read of it",
        ),
        Kind::Unsupported => error.hint(
            "a newer compiler may have made it than this version of rockpack knows: use a newer \
             rockpack, or build the file with other options",
        ),
        _ => error,
    }
}

/// Where a file goes.
enum Sorted {
    Host(HostFile),
    Database(Box<DatabaseCandidate>),
}

fn classify(
    path: &TreePath,
    file: Located,
    options: &SplitPolicy<'_>,
    keeps_fat: bool,
    notes: &mut Notes,
) -> Result<Sorted> {
    let sniffed = sniff(&file.content)?;
    machines::judge(path, &file.content, sniffed, options, notes)?;
    note_thin_archive(path, &file.content, sniffed, notes)?;
    if let Some(candidate) = databases::claim(path, &file, sniffed, options.rules, notes)? {
        return Ok(Sorted::Database(Box::new(candidate)));
    }
    let Located { content, module, .. } = file;
    match sniffed {
        Sniffed::HostElf => fat_binary::note_embedded(path, &content, notes)?,
        Sniffed::Stripped => {
            fat_binary::refuse_stripped(&content, keeps_fat)?;
            fat_binary::note_embedded(path, &content, notes)?;
        }
        _ => {}
    }
    let mut fat_development = |kind| {
        let file = notes.file(path);
        notes.add(Finding::FatDevelopmentFile { file, kind });
    };
    match sniffed {
        Sniffed::HostElf => {
            let kind = fat_binary::host_kind(path, content, keeps_fat, notes)?;
            return Ok(Sorted::Host(HostFile { module, kind }));
        }
        Sniffed::Stripped => {
            notes.add(Finding::NoSectionTable { file: notes.file(path) });
        }
        Sniffed::Development(Some(kind)) => fat_development(kind),
        Sniffed::UnlinkedBundle => fat_development(DevelopmentFile::Bundle),
        Sniffed::CodeObject | Sniffed::Bundle => {
            return Err(Error::bug("device code was claimed by no rule"));
        }
        Sniffed::Development(None)
        | Sniffed::OtherMachine(_)
        | Sniffed::ThinArchive
        | Sniffed::Other => {}
    }
    let kind = HostKind::Plain(content);
    Ok(Sorted::Host(HostFile { module, kind }))
}

/// Notes a thin static archive, alone or as a member of another: its objects stay in the build tree.
fn note_thin_archive(
    path: &TreePath,
    content: &Content,
    sniffed: Sniffed,
    notes: &mut Notes,
) -> Result<()> {
    let is_member = match sniffed {
        Sniffed::ThinArchive => false,
        Sniffed::Development(_)
            if static_archive::is_archive(content)?
                && static_archive::has_thin_member(content)? =>
        {
            true
        }
        _ => return Ok(()),
    };
    notes.add(Finding::ThinArchive { file: notes.file(path), is_member });
    Ok(())
}
