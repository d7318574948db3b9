//! The sizes of packages without a build.
//!
//! | what | how |
//! |---|---|
//! | a file that is packed unchanged, a transformed binary, a text | its bytes are known: exact |
//! | a kernel archive | its code objects' bytes × the share that zstd leaves of samples of them |
//! | a kernel manifest | a constant, and one per arch |
//! | a package file | its files' bytes × the share that zstd leaves of samples of them, archives uncompressed, its scripts, and constants for the package and for every path |
//!
//! Samples are compressed at the level of kernel archives: code objects each by itself, as in an archive;
//! large files each by itself, and small ones in one stream, as in a payload. At most [`SAMPLES`] large and
//! as many small files of a package are sampled, evenly spaced, each by [`WINDOWS`] windows of [`WINDOW`]
//! bytes. The estimate ignores deduplicated code objects and repetitions over long distances, so it is rather
//! too large than too small. Payloads that are compressed with xz are smaller than estimated.

use rockpack_archive::deb;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};

use super::Digests;
use crate::pack::{DEFAULT_LEVEL, Sources};
use rockpack_package::receipt::listing::{ListedMember, Size};
use rockpack_package::{Format, Package};
use rockpack_plan::FileSource;

/// Most large files of a package, small ones, or code objects of an archive, that are sampled.
const SAMPLES: usize = 32;

/// Number of windows of a large file that are compressed as a sample.
const WINDOWS: u64 = 16;

/// Bytes of a window. The content of rocBLAS's databases changes along the file: fewer and larger windows
/// miss whole kinds of content.
const WINDOW: u64 = 256 << 10;

/// Largest file that is sampled whole. Most code objects are smaller.
const WHOLE: u64 = WINDOWS * WINDOW;

/// Bytes of a package besides its payload and its paths: for a `.deb` the control archive, for an `.rpm`
/// lead, header, and the signature with its reserved space.
const DEB_BYTES: u64 = 3 << 10;
const RPM_BYTES: u64 = 5800;

/// Bytes of a path besides its name. A `.deb` has a checksum, an `.rpm` a row of its header; both have a
/// compressed entry in the payload.
const DEB_MEMBER_BYTES: u64 = 60;
/// Bytes of a path, its name included, where the checksums are compressed.
const DEB_COMPRESSED_MEMBER_BYTES: u64 = 28;
const RPM_MEMBER_BYTES: u64 = 120;

/// Bytes of a tar header, and the unit to which files are padded.
const TAR_BLOCK: u64 = 512;

/// Bytes of an archive's row besides its key.
const ROW_BYTES: u64 = 64;

/// Bytes of a manifest, and of each arch in it.
const MANIFEST_BYTES: u64 = 64;
const MANIFEST_ARCH_BYTES: u64 = 112;

/// The size of a file, with its share of the package.
#[derive(Default)]
pub(super) struct MeasuredFile {
    pub size: Size,
    /// The digest of the bytes, if it was requested and does not depend on compression.
    pub sha256: Option<[u8; 32]>,
    /// The digest of an archive's code objects in hex, if it was requested.
    pub code_sha256: Option<String>,
    /// The estimated bytes in the package file.
    pub compressed: u64,
    /// The bytes to sample for that estimate; `None` for files that are already compressed.
    content: Option<Content>,
}

/// Measures the files of a plan.
pub(super) struct Sizes<'a> {
    pub sources: Sources<'a>,
    pub digests: Digests,
}

impl Sizes<'_> {
    /// Measures the file behind `source`, without its share of the package.
    pub fn measure(&self, source: &FileSource) -> Result<MeasuredFile> {
        if let Some(content) = self.sources.known(source)? {
            let is_digested = self.digests == Digests::OfFiles;
            let sha256 = is_digested.then(|| content.sha256()).transpose()?;
            let (size, content) = (Size::exact(content.len()), Some(content));
            return Ok(MeasuredFile { size, sha256, content, ..MeasuredFile::default() });
        }
        let mut code_sha256 = None;
        let bytes = match source {
            FileSource::Archive { archives, arch } => {
                let kernels = self.sources.kernels_for(archives, arch)?;
                if self.digests == Digests::OfFiles {
                    code_sha256 = Some(self.sources.code_digest(archives, arch)?);
                }
                let contents: Vec<&Content> = kernels.iter().map(|it| &it.content).collect();
                let code = contents.iter().map(|content| content.len()).sum();
                let rows = kernels.iter().map(|it| ROW_BYTES + it.binary.as_str().len() as u64);
                CompressedShare::each(&contents)?.apply(code) + rows.sum::<u64>()
            }
            FileSource::Manifest { archives } => {
                let archs = self.sources.archive_set(archives)?.archs.len() as u64;
                MANIFEST_BYTES + MANIFEST_ARCH_BYTES * archs
            }
            other => return Err(Error::bug(format!("{other:?} has no bytes"))),
        };
        let size = Size::estimate(bytes);
        Ok(MeasuredFile { size, code_sha256, compressed: bytes, ..MeasuredFile::default() })
    }

    /// Estimates the share of each of a package's files.
    pub fn compress<'m>(&self, files: impl Iterator<Item = &'m mut MeasuredFile>) -> Result<()> {
        let files = files.filter(|file| file.content.is_some());
        let (mut small, mut large): (Vec<_>, Vec<_>) =
            files.partition(|file| file.size.bytes <= WHOLE);
        assume(&mut small, CompressedShare::together)?;
        // Of very many files, the first of a few neighbours represents them.
        let step = large.len().div_ceil(SAMPLES).max(1);
        for neighbours in large.chunks_mut(step) {
            assume(neighbours, |contents| {
                CompressedShare::each(contents.get(..1).unwrap_or_default())
            })?;
        }
        Ok(())
    }
}

