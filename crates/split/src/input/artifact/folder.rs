//! An artifact that is a folder: its entries, sorted, and the trees below its stage prefixes.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rockpack_core::content::{self, Content, Inputs, StampedFile, if_exists, is_folder};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::{Node, Tree, TreePath, outside_link_error};
use rustix::fs::lgetxattr;
use rustix::io::Errno;

use super::manifest::{ArtifactManifest, MANIFEST_NAME};
use super::scan::Contents;

/// The folder, and the inputs that record everything read from it.
pub(super) struct ArtifactDirectory<'a> {
    pub root: &'a Path,
    pub inputs: &'a mut Inputs,
}

impl Contents for ArtifactDirectory<'_> {
    fn manifest(&mut self, faults: &mut Faults) -> Option<ArtifactManifest> {
        let manifest = open_manifest(self.root, self.inputs);
        faults.keep(manifest)
    }

    fn prefix(&mut self, prefix: &str, faults: &mut Faults) -> Result<Option<Tree<Content>>> {
        let Some(folder) = locate(self.root, prefix)? else { return Ok(None) };
        let tree = walk(&folder, false, self.inputs, faults);
        for (place, fault) in tree.outside_links() {
            faults.add(fault.file(folder.join(place.as_str())));
        }
        Ok(Some(tree))
    }

    fn outside(&mut self, prefixes: &[TreePath], faults: &mut Faults) -> Vec<String> {
        let prefixes: BTreeSet<PathBuf> =
            prefixes.iter().map(|prefix| self.root.join(prefix.as_str())).collect();
        let mut files = Vec::new();
        self.outside_of(self.root, &prefixes, &mut files, faults);
        files.retain(|file| *file != self.root.join(MANIFEST_NAME));
        let names = files.iter().map(|file| file.strip_prefix(self.root).unwrap_or(file));
        names.map(|name| name.display().to_string()).collect()
    }
}

impl ArtifactDirectory<'_> {
    fn outside_of(
        &mut self,
        folder: &Path,
        prefixes: &BTreeSet<PathBuf>,
        files: &mut Vec<PathBuf>,
        faults: &mut Faults,
    ) {
        for entry in list(folder, self.inputs, faults) {
            if prefixes.contains(&entry.path) {
                continue;
            }
            if entry.metadata.is_dir() {
                self.outside_of(&entry.path, prefixes, files, faults)
            } else {
                let room = self.inputs.budget().charge_paths(entry.path.as_os_str().len());
                faults.keep(room.map_err(|error| error.file(folder)));
                files.push(entry.path)
            }
        }
    }
}

pub(super) fn open_manifest(root: &Path, inputs: &mut Inputs) -> Result<ArtifactManifest> {
    let path = root.join(MANIFEST_NAME);
    match std::fs::symlink_metadata(&path) {
        Ok(metadata) if metadata.is_symlink() => Err(Error::unsupported(
            "is a symbolic link, and the target of a link is not part of the artifact",
        )
        .file(path)
        .hint("put the manifest itself into the artifact, not a link to it")),
        Ok(metadata) if metadata.is_file() => {
            ArtifactManifest::read(&inputs.content(&path)?, &path)
        }
        Ok(_) => Err(Error::malformed("is not a regular file").file(path)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            Err(Error::malformed("the artifact has no manifest")
                .file(path)
                .hint("the manifest lists the stage prefixes of an artifact, one per line"))
        }
        Err(e) => Err(Error::io(path, "inspect", e)),
    }
}

/// Maximum size in bytes of the text of a link on Linux: PATH_MAX without the terminating NUL.
const LINK_TEXT_MAX: usize = 4095;

/// Reads the folder at `root`, without the rules for packages: files may be set-id, and links may lead out.
pub fn read_folder(root: &Path, inputs: &mut Inputs) -> Result<Tree<Content>> {
    let mut faults = Faults::default();
    let tree = walk(root, true, inputs, &mut faults);
    faults.finish().map(|()| tree)
}

