//! The lists of an rpm repository.
//!
//! The packages of a list are compressed in independent chunks of one gzip stream. A chunk whose packages are unchanged
//! is copied from the earlier list. Reading the headers of all packages would take much longer, and a state with all
//! texts and paths would be larger than the lists.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::mem;
use std::ops::Range;

use flate2::Crc;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use rayon::prelude::*;
use rockpack_archive::rpm_md::{DataFile, LISTS, document};
use rockpack_core::compression::Method;
use rockpack_core::content::{Content, hex};
use rockpack_core::error::{Error, Result, ResultExt};
use rockpack_core::run::threads;
use rockpack_package::indexed::IndexedPackage;
use sha2::{Digest, Sha256};

use super::channel_files::ChannelFiles;
use super::indexes::{GZIP, compress, ending, not_compressed};
use super::next::Publication;
use super::state::{PoolRecord, PoolRecords};
use super::store::Store;

/// Fewest packages in a chunk. Lists of smaller repositories are the same as without chunks.
const CHUNK_MIN: usize = 256;

/// RFC 1951, section 3.2.6: an empty block, the last one.
const LAST_BLOCK: &[u8] = &[3, 0];

/// RFC 1952, section 2.3: no name, no time, unknown operating system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// All chunks except the last: SHA-256, in hex, of their input → the range of compressed bytes in each list.
pub(super) type Chunks = BTreeMap<String, Vec<Range<u64>>>;

type Packed = (Vec<u8>, Vec<u8>);

type ListedRpm<'a> = (&'a str, &'a PoolRecord);

/// Adds the lists of the packages in `records`, under names with their digest.
pub(super) fn add_rpm_lists(
    run: &Publication<'_>,
    records: &PoolRecords,
    files: &mut ChannelFiles,
) -> Result<()> {
    let (method, rpms, earlier) = (run.options.list_method, sorted(records), earlier_lists(run));
    let frames = LISTS.map(|list| document(list, rpms.len(), None)).into_iter();
    let frames = frames.collect::<Result<Vec<_>>>()?;
    // zstd compresses a list as a whole.
    let mut chunks = if method == Method::Gzip { chunks(&rpms) } else { vec![&*rpms] };
    if chunks.len() != 1 {
        // The number of packages, which changes.
        chunks.insert(0, &[]);
    }
    let last = chunks.len() - 1;
    let make = |(at, rpms): &(usize, &[ListedRpm<'_>])| -> Result<(Option<String>, Vec<Packed>)> {
        let source = (*at < last && !rpms.is_empty()).then(|| source(rpms));
        let ranges = source.as_ref().and_then(|source| run.earlier.listed.chunks.get(source));
        if let Some((lists, ranges)) = earlier.as_ref().zip(ranges) {
            return Ok((source, lists.iter().zip(ranges).map(unpack).collect::<Result<_>>()?));
        }
        let head = |[head, ..]: &[Vec<u8>; 3]| if *at == 0 { head.clone() } else { Vec::new() };
        let mut texts: Vec<Vec<u8>> = frames.iter().map(head).collect();
        for &(path, record) in *rpms {
            let elements = elements(run.store, path, &record.indexed).file(path)?;
            let own = elements.split(|byte| *byte == 0);
            texts.iter_mut().zip(own).for_each(|(text, own)| text.extend(own));
        }
        let pack = |(mut text, [_, _, foot]): (Vec<u8>, &[Vec<u8>; 3])| {
            text.extend(foot.iter().filter(|_| *at == last));
            let packed = match method {
                Method::Gzip => deflate(&text, *at == last).map_err(not_compressed)?,
                method => compress(&text, method)?,
            };
            Ok((text, packed))
        };
        Ok((source, texts.into_iter().zip(&frames).map(pack).collect::<Result<_>>()?))
    };
    let mut lists = LISTS.map(|_| ListWriter::new(method));
    for batch in chunks.into_iter().enumerate().collect::<Vec<_>>().chunks(threads::count()) {
        for made in batch.par_iter().map(make).collect::<Vec<_>>() {
            let (source, packed) = made?;
            let add = |(list, packed): (&mut ListWriter, _)| list.add(packed);
            let ranges = lists.iter_mut().zip(packed).map(add).collect();
            files.listed.chunks.extend(source.map(|source| (source, ranges)));
        }
    }
    for (list, writer) in LISTS.into_iter().zip(lists) {
        let (file, bytes) = writer.finish(list, method);
        files.hidden.push((file.path.clone(), bytes.into()));
        files.listed.repomd.push(file);
    }
    Ok(())
}

/// The packages by name, version and architecture.
fn sorted(records: &PoolRecords) -> Vec<ListedRpm<'_>> {
    let mut rpms: Vec<ListedRpm<'_>> =
        records.iter().map(|(path, record)| (path.as_str(), &**record)).collect();
    rpms.sort_by(|(a_path, a), (b_path, b)| {
        let (a, b) = (&a.indexed.facts, &b.indexed.facts);
        a.name().cmp(b.name()).then_with(|| a.compare_versions(b)).then_with(|| a_path.cmp(b_path))
    });
    rpms
}

