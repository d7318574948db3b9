//! The sizes of packages without a build.
//!
//! | what | how |
//! |---|---|
//! | a file that is packed unchanged, a transformed binary, a text | its bytes are known: exact |
//! | a kernel archive | its code objects' bytes × the share that zstd leaves of samples of them |
//! | a kernel manifest | a constant, and one per arch |
//! | a package file | its files' bytes × the share that zstd leaves of samples of them, archives uncompressed, its scripts, and constants for the package and forevery path |
//!
//! Samples are compressed at the level of kernel archives: code objects individually, as in an archive;
//! large files individually, and small ones in one stream, as in a payload. At most [`SAMPLES`] large and
//! as many small files of a package are sampled, evenly spaced, each by [`WINDOWS`] windows of [`WINDOW`]
//! bytes. The estimate ignores deduplicated code objects and repetitions over long distances, so it tends to be too
//! large. Payloads that are compressed with xz are smaller than estimated.
//!
//! Uncompressed archives and compressed code files pay off by effects that samples miss. Packages with either are
//! therefore compressed completely, at a lower level than in a build.

use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};

use rockpack_archive::deb;
use rockpack_core::compression::{Compression, Encoder, LongMatches, WINDOW_LOG_MAX, Workers};
use rockpack_core::content::{Content, DigestingWriter};
use rockpack_core::error::{Error, Result};
use rockpack_elf::kpack::BLOB_START;
use sha2::Sha256;

use super::Digests;
use crate::pack::{DEFAULT_LEVEL, Sources};
use rockpack_package::receipt::listing::{ListedMember, Size};
use rockpack_package::{Format, Package};
use rockpack_plan::FileSource;
use rockpack_plan::config::ArchiveLevel;

/// Maximum number of large files of a package, small ones, or code objects of an archive, that are sampled.
const SAMPLES: usize = 32;

/// Number of windows of a large file that are compressed as a sample.
const WINDOWS: u64 = 16;

/// Bytes of a window. The content of rocBLAS's databases changes along the file: fewer and larger windows
/// miss whole kinds of content.
const WINDOW: u64 = 256 << 10;

/// zstd level of payloads that are compressed whole. Of Debian's rocBLAS for gfx110x with uncompressed archives
/// (741 MB), it leaves 48.3 MB in 5 s, level 9 44.8 MB in 13 s.
const WHOLE_LEVEL: i32 = 3;

/// Bytes of a tar header, and the unit to which files are padded.
const TAR_BLOCK: u64 = 512;

/// The size of a file, with its share of the package.
#[derive(Default)]
pub(super) struct MeasuredFile {
    pub size: Size,
    /// The digest of the bytes, if it was requested and does not depend on compression.
    pub sha256: Option<[u8; 32]>,
    /// The digest of an archive's code objects in hex, if it was requested.
    pub code_sha256: Option<String>,
    pub compressed: u64,
    /// The bytes to compress for that estimate; `None` for files that are already compressed.
    content: Option<Content>,
    /// The code objects of an archive that are still to be compressed individually.
    code: Vec<Content>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EstimateMethod {
    Samples,
    /// By compressing all, with archives and code files in their default form.
    ByDefault,
    /// By compressing all, with code files as in the plan.
    CodeFiles,
    /// By compressing all, with code files as in the plan, and archives that do not compress code objects.
    Stored,
}

pub(super) struct Sizes<'a> {
    pub sources: Sources<'a>,
    pub digests: Digests,
    /// The configured levels of archives, in a `.deb` and in an `.rpm`.
    pub archive_levels: [Option<ArchiveLevel>; 2],
    /// The compressor of whole packages: a single one, because its window takes more than 100 MB.
    pub compressor: Mutex<Workers>,
}

