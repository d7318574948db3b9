//! Tarballs that lose or change files, with every other byte as it was.
//!
//! ```text
//! per member: extended headers (types x, L and K), header, content, zeros up to a multiple of 512 bytes
//! ```
//!
//! A changed file gets a new size and checksum in its header. A removed one goes with its extended headers; those for
//! all members (type g) and a volume label stay. A hard link follows its file. Members that are no file, folder or
//! link stay, and are in no tree.
//!
//! The decoded tar archive goes to a [`BlockStore`]; a `.tar` is read where it is. In addition to what
//! [`Dialect::Strict`] refuses, the reader refuses two members of one path, absolute paths and those with `..`, hard
//! links to anything but an earlier file or link, and content of anything but a file.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::write::GzEncoder;
use rockpack_core::compression::{
    Compression, Decoder, Encoder, Method, Workers, damaged_archive, decoder_fault,
};
use rockpack_core::content::{BlockStore, Blocks, Content, WINDOW};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::{Node, Tree, TreePath};
use tar::{EntryType, Header};

use crate::tar::{Dialect, TarMember, TarMembers};
use crate::tar_header::BLOCK;

/// Limit on files, folders and links of a tarball. A few megabytes of compressed headers can announce millions.
const MEMBER_LIMIT: usize = 1 << 20;

/// Maximum size in bytes of all names and link targets together, for the same reason.
const NAMES_LIMIT: usize = 256 << 20;

/// What to do about a tarball that cannot be thinned.
const UNPACK: &str = "unpack the tarball, and give the folder";

pub struct Tarball {
    path: PathBuf,
    tar: Content,
    /// The decoded bytes, unless the file is the tar archive itself.
    blocks: Option<Arc<Blocks>>,
    method: Method,
    /// The data of a file is its range in the tar archive.
    tree: Tree<Range<u64>>,
    members: Vec<Member>,
}

/// A file, folder or link. Offsets are in the tar archive.
struct Member {
    path: TreePath,
    hard_link_to: Option<TreePath>,
    /// Whether an extended header gives the size, too.
    has_size_record: bool,
    first_header: u64,
    header: u64,
    /// The end of the padding.
    end: u64,
}

impl Tarball {
    /// Decodes the tarball `content`, which is at `path`, into `store`.
    pub fn read(
        content: &Content,
        method: Method,
        path: &Path,
        store: &Arc<BlockStore>,
    ) -> Result<Self> {
        let (tar, blocks) = match method {
            Method::Stored => (content.clone(), None),
            _ => {
                let (blocks, len) = decode(content, method, store)?;
                (blocks.content(0..len, path.to_path_buf())?, Some(blocks))
            }
        };
        let source = BufReader::with_capacity(WINDOW, tar.reader());
        let mut source = TarMembers::new(source, Dialect::Strict);
        let (path, tree, members) = (path.to_path_buf(), Tree::new(), Vec::new());
        let mut tarball = Self { path, tar, blocks, method, tree, members };
        let mut names = 0;
        while let Some(found) = source.next_member()? {
            tarball.add(&found).map_err(|error| error.file(tarball.name_of(&found.name)))?;
            content.budget().charge_entry(found.name.len())?;
            names += found.name.len() + found.target.len();
            if tarball.members.len() > MEMBER_LIMIT || names > NAMES_LIMIT {
                let message = format!(
                    "has more than {MEMBER_LIMIT} members, or names of more than {NAMES_LIMIT} bytes"
                );
                return Err(Error::new(Kind::Limit, message).hint(UNPACK));
            }
        }
        Ok(tarball)
    }

    fn add(&mut self, found: &TarMember) -> Result<()> {
        let name = normal(&found.name);
        if matches!(name, "" | ".") {
            return Ok(());
        }
        let path = TreePath::new(name)?;
        let start = found.start.saturating_add(BLOCK as u64);
        let data = start..start.saturating_add(found.size);
        let end = data.end.checked_next_multiple_of(BLOCK as u64).unwrap_or(u64::MAX);
        let mut hard_link_to = None;
        let node = match found.kind {
            EntryType::Regular => Node::File { data, mode: found.mode()? },
            EntryType::Directory => Node::Directory { mode: found.mode()? },
            EntryType::Symlink => Node::Link { target: found.target.clone() },
            EntryType::Link => {
                let target = hard_link_to.insert(TreePath::new(normal(&found.target))?);
                self.linked(target)?
            }
            _ => return Ok(()),
        };
        if found.size > 0 && found.kind != EntryType::Regular {
            return Err(Error::malformed("has content but is not a file"));
        }
        let twice = |error: Error| error.hint("pack the archive again, with each path once");
        self.tree.insert(path.clone(), node).map_err(twice)?;
        let TarMember { has_size_record, first_header, start: header, .. } = *found;
        let member = Member { path, hard_link_to, has_size_record, first_header, header, end };
        self.members.push(member);
        Ok(())
    }

