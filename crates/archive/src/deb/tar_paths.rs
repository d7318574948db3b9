//! The paths of a data archive as dpkg sees them, one after the other. dpkg unpacks each file under a
//! temporary name beside the final one, and renames all when the archive has ended.
//!
//! Source: `src/main/archives.c` of dpkg 1.21 and 1.22, and tests of both with pairs of members.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::lists::below_root;
use crate::payload::{PayloadEntryKind, SpecialKind};

/// The kind of file at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
    Link,
    /// A pipe or a device.
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

/// The paths of the members so far.
#[derive(Default)]
pub(super) struct Paths(HashMap<[u8; 16], Seen>);

impl Paths {
    /// Adds a member called `name`, which is `path` below the root. The error is the reason why dpkg refuses
    /// it after the earlier members, as the rest of a sentence.
    pub fn add(&mut self, name: &str, path: &str, kind: &PayloadEntryKind) -> Result<(), String> {
        let name = below_root(name.trim_end_matches('/'));
        if let Some(above) = self.not_a_folder(path) {
            return Err(format!("is below `{above}`, which is no folder in this package"));
        }
        self.place(name, path, Kind::of(kind))
    }

    fn place(&mut self, name: &str, path: &str, kind: Kind) -> Result<(), String> {
        let (own, plain) = (digest(name), digest(path));
        let before = self.0.get(&plain).map(|seen| seen.kind);
        let is_spelt = self.0.get(&own).is_some_and(|seen| seen.is_spelt);
        let both_files = kind != Kind::Folder && before.is_some_and(|kind| kind != Kind::Folder);
        if both_files && !is_spelt {
            return Err("is there twice, spelt in two ways".to_owned());
        }
        let kind = before
            .map_or(Some(kind), |before| before.then(kind))
            .ok_or("stands where the package has a file in front of it")?;
        for (digest, spelt) in [(plain, own == plain), (own, true)] {
            let seen =
                self.0.entry(digest).or_insert(Seen { kind, is_spelt: false, is_linkable: false });
            seen.kind = kind;
            seen.is_spelt |= spelt;
            seen.is_linkable |= spelt && matches!(kind, Kind::File | Kind::Special);
        }
        Ok(())
    }

    /// Whether a hard link may lead to the earlier file `target`.
    pub fn is_linkable(&self, target: &str) -> bool {
        self.0.get(&digest(below_root(target))).is_some_and(|seen| seen.is_linkable)
    }

    /// A path above `path` where the package has something other than a folder. Paths above a folder were
    /// checked when it was added.
    fn not_a_folder<'p>(&self, path: &'p str) -> Option<&'p str> {
        // In one pass: a path may lead through thousands of folders that are no members.
        let (mut hash, mut hashed) = (Sha256::new(), 0);
        let known = path.match_indices('/').filter_map(|(end, _)| {
            hash.update(path.get(hashed..end)?);
            hashed = end;
            Some((self.0.get(&half(hash.clone()))?.kind, path.get(..end)?))
        });
        let nearest = known.reduce(|_, deeper| deeper);
        nearest.filter(|(kind, _)| *kind != Kind::Folder).map(|(_, above)| above)
    }
}

fn digest(path: &str) -> [u8; 16] {
    half(Sha256::new().chain_update(path))
}

/// Half of the SHA-256 of a path, which is long enough to rule out collisions.
fn half(hash: Sha256) -> [u8; 16] {
    hash.finalize().first_chunk().copied().unwrap_or_default()
}

/// The reason why dpkg refuses a member called `name`, which is `path` below the root, as the rest of a
/// sentence.
pub(super) fn name_fault(name: &str, path: &str, kind: &PayloadEntryKind) -> Option<&'static str> {
    let takes_slash = matches!(kind, PayloadEntryKind::Directory | PayloadEntryKind::File);
    if name.ends_with('/') && !takes_slash {
        return Some("has a slash at the end of its name, and is no folder");
    }
    let name = name.trim_end_matches('/');
    let ends_here = !path.is_empty() && name.rsplit('/').next() == Some(".");
    ends_here.then_some("has a name that ends with `/.`")
}