impl Sizes<'_> {
    /// The method for a format of `package`: samples unless the settings change the form of code in it.
    pub fn method(&self, package: &Package<FileSource>, format: Format) -> EstimateMethod {
        let mut files = package.entries.iter().filter_map(|entry| entry.node.data());
        let [deb, rpm] = self.archive_levels;
        let is_stored = format.select(deb, rpm) == Some(ArchiveLevel::Stored);
        if is_stored && files.clone().any(|source| source.archive().is_some()) {
            return EstimateMethod::Stored;
        }
        let is_changed = files.any(|source| self.sources.is_compressed(source));
        if is_changed { EstimateMethod::CodeFiles } else { EstimateMethod::Samples }
    }

    /// Measures the file of `source`, without its share of the package.
    pub fn measure(&self, source: &FileSource, method: EstimateMethod) -> Result<MeasuredFile> {
        let is_plain = method == EstimateMethod::ByDefault && self.sources.is_compressed(source);
        let known =
            if is_plain { self.sources.original(source) } else { self.sources.known(source) };
        if let Some(content) = known? {
            let is_digested = self.digests == Digests::OfFiles;
            let sha256 = is_digested.then(|| content.sha256()).transpose()?;
            let (size, content) = (Size::exact(content.len()), Some(content));
            return Ok(MeasuredFile { size, sha256, content, ..MeasuredFile::default() });
        }
        let (mut code_sha256, mut content, mut code) = (None, None, Vec::new());
        let bytes = match source {
            FileSource::Archive { archives, arch } => {
                let kernels = self.sources.kernels_for(archives, arch)?;
                if self.digests == Digests::OfFiles {
                    code_sha256 = Some(self.sources.code_digest(archives, arch)?);
                }
                let contents: Vec<&Content> = kernels.iter().map(|it| &it.content).collect();
                // Bytes of an archive's row besides its key, and of that.
                let rows = kernels.iter().map(|it| 64 + it.binary.as_str().len() as u64);
                let of_code = match method {
                    EstimateMethod::Samples => {
                        let len = contents.iter().map(|content| content.len()).sum();
                        CompressedShare::each(&contents)?.apply(len)
                    }
                    EstimateMethod::Stored => content.insert(stored(&contents)).len(),
                    EstimateMethod::ByDefault | EstimateMethod::CodeFiles => {
                        code = contents.into_iter().cloned().collect();
                        // Counted when they are compressed.
                        0
                    }
                };
                of_code + rows.sum::<u64>()
            }
            FileSource::Manifest { archives } => {
                let archs = self.sources.archive_set(archives)?.archs.len() as u64;
                // Bytes of a manifest, and of each arch in it.
                64 + 112 * archs
            }
            other => return Err(Error::bug(format!("{other:?} has no bytes"))),
        };
        let size = Size::estimate(bytes);
        Ok(MeasuredFile { size, sha256: None, code_sha256, compressed: bytes, content, code })
    }

    /// Estimates the share of each of a package's files.
    pub fn compress<'m>(
        &self,
        files: impl Iterator<Item = &'m mut MeasuredFile>,
        method: EstimateMethod,
    ) -> Result<()> {
        if method != EstimateMethod::Samples {
            let compressed = self.compress_whole(&mut files.collect::<Vec<_>>());
            return compressed.map_err(|error| Error::io_without_path("compress a package", error));
        }
        let files = files.filter(|file| file.content.is_some());
        // Small ones are sampled whole. Most code objects are.
        let (mut small, mut large): (Vec<_>, Vec<_>) =
            files.partition(|file| file.size.bytes <= WINDOWS * WINDOW);
        estimate_by_share(&mut small, CompressedShare::together)?;
        // Of many files, the first of each few neighbours represents the others.
        let step = large.len().div_ceil(SAMPLES).max(1);
        for neighbours in large.chunks_mut(step) {
            estimate_by_share(neighbours, |contents| {
                CompressedShare::each(contents.get(..1).unwrap_or_default())
            })?;
        }
        Ok(())
    }

    /// Compresses all files, and estimates each by the total share. Also sets the size of archives.
    fn compress_whole(&self, files: &mut [&mut MeasuredFile]) -> io::Result<()> {
        let workers = self.compressor.lock().unwrap_or_else(PoisonError::into_inner);
        let long = LongMatches::NearCopies;
        let compression =
            Compression::Zstd { level: WHOLE_LEVEL, window_log: WINDOW_LOG_MAX, long };
        let counter = DigestingWriter::<_, Sha256>::new(io::sink());
        // For zstd, the largest number means an unknown size (`ZSTD_CONTENTSIZE_UNKNOWN`).
        let mut payload = Encoder::new(counter, compression, &workers, u64::MAX)?;
        let mut input = 0;
        for file in files.iter_mut() {
            for code in &file.code {
                let frame = zstd::encode_all(code.reader(), DEFAULT_LEVEL)?;
                file.size.bytes += frame.len() as u64;
                input += frame.len() as u64;
                payload.write_all(&frame)?;
            }
            if let Some(content) = &file.content {
                input += io::copy(&mut content.reader(), &mut payload)?;
            }
        }
        let share = CompressedShare { output: payload.finish()?.len, input };
        for file in files.iter_mut() {
            file.compressed = share.apply(file.size.bytes);
            file.content = None;
        }
        Ok(())
    }
}

