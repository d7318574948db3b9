//! A reader of the data of a `.deb` with dpkg's rules; the byte table is in [`crate::tar`].
//!
//! Everything that dpkg installs is read: files, directories, symbolic and hard links, named pipes, and
//! devices, in any spelling of their names. Everything that dpkg refuses is refused: other types, names with
//! line breaks, links to nothing, and members that cannot be at their path ([`Paths`]). Refused too: names
//! with `..`, which dpkg follows out of the root.

use std::collections::HashMap;
use std::io::Read;

use sha2::{Digest, Sha256};
use tar::EntryType;

use super::lists::below_root;
use crate::path_digests::digest_prefix;
use crate::payload::{PayloadEntry, PayloadEntryKind, SpecialKind, Treatment};
use crate::tar::{Dialect, TarMember, TarMembers};
use crate::tar_header::is_label;
use rockpack_core::error::{Error, Result};

/// The hint for a member that dpkg does not install.
const HINT: &str = "dpkg refuses the package, or installs it elsewhere: build it again by dpkg-deb";

pub(super) struct DebMembers<R: Read> {
    members: TarMembers<R>,
    paths: Paths,
    /// The reason why dpkg refuses the current member after the earlier ones, as the rest of a sentence.
    pub refusal: Option<String>,
    /// The number of the current member's path (`path_digests`).
    pub number: u64,
}

impl<R: Read> DebMembers<R> {
    pub fn new(source: R) -> Self {
        Self {
            members: TarMembers::new(source, Dialect::Dpkg),
            paths: Paths::default(),
            refusal: None,
            number: 0,
        }
    }

    /// Skips the rest of the current member, and returns the next one, or `None` at the end of the archive.
    pub fn next(&mut self) -> Result<Option<(PayloadEntry, TarMember)>> {
        let Some(member) = self.members.next_member()? else { return Ok(None) };
        let path = plain_path(&member, &member.name)?;
        let kind = self.kind(&member)?;
        let is_folder = kind == PayloadEntryKind::Directory;
        if path.is_empty() && !is_folder {
            return Err(refused(&member, "is the root, but not a directory"));
        }
        if let Some(why) = name_fault(&member.name, &path, &kind) {
            return Err(refused(&member, why));
        }
        let digest = digest(&path);
        self.number = digest_prefix(&digest.to_be_bytes());
        self.refusal = self.paths.add(&member.name, (&path, digest), &kind).err();
        let size = if kind == PayloadEntryKind::File { member.size } else { 0 };
        let mode = member.lenient_mode();
        let path = path.into();
        let entry = PayloadEntry { path, kind, mode, size, treatment: Treatment::Plain };
        Ok(Some((entry, member)))
    }

    /// Returns the decompressor, after the end of the archive.
    pub fn into_inner(self) -> R {
        self.members.into_inner()
    }

    fn kind(&self, member: &TarMember) -> Result<PayloadEntryKind> {
        let special = match member.kind {
            EntryType::Regular => return Ok(PayloadEntryKind::File),
            EntryType::Directory => return Ok(PayloadEntryKind::Directory),
            EntryType::Symlink if member.target.is_empty() => {
                return Err(refused(member, "has no target"));
            }
            EntryType::Symlink => {
                return Ok(PayloadEntryKind::Link { target: member.target.clone() });
            }
            EntryType::Link => {
                let (path, target) = (plain_path(member, &member.target)?, &member.target);
                let file = self.paths.seen.get(&digest(below_root(target)));
                if file.is_none_or(|seen| !seen.is_linkable) {
                    let why = format!("leads to `{target}`, which is not an earlier file");
                    return Err(refused(member, &why));
                }
                SpecialKind::HardLink { target: path }
            }
            EntryType::Fifo => SpecialKind::Pipe,
            EntryType::Char => SpecialKind::CharacterDevice,
            EntryType::Block => SpecialKind::BlockDevice,
            _ if is_label(&member.header) => {
                return Err(refused(member, "is a volume label, which dpkg does not install"));
            }
            _ => return Err(refused(member, "has a type that dpkg does not install")),
        };
        Ok(PayloadEntryKind::Special(special))
    }
}

impl<R: Read> Read for DebMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.members.read(buffer)
    }
}

/// Converts a name to the path below the root that dpkg uses.
fn plain_path(member: &TarMember, name: &str) -> Result<String> {
    if name.is_empty() {
        return Err(refused(member, "has an empty name"));
    }
    if name.contains('\n') {
        return Err(refused(member, "has a line break in its name"));
    }
    let mut path = String::with_capacity(name.len());
    for part in name.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part == ".." {
            return Err(refused(member, "has `..` in its path"));
        }
        path.push_str(if path.is_empty() { "" } else { "/" });
        path.push_str(part);
    }
    Ok(path)
}

fn refused(member: &TarMember, why: &str) -> Error {
    let kind = char::from(member.kind.as_byte()).escape_default();
    member.fault(&format!("the member `{}` of type `{kind}` {why}", member.name)).hint(HINT)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
    Link,
    Special,
}