/// Estimates files of a payload by the share of all of them.
fn assume(
    files: &mut [&mut MeasuredFile],
    share: impl Fn(&[&Content]) -> Result<CompressedShare>,
) -> Result<()> {
    let contents = files.iter().filter_map(|file| file.content.as_ref());
    let share = share(&contents.collect::<Vec<_>>())?;
    for file in files {
        file.compressed = share.apply(file.size.bytes);
        file.content = None;
    }
    Ok(())
}

/// The bytes that compression leaves, and the bytes before it.
struct CompressedShare {
    left: u64,
    of: u64,
}

impl CompressedShare {
    /// The share of code objects, each a frame of its own.
    fn each(contents: &[&Content]) -> Result<Self> {
        let mut share = Self { left: 0, of: 0 };
        for content in chosen(contents) {
            let sample = sample(content)?;
            share.add(&sample)?;
        }
        Ok(share)
    }

    /// The share of files in a payload, which is one stream.
    fn together(contents: &[&Content]) -> Result<Self> {
        let samples: Result<Vec<Vec<u8>>> = chosen(contents).map(sample).collect();
        let mut share = Self { left: 0, of: 0 };
        share.add(&samples?.concat())?;
        Ok(share)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let left = zstd::bulk::compress(bytes, DEFAULT_LEVEL)
            .map_err(|error| Error::of_library("zstd refuses to compress", error))?;
        self.left += left.len() as u64;
        self.of += bytes.len() as u64;
        Ok(())
    }

    fn apply(&self, bytes: u64) -> u64 {
        let product = u128::from(bytes) * u128::from(self.left);
        let scaled = product.checked_div(u128::from(self.of)).unwrap_or(u128::from(bytes));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// Up to [`SAMPLES`] of `contents`, evenly spaced.
fn chosen<'c>(contents: &[&'c Content]) -> impl Iterator<Item = &'c Content> {
    let step = contents.len().div_ceil(SAMPLES).max(1);
    contents.iter().step_by(step).copied()
}

/// Windows of `content`, evenly spaced; all bytes if the windows cover them.
fn sample(content: &Content) -> Result<Vec<u8>> {
    let len = content.len();
    let count = len.div_ceil(WINDOW).min(WINDOWS);
    let last = len.saturating_sub(WINDOW);
    let mut bytes = Vec::new();
    let mut done = 0;
    for index in 0..count {
        let spaced = last.checked_div(count.saturating_sub(1)).unwrap_or(0).saturating_mul(index);
        // Windows that cover the whole file do not overlap.
        let start = spaced.max(done);
        done = len.min(spaced.saturating_add(WINDOW));
        if start < done {
            bytes.extend(content.read_vec(start..done, WINDOW, "sample")?);
        }
    }
    Ok(bytes)
}

/// The bytes of a package file besides the content of its files, which takes `payload` bytes.
pub(super) fn overhead(
    package: &Package<FileSource>,
    format: Format,
    members: &[ListedMember],
    payload: u64,
) -> u64 {
    let (constant, member) =
        format.select((DEB_BYTES, DEB_MEMBER_BYTES), (RPM_BYTES, RPM_MEMBER_BYTES));
    let paths = members.iter().map(|m| member + name_len(&m.path, format) as u64).sum::<u64>();
    let compressed = DEB_COMPRESSED_MEMBER_BYTES * members.len() as u64;
    let is_compressed = format == Format::Deb && deb::is_control_compressed(paths, payload);
    constant + scripts(package, format) + if is_compressed { compressed } else { paths }
}

fn name_len(path: &str, format: Format) -> usize {
    match format {
        Format::Deb => path.len(),
        // Folders are stored once.
        Format::Rpm => path.rsplit('/').next().unwrap_or_default().len(),
    }
}

/// The bytes of maintainer scripts. Those of a `.deb` are uncompressed in a tar archive.
fn scripts(package: &Package<FileSource>, format: Format) -> u64 {
    match (format, &package.deb, &package.rpm) {
        (Format::Deb, Some(control), _) => {
            let lines = control.triggers.iter().map(|line| line.len() + 1).sum::<usize>();
            let triggers = if lines == 0 { 0 } else { len_in_tar(lines) };
            let scripts = control.scripts.iter().map(|(_, text)| len_in_tar(text.len()));
            triggers + scripts.sum::<u64>()
        }
        (Format::Rpm, _, Some(control)) => {
            control.scripts.iter().map(|(_, (_, text))| text.len() as u64).sum()
        }
        _ => 0,
    }
}

fn len_in_tar(len: usize) -> u64 {
    TAR_BLOCK + (len as u64).next_multiple_of(TAR_BLOCK)
}