fn walk(root: &Path, any: bool, inputs: &mut Inputs, faults: &mut Faults) -> Tree<Content> {
    let mut walk = PrefixWalk { tree: Tree::new(), any, inputs, faults };
    walk.folder(root, None);
    walk.tree
}

struct PrefixWalk<'a> {
    tree: Tree<Content>,
    /// Whether the rules for files of packages are off.
    any: bool,
    inputs: &'a mut Inputs,
    faults: &'a mut Faults,
}

impl PrefixWalk<'_> {
    /// Reads the folder at `path`, which is `at` within the prefix (`None` for the prefix itself).
    fn folder(&mut self, path: &Path, at: Option<&TreePath>) {
        let entries = list(path, self.inputs, self.faults);
        let above = at.map_or(0, |at| at.as_str().len() * entries.len());
        let room = self.inputs.budget().charge_paths(above).map_err(|error| error.file(path));
        if self.faults.keep(room).is_none() {
            return;
        }
        for entry in entries {
            let joined = match at {
                Some(at) => at.join(&entry.name),
                None => TreePath::new(entry.name.as_str()),
            };
            let place = joined
                .and_then(|place| refuse_deep(&place).map(|()| place))
                .map_err(|error| error.file(&entry.path));
            if let Some(place) = self.faults.keep(place) {
                self.entry(&entry, place);
            }
        }
    }

    fn entry(&mut self, entry: &FolderEntry, place: TreePath) {
        let node = node_of(entry, &place, self.any, self.inputs);
        let Some(node) = self.faults.keep(node) else {
            return;
        };
        let inserted = self.tree.insert(place.clone(), node);
        self.faults.keep(inserted);
        if entry.metadata.is_dir() {
            self.folder(&entry.path, Some(&place));
        }
    }
}

fn node_of(
    entry: &FolderEntry,
    place: &TreePath,
    any: bool,
    inputs: &mut Inputs,
) -> Result<Node<Content>> {
    if !any {
        entry.refuse_special()?;
    }
    let mode = entry.mode();
    if entry.metadata.is_dir() {
        return Ok(Node::Directory { mode });
    }
    if entry.metadata.is_symlink() {
        return link_of(entry, place, any, inputs);
    }
    let file = StampedFile::of(&entry.path, &entry.metadata)?;
    Ok(Node::File { data: inputs.add(Arc::new(file)), mode })
}

/// The node at `place` for the file at `path`, which is not a link.
pub(in crate::input) fn lone_node(
    path: &Path,
    place: &TreePath,
    inputs: &mut Inputs,
) -> Result<Node<Content>> {
    let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, "inspect", e))?;
    let entry = FolderEntry { name: place.name().to_owned(), path: path.to_path_buf(), metadata };
    node_of(&entry, place, false, inputs)
}

fn link_of(
    entry: &FolderEntry,
    place: &TreePath,
    any: bool,
    inputs: &mut Inputs,
) -> Result<Node<Content>> {
    let target_path =
        std::fs::read_link(&entry.path).map_err(|e| Error::io(&entry.path, "read the link", e))?;
    inputs.add_link(&entry.path, &target_path);
    let target = target_path.into_os_string().into_string().map_err(|target| {
        let message = format!("the link leads to {target:?}, which is not UTF-8");
        Error::malformed(message).file(&entry.path)
    })?;
    let checked = if any { check_text(&target) } else { check_target(place, &target) };
    checked.map_err(|error| error.file(&entry.path))?;
    inputs.budget().charge_paths(target.len()).map_err(|error| error.file(&entry.path))?;
    Ok(Node::Link { target })
}

/// Fails unless `target` may be the text of a link at `place` of a stage prefix.
pub(super) fn check_target(place: &TreePath, target: &str) -> Result<()> {
    check_text(target)?;
    if leaves(place, target) {
        return Err(outside_link_error(target));
    }
    Ok(())
}

