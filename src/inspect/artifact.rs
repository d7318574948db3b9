//! Artifacts, as folders or packed: the bytes that every GPU needs, and those of each arch.
//!
//! Artifacts are read as a build reads them: fat binaries by their bundles, kernel databases by content and rules. A
//! binary whose code is in archives counts as host code, and its archives as device code at their own paths.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::{exists, is_folder};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::{BaseArch, Target};
use rockpack_core::run::Budget;
use rockpack_core::tree::{Node, TreePath};
use rockpack_report::Findings;
use rockpack_report::words::shell_word;
use rockpack_split::input::artifact::{self, Artifact, Scan, ScanOptions};
use rockpack_split::input::database::DatabaseRules;
use rockpack_split::input::tree::InputPath;
use rockpack_split::{
    self, DatabaseFile, FatBinary, HostBinary, HostFile, HostKind, KernelArchive, SplitArtifact,
    SplitPolicy,
};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArtifactFolder {
    /// The name, e.g. `blas_lib_gfx110X-dgpu`; that of the shard for an install tree with several components.
    pub name: String,
    pub prefixes: Vec<String>,
    /// Bytes that every GPU needs: files without device code, what remains of fat binaries, and
    /// kernel archives that are not for one known arch.
    pub generic_bytes: u64,
    /// Bytes of device code by arch: uncompressed in binaries, as stored in archives and
    /// databases. A database file of several archs counts for each.
    pub device_bytes: BTreeMap<BaseArch, u64>,
    /// The files and links by path below the install prefix.
    pub files: BTreeMap<String, ArtifactFile>,
    pub findings: Findings,
}

/// A file or link of an artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ArtifactFile {
    /// `host`, `fat-binary`, `transformed-binary`, `kernel-archive`, `kernel-manifest`, `database`
    /// or `link`.
    pub what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    pub generic_bytes: u64,
    pub device_bytes: BTreeMap<BaseArch, u64>,
}

fn read(input: &InputPath, options: &ScanOptions) -> Result<Scan> {
    let path = &input.path;
    let has_manifest = is_folder(path)? && exists(&path.join(artifact::MANIFEST_NAME))?;
    if input.name.is_none() && (has_manifest || artifact::is_artifact(path)?) {
        return artifact::scan_artifact(path, None, options);
    }
    let (found, trees) = artifact::find_all(std::slice::from_ref(input), options)?;
    if found.shards.is_empty() {
        return Ok(trees);
    }
    let error = Error::new(Kind::Usage, "is neither an artifact nor an install tree").file(path);
    let word = shell_word(path);
    Err(error.hint(format!(
        "shards: `rockpack discover {word}`; packages: `rockpack verify {word}`; an installation: \
         `rockpack verify --installed {word}`"
    )))
}

/// Inspects the artifact or install tree at `input`, a folder or packed.
pub fn inspect_artifact(
    input: &InputPath,
    prefix: Option<&TreePath>,
    budget: &Budget,
) -> Result<ArtifactFolder> {
    let options = ScanOptions { prefix: prefix.cloned(), ..ScanOptions::within(budget) };
    let scan = read(input, &options)?;
    let artifacts: Vec<&Artifact> = scan.shards.iter().flat_map(|it| &it.artifacts).collect();
    let rules = DatabaseRules::builtin()?;
    let policy = SplitPolicy::lenient(&rules);
    let split = artifacts.iter().map(|one| rockpack_split::split_alone(one, &policy)).collect();
    let split: Vec<SplitArtifact> = scan.findings.explain(split)?;
    scan.inputs.recheck()?;
    let files: BTreeMap<String, ArtifactFile> = split.iter().flat_map(files).collect();
    let mut device_bytes = BTreeMap::new();
    for (arch, bytes) in files.values().flat_map(|file| &file.device_bytes) {
        add(&mut device_bytes, arch, *bytes);
    }
    let parts = split.iter().map(|one| &one.findings);
    let mut findings = Findings::of([&scan.findings].into_iter().chain(parts));
    findings.sort();
    let name = match &*artifacts {
        [one] => one.name.to_string(),
        _ => scan.shards.iter().map(|shard| shard.name.as_str()).collect(),
    };
    let prefixes: BTreeSet<String> =
        artifacts.iter().flat_map(|one| &one.prefixes).map(|it| it.path.clone()).collect();
    Ok(ArtifactFolder {
        name,
        prefixes: prefixes.into_iter().collect(),
        generic_bytes: files.values().map(|file| file.generic_bytes).sum(),
        device_bytes,
        files,
        findings,
    })
}

fn add(amounts: &mut BTreeMap<BaseArch, u64>, arch: &BaseArch, bytes: u64) {
    let amount = amounts.entry(arch.clone()).or_default();
    *amount = amount.saturating_add(bytes);
}

fn files(split: &SplitArtifact) -> BTreeMap<String, ArtifactFile> {
    let host = split.host.iter().filter_map(|(path, node)| Some((path, host_file(node)?)));
    let databases = split.databases.iter().map(|file| (&file.path, database(file)));
    let archives = split.archives.iter().map(|one| (&one.path, archive(one)));
    let manifests =
        split.archive_manifests.iter().map(|one| (&one.path, generic("kernel-manifest", 0)));
    let all = host.chain(databases).chain(archives).chain(manifests);
    all.map(|(path, file)| (path.to_string(), file)).collect()
}

/// A file without device code for one single arch.
fn generic(what: &'static str, generic_bytes: u64) -> ArtifactFile {
    ArtifactFile { what, generic_bytes, ..ArtifactFile::default() }
}

fn host_file(node: &Node<HostFile>) -> Option<ArtifactFile> {
    match node {
        Node::Directory { .. } => None,
        Node::Link { target } => {
            Some(ArtifactFile { target: Some(target.clone()), ..generic("link", 0) })
        }
        Node::File { data, .. } => Some(match &data.kind {
            HostKind::Plain(content) => generic("host", content.len()),
            HostKind::Fat(fat) => binary(fat),
        }),
    }
}

fn binary(fat: &FatBinary) -> ArtifactFile {
    let what = match &fat.binary {
        HostBinary::Fat(_) => "fat-binary",
        HostBinary::Transformed(_) => "transformed-binary",
    };
    let mut device_bytes = BTreeMap::new();
    for code in fat.code_objects() {
        add(&mut device_bytes, code.target.base(), code.content.len());
    }
    let generic_bytes = fat.binary.output_len();
    ArtifactFile { what, target: None, generic_bytes, device_bytes }
}

fn database(file: &DatabaseFile) -> ArtifactFile {
    let device_bytes = file.archs.iter().map(|arch| (arch.clone(), file.content.len())).collect();
    ArtifactFile { what: "database", device_bytes, ..ArtifactFile::default() }
}

/// Counts the bytes of an archive for its arch. They are generic if it has several archs or an unknown one.
fn archive(archive: &KernelArchive) -> ArtifactFile {
    let targets = archive.reader.toc().gfx_arches.iter();
    let known: Option<BTreeSet<BaseArch>> = targets
        .map(|target| target.parse::<Target>().ok().map(|target| target.base().clone()))
        .collect();
    let mut archs = known.unwrap_or_default().into_iter();
    let (what, bytes) = ("kernel-archive", archive.content.len());
    match (archs.next(), archs.next()) {
        (Some(arch), None) => {
            ArtifactFile { device_bytes: [(arch, bytes)].into(), ..generic(what, 0) }
        }
        _ => generic(what, bytes),
    }
}