/// The code objects as in an archive that does not compress them.
fn stored(code: &[&Content]) -> Content {
    let parts = code.iter().copied().flat_map(|code| {
        let end = code.len().next_multiple_of(BLOB_START);
        [code.clone(), Content::zeros(end - code.len())]
    });
    Content::concat(&Vec::from_iter(parts))
}

/// Estimates files of a payload by the share of all of them.
fn estimate_by_share(
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
    output: u64,
    input: u64,
}

impl CompressedShare {
    /// The share of code objects, each a frame of its own.
    fn each(contents: &[&Content]) -> Result<Self> {
        let mut share = Self { output: 0, input: 0 };
        for content in chosen(contents) {
            let sample = sample(content)?;
            share.add(&sample)?;
        }
        Ok(share)
    }

    /// The share of files in a payload, which is one stream.
    fn together(contents: &[&Content]) -> Result<Self> {
        let samples: Result<Vec<Vec<u8>>> = chosen(contents).map(sample).collect();
        let mut share = Self { output: 0, input: 0 };
        share.add(&samples?.concat())?;
        Ok(share)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let output = zstd::bulk::compress(bytes, DEFAULT_LEVEL)
            .map_err(|error| Error::library_failure("zstd refuses to compress", error))?;
        self.output += output.len() as u64;
        self.input += bytes.len() as u64;
        Ok(())
    }

    fn apply(&self, bytes: u64) -> u64 {
        let product = u128::from(bytes) * u128::from(self.output);
        let scaled = product.checked_div(u128::from(self.input)).unwrap_or(u128::from(bytes));
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
    // One reader, because each new one decodes a long bundle again.
    let mut reader = content.reader();
    for index in 0..count {
        let spaced = last.checked_div(count.saturating_sub(1)).unwrap_or(0).saturating_mul(index);
        // Windows that cover the whole file do not overlap.
        let start = spaced.max(done);
        done = len.min(spaced.saturating_add(WINDOW));
        if start < done {
            let skipped = reader.skip(start - reader.position());
            let read =
                skipped.and_then(|_| (&mut reader).take(done - start).read_to_end(&mut bytes));
            read.map_err(|error| Error::io_without_path("read a sample", error))?;
        }
    }
    Ok(bytes)
}

/// The bytes of a package file in addition to the compressed content of its files, `payload`.
pub(super) fn overhead(
    package: &Package<FileSource>,
    format: Format,
    members: &[ListedMember],
    payload: u64,
) -> u64 {
    // The constant is for the control archive of a `.deb`, or for lead, header, and the signature with its
    // reserved space of an `.rpm`. Of a path besides its name, a `.deb` has a checksum, an `.rpm` a row of its
    // header; both have a compressed entry in the payload.
    let (constant, member): (u64, u64) = format.select((3 << 10, 60), (5800, 120));
    let paths = members.iter().map(|m| member + name_len(&m.path, format) as u64).sum::<u64>();
    // Where the checksums are compressed, names are included.
    let compressed = 28 * members.len() as u64;
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
