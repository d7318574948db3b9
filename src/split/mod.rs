//! The split stage: an artifact becomes host files, code objects per wrapper, and databases.

use std::sync::Arc;

use crate::artifact::ArtifactName;
use crate::content::Content;
use crate::gfx::{BaseArch, Target};
use crate::host_binary::Analysis;
use crate::report::Findings;
use crate::tree::{Tree, TreePath};

/// One artifact, taken apart. Paths are relative to the install prefix.
#[derive(Debug)]
pub struct SplitArtifact {
    /// The shard it came from.
    pub shard: String,
    /// What it is called.
    pub name: ArtifactName,
    /// Host files, links and directories of all its prefixes.
    pub host: Tree<HostFile>,
    /// Kernel database files, each with the arch whose code it is.
    pub databases: Vec<DatabaseFile>,
    /// What was noticed.
    pub findings: Findings,
}

/// A file that goes to the host side.
#[derive(Debug, Clone)]
pub struct HostFile {
    /// The module (`rocBLAS`) whose stage prefix holds it, if its prefix names one.
    pub module: Option<String>,
    /// What it is.
    pub kind: HostKind,
}

/// What a host file is.
#[derive(Debug, Clone)]
pub enum HostKind {
    /// Passed on as it is.
    Plain(Content),
    /// A fat binary: transformed when its install path is known.
    Fat(Arc<FatBinary>),
}

/// A fat binary: its transform, and its device code by wrapper.
#[derive(Debug)]
pub struct FatBinary {
    /// The analysed original.
    pub analysis: Analysis,
    /// By wrapper index: the code objects of the bundle it points to.
    pub wrappers: Vec<WrapperCode>,
}

/// The device code that belongs to one wrapper.
#[derive(Debug, Clone)]
pub struct WrapperCode {
    /// The symbol of the bundle (`__hip_fatbin_<id>`), where the binary names it.
    pub symbol: Option<String>,
    /// Its code objects in bundle order. A target occurs once.
    pub code_objects: Vec<CodeObject>,
}

/// One code object.
#[derive(Debug, Clone)]
pub struct CodeObject {
    /// What it is for: the entry's target ID, corrected by the content where they disagree.
    pub target: Target,
    /// Its bytes: an AMDGPU ELF, or arch-neutral code.
    pub content: Content,
}

/// A file of a kernel database that is one arch's device code or indexes it.
#[derive(Debug, Clone)]
pub struct DatabaseFile {
    /// Path relative to the install prefix.
    pub path: TreePath,
    /// The arch it belongs to.
    pub arch: BaseArch,
    /// The module whose stage prefix holds it, if its prefix names one.
    pub module: Option<String>,
    /// The rule that claimed it, e.g. `rocblas`.
    pub rule: String,
    /// Its bytes.
    pub content: Content,
    /// Permission bits.
    pub mode: u32,
}
