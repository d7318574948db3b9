//! The members of a packed artifact or install tree, one after the other.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use rockpack_archive::tar::{self, EntryType};
use rockpack_core::compression::decoder_fault;
use rockpack_core::content::BlockWriter;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::{Node, TreePath};

use super::{ArchiveForm, Packed};
use crate::input::artifact::folder::{HAS_CAPABILITIES, HAS_SET_ID, SET_ID, refuse_deep, special};
use crate::input::artifact::manifest::{ArtifactManifest, MANIFEST_LIMIT, MANIFEST_NAME};
use crate::input::artifact::member_name;

/// Bytes of a member that are read at once.
const BUFFER: usize = 128 << 10;

/// Maximum number of members of an archive, with implied folders. The largest artifacts have some ten thousand files; a
/// few megabytes of compressed headers can announce millions.
const MEMBER_LIMIT: usize = 1 << 20;

/// Maximum size in bytes of all paths together, for the same reason.
const PATHS_LIMIT: usize = 256 << 20;

const FAULT_LIMIT: usize = 100;

/// The mode of a folder that has no member of its own.
const FOLDER_MODE: u32 = 0o755;

/// A node at a path. The data of a file is its range in the content of all members.
pub(super) type PackedNode = Node<Range<u64>>;

fn kind(node: &PackedNode) -> &'static str {
    match node {
        Node::Directory { .. } => "folder",
        other => other.kind().as_str(),
    }
}

pub(super) struct Collector<'a> {
    archive: &'a Path,
    form: ArchiveForm,
    writer: BlockWriter,
    members: BTreeMap<TreePath, PackedNode>,
    /// Bytes of their paths.
    paths: usize,
    /// The implied folders: folders of members that have no member themselves.
    implied: BTreeSet<TreePath>,
    manifest: Option<Vec<u8>>,
    /// The reason for each member of an install tree that no package can have.
    special: BTreeMap<TreePath, String>,
}

impl<'a> Collector<'a> {
    pub fn new(archive: &'a Path, form: ArchiveForm, writer: BlockWriter) -> Self {
        Self {
            archive,
            form,
            writer,
            members: BTreeMap::new(),
            paths: 0,
            implied: BTreeSet::new(),
            manifest: None,
            special: BTreeMap::new(),
        }
    }

    /// Reads to the end of the archive. Unusable members are faults, and up to `FAULT_LIMIT` of them are
    /// reported together. A fault of the archive itself ends the reading and is reported alone.
    pub fn collect<R: Read>(&mut self, members: &mut tar::TarMembers<R>) -> Result<()> {
        let (mut count, mut faults) = (0, Vec::new());
        while let Some(member) = members.next_member()? {
            count += 1;
            if count > MEMBER_LIMIT {
                return Err(self.too_many());
            }
            if let Err(error) = self.member(&member, members) {
                // Faults of a member name it; others are faults of the archive or of the spool.
                if error.place().file.as_deref() != Some(&member_name(self.archive, &member.name)) {
                    return Err(error);
                }
                faults.push(error);
            }
            // An archive without a manifest is not an artifact, and every further member would be another fault.
            let no_manifest = self.lacks_manifest() && !faults.is_empty();
            if no_manifest || faults.len() == FAULT_LIMIT {
                break;
            }
        }
        Error::gather(faults).map_or(Ok(()), Err)
    }

