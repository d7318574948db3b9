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
//! its end mark, and only zeros after it. A folder without a member has the mode 0755.
//!
//! A tarball of an install tree has no manifest, may have any order, and may also use gzip or no compression.
//!
//! The reader refuses a manifest that is not the first member (files before it could not be placed) or occurs
//! twice, two members of one path, members below a file or a link, absolute paths and those with `..`, hard
//! links to anything but an earlier file, sparse members, and everything that it refuses in a folder. A fault
//! of a member names the archive and the member: `blas_lib_gfx1151.tar.zst(math-libs/…/librocblas.so)`; its
//! offset is one in the member.

mod members;

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rockpack_archive::tar::{Dialect, TarMembers};
use rockpack_core::compression::{Decoder, Method, damaged_archive};
use rockpack_core::content::{
    BlockStore, Blocks, Content, Inputs, StampedFile, hex, if_exists, unhex,
};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::run::Budget;
use rockpack_core::tree::{Node, Tree, TreePath};
use rockpack_remote::Object;
use sha2::{Digest as _, Sha256};

use super::folder::{check_target, no_folder, special, through_link};
use super::manifest::{ArtifactManifest, MANIFEST_NAME};
use super::member_name;
use super::scan::Contents;
use members::{Collector, PackedNode};

/// Bytes that are read ahead of a decoder.
const BUFFER: usize = 256 << 10;

/// The file name without its ending, and the compression, of a packed artifact.
pub(in crate::input) fn parse_name(file_name: &str) -> Option<(&str, Method)> {
    let mut endings = [(".tar.zst", Method::Zstd), (".tar.xz", Method::Xz)].into_iter();
    endings.find_map(|(ending, method)| Some((file_name.strip_suffix(ending)?, method)))
}

/// The kind of content of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveForm {
    /// An artifact, with its manifest as the first member.
    Artifact,
    Tree,
}

impl ArchiveForm {
    fn packing(self) -> &'static str {
        match self {
            Self::Artifact => {
                "pack it with the manifest first: tar -C FOLDER -c artifact_manifest.txt …"
            }
            Self::Tree => "pack it with paths relative to its folder: tar -C FOLDER -c .",
        }
    }
}

#[derive(Debug)]
pub struct Packed {
    path: PathBuf,
    /// The manifest with the stage prefixes; `None` in an install tree.
    pub manifest: Option<ArtifactManifest>,
    members: BTreeMap<TreePath, PackedNode>,
    /// The reason for each member of an install tree that no package can have; it may be outside of the prefix.
    special: BTreeMap<TreePath, String>,
    blocks: Arc<Blocks>,
}

impl Packed {
    /// Decodes the archive in `source` into `store`. Returns its SHA-256, too.
    pub(super) fn open(
        source: &ArchiveSource,
        method: Method,
        form: ArchiveForm,
        checksum: Option<&Checksum>,
        store: &Arc<BlockStore>,
    ) -> Result<(Self, [u8; 32])> {
        let decoded = decode(source, method, form, store).map_err(|error| {
            // A wrong digest explains every other fault.
            let is_read = !matches!(error.kind(), Kind::Io | Kind::Changed | Kind::Interrupted);
            let checksum = checksum.filter(|_| is_read);
            let sum = checksum.map(|checksum| checksum.compare(source.sha256(store.budget())?));
            sum.and_then(Result::err).unwrap_or(error)
        });
        let compared = decoded.and_then(|(taken, digest)| {
            checksum.map_or(Ok(()), |checksum| checksum.compare(digest))?;
            Ok((taken, digest))
        });
        compared.map_err(|error| error.file(source.path()))
    }

    /// Reads the tar archive with `members`, found at `path`, into `store`.
    pub fn read<R: Read>(
        members: &mut TarMembers<R>,
        form: ArchiveForm,
        path: &Path,
        store: &Arc<BlockStore>,
    ) -> Result<Self> {
        let mut collector = Collector::new(path, form, store.writer()?);
        collector.collect(members)?;
        collector.finish()
    }

    /// The names of the folders in the folder at `path`, `""` for the root; none if it does not exist.
    pub(super) fn folders(&self, path: &str) -> Vec<String> {
        let inside = self.inside(path);
        let folders = inside.filter(|(rest, _, node)| {
            matches!(node, Node::Directory { .. }) && !rest.contains('/')
        });
        folders.map(|(rest, ..)| rest.to_owned()).collect()
    }