/// The digest of a package decides whether it ends a chunk, so that an added package changes only its own chunk.
fn chunks<'r, 'a>(rpms: &'r [ListedRpm<'a>]) -> Vec<&'r [ListedRpm<'a>]> {
    let mut count = 0;
    let chunks = rpms.split_inclusive(|(_, record)| {
        count += 1;
        let is_end = count >= CHUNK_MIN && record.indexed.sha256.starts_with('0');
        count = if is_end { 0 } else { count };
        is_end
    });
    chunks.collect()
}

/// The digest of a chunk's input, with the version of rockpack, which may render elements in another way.
fn source(rpms: &[ListedRpm<'_>]) -> String {
    let mut digest = Sha256::new_with_prefix(env!("CARGO_PKG_VERSION"));
    for (path, record) in rpms {
        digest.update(format!("\n{path}\n{}", record.indexed.sha256));
    }
    hex(&digest.finalize())
}

/// The elements recorded when the package was read, or those read again from the pool.
fn elements(store: &dyn Store, path: &str, indexed: &IndexedPackage) -> Result<Vec<u8>> {
    match indexed.elements.unpack()? {
        Some(elements) => Ok(elements),
        None => Ok(indexed.reread(&store.open(path)?)?.elements.unpack()?.unwrap_or_default()),
    }
}

/// The lists of the last publication; `None` if any has changed, and in a run that checks.
fn earlier_lists(run: &Publication<'_>) -> Option<Vec<Content>> {
    let lists = run.earlier.listed.repomd.iter().map(|file| {
        let list = run.store.open(&file.path).ok()?;
        let is_it = list.digest().is_ok_and(|digest| digest.to_string() == file.sha256);
        Some(list).filter(|_| is_it && !run.options.check)
    });
    lists.collect()
}

fn unpack((list, range): (&Content, &Range<u64>)) -> Result<Packed> {
    let packed = list.read_vec(range.clone(), u64::MAX, "a chunk of a list")?;
    let mut text = Vec::new();
    let unpacked = DeflateDecoder::new(packed.chain(LAST_BLOCK)).read_to_end(&mut text);
    unpacked.map_err(|error| Error::io_without_path("decompress an earlier list", error))?;
    Ok((text, packed))
}

fn deflate(text: &[u8], is_last: bool) -> io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), GZIP);
    encoder.write_all(text)?;
    if is_last {
        return encoder.finish();
    }
    encoder.flush()?;
    Ok(mem::take(encoder.get_mut()))
}

#[derive(Default)]
struct ListWriter {
    digest: Sha256,
    crc: Crc,
    size: u64,
    bytes: Vec<u8>,
}

impl ListWriter {
    fn new(method: Method) -> Self {
        let bytes = if method == Method::Gzip { GZIP_HEADER.to_vec() } else { Vec::new() };
        Self { bytes, ..Self::default() }
    }

    /// Adds a part, and returns the range of its compressed bytes.
    fn add(&mut self, (text, packed): Packed) -> Range<u64> {
        self.digest.update(&text);
        self.crc.update(&text);
        self.size += text.len() as u64;
        let start = self.bytes.len() as u64;
        self.bytes.extend(packed);
        start..self.bytes.len() as u64
    }

    fn finish(mut self, list: &str, method: Method) -> (DataFile, Vec<u8>) {
        if method == Method::Gzip {
            // RFC 1952, section 2.3.1: the CRC, and the size modulo 2^32.
            self.bytes.extend([self.crc.sum(), self.crc.amount()].map(u32::to_le_bytes).concat());
        }
        let sha256 = hex(&Sha256::digest(&self.bytes));
        let file = DataFile {
            path: format!("repodata/{sha256}-{list}.xml{}", ending(method)),
            kind: list.to_owned(),
            sha256,
            size: self.bytes.len() as u64,
            open_sha256: hex(&self.digest.finalize()),
            open_size: self.size,
        };
        (file, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_any_size_are_followed_by_others() {
        // Without repetitions: the compressed bytes are as many.
        let noise: Vec<u8> = (0..2500_u32).flat_map(|n| Sha256::digest(n.to_le_bytes())).collect();
        for len in (0..noise.len()).step_by(1001) {
            let packed = deflate(&noise[..len], false).unwrap();
            let range = 0..packed.len() as u64;
            let (text, _) = unpack((&Content::of_bytes(packed), &range)).unwrap();
            assert!(text == noise[..len], "{len}");
        }
    }
}
