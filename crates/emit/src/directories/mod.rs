//! Artifact directories: the output of `split` and `recombine`.
//!
//! ```text
//! OUT/blas_lib_generic/     artifact_manifest.txt, host files, lib/.kpack/blas_lib.kpm
//! OUT/blas_lib_gfx1100/     artifact_manifest.txt, lib/.kpack/blas_lib_gfx1100.kpack, databases
//! ```
//!
//! This module assigns files to artifacts, names kernel archives, and stages folders: each is written next to
//! its final name and renamed when it is complete. It is the only writer of artifact directories.
//!
//! The archives of a module (a stage prefix) are in its own `lib/.kpack`, so that a module can be installed
//! alone. Their names stay distinct when all modules are merged: `{component}_{arch}.kpack` if one module has
//! device code, `{component}_{module}_{arch}.kpack` if several do and their names differ, and otherwise the
//! whole stage prefix in place of the module.

mod kernels;
mod recombine;
mod split;
mod staging;

use std::collections::BTreeMap;
use std::path::Path;

use rockpack_core::content::{Content, is_file};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::run::Budget;
use rockpack_core::tree::{Node, Tree, TreePath};
use serde::Serialize;

pub use recombine::{RecombineOptions, recombine};
pub use split::{SplitInput, SplitOptions, split};

use rockpack_files::Swap;
use rockpack_report::{Findings, Progress};
use rockpack_split::input::artifact::{self, ArtifactManifest, MANIFEST_NAME};

/// The folder of kernel archives, relative to a stage prefix. ROCm's Python tool puts them there, so the
/// configuration of packages does not apply.
const KERNEL_FOLDER: &str = "lib/.kpack";

/// The name that kernel manifests use for the folder above the last one of [`KERNEL_FOLDER`].
const KERNEL_PREFIX: &str = "lib";

/// The GPU family in names of artifacts with host files.
const GENERIC: &str = "generic";

/// Refuses an unusable output folder for the results of `roots`, without reading them. Changes nothing.
pub fn check_ahead(roots: &[impl AsRef<Path>], out: &Path) -> Result<()> {
    let mut faults = Faults::default();
    faults.keep(artifact::refuse_inside(roots, out, "output folder"));
    faults.keep(Swap::check_ahead(&staging::ARTIFACTS, out, || Ok(())));
    faults.finish()
}

#[derive(Clone, Copy)]
struct WriteContext<'a> {
    staging: &'a Swap,
    /// Memory for compressed code objects of all archives that are written together; the rest goes to
    /// anonymous temporary files.
    budget: &'a Budget,
    progress: &'a dyn Progress,
}

/// An artifact directory before it is written.
#[derive(Debug)]
pub struct OutputArtifact {
    /// `{name}_{kind}_{gpu_family}`.
    pub name: String,
    pub manifest: Content,
    /// Stage prefix → its content.
    pub prefixes: BTreeMap<String, Tree<Content>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrittenArtifact {
    /// Folder of the artifact; `None` for the output folder itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// `{name}_{kind}_{gpu_family}`.
    pub artifact: String,
    /// Number of files and links.
    pub files: usize,
    pub bytes: u64,
}

#[derive(Debug, Default)]
pub struct DirectoriesReport {
    pub artifacts: Vec<WrittenArtifact>,
    /// Other artifacts of the same components that were removed from the output folder, with the folder of
    /// their shard if there is one.
    pub removed: Vec<String>,
    pub findings: Findings,
    /// Components that could not be split, with the error; nothing of them was written.
    pub failures: Vec<(String, Error)>,
}

#[derive(Debug, Default)]
struct Outputs {
    artifacts: BTreeMap<String, BTreeMap<String, Tree<Content>>>,
}

impl Outputs {
    /// Adds a stage prefix that may stay empty.
    fn prefix(&mut self, artifact: &str, prefix: &str) -> &mut Tree<Content> {
        let prefixes = self.artifacts.entry(artifact.to_owned()).or_default();
        prefixes.entry(prefix.to_owned()).or_default()
    }

    /// Adds the node at `path` below a stage prefix. Merges identical nodes, and the modes of a directory.
    fn add(
        &mut self,
        artifact: &str,
        prefix: &str,
        path: &TreePath,
        node: Node<Content>,
    ) -> Result<()> {
        let tree = self.prefix(artifact, prefix);
        let Some(there) = tree.get_mut(path) else { return tree.insert(path.clone(), node) };
        let same = match (there, &node) {
            (Node::Directory { mode }, Node::Directory { mode: other }) => {
                *mode |= other;
                true
            }
            (Node::Link { target }, Node::Link { target: other }) => target == other,
            (Node::File { data, .. }, Node::File { data: other, .. }) => data.same_bytes(other)?,
            _ => false,
        };
        same.then_some(()).ok_or_else(|| {
            let message = format!("{prefix}/{path} of {artifact} would have two contents");
            Error::new(Kind::Conflict, message)
        })
    }

    /// The artifacts, in name order. `earlier` returns the folder of the input artifact with the same name, whose
    /// manifest is kept if it lists all prefixes.
    fn finish<'a>(self, earlier: impl Fn(&str) -> Option<&'a Path>) -> Result<Vec<OutputArtifact>> {
        let mut finished = Vec::new();
        for (name, prefixes) in self.artifacts {
            let listed: Vec<&str> = prefixes.keys().map(String::as_str).collect();
            let kept =
                earlier(&name).map(|artifact| kept_manifest(artifact, &listed)).transpose()?;
            let manifest = kept.flatten().unwrap_or_else(|| {
                let lines: Vec<String> = listed.iter().map(|line| format!("{line}\n")).collect();
                Content::of_bytes(lines.concat())
            });
            finished.push(OutputArtifact { name, manifest, prefixes });
        }
        Ok(finished)
    }
}

/// The manifest of `artifact`, if that is a folder and lists all of `prefixes`.
fn kept_manifest(artifact: &Path, prefixes: &[&str]) -> Result<Option<Content>> {
    let path = artifact.join(MANIFEST_NAME);
    // Neither packed artifacts nor install trees have one.
    if !is_file(&path)? {
        return Ok(None);
    }
    let content = Content::open(&path, &Budget::unlimited())?;
    let manifest = ArtifactManifest::read(&content, &path)?;
    let lists_all =
        prefixes.iter().all(|prefix| manifest.prefixes.iter().any(|line| line.as_str() == *prefix));
    Ok(lists_all.then_some(content))
}