    /// The members below a folder, `""` for the root, with their paths in it.
    fn inside(&self, folder: &str) -> impl Iterator<Item = (&str, &TreePath, &PackedNode)> {
        // `stage-x` sorts between `stage` and `stage/x`.
        let below = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let members = self.members.range::<str, _>((Bound::Excluded(&*below), Bound::Unbounded));
        members
            .map_while(move |(path, node)| Some((path.as_str().strip_prefix(&*below)?, path, node)))
    }

    /// The files below a stage prefix, `""` for the root; `None` if it does not exist.
    pub fn tree(&self, prefix: &str) -> Result<Option<Tree<Content>>> {
        let mut above = TreePath::new(prefix).ok();
        while let Some(path) = above {
            match self.members.get(&path) {
                Some(Node::Link { .. }) => return Err(self.fault(through_link(prefix), &path)),
                Some(Node::File { .. }) => return Err(self.fault(no_folder(prefix), &path)),
                Some(Node::Directory { .. }) | None => above = path.parent(),
            }
        }
        if !prefix.is_empty() && !self.members.contains_key(prefix) {
            return Ok(None);
        }
        let mut tree = Tree::new();
        let mut faults = Faults::default();
        for (place, path, member) in self.inside(prefix) {
            let node = TreePath::new(place).and_then(|place| {
                let node = self.node(&place, path, member)?;
                tree.insert(place, node)
            });
            faults.keep(node);
        }
        for (place, fault) in tree.outside_links() {
            let member = [prefix, place.as_str()].join("/");
            faults.add(fault.file(member_name(&self.path, member.trim_start_matches('/'))));
        }
        faults.finish()?;
        Ok(Some(tree))
    }

    fn node(
        &self,
        place: &TreePath,
        path: &TreePath,
        member: &PackedNode,
    ) -> Result<Node<Content>> {
        if let Some(what) = self.special.get(path) {
            return Err(self.fault(special(what), path));
        }
        if let Node::Link { target } = member {
            check_target(place, target).map_err(|error| self.fault(error, path))?;
        }
        let name = member_name(&self.path, path.as_str());
        member.clone().try_map(|range| self.blocks.content(range, name))
    }

    fn fault(&self, error: Error, member: &TreePath) -> Error {
        error.file(member_name(&self.path, member.as_str()))
    }
}

impl Contents for Packed {
    fn manifest(&mut self, _: &mut Faults) -> Option<ArtifactManifest> {
        self.manifest.clone()
    }

    fn prefix(&mut self, prefix: &str, _: &mut Faults) -> Result<Option<Tree<Content>>> {
        self.tree(prefix)
    }

    fn outside(&mut self, prefixes: &[TreePath], _: &mut Faults) -> Vec<String> {
        let mut prefixes: Vec<&TreePath> = prefixes.iter().collect();
        prefixes.sort_by(|one, other| one.components().cmp(other.components()));
        let mut files: Vec<&TreePath> = self
            .members
            .iter()
            .filter(|(_, member)| !matches!(member, Node::Directory { .. }))
            .map(|(path, _)| path)
            .filter(|path| self.manifest.is_none() || path.as_str() != MANIFEST_NAME)
            .filter(|path| !is_inside(path, &prefixes))
            .collect();
        files.sort_by(|one, other| one.components().cmp(other.components()));
        files.into_iter().map(TreePath::to_string).collect()
    }
}

