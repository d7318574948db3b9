//! Folders that grow beside their final names.
//!
//! ```text
//! OUT/.rockpack-artifacts-N/     one per run, locked (flock) while the run lives
//!     <artifacts>                until they are renamed into OUT
//!     replaced/                  earlier artifacts of the same components
//!     committing                 during a commit: the artifacts that it brings, one a line
//! ```
//!
//! What is written of a component takes the place of all of it: its other artifacts in OUT, folders
//! with its name and a manifest, are removed and named, for they belong to another set of archives.
//! Nothing else is, and nothing at all where input lies in OUT beside them.
//!
//! A staging folder whose lock can be taken belongs to a run that is dead. The next run takes back a
//! commit that was not finished, so that the earlier artifacts are there again, and removes the
//! folder. Files are not synced to disk: artifact directories are an intermediate product, and the
//! step is run again after a power failure. What is in the way and is no artifact is refused.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::commit;
use super::output::{OutputArtifact, Written};
use crate::artifact::{ArtifactName, MANIFEST_NAME};
use crate::content::Content;
use crate::error::{Error, Faults, Kind, Result};
use crate::tree::{Node, Tree, TreePath};

const PREFIX: &str = ".rockpack-artifacts-";

/// Runs into one folder at the same time; more staging folders than this are a mistake.
const STAGINGS_MAX: u32 = 1000;

/// The mode of manifests.
const MANIFEST_MODE: u32 = 0o644;
/// The mode of artifact folders and of the folders down to a stage prefix.
const FOLDER_MODE: u32 = 0o755;

/// Which components a run writes.
#[derive(Debug)]
pub(super) struct Replacing<'a> {
    /// `{name}_{component}` of each.
    pub components: Vec<String>,
    /// The artifacts that are read.
    pub inputs: Vec<&'a Path>,
}

impl Replacing<'_> {
    /// Whether `name` is that of an artifact of one of the components.
    fn has(&self, name: &str) -> bool {
        let parsed = name.parse::<ArtifactName>();
        parsed.is_ok_and(|name| {
            let component = format!("{}_{}", name.name, name.component);
            self.components.contains(&component)
        })
    }

    /// Where the artifacts that are read lie, behind all links, and under the names they were given by.
    fn places(&self) -> Result<Vec<PathBuf>> {
        let mut places = Vec::new();
        for input in &self.inputs {
            places.push(resolve(input)?);
            // A path that ends in `..` has no name of its own.
            if let (Some(above), Some(name)) = (input.parent(), input.file_name()) {
                // A relative path without a folder of its own is below the current one.
                let above = if above == Path::new("") { Path::new(".") } else { above };
                places.push(resolve(above)?.join(name));
            }
        }
        Ok(places)
    }
}

fn resolve(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|e| Error::io(path, "resolve", e))
}

/// Fails if one of the artifacts that are read, at `places`, is, or lies in, what is to be replaced.
fn refuse_inputs(out: &Path, names: &[&str], places: &[PathBuf]) -> Result<()> {
    let real = resolve(out)?;
    for name in names {
        let target = real.join(name);
        if places.iter().any(|place| place.starts_with(&target)) {
            let message = "is an artifact that is read, and what is written would replace it";
            return Err(Error::new(Kind::Usage, message)
                .file(out.join(name))
                .hint("write into another folder"));
        }
    }
    Ok(())
}

/// What a run left in the output folder.
#[derive(Debug)]
pub(super) struct Committed {
    /// The artifacts that were written.
    pub written: Vec<Written>,
    /// The artifacts that were removed, by name.
    pub removed: Vec<String>,
}

/// A place for artifacts that are not whole yet; removed with everything in it when dropped.
#[derive(Debug)]
pub(super) struct Staging {
    out: PathBuf,
    folder: PathBuf,
    /// Locked as long as this run lives.
    _lock: File,
    /// Whether the folder holds earlier artifacts that could not be put back.
    kept: AtomicBool,
}

impl Staging {
    /// Makes a staging folder inside `out`, which is made too, and removes those of dead runs.
    pub fn begin(out: &Path) -> Result<Self> {
        fs::create_dir_all(out).map_err(|e| Error::io(out, "create", e))?;
        let _guard = lock(out)?;
        clear_dead(out)?;
        let (folder, own) = make_folder(out)?;
        let kept = AtomicBool::new(false);
        Ok(Self { out: out.to_path_buf(), folder, _lock: own, kept })
    }