    fn linked(&self, target: &TreePath) -> Result<Node<Range<u64>>> {
        let file = self.tree.get(target).filter(|node| !matches!(node, Node::Directory { .. }));
        file.cloned().ok_or_else(|| {
            let message = format!("is a hard link to {target}, which is not an earlier file");
            Error::malformed(message)
                .hint("pack the archive again: tar has a file before the links to it")
        })
    }

    fn name_of(&self, member: &str) -> PathBuf {
        format!("{}({member})", self.path.display()).into()
    }

    pub fn tree(&self) -> Result<Tree<Content>> {
        let mut tree = Tree::new();
        for (path, node) in &self.tree {
            let node = node.clone().try_map(|data| match &self.blocks {
                Some(blocks) => blocks.content(data, self.name_of(path.as_str())),
                None => self.tar.slice(data),
            });
            tree.insert(path.clone(), node?)?;
        }
        Ok(tree)
    }

    /// The tar archive with these files changed, or removed (`None`). A hard link needs the same change as its file,
    /// unless it is removed.
    pub fn changed(&self, changes: &BTreeMap<TreePath, Option<Content>>) -> Result<Content> {
        // The bytes of a hard link and its file are equal, so equal lengths mean equal changes.
        let len_after =
            |path: &TreePath| changes.get(path).map(|change| change.as_ref().map(Content::len));
        let mut parts = Vec::new();
        let mut done = 0;
        for member in &self.members {
            let change = changes.get(&member.path);
            if let (Some(file), false) = (&member.hard_link_to, matches!(change, Some(None))) {
                if len_after(file) != len_after(&member.path) {
                    let message = format!("is a hard link to {file}, which changes differently");
                    return Err(self.refused(member, message));
                }
                continue;
            }
            match change {
                None => continue,
                Some(None) => parts.push(self.tar.slice(done..member.first_header)?),
                Some(Some(content)) => {
                    let len = content.len();
                    parts.push(self.tar.slice(done..member.header)?);
                    parts.push(Content::of_bytes(self.resized(member, len)?));
                    parts.push(content.clone());
                    parts.push(Content::zeros(len.next_multiple_of(BLOCK as u64) - len));
                }
            }
            done = member.end;
        }
        parts.push(self.tar.slice(done..self.tar.len())?);
        Ok(Content::concat(&parts))
    }

    fn resized(&self, member: &Member, size: u64) -> Result<[u8; BLOCK]> {
        if member.has_size_record {
            return Err(
                self.refused(member, "has its size in a pax record, which is not rewritten")
            );
        }
        let mut header = Header::new_old();
        self.tar.read_at(member.header, header.as_mut_bytes())?;
        header.set_size(size);
        header.set_cksum();
        Ok(*header.as_bytes())
    }

    fn refused(&self, member: &Member, message: impl Into<String>) -> Error {
        Error::unsupported(message).file(self.name_of(member.path.as_str())).hint(UNPACK)
    }

    /// Compresses the tar archive `tar` by the method of this tarball, with so many threads.
    pub fn compress(&self, tar: &Content, mut sink: impl Write, threads: u32) -> Result<()> {
        let mut reader = BufReader::with_capacity(WINDOW, tar.reader());
        let written = match self.method {
            Method::Stored => io::copy(&mut reader, &mut sink).map(drop),
            Method::Gzip => {
                let mut encoder = GzEncoder::new(sink, flate2::Compression::default());
                io::copy(&mut reader, &mut encoder).and_then(|_| encoder.finish()).map(drop)
            }
            method => {
                let is_xz = method == Method::Xz;
                let compression = if is_xz { Compression::XZ } else { Compression::default() };
                let workers = Workers::new(threads);
                let mut encoder = Encoder::new(sink, compression, &workers, tar.len())?;
                io::copy(&mut reader, &mut encoder).and_then(|_| encoder.finish()).map(drop)
            }
        };
        written.map_err(|fault| Error::io_without_path("write the tarball", fault))
    }
}

/// Decodes a tarball, and returns the number of decoded bytes, too.
fn decode(
    content: &Content,
    method: Method,
    store: &Arc<BlockStore>,
) -> Result<(Arc<Blocks>, u64)> {
    let source = BufReader::with_capacity(WINDOW, content.reader());
    let mut decoder = Decoder::of_streams(source, method)?;
    let mut writer = store.writer()?;
    let mut window = vec![0; WINDOW];
    loop {
        let len =
            decoder.read(&mut window).map_err(|fault| damaged_archive(decoder_fault(fault)))?;
        if len == 0 {
            break;
        }
        writer.write(window.get(..len).unwrap_or_default())?;
    }
    decoder.finish().map_err(damaged_archive)?;
    let len = writer.position();
    Ok((writer.finish()?, len))
}

/// A name without any `./` before it and `/` after it.
fn normal(name: &str) -> &str {
    name.trim_start_matches("./").trim_end_matches('/')
}

#[cfg(test)]
#[path = "tarball_tests.rs"]
mod tests;