/// Whether `path` is one of `prefixes` or below one. They are sorted and do not nest, so a path inside one
/// sorts directly after it.
fn is_inside(path: &TreePath, prefixes: &[&TreePath]) -> bool {
    let behind = prefixes.partition_point(|p| p.components().le(path.components()));
    let before = behind.checked_sub(1).and_then(|index| prefixes.get(index));
    let rest = before.and_then(|prefix| path.as_str().strip_prefix(prefix.as_str()));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[derive(Debug)]
pub(super) enum ArchiveSource {
    File(Arc<StampedFile>),
    Object(Arc<Object>),
}

impl ArchiveSource {
    pub fn path(&self) -> &Path {
        match self {
            Self::File(file) => file.path(),
            Self::Object(object) => object.path(),
        }
    }

    fn reader(&self, budget: &Budget) -> Result<Box<dyn Read>> {
        Ok(match self {
            Self::File(file) => Box::new(Content::of_file(Arc::clone(file), budget).reader()),
            Self::Object(object) => Box::new(object.reader(0, budget)?),
        })
    }

    fn sha256(&self, budget: &Budget) -> Result<[u8; 32]> {
        let mut reader = ArchiveReader::new(self.reader(budget)?);
        std::io::copy(&mut reader, &mut std::io::sink())
            .map_err(|error| Error::io(self.path(), "read", error))?;
        Ok(reader.digest.finalize().into())
    }
}

/// Reads an archive to its end. Returns the digest of all its bytes, too.
fn decode(
    source: &ArchiveSource,
    method: Method,
    form: ArchiveForm,
    store: &Arc<BlockStore>,
) -> Result<(Packed, [u8; 32])> {
    let reader = ArchiveReader::new(source.reader(store.budget())?);
    let taken = Arc::clone(&reader.taken);
    let decoder = Decoder::of_streams(BufReader::with_capacity(BUFFER, reader), method)?;
    let mut members = TarMembers::new(decoder, Dialect::Strict);
    let decoded = Packed::read(&mut members, form, source.path(), store).and_then(|packed| {
        let reader = members.into_inner().finish()?.into_inner();
        Ok((packed, reader.digest.finalize().into()))
    });
    decoded.map_err(|error| match error.kind() {
        // The offset of the decoder in the file at the fault.
        Kind::Malformed | Kind::Truncated if error.place().file.is_none() => {
            damaged_archive(error).offset(taken.load(Ordering::Relaxed))
        }
        _ => error,
    })
}

struct ArchiveReader {
    inner: Box<dyn Read>,
    digest: Sha256,
    taken: Arc<AtomicU64>,
}

impl ArchiveReader {
    fn new(inner: Box<dyn Read>) -> Self {
        Self { inner, digest: Sha256::new(), taken: Arc::default() }
    }
}

impl Read for ArchiveReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = self.inner.read(buffer)?;
        self.digest.update(&buffer[..len]);
        self.taken.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}

pub(super) const CHECKSUM_ENDING: &str = ".sha256sum";

/// Longest checksum file that is read, in bytes: the digests of some thousand archives.
const CHECKSUM_LIMIT: u64 = 1 << 20;

/// The digest in a checksum file, for its archive.
#[derive(Debug)]
pub(super) struct Checksum {
    path: PathBuf,
    pub digest: [u8; 32],
}

impl Checksum {
    /// Reads the checksum file of `archive`, if there is one, and notes it in `inputs`.
    pub fn of(archive: &Path, inputs: &mut Inputs) -> Result<Option<Self>> {
        let mut path = archive.as_os_str().to_owned();
        path.push(CHECKSUM_ENDING);
        let path = PathBuf::from(path);
        if if_exists(&path, "inspect", std::fs::symlink_metadata(&path))?.is_none() {
            return Ok(None);
        }
        let content = inputs.content(&path)?;
        let bytes = content.read_vec(0..content.len(), CHECKSUM_LIMIT, "checksum file")?;
        let name = archive.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        Self::parse(&bytes, name, path).map(Some)
    }

    /// Reads the checksum file of the archive `name` at an address. Returns its text, too.
    pub fn of_object(object: &Object, name: &str) -> Result<(Vec<u8>, Self)> {
        let text = object.read_small(CHECKSUM_LIMIT)?;
        let checksum = Self::parse(&text, name, object.path().to_path_buf())?;
        Ok((text, checksum))
    }

    fn parse(bytes: &[u8], name: &str, path: PathBuf) -> Result<Self> {
        let digest = parse_checksum(bytes, name).map_err(|error| error.file(&path))?;
        Ok(Self { path, digest })
    }

    fn compare(&self, found: [u8; 32]) -> Result<()> {
        if found == self.digest {
            return Ok(());
        }
        let message = format!(
            "has the SHA-256 {}, but {} lists {}",
            hex(&found),
            self.path.display(),
            hex(&self.digest)
        );
        Err(Error::malformed(message).hint(
            "the archive was damaged or replaced: fetch it again together with its .sha256sum",
        ))
    }
}