    /// Where this run may put what has no name.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes artifacts, which appear under their names together when all of them are whole.
    /// Other artifacts of `components` are removed.
    pub fn write(
        &self,
        artifacts: &[OutputArtifact],
        components: &Replacing<'_>,
        recheck: impl Fn() -> Result<()>,
    ) -> Result<Committed> {
        let names: Vec<&str> = artifacts.iter().map(|artifact| artifact.name.as_str()).collect();
        let inputs = components.places()?;
        refuse_inputs(&self.out, &names, &inputs)?;
        for name in &names {
            refuse_foreign(&self.out.join(name))?;
        }
        // Most artifacts hold one large file: only side by side they keep all cores busy.
        let write =
            |artifact: &OutputArtifact| write_artifact(artifact, &self.folder.join(&artifact.name));
        let results: Vec<Result<Written>> = artifacts.par_iter().map(write).collect();
        let mut faults = Faults::default();
        let written = results.into_iter().filter_map(|result| faults.keep(result)).collect();
        faults.finish()?;
        recheck()?;
        // Where input lies, there is more than results.
        let real = resolve(&self.out)?;
        let removed = match inputs.iter().any(|input| input.parent() == Some(&real)) {
            true => Vec::new(),
            false => self.others(components, &names)?,
        };
        self.commit(&names, &removed)?;
        Ok(Committed { written, removed })
    }

    /// The artifacts of `components` that are there and are not among `names`, in order.
    fn others(&self, components: &Replacing<'_>, names: &[&str]) -> Result<Vec<String>> {
        let mut others = Vec::new();
        for entry in fs::read_dir(&self.out).map_err(|e| Error::io(&self.out, "list", e))? {
            let entry = entry.map_err(|e| Error::io(&self.out, "list", e))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let kind = entry.file_type().map_err(|e| Error::io(entry.path(), "inspect", e))?;
            let is_other = components.has(&name) && !names.contains(&name.as_str());
            if kind.is_dir() && is_other && has_manifest(&entry.path())? {
                others.push(name);
            }
        }
        others.sort();
        Ok(others)
    }

    /// One commit at a time, and none over one that was not taken back: its own artifacts, or those of
    /// a run that was killed, would take what this one makes for theirs.
    fn commit(&self, names: &[&str], removed: &[String]) -> Result<()> {
        let _guard = lock(&self.out)?;
        clear_dead(&self.out)?;
        commit::undo(&self.out, &self.folder)?;
        self.kept.store(false, Ordering::Relaxed);
        let result = commit::replace(&self.out, &self.folder, names, removed);
        if let Err(error) = result {
            // What cannot be taken back now is left to the next run.
            self.kept.store(commit::undo(&self.out, &self.folder).is_err(), Ordering::Relaxed);
            return Err(error);
        }
        // The new artifacts are there: what is left of the earlier ones can go later, too.
        let _ = remove(&self.folder.join(commit::REPLACED));
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.kept.load(Ordering::Relaxed) {
            return;
        }
        // Whatever cannot be removed now is removed by the next run.
        let _ = remove(&self.folder);
    }
}

/// Fails if `path`, below an output folder, is a link: what it leads to is not ours.
pub(super) fn refuse_link(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => {
            let message = "is a symbolic link, and nothing is written through links below the \
                           output folder";
            Err(Error::new(Kind::Conflict, message)
                .file(path)
                .hint("remove the link, or give what it leads to as the output folder"))
        }
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(path, "inspect", error)),
        _ => Ok(()),
    }
}

/// Fails if what stands at `path` is no artifact.
fn refuse_foreign(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(metadata) if metadata.is_dir() && has_manifest(path)? => Ok(()),
        Ok(_) => Err(Error::new(Kind::Conflict, "is in the way of an artifact, and is none")
            .file(path)
            .hint("move it away, or write into another folder")),
        Err(error) => Err(Error::io(path, "inspect", error)),
    }
}

fn has_manifest(artifact: &Path) -> Result<bool> {
    let path = artifact.join(MANIFEST_NAME);
    match fs::metadata(&path) {
        Ok(metadata) => Ok(metadata.is_file()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(path, "inspect", error)),
    }
}

/// Removes a tree, also one with folders that may not be written to.
fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            make_writable(folder)?;
            fs::remove_dir_all(folder).map_err(|e| Error::io(folder, "remove", e))
        }
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::io(folder, "remove", error))
        }
        _ => Ok(()),
    }
}

fn make_writable(folder: &Path) -> Result<()> {
    set_mode(folder, 0o700)?;
    for entry in fs::read_dir(folder).map_err(|e| Error::io(folder, "list", e))? {
        let entry = entry.map_err(|e| Error::io(folder, "list", e))?;
        let kind = entry.file_type().map_err(|e| Error::io(entry.path(), "inspect", e))?;
        if kind.is_dir() {
            make_writable(&entry.path())?;
        }
    }
    Ok(())
}

