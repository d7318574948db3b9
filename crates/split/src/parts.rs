//! The parts of a split artifact, the policy of the split, and the findings about the files of one artifact.

use std::collections::BTreeMap;
use std::sync::Arc;

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::gfx::{BaseArch, Target};
use rockpack_core::tree::{ArtifactName, Tree, TreePath};
use rockpack_elf::kpack::KpackReader;
use rockpack_elf::kpm::Manifest;
use rockpack_files::cache::Cache;
use rockpack_report::{ElfMachine, Finding, Findings, InputArtifact, InputFile, found};

use super::host_binary::{Analysis, Transformed};
use crate::input::database::DatabaseRules;

/// One split artifact. Paths are relative to the install prefix.
#[derive(Debug)]
pub struct SplitArtifact {
    pub shard: String,
    pub name: ArtifactName,
    /// SHA-256 of the archive; `None` for a folder.
    pub sha256: Option<[u8; 32]>,
    /// Host files, links and directories of all its prefixes.
    pub host: Tree<HostFile>,
    /// Kernel database files, each with the archs whose code it is.
    pub databases: Vec<DatabaseFile>,
    /// Host files that belong to kernel databases and serve all archs of this shard.
    pub shared: BTreeMap<TreePath, SharedFile>,
    /// Kernel archives of artifacts that were split already. Archives that a component ships itself move to
    /// `databases` once all artifacts of its shard are known.
    pub archives: Vec<KernelArchive>,
    /// Manifests of such archives.
    pub archive_manifests: Vec<ManifestFile>,
    pub findings: Findings,
}

impl SplitArtifact {
    /// The artifact in findings.
    pub(super) fn label(&self) -> InputArtifact {
        InputArtifact::new(&self.shard, &self.name)
    }

    /// The binaries with device code, inside them or in archives.
    pub fn binaries(&self) -> impl Iterator<Item = (&TreePath, &Arc<FatBinary>)> {
        self.host.iter().filter_map(|(path, node)| Some((path, node.data()?.fat()?)))
    }

    /// The archs with code, apart from files for all members of an arch family: the build may lack some of these.
    pub fn built_archs(&self) -> impl Iterator<Item = &BaseArch> {
        let code_objects = self.binaries().flat_map(|(_, fat)| fat.code_objects());
        let databases = self.databases.iter().filter(|file| !file.of_whole_family);
        code_objects.map(|code| code.target.base()).chain(databases.flat_map(|file| &file.archs))
    }
}

/// A file that goes to the host side.
#[derive(Debug, Clone)]
pub struct HostFile {
    /// The module (`rocBLAS`) whose stage prefix holds it, if its prefix names one.
    pub module: Option<String>,
    pub kind: HostKind,
}

impl HostFile {
    /// The bytes of a file that is packed unchanged; `None` for other kinds.
    pub fn plain(&self) -> Option<&Content> {
        match &self.kind {
            HostKind::Plain(content) => Some(content),
            HostKind::Fat(_) => None,
        }
    }

    /// The binary, if the file has device code.
    pub fn fat(&self) -> Option<&Arc<FatBinary>> {
        match &self.kind {
            HostKind::Plain(_) => None,
            HostKind::Fat(fat) => Some(fat),
        }
    }
}

impl HostKind {
    /// The bytes of the input, including device code.
    pub fn original(&self) -> &Content {
        match self {
            Self::Plain(content) => content,
            Self::Fat(fat) => fat.binary.original(),
        }
    }
}

#[derive(Debug, Clone)]
pub enum HostKind {
    Plain(Content),
    /// A binary with device code: it gets its marker when its install path is known.
    Fat(Arc<FatBinary>),
}

/// A binary with device code, inside it or in archives: the host side, and the code by wrapper.
#[derive(Debug)]
pub struct FatBinary {
    pub binary: HostBinary,
    /// The code objects of the bundle that each wrapper points to, by wrapper index.
    pub wrappers: Vec<WrapperCode>,
}

impl FatBinary {
    pub fn code_objects(&self) -> impl Iterator<Item = &CodeObject> {
        self.wrappers.iter().flat_map(|wrapper| wrapper.code_objects.iter())
    }
}

/// The device code that belongs to one wrapper.
#[derive(Debug, Clone)]
pub struct WrapperCode {
    /// The symbol of the bundle (`__hip_fatbin_<id>`), if the binary names it.
    pub symbol: Option<String>,
    /// Code objects in bundle order, or, from kernel archives, in the order of their targets. Each target
    /// occurs once. Wrappers may share a bundle.
    pub code_objects: Arc<[CodeObject]>,
}

#[derive(Debug, Clone)]
pub struct CodeObject {
    /// Target of the code: the entry's target ID, corrected by the content if they disagree.
    pub target: Target,
    /// Bytes of the code: an AMDGPU ELF, or arch-neutral code.
    pub content: Content,
    /// Its share, by size, of the compressed bundle that held it, in bytes. `None` if no compressed
    /// bundle held it.
    pub stored_size: Option<u64>,
}