/// The digest of the file `name` in the text of a checksum file, `<archive>.sha256sum`.
///
/// | line | meaning |
/// |---|---|
/// | 64 hexadecimal digits | the digest, where the file has one line |
/// | digits, two spaces, a file name | the digest of the file of that name, as sha256sum writes it |
/// | digits, a space, `*`, a file name | the same, as sha256sum writes it with `--binary` |
///
/// UTF-8, LF or CRLF; empty lines have no meaning. Only the last component of a path counts. All other lines are
/// refused, and so are a file without a digest for its archive, and one with two different digests.
pub fn parse_checksum(bytes: &[u8], name: &str) -> Result<[u8; 32]> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        Error::malformed("is not UTF-8").offset(error.valid_up_to() as u64).hint(CHECKSUM_HINT)
    })?;
    let lines: Vec<(usize, &str)> =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
    let mut found: Option<[u8; 32]> = None;
    for (number, line) in &lines {
        let (digest, of) = parse_line(line).ok_or_else(|| {
            let message = "is not a SHA-256 in hexadecimal, alone or with a file name";
            Error::malformed(message).structure(format!("line {}", number + 1)).hint(CHECKSUM_HINT)
        })?;
        if of.map_or(lines.len() == 1, |of| of.rsplit('/').next() == Some(name)) {
            if found.is_some_and(|other| other != digest) {
                let message = format!("has another SHA-256 of {name} than an earlier line");
                let place = format!("line {}", number + 1);
                return Err(Error::malformed(message).structure(place).hint(CHECKSUM_HINT));
            }
            found = Some(digest);
        }
    }
    found.ok_or_else(|| Error::malformed(format!("has no SHA-256 of {name}")).hint(CHECKSUM_HINT))
}

const CHECKSUM_HINT: &str = "write it with sha256sum, in the folder of the archive; or remove it";

fn parse_line(line: &str) -> Option<([u8; 32], Option<&str>)> {
    let line = line.trim_end();
    let Some((digest, rest)) = line.split_once(' ') else {
        return Some((unhex(line)?, None));
    };
    let name = rest.strip_prefix([' ', '*']).filter(|name| !name.is_empty())?;
    Some((unhex(digest)?, Some(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const OTHER: &str = "0000000000000000000000000000000000000000000000000000000000000000";

    #[test]
    fn every_form_gives_the_digest() {
        let upper = DIGEST.to_uppercase();
        for text in [
            DIGEST.to_owned(),
            format!("{upper}\r\n"),
            format!("{DIGEST}  a.tar.xz\n"),
            format!("{DIGEST} *a.tar.xz\n"),
            format!("{DIGEST}  /builds/7/a.tar.xz\n\n"),
            format!("{OTHER}  b.tar.xz\n{DIGEST}  a.tar.xz\n{OTHER}  xa.tar.xz\n"),
            format!("{DIGEST}  a.tar.xz\n{upper} *./a.tar.xz\n"),
        ] {
            let digest = parse_checksum(text.as_bytes(), "a.tar.xz").map(|digest| hex(&digest));
            assert_eq!(digest.unwrap(), DIGEST, "{text}");
        }
    }

    /// Each cut or change is refused, or gives the digest that the bytes now have for the archive.
    #[test]
    fn damage_never_gives_the_digest_of_another_file() {
        for whole in [
            format!("{DIGEST}\n"),
            format!("{DIGEST}  a.tar.xz\n"),
            format!("{DIGEST} *a.tar.xz\n{OTHER}  b.tar.xz\n{OTHER}  xa.tar.xz\n"),
        ] {
            for end in 0..whole.len() {
                let digest = parse_checksum(&whole.as_bytes()[..end], "a.tar.xz");
                assert!(digest.is_err() || hex(&digest.unwrap()) == DIGEST, "{whole} cut at {end}");
            }
            let mut bytes = whole.clone().into_bytes();
            for bit in 0..8 * bytes.len() {
                bytes[bit / 8] ^= 1 << (bit % 8);
                let digest = parse_checksum(&bytes, "a.tar.xz");
                let of_another = digest.is_ok_and(|digest| hex(&digest) == OTHER);
                assert!(!of_another, "bit {bit} of {whole}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn what_says_nothing_or_two_things_about_the_archive_is_refused() {
        for text in [
            String::new(),
            DIGEST[1..].to_owned(),
            format!("{DIGEST} a.tar.xz"),
            format!("{DIGEST}  b.tar.xz"),
            format!("{DIGEST}  a.tar.xz\nmore"),
            format!("{DIGEST}\n{DIGEST}\n"),
            format!("SHA256 (a.tar.xz) = {DIGEST}"),
            format!("{DIGEST}  a.tar.xz\n{OTHER}  a.tar.xz\n"),
            format!("{DIGEST}  old/a.tar.xz\n{OTHER}  new/a.tar.xz\n"),
        ] {
            assert!(parse_checksum(text.as_bytes(), "a.tar.xz").is_err(), "{text}");
        }
        assert!(parse_checksum(b"\xff", "a.tar.xz").is_err());
    }
}