/// Fails unless `target` may be the text of a link.
fn check_text(target: &str) -> Result<()> {
    if target.is_empty() || target.contains(char::is_control) {
        let message = format!("the link leads to `{}`", target.escape_debug());
        return Err(Error::malformed(message));
    }
    if target.len() > LINK_TEXT_MAX {
        let message = format!("has a link of {} bytes, longer than PATH_MAX", target.len());
        return Err(Error::new(Kind::Limit, message));
    }
    Ok(())
}

/// Whether a link at `place` with the text `target` leads above the root of the tree.
fn leaves(place: &TreePath, target: &str) -> bool {
    // A name below the root is inside, as the root itself is.
    place.resolve_link(&format!("{target}/name")).is_none()
}

/// The folder of `prefix` (`""` for the whole) below `root`; `None` if it does not exist. Refuses links in the path:
/// the content would have two paths, or be outside of the artifact.
pub(super) fn locate(root: &Path, prefix: &str) -> Result<Option<PathBuf>> {
    let mut path = root.to_path_buf();
    for part in prefix.split('/').filter(|part| !part.is_empty()) {
        path.push(part);
        let metadata = if_exists(&path, "inspect", std::fs::symlink_metadata(&path))?;
        let Some(metadata) = metadata else { return Ok(None) };
        if metadata.is_symlink() {
            return Err(through_link(prefix).file(&path));
        }
        if !metadata.is_dir() {
            return Err(no_folder(prefix).file(&path));
        }
    }
    Ok(Some(path))
}

pub(super) fn through_link(prefix: &str) -> Error {
    Error::unsupported(format!("the stage prefix `{prefix}` leads through a symbolic link"))
        .hint("list the real folder in the manifest, and keep it inside the artifact")
}

pub(super) fn no_folder(prefix: &str) -> Error {
    Error::malformed(format!("the stage prefix `{prefix}` is not a folder"))
}

/// The setuid and setgid bits. A file that has them runs with privileges that a build folder cannot justify.
pub(super) const SET_ID: u32 = 0o6000;

pub(super) struct FolderEntry {
    pub name: String,
    pub path: PathBuf,
    /// The metadata of the entry itself, not of a link's target.
    pub metadata: Metadata,
}

impl FolderEntry {
    /// Whether this is a folder, or a link to one. Fails if the target of a link cannot be read.
    pub fn leads_to_folder(&self) -> Result<bool> {
        if self.metadata.is_symlink() { is_folder(&self.path) } else { Ok(self.metadata.is_dir()) }
    }

    fn mode(&self) -> u32 {
        self.metadata.mode() & 0o7777
    }

    fn refuse_special(&self) -> Result<()> {
        let kind = self.metadata.file_type();
        let what = if kind.is_block_device() || kind.is_char_device() {
            "is a device"
        } else if kind.is_fifo() {
            "is a named pipe"
        } else if kind.is_socket() {
            "is a socket"
        } else if kind.is_file() && self.metadata.mode() & SET_ID != 0 {
            HAS_SET_ID
        } else if kind.is_file() && has_capabilities(&self.path)? {
            HAS_CAPABILITIES
        } else {
            return Ok(());
        };
        Err(special(what).file(&self.path))
    }
}

/// Whether the file at `path`, which is not a link, has capabilities. File systems without extended
/// attributes have no capabilities.
fn has_capabilities(path: &Path) -> Result<bool> {
    let mut value = [0; CAPABILITY_MAX];
    match lgetxattr(path, "security.capability", &mut value) {
        Ok(_) | Err(Errno::RANGE) => Ok(true),
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
        Err(error) => Err(Error::io(path, "read the capabilities", error.into())),
    }
}

/// Bytes of the longest form that the kernel knows, version 3.
const CAPABILITY_MAX: usize = 24;

/// Limit on folders above a file within the artifact or the stage prefix: ten times the depth of the deepest real
/// ones. Each folder on the way costs an entry with the whole path.
const DEPTH_LIMIT: usize = 256;

