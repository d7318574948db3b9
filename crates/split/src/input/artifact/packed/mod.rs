//! Packed artifacts: `{name}_{kind}_{gpu_family}.tar.zst` and `.tar.xz`.
//!
//! ```text
//! zstd frames or xz streams
//!   tar archive (rockpack_archive::tar)
//!     artifact_manifest.txt     the first member, except for the root folder `./`
//!     files, folders, symbolic and hard links, by paths relative to the artifact
//! ```
//!
//! Source: the archives of ROCm's build tools, and GNU tar. An archive is decoded once, front to end, without
//! a tree of files: the content of its members goes into a [`BlockStore`]. The SHA-256 in
//! `<archive>.sha256sum` is checked over the same bytes. Every byte is accounted for: the archive must have
//! its end mark, and only zeros behind it. A folder without a member has the mode 0755.
//!
//! The reader refuses a manifest that is not the first member (files before it could not be placed) or occurs
//! twice, two members of one path, members below a file or a link, absolute paths and those with `..`, hard
//! links to anything but an earlier file, sparse members, and everything that it refuses in a folder. A fault
//! of a member names the archive and the member: `blas_lib_gfx1151.tar.zst(math-libs/…/librocblas.so)`; its
//! offset is one in the member.

mod checksum;
mod members;

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest as _, Sha256};

pub use checksum::parse as parse_checksum;
pub(super) use checksum::{Checksum, ENDING as CHECKSUM_ENDING};
use members::{Collected, Collector, PackedNode, named};
use rockpack_archive::tar::{Dialect, TarMembers};
use rockpack_core::compression::{Decoder, Method};
use rockpack_core::content::{BlockStore, Blocks, Content, ContentReader, StampedFile};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::{Node, Tree, TreePath};

use super::contents::{Contents, PrefixContent};
use super::manifest::{ArtifactManifest, MANIFEST_NAME};
use super::prefix::{check_target, no_folder, refuse_leaving, through_link};

/// Bytes that are read ahead of a decoder.
const BUFFER: usize = 256 << 10;

/// The file name without its ending, and the compression, of a packed artifact.
pub(super) fn parse_name(file_name: &str) -> Option<(&str, Method)> {
    let mut endings = [(".tar.zst", Method::Zstd), (".tar.xz", Method::Xz)].into_iter();
    endings.find_map(|(ending, method)| Some((file_name.strip_suffix(ending)?, method)))
}

/// A decoded artifact.
#[derive(Debug)]
pub struct Packed {
    path: PathBuf,
    manifest: ArtifactManifest,
    members: BTreeMap<TreePath, PackedNode>,
    blocks: Arc<Blocks>,
}

/// A member below a prefix, with its path relative to the prefix and its full path.
struct Below<'a> {
    place: &'a str,
    path: &'a TreePath,
    member: &'a PackedNode,
}

impl Packed {
    /// Decodes the packed artifact in `file` into `store`. Returns the SHA-256 of the file, too.
    pub(super) fn open(
        file: &Arc<StampedFile>,
        method: Method,
        checksum: Option<&Checksum>,
        store: &Arc<BlockStore>,
    ) -> Result<(Self, [u8; 32])> {
        let content = Content::of_file(Arc::clone(file), store.budget());
        let (taken, digest) = match decode(&content, method, file.path(), store) {
            Ok(decoded) => decoded,
            Err(error) => {
                // A wrong digest is the cause, regardless of the first fault.
                let sum = checksum.map(|checksum| checksum.compare(content.sha256()?));
                return Err(sum.and_then(Result::err).unwrap_or(error).file(file.path()));
            }
        };
        let compared = checksum.map_or(Ok(()), |checksum| checksum.compare(digest));
        compared.map_err(|error| error.file(file.path()))?;
        Ok((taken, digest))
    }

    /// Reads the tar archive in `source`, found at `path`, into `store`.
    pub fn read(source: impl Read, path: &Path, store: &Arc<BlockStore>) -> Result<Self> {
        let mut members = TarMembers::new(source, Dialect::Strict);
        Self::collect(&mut members, path, store)
    }

    fn collect<R: Read>(
        members: &mut TarMembers<R>,
        path: &Path,
        store: &Arc<BlockStore>,
    ) -> Result<Self> {
        let mut collector = Collector::new(path, store.writer()?);
        collector.collect(members)?;
        let Collected { manifest, members, blocks } = collector.finish()?;
        Ok(Self { path: path.to_path_buf(), manifest, members, blocks })
    }

    /// The manifest with the stage prefixes.
    pub fn manifest(&self) -> &ArtifactManifest {
        &self.manifest
    }

    /// The files below a stage prefix; `None` if it does not exist.
    pub fn tree(&self, prefix: &TreePath) -> Result<Option<Tree<Content>>> {
        let mut above = Some(prefix.clone());
        while let Some(path) = above {
            match self.members.get(&path) {
                Some(Node::Link { .. }) => return Err(self.fault(through_link(prefix), &path)),
                Some(Node::File { .. }) => return Err(self.fault(no_folder(prefix), &path)),
                Some(Node::Directory { .. }) | None => above = path.parent(),
            }
        }
        if !self.members.contains_key(prefix) {
            return Ok(None);
        }
        let mut tree = Tree::new();
        let mut faults = Faults::default();
        for Below { place, path, member } in self.below(prefix) {
            let node = TreePath::new(place).and_then(|place| {
                let node = self.node(&place, path, member)?;
                tree.insert(place, node)
            });
            faults.keep(node);
        }
        refuse_leaving(&tree, &mut faults, |place| named(&self.path, &format!("{prefix}/{place}")));
        faults.finish()?;
        Ok(Some(tree))
    }