    fn member<R: Read>(
        &mut self,
        member: &tar::TarMember,
        source: &mut tar::TarMembers<R>,
    ) -> Result<()> {
        let Some(path) = path_of(member, self.form).map_err(|e| self.located(member, e))? else {
            return Ok(());
        };
        if self.lacks_manifest() && !self.is_manifest(&path) {
            let message = format!("precedes the manifest {MANIFEST_NAME}");
            let error = Error::malformed(message).hint(self.form.packing());
            return Err(self.located(member, error));
        }
        if self.is_manifest(&path) && member.kind != EntryType::Regular {
            return Err(self.located(member, Error::malformed("is not a regular file")));
        }
        let mode = member.mode().map_err(|e| self.located(member, e))?;
        if let Some(what) = self.special(member, mode) {
            if self.form == ArchiveForm::Artifact {
                return Err(self.located(member, special(&what)));
            }
            self.special.insert(path.clone(), what);
            let placeholder = Node::File { data: 0..0, mode };
            return self.insert(path, placeholder).map_err(|e| self.located(member, e));
        }
        let stored = match member.kind {
            EntryType::Regular => {
                self.vacant(&path).map_err(|e| self.located(member, e))?;
                Node::File { data: self.content(&path, source)?, mode }
            }
            EntryType::Directory => Node::Directory { mode },
            EntryType::Symlink => Node::Link { target: member.target.clone() },
            _ => self.linked(&member.target).map_err(|e| self.located(member, e))?,
        };
        if member.size > 0 && !matches!(member.kind, EntryType::Regular) {
            return Err(self.located(member, Error::malformed("has content but is not a file")));
        }
        self.insert(path, stored).map_err(|e| self.located(member, e))
    }

    /// What a member is that no package can have.
    fn special(&self, member: &tar::TarMember, mode: u32) -> Option<String> {
        match member.kind {
            _ if member.has_capabilities => Some(HAS_CAPABILITIES.to_owned()),
            EntryType::Regular => (mode & SET_ID != 0).then(|| HAS_SET_ID.to_owned()),
            EntryType::Link => self.special.get(&normal(&member.target)?).cloned(),
            EntryType::Directory | EntryType::Symlink => None,
            kind => Some(described(kind)),
        }
    }

    fn is_manifest(&self, path: &TreePath) -> bool {
        self.form == ArchiveForm::Artifact && path.as_str() == MANIFEST_NAME
    }

    fn lacks_manifest(&self) -> bool {
        self.form == ArchiveForm::Artifact && self.manifest.is_none()
    }

    fn located(&self, member: &tar::TarMember, error: Error) -> Error {
        error.file(member_name(self.archive, &member.name))
    }

    fn content<R: Read>(
        &mut self,
        path: &TreePath,
        source: &mut tar::TarMembers<R>,
    ) -> Result<Range<u64>> {
        let start = self.writer.position();
        let is_manifest = self.is_manifest(path);
        let mut text = Vec::new();
        let mut buffer = vec![0; BUFFER];
        loop {
            let len = source.read(&mut buffer).map_err(decoder_fault)?;
            if len == 0 {
                break;
            }
            let bytes = &buffer[..len];
            self.writer.write(bytes)?;
            if is_manifest && text.len() as u64 <= MANIFEST_LIMIT {
                text.extend_from_slice(bytes);
            }
        }
        if is_manifest {
            self.manifest = Some(text);
        }
        Ok(start..self.writer.position())
    }

    fn linked(&self, target: &str) -> Result<PackedNode> {
        let earlier = normal(target).and_then(|path| self.members.get(&path));
        earlier.filter(|node| node.data().is_some()).cloned().ok_or_else(|| {
            let message = format!("is a hard link to `{target}`, which is not an earlier file");
            Error::malformed(message)
                .hint("pack it again: tar writes a file before the hard links to it")
        })
    }

    /// Fails if anything but an implied folder is at `path`.
    fn vacant(&self, path: &TreePath) -> Result<()> {
        match self.members.get(path) {
            Some(_) if self.is_manifest(path) => {
                let error = Error::malformed("occurs twice");
                Err(error.hint("an archive holds one artifact: pack each one separately"))
            }
            Some(there) if !self.implied.contains(path) => {
                let message = format!("occurs twice; an earlier member is a {}", kind(there));
                Err(Error::new(Kind::Conflict, message)
                    .hint("pack the archive again, with each path once"))
            }
            _ => Ok(()),
        }
    }