/// A file of a kernel database: device code of some archs, or an index of it.
#[derive(Debug, Clone)]
pub struct DatabaseFile {
    /// Path relative to the install prefix.
    pub path: TreePath,
    /// The archs whose code it is or indexes: sorted, never empty. Most files have one; offload bundles,
    /// indexes and files that serve the members of a family may have several.
    pub archs: Vec<BaseArch>,
    /// Whether it lies in the folder of an arch family.
    pub for_arch_family: bool,
    /// Whether it is for all members of that family; this build may lack some.
    pub of_whole_family: bool,
    /// The module whose stage prefix holds it, if its prefix names one.
    pub module: Option<String>,
    pub shard: String,
    /// The rule that claimed it, e.g. `rocblas`.
    pub rule: String,
    /// Whether its library first looks for it in an adjacent directory of its arch.
    pub moves: bool,
    /// Whether its presence makes the library search that directory.
    pub opens_dir: bool,
    pub content: Content,
    pub mode: u32,
}

/// The facts about a host file that serves all archs of its shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedFile {
    /// The rule that claimed it, e.g. `rocblas`.
    pub rule: String,
    /// Whether its library first looks for it in an adjacent directory of its arch.
    pub moves: bool,
    pub cache: bool,
}

/// A binary that has device code, or had it.
#[derive(Debug)]
pub enum HostBinary {
    /// A binary with device code, which is removed when the marker is known.
    Fat(Box<Analysis>),
    /// A binary whose device code was removed before; only its marker is rewritten.
    Transformed(Transformed),
}

impl HostBinary {
    /// The bytes of the input.
    pub fn original(&self) -> &Content {
        match self {
            Self::Fat(analysis) => analysis.original(),
            Self::Transformed(transformed) => transformed.content(),
        }
    }

    /// The binary without device code, with `marker` as its reference to kernel archives. If the split was for
    /// every HIP runtime, it needs the library `shim`: a soname, or a path that begins with `$ORIGIN/`.
    pub fn with_marker(&self, marker: &[u8], shim: &str) -> Result<Content> {
        match self {
            Self::Fat(analysis) => analysis.apply_with(marker, shim),
            Self::Transformed(transformed) => transformed.rewrite(marker),
        }
    }

    /// Length in bytes of the result of [`with_marker`](Self::with_marker), for any marker.
    pub fn output_len(&self) -> u64 {
        match self {
            Self::Fat(analysis) => analysis.output_len(),
            Self::Transformed(transformed) => transformed.content().len(),
        }
    }
}

#[derive(Debug)]
pub struct KernelArchive {
    /// Path relative to the install prefix.
    pub path: TreePath,
    /// The module whose stage prefix holds it, if its prefix names one.
    pub module: Option<String>,
    pub mode: u32,
    pub content: Content,
    /// Reader of the table of contents and the code objects.
    pub reader: KpackReader,
}

#[derive(Debug)]
pub struct ManifestFile {
    /// Path relative to the install prefix.
    pub path: TreePath,
    pub manifest: Manifest,
}

pub struct SplitPolicy<'a> {
    /// The rules that identify kernel databases.
    pub rules: &'a DatabaseRules,
    /// Whether fat binaries of an artifact that cannot be transformed stay unchanged, with a finding;
    /// otherwise they are refused.
    pub keeps_fat: &'a (dyn Fn(&ArtifactName) -> bool + Sync),
    /// Whether fat binaries for HIP runtimes before ROCm 7 stay unchanged.
    pub keeps_old: bool,
    /// Whether fat binaries register their wrappers with `librocm_kpack_shim`, so that every HIP runtime loads
    /// their code.
    pub any_runtime: bool,
    /// Whether the bundles of fat binaries are read; the caller reads them otherwise.
    pub opens_bundles: bool,
    /// Whether the file at a path is packed as data although it is for another machine than x86-64;
    /// such a file is refused otherwise.
    pub allows_other_machine: &'a (dyn Fn(&TreePath) -> bool + Sync),
    /// The cache with descriptions of long kernel indexes.
    pub cache: Option<&'a Cache>,
}

impl<'a> SplitPolicy<'a> {
    /// Refuses fat binaries that cannot be transformed, and code for other machines.
    pub fn strict(rules: &'a DatabaseRules) -> Self {
        Self {
            rules,
            keeps_fat: &|_| false,
            keeps_old: false,
            any_runtime: false,
            opens_bundles: true,
            allows_other_machine: &|_| false,
            cache: None,
        }
    }

    /// Refuses neither fat binaries nor other machines, for inspection: both are findings.
    pub fn lenient(rules: &'a DatabaseRules) -> Self {
        Self { keeps_fat: &|_| true, allows_other_machine: &|_| true, ..Self::strict(rules) }
    }
}

pub(super) struct Notes {
    artifact: InputArtifact,
    findings: Findings,
    /// Files for other machines that are allowed, by machine.
    other_machines: BTreeMap<ElfMachine, Vec<TreePath>>,
}

impl Notes {
    pub fn new(artifact: InputArtifact, findings: Findings) -> Self {
        Self { artifact, findings, other_machines: BTreeMap::new() }
    }

    pub fn shard(&self) -> &str {
        self.artifact.shard()
    }

    /// Names the artifact's file at `path` in findings.
    pub fn file(&self, path: &TreePath) -> InputFile {
        self.artifact.file(path)
    }

    pub fn add(&mut self, found: impl Into<Finding>) {
        self.findings.add(found);
    }

    /// Records that the file at `path` is for `machine` and allowed.
    pub fn other_machine(&mut self, machine: ElfMachine, path: &TreePath) {
        self.other_machines.entry(machine).or_default().push(path.clone());
    }

    pub fn finish(mut self) -> Findings {
        for (machine, files) in std::mem::take(&mut self.other_machines) {
            let artifact = self.artifact.clone();
            self.findings.add(found::OtherMachineAllowed { artifact, machine, files });
        }
        self.findings.sort();
        self.findings
    }
}
