//! Stages artifact folders next to their final names.
//!
//! ```text
//! OUT/.rockpack-artifacts-N/     the scratch folder of a run, see [`Swap`]
//!     <artifacts>                until the commit of their component
//! ```
//!
//! A new build of a component replaces all its artifacts: its other artifacts in OUT (folders with its name
//! and a manifest) belong to an earlier set of archives, so they are removed and reported. Everything else
//! stays, and nothing is removed if OUT also has input.
//!
//! Files are not synced: artifact directories are an intermediate product, and the step is repeated after a power
//! failure. Entries that have the name of an artifact but are not artifacts are refused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rockpack_core::content::{Content, is_file, list};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::{ArtifactName, Node, Tree, TreePath};

use super::{DirectoriesReport, OutputArtifact, WrittenArtifact};
use rockpack_files::{
    CommitChange, CommitPolicy, Durability, READABLE, Swap, kind_of, make_folders, make_link,
    parent_folder, set_mode, write_new,
};
use rockpack_split::input::artifact::{MANIFEST_NAME, is_address};

/// Commits of artifact folders. No artifact describes another, so all have one rank.
pub(super) static ARTIFACTS: CommitPolicy = CommitPolicy {
    prefix: ".rockpack-artifacts-",
    contents: "artifacts",
    durability: Durability::Unsynced,
    rank: |_| 0,
    writes: |name| name.parse::<ArtifactName>().is_ok(),
};

/// The mode of artifact folders, of the folders down to a stage prefix, and of those that are made for kernels.
pub(super) const FOLDER_MODE: u32 = 0o755;

#[derive(Debug)]
pub(super) struct ReplacedComponents<'a> {
    /// `{name}_{kind}` of each.
    pub components: Vec<String>,
    pub inputs: Vec<&'a Path>,
}

impl ReplacedComponents<'_> {
    fn artifacts_in(&self, out: &Path) -> Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for entry in list(out)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let kind = entry.file_type().map_err(|e| Error::io(entry.path(), "inspect", e))?;
            let parsed = name.parse::<ArtifactName>();
            let is_own = parsed.is_ok_and(|name| self.components.contains(&name.component()));
            if kind.is_dir() && is_own && is_file(&entry.path().join(MANIFEST_NAME))? {
                names.insert(name);
            }
        }
        Ok(names)
    }

    /// The paths of the input artifacts, with all links resolved, and with only the links of their parents resolved.
    fn places(&self) -> Result<Vec<PathBuf>> {
        let mut places = Vec::new();
        for input in self.inputs.iter().filter(|input| !is_address(input)) {
            places.push(resolve(input)?);
            // A path that ends in `..` has no name of its own.
            if let Some(name) = input.file_name() {
                places.push(resolve(parent_folder(input))?.join(name));
            }
        }
        Ok(places)
    }
}

fn resolve(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|e| Error::io(path, "resolve", e))
}

/// Writes artifacts, and commits them together when all are complete. Removes other artifacts of `components`.
pub(super) fn commit(
    staging: &Swap,
    artifacts: &[OutputArtifact],
    components: &ReplacedComponents<'_>,
    recheck: impl Fn() -> Result<()>,
) -> Result<DirectoriesReport> {
    let out = staging.out();
    let names: Vec<String> = artifacts.iter().map(|artifact| artifact.name.clone()).collect();
    let inputs = components.places()?;
    let real = resolve(out)?;
    for name in &names {
        let (target, place) = (real.join(name), out.join(name));
        // Replacing an artifact removes inputs inside it.
        if inputs.iter().any(|input| input.starts_with(&target)) {
            let message = "is an input artifact, which the output would replace";
            let error = Error::new(Kind::Usage, message).file(place);
            return Err(error.hint("write into another folder"));
        }
        refuse_foreign(&place)?;
    }
    // Most artifacts hold one large file: only parallel writing keeps all cores busy.
    let results: Vec<Result<WrittenArtifact>> = artifacts
        .par_iter()
        .map(|artifact| write_artifact(artifact, &staging.path(&artifact.name)))
        .collect();
    let artifacts = Faults::all(results)?;
    recheck()?;
    // A folder with input holds more than results.
    let beside_input = inputs.iter().any(|input| input.parent() == Some(&real));
    let removed = staging.commit(|| {
        let removed = if beside_input { BTreeSet::new() } else { components.artifacts_in(out)? };
        Ok(CommitChange { added: names, removed })
    })?;
    let removed = removed.into_iter().collect();
    Ok(DirectoriesReport { artifacts, removed, ..DirectoriesReport::default() })
}

/// Fails if `path`, below an output folder, is a link: its target is not rockpack's.
pub(super) fn refuse_link(path: &Path) -> Result<()> {
    if kind_of(path)?.is_none_or(|kind| !kind.is_symlink()) {
        return Ok(());
    }
    let message =
        "is a symbolic link; rockpack does not write through links below the output folder";
    Err(Error::new(Kind::Conflict, message)
        .file(path)
        .hint("remove the link, or give its target as the output folder"))
}

fn refuse_foreign(path: &Path) -> Result<()> {
    match kind_of(path)? {
        None => Ok(()),
        Some(kind) if kind.is_dir() && is_file(&path.join(MANIFEST_NAME))? => Ok(()),
        Some(_) => Err(Error::new(Kind::Conflict, "has the name of an artifact, but is not one")
            .file(path)
            .hint("move it away, or write into another folder")),
    }
}

fn write_artifact(artifact: &OutputArtifact, root: &Path) -> Result<WrittenArtifact> {
    make_folders(root)?;
    let (mut files, mut bytes) = (0, 0);
    write_content(&root.join(MANIFEST_NAME), &artifact.manifest, READABLE)?;
    for (prefix, tree) in &artifact.prefixes {
        let stage = root.join(prefix);
        make_folders(&stage)?;
        write_tree(tree, &stage)?;
        files += tree.values().filter(|node| !matches!(node, Node::Directory { .. })).count();
        bytes += tree.values().filter_map(Node::data).map(Content::len).sum::<u64>();
        // The modes of the folders down to the stage prefix do not depend on the umask.
        let mut folder = root.to_path_buf();
        for part in prefix.split('/') {
            folder.push(part);
            set_mode(&folder, FOLDER_MODE)?;
        }
    }
    set_mode(root, FOLDER_MODE)?;
    Ok(WrittenArtifact { shard: None, artifact: artifact.name.clone(), files, bytes })
}

/// Writes the tree. Sets the modes of folders last, when their content is complete.
fn write_tree(tree: &Tree<Content>, stage: &Path) -> Result<()> {
    let nodes: Vec<(&TreePath, &Node<Content>)> = tree.iter().collect();
    let write = |(path, node): (&TreePath, &Node<Content>)| {
        let path = stage.join(path.as_str());
        if let Some(parent) = path.parent() {
            make_folders(parent)?;
        }
        match node {
            Node::File { data, mode } => write_content(&path, data, *mode),
            Node::Link { target } => make_link(target, &path),
            Node::Directory { .. } => make_folders(&path),
        }
    };
    let results: Vec<Result<()>> = nodes.into_par_iter().map(write).collect();
    Faults::all(results)?;
    for (path, node) in tree.iter().rev() {
        if let Node::Directory { mode } = node {
            set_mode(&stage.join(path.as_str()), *mode)?;
        }
    }
    Ok(())
}

fn write_content(path: &Path, content: &Content, mode: u32) -> Result<()> {
    write_new(path, mode, ARTIFACTS.durability, |file| content.write_to(file, path))
}