    fn insert(&mut self, path: TreePath, member: PackedNode) -> Result<()> {
        self.vacant(&path)?;
        if self.implied.remove(&path) && !matches!(member, Node::Directory { .. }) {
            let message = "occurs twice: earlier members are below it";
            return Err(Error::new(Kind::Conflict, message));
        }
        self.imply(path.parent())?;
        self.writer.budget().charge_entry(path.as_str().len())?;
        self.paths += path.as_str().len();
        if let Node::Link { target } = &member {
            self.writer.budget().charge_paths(target.len())?;
            self.paths += target.len();
        }
        self.members.insert(path, member);
        if self.members.len() > MEMBER_LIMIT || self.paths > PATHS_LIMIT {
            Err(self.too_many())
        } else {
            Ok(())
        }
    }

    /// Adds `folder` and the folders above it, if they are missing.
    fn imply(&mut self, mut folder: Option<TreePath>) -> Result<()> {
        while let Some(path) = folder {
            folder = path.parent();
            match self.members.entry(path) {
                Entry::Vacant(place) => {
                    let len = place.key().as_str().len();
                    self.writer.budget().charge_entry(len)?;
                    self.implied.insert(place.key().clone());
                    self.paths += len;
                    place.insert(Node::Directory { mode: FOLDER_MODE });
                }
                Entry::Occupied(there) => match there.get() {
                    Node::Directory { .. } => return Ok(()),
                    other => {
                        let (path, what) = (there.key(), kind(other));
                        let message = format!("is below `{path}`, which is a {what}");
                        return Err(Error::new(Kind::Conflict, message));
                    }
                },
            }
        }
        Ok(())
    }

    fn too_many(&self) -> Error {
        let message = format!(
            "has more than {MEMBER_LIMIT} members and folders around them, or more than {PATHS_LIMIT} \
             bytes of paths"
        );
        Error::new(Kind::Limit, message).file(self.archive)
    }

    pub fn finish(self) -> Result<Packed> {
        if self.lacks_manifest() || self.members.is_empty() {
            let error = Error::malformed("the archive is empty");
            return Err(error.file(self.archive).hint(self.form.packing()));
        }
        let name = member_name(self.archive, MANIFEST_NAME);
        let manifest = self.manifest.map(|text| {
            if text.len() as u64 > MANIFEST_LIMIT {
                let message = format!("the manifest is longer than {MANIFEST_LIMIT} bytes");
                return Err(Error::new(Kind::Limit, message));
            }
            ArtifactManifest::parse(&text)
        });
        let manifest = manifest.transpose().map_err(|error| error.file(name))?;
        let (path, blocks) = (self.archive.to_path_buf(), self.writer.finish()?);
        Ok(Packed { path, manifest, members: self.members, special: self.special, blocks })
    }
}

/// The path of a member; `None` for the root folder.
fn path_of(member: &tar::TarMember, form: ArchiveForm) -> Result<Option<TreePath>> {
    let name = member.name.as_str();
    if name.starts_with('/') {
        let message = "has an absolute path";
        return Err(Error::malformed(message).hint(form.packing()));
    }
    let folder = member.kind == EntryType::Directory;
    let name = if folder { name.trim_end_matches('/') } else { name };
    if folder && name == "." {
        return Ok(None);
    }
    let path = normal(name).ok_or_else(|| {
        let message = format!("`{}` is not a path inside the archive", name.escape_debug());
        let hint = "paths are relative, without `..`, empty parts or line breaks";
        Error::malformed(message).hint(hint)
    })?;
    refuse_deep(&path).map(|()| Some(path))
}

/// The path in the name of a member. tar writes `./` before the names in a folder given as `.`.
fn normal(name: &str) -> Option<TreePath> {
    TreePath::new(name.strip_prefix("./").unwrap_or(name)).ok()
}

fn described(kind: EntryType) -> String {
    match kind {
        EntryType::Char | EntryType::Block => "is a device".to_owned(),
        EntryType::Fifo => "is a named pipe".to_owned(),
        other => format!("is a member of type {:?}", char::from(other.as_byte())),
    }
}