fn make_folder(out: &Path) -> Result<(PathBuf, File)> {
    for number in 1..=STAGINGS_MAX {
        let path = out.join(format!("{PREFIX}{number}"));
        match fs::create_dir(&path) {
            Ok(()) => {
                let own = File::open(&path).map_err(|e| Error::io(&path, "open", e))?;
                own.try_lock().map_err(|e| Error::io(&path, "lock", e.into()))?;
                return Ok((path, own));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io(&path, "create", error)),
        }
    }
    let message = format!("{STAGINGS_MAX} staging folders are in use");
    Err(Error::new(Kind::Limit, message).file(out))
}

/// Keeps other runs from beginning and from committing in `out` as long as it lives.
fn lock(out: &Path) -> Result<File> {
    let guard = File::open(out).map_err(|e| Error::io(out, "open", e))?;
    guard.lock().map_err(|e| Error::io(out, "lock", e))?;
    Ok(guard)
}

/// Call under the lock of `out`.
fn clear_dead(out: &Path) -> Result<()> {
    for entry in fs::read_dir(out).map_err(|e| Error::io(out, "list", e))? {
        let entry = entry.map_err(|e| Error::io(out, "list", e))?;
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let path = entry.path();
        let kind = entry.file_type().map_err(|e| Error::io(&path, "inspect", e))?;
        if !ours || !kind.is_dir() {
            continue;
        }
        let handle = File::open(&path).map_err(|e| Error::io(&path, "open", e))?;
        match handle.try_lock() {
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(Error::io(&path, "lock", error)),
            Ok(()) => {
                commit::undo(out, &path)?;
                remove(&path)?;
            }
        }
    }
    Ok(())
}

fn write_artifact(artifact: &OutputArtifact, root: &Path) -> Result<Written> {
    make_directory(root)?;
    let mut written = Written { shard: None, artifact: artifact.name.clone(), files: 0, bytes: 0 };
    write_file(&root.join(MANIFEST_NAME), &artifact.manifest, MANIFEST_MODE)?;
    for (prefix, tree) in &artifact.prefixes {
        let stage = root.join(prefix);
        fs::create_dir_all(&stage).map_err(|e| Error::io(&stage, "create", e))?;
        write_tree(tree, &stage)?;
        for (_, node) in tree {
            match node {
                Node::File { data, .. } => {
                    written.files += 1;
                    written.bytes += data.len();
                }
                Node::Link { .. } => written.files += 1,
                Node::Directory { .. } => {}
            }
        }
        set_modes_down_to(root, prefix)?;
    }
    set_mode(root, FOLDER_MODE)?;
    Ok(written)
}

/// The folders between the artifact and a stage prefix, whatever the umask.
fn set_modes_down_to(root: &Path, prefix: &str) -> Result<()> {
    let mut path = root.to_path_buf();
    for part in prefix.split('/') {
        path.push(part);
        set_mode(&path, FOLDER_MODE)?;
    }
    Ok(())
}

/// Folders first; their modes last, when nothing has to be made inside any more.
fn write_tree(tree: &Tree<Content>, stage: &Path) -> Result<()> {
    let place = |path: &TreePath| stage.join(path.as_str());
    let mut files = Vec::new();
    for (path, node) in tree {
        match node {
            Node::Directory { .. } => make_directory(&place(path))?,
            Node::Link { .. } | Node::File { .. } => files.push((path, node)),
        }
    }
    let results: Vec<Result<()>> =
        files.par_iter().map(|(path, node)| write_node(&place(path), node)).collect();
    let mut faults = Faults::default();
    for result in results {
        faults.keep(result);
    }
    faults.finish()?;
    let folders: Vec<_> = tree.iter().collect();
    for (path, node) in folders.into_iter().rev() {
        if let Node::Directory { mode } = node {
            set_mode(&place(path), *mode)?;
        }
    }
    Ok(())
}

fn write_node(path: &Path, node: &Node<Content>) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|e| Error::io(parent, "create", e))?;
    }
    match node {
        Node::File { data, mode } => write_file(path, data, *mode),
        Node::Link { target } => {
            symlink(target, path).map_err(|e| Error::io(path, "create the link", e))
        }
        Node::Directory { .. } => Ok(()),
    }
}

fn write_file(path: &Path, content: &Content, mode: u32) -> Result<()> {
    let mut file = File::create_new(path).map_err(|e| Error::io(path, "create", e))?;
    content.write_to(&mut file, path)?;
    let permissions = Permissions::from_mode(mode);
    file.set_permissions(permissions).map_err(|e| Error::io(path, "set the mode of", e))
}

fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|e| Error::io(path, "create", e))
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|e| Error::io(path, "set the mode of", e))
}