pub(crate) fn refuse_deep(path: &TreePath) -> Result<()> {
    // The last component is the file.
    if path.components().count() <= DEPTH_LIMIT + 1 {
        return Ok(());
    }
    let message = format!("is nested in more than {DEPTH_LIMIT} folders");
    Err(Error::new(Kind::Limit, message)
        .hint("no artifact is that deep: check the tool that wrote it"))
}

pub(super) const HAS_SET_ID: &str = "has the setuid or setgid bit";

/// The fault of a file with capabilities: like setuid, they grant privileges of root.
pub(super) const HAS_CAPABILITIES: &str = "has file capabilities";

/// Refuses an entry that cannot be a file of a package, for the reason `what`.
pub(super) fn special(what: &str) -> Error {
    Error::unsupported(format!("{what}, which packages of rockpack do not install"))
        .hint("leave it out of the input, or make it an ordinary file")
}

/// Lists `folder` in the order of names; unusable entries are faults. Notes the folder in the inputs, and
/// counts its entries against the budget. If they exceed it, that is a fault and the list is empty.
pub(super) fn list(folder: &Path, inputs: &mut Inputs, faults: &mut Faults) -> Vec<FolderEntry> {
    // One fault is enough to say that there are too many.
    if inputs.budget().is_exhausted() && faults.has(Kind::Limit) {
        return Vec::new();
    }
    // Before the names are read, so that a later change of the folder is detected.
    faults.keep(inputs.add_folder(folder));
    list_matching(folder, faults, |entry| {
        inputs.budget().charge_entry(entry.name.len()).map(|()| true)
    })
}

/// Lists the `wanted` entries of `folder` in the order of names; none after the first error of `wanted`. Entries of
/// such a look ahead do not count against the budget, because none of the folder may be used later.
pub(super) fn list_matching(
    folder: &Path,
    faults: &mut Faults,
    wanted: impl Fn(&FolderEntry) -> Result<bool>,
) -> Vec<FolderEntry> {
    let mut listed = Vec::new();
    for entry in faults.keep(content::list(folder)).into_iter().flatten() {
        let Some(entry) = faults.keep(entry.and_then(|entry| examine(&entry))) else { continue };
        match wanted(&entry) {
            Ok(true) => listed.push(entry),
            Ok(false) => {}
            Err(fault) => {
                faults.add(fault.file(folder));
                return Vec::new();
            }
        }
    }
    listed.sort_by(|a: &FolderEntry, b| a.name.cmp(&b.name));
    listed
}

fn examine(entry: &std::fs::DirEntry) -> Result<FolderEntry> {
    let path = entry.path();
    let name = entry.file_name().into_string().map_err(|name| {
        let message = format!("the name {name:?} is not UTF-8");
        Error::malformed(message)
            .file(&path)
            .hint("packages and archives name their files in UTF-8; rename the file")
    })?;
    let metadata = entry.metadata().map_err(|e| Error::io(&path, "inspect", e))?;
    Ok(FolderEntry { name, path, metadata })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_may_lead_to_the_root_and_no_further() {
        for (place, target, expected) in [
            ("lib/x", "../bin/y", false),
            ("lib/x", "..", false),
            ("x", ".", false),
            ("lib/x", "../..", true),
            ("lib/x", "../../lib/y", true),
            ("x", "/usr/lib/y", true),
        ] {
            let path = TreePath::new(place).unwrap();
            assert_eq!(leaves(&path, target), expected, "{place} {target}");
        }
    }

    #[test]
    fn links_longer_than_any_are_refused() {
        let place = TreePath::new("lib/link").unwrap();
        let longest = format!("{}b", "a/".repeat(2047));
        check_target(&place, &longest).unwrap();
        let error = check_target(&place, &format!("a/{longest}")).unwrap_err();
        assert!(error.to_string().contains("longer than PATH_MAX"), "{error}");
    }
}