impl Kind {
    fn of(kind: &PayloadEntryKind) -> Self {
        match kind {
            PayloadEntryKind::Directory => Self::Folder,
            PayloadEntryKind::File | PayloadEntryKind::Special(SpecialKind::HardLink { .. }) => {
                Self::File
            }
            PayloadEntryKind::Link { .. } => Self::Link,
            PayloadEntryKind::Special(_) => Self::Special,
        }
    }

    /// The kind at a path after a member of this kind and one of `next`; `None` if dpkg fails.
    fn then(self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::File, Self::Special | Self::Folder) => None,
            (Self::Folder, Self::Link) => Some(Self::Folder),
            (Self::Link, Self::File | Self::Special) => Some(Self::Link),
            _ => Some(next),
        }
    }
}

struct Seen {
    kind: Kind,
    /// Whether a member has this spelling.
    is_spelt: bool,
    /// Whether hard links may lead to this spelling.
    is_linkable: bool,
}

/// The paths of the members so far, as dpkg sees them. dpkg unpacks each file under a temporary name next to the final
/// one, and renames all when the archive has ended.
///
/// Source: `src/main/archives.c` of dpkg 1.21 and 1.22, and tests of both with pairs of members.
#[derive(Default)]
struct Paths {
    seen: HashMap<u128, Seen>,
    /// The folder of the last member, with its digest: most members share it with the one before.
    folder: (String, u128),
}

impl Paths {
    /// Adds a member called `name`, which is `path` below the root, with its digest. The error is the reason why dpkg
    /// refuses it after the earlier members, as the rest of a sentence.
    fn add(
        &mut self,
        name: &str,
        (path, plain): (&str, u128),
        kind: &PayloadEntryKind,
    ) -> Result<(), String> {
        let name = below_root(name.trim_end_matches('/'));
        if let Some(above) = self.not_a_folder(path) {
            return Err(format!("is below `{above}`, which is not a folder in this package"));
        }
        let own = if name == path { plain } else { digest(name) };
        let kind = Kind::of(kind);
        let before = self.seen.get(&plain);
        let spelt = if own == plain { before } else { self.seen.get(&own) };
        let is_spelt = spelt.is_some_and(|seen| seen.is_spelt);
        let before = before.map(|seen| seen.kind);
        let both_files = kind != Kind::Folder && before.is_some_and(|kind| kind != Kind::Folder);
        if both_files && !is_spelt {
            return Err("is there twice, spelt in two ways".to_owned());
        }
        let kind = before
            .map_or(Some(kind), |before| before.then(kind))
            .ok_or("has the path of an earlier file")?;
        let spellings = [(plain, false), (own, true)];
        for (digest, spelt) in spellings.into_iter().skip(usize::from(own == plain)) {
            let seen = self.seen.entry(digest).or_insert(Seen {
                kind,
                is_spelt: false,
                is_linkable: false,
            });
            seen.kind = kind;
            seen.is_spelt |= spelt;
            seen.is_linkable |= spelt && matches!(kind, Kind::File | Kind::Special);
        }
        Ok(())
    }

    /// A path above `path` that is not a folder in the package. Paths above a folder were checked before.
    fn not_a_folder<'p>(&mut self, path: &'p str) -> Option<&'p str> {
        let (parent, _) = path.rsplit_once('/')?;
        if self.folder.0 != parent {
            self.folder = (parent.to_owned(), digest(parent));
        }
        if let Some(seen) = self.seen.get(&self.folder.1) {
            return (seen.kind != Kind::Folder).then_some(parent);
        }
        // In one pass: a path may lead through thousands of folders that are no members.
        let (mut hash, mut hashed) = (Sha256::new(), 0);
        let known = path.match_indices('/').filter_map(|(end, _)| {
            hash.update(path.get(hashed..end)?);
            hashed = end;
            Some((self.seen.get(&half(hash.clone()))?.kind, path.get(..end)?))
        });
        let nearest = known.reduce(|_, deeper| deeper);
        nearest.filter(|(kind, _)| *kind != Kind::Folder).map(|(_, above)| above)
    }
}

fn digest(path: &str) -> u128 {
    half(Sha256::new().chain_update(path))
}

/// Half of the SHA-256 of a path, which is long enough to rule out collisions.
fn half(hash: Sha256) -> u128 {
    hash.finalize().first_chunk().copied().map(u128::from_be_bytes).unwrap_or_default()
}

/// Why dpkg refuses a member called `name`, which is `path` below the root, as the rest of a sentence.
fn name_fault(name: &str, path: &str, kind: &PayloadEntryKind) -> Option<&'static str> {
    let takes_slash = matches!(kind, PayloadEntryKind::Directory | PayloadEntryKind::File);
    if name.ends_with('/') && !takes_slash {
        return Some("has a slash at the end of its name, but is not a folder");
    }
    let name = name.trim_end_matches('/');
    let ends_here = !path.is_empty() && (name == "." || name.ends_with("/."));
    ends_here.then_some("has a name that ends with `/.`")
}