    /// The members below `prefix`.
    fn below<'a>(&'a self, prefix: &TreePath) -> impl Iterator<Item = Below<'a>> + use<'a> {
        // `stage-x` sorts between `stage` and `stage/x`.
        let below = format!("{prefix}/");
        let range = self.members.range::<str, _>((Bound::Excluded(&*below), Bound::Unbounded));
        range.map_while(move |(path, member)| {
            Some(Below { place: path.as_str().strip_prefix(&*below)?, path, member })
        })
    }

    fn node(
        &self,
        place: &TreePath,
        path: &TreePath,
        member: &PackedNode,
    ) -> Result<Node<Content>> {
        if let Node::Link { target } = member {
            check_target(place, target).map_err(|error| self.fault(error, path))?;
        }
        let name = named(&self.path, path.as_str());
        member.clone().try_map(|range| self.blocks.content(range, name))
    }

    fn fault(&self, error: Error, member: &TreePath) -> Error {
        error.file(named(&self.path, member.as_str()))
    }
}

impl Contents for Packed {
    fn manifest(&mut self, _: &mut Faults) -> Option<ArtifactManifest> {
        Some(self.manifest.clone())
    }

    fn prefix(&mut self, prefix: &TreePath, faults: &mut Faults) -> PrefixContent {
        match faults.keep(self.tree(prefix)) {
            None => PrefixContent::Faulty,
            Some(None) => PrefixContent::Absent,
            Some(Some(tree)) => PrefixContent::Tree(tree),
        }
    }

    fn outside(&mut self, prefixes: &[TreePath], _: &mut Faults) -> Vec<String> {
        let mut prefixes: Vec<&TreePath> = prefixes.iter().collect();
        prefixes.sort_by(|one, other| one.components().cmp(other.components()));
        let mut files: Vec<&TreePath> = self
            .members
            .iter()
            .filter(|(_, member)| !matches!(member, Node::Directory { .. }))
            .map(|(path, _)| path)
            .filter(|path| path.as_str() != MANIFEST_NAME && !is_inside(path, &prefixes))
            .collect();
        files.sort_by(|one, other| one.components().cmp(other.components()));
        files.into_iter().map(TreePath::to_string).collect()
    }
}

/// Whether `path` is one of `prefixes` or below one. They are sorted and do not nest, so a path inside one
/// sorts right behind it.
fn is_inside(path: &TreePath, prefixes: &[&TreePath]) -> bool {
    let behind = prefixes.partition_point(|p| p.components().le(path.components()));
    let before = behind.checked_sub(1).and_then(|index| prefixes.get(index));
    before.is_some_and(|prefix| path == *prefix || relative(path, prefix).is_some())
}

/// Returns `path` relative to `prefix`, if it is below.
fn relative<'a>(path: &'a TreePath, prefix: &TreePath) -> Option<&'a str> {
    path.as_str().strip_prefix(prefix.as_str())?.strip_prefix('/')
}

/// Reads an archive to its end. Returns the digest of all its bytes, too.
fn decode(
    content: &Content,
    method: Method,
    path: &Path,
    store: &Arc<BlockStore>,
) -> Result<(Packed, [u8; 32])> {
    let tap = Tap { inner: content.reader(), digest: Sha256::new(), taken: Arc::default() };
    let taken = Arc::clone(&tap.taken);
    let decoder = Decoder::of_streams(BufReader::with_capacity(BUFFER, tap), method)?;
    let mut members = TarMembers::new(decoder, Dialect::Strict);
    let decoded = Packed::collect(&mut members, path, store).and_then(|packed| {
        let tap = members.into_inner().finish()?.into_inner();
        Ok((packed, tap.digest.finalize().into()))
    });
    decoded.map_err(|error| match error.kind() {
        // The offset of the decoder in the file at the fault.
        Kind::Malformed | Kind::Truncated if error.place().file.is_none() => {
            damaged(error).offset(taken.load(Ordering::Relaxed))
        }
        _ => error,
    })
}

fn damaged(error: Error) -> Error {
    // Both decoders report this for windows over their limit.
    let window = error.cause_text().is_some_and(|cause| cause.contains("memory"));
    error.hint(if window {
        "zstd windows of up to 128 MiB and xz dictionaries of up to 96 MiB are read: pack it \
             with zstd --long=27 or xz -9 at most"
    } else {
        "the archive is damaged or was copied only in part: build it or copy it again"
    })
}

/// Digests and counts the bytes read through it.
struct Tap {
    inner: ContentReader,
    digest: Sha256,
    taken: Arc<AtomicU64>,
}

impl Read for Tap {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = self.inner.read(buffer)?;
        self.digest.update(&buffer[..len]);
        self.taken.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}
