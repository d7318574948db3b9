//! The device code of original binaries, read a second way.
//!
//! `verify --against` compares packages with the artifacts they were made from. To be worth
//! anything it must not repeat a mistake of the split stage, so this walk of `.hip_fatbin` shares
//! no code with it: bundles are decoded to memory one at a time and cut up here.

use std::collections::BTreeMap;
use std::io::Read;

use super::host_elf::{HIPF, HostElf};
use crate::content::Content;
use crate::error::{Error, Result};

const BUNDLE_MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED_MAGIC: &[u8] = b"CCOB";
/// Longest decoded bundle that is taken apart in memory.
const BUNDLE_LIMIT: u64 = 4 << 30;

/// One device entry of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DeviceEntry {
    /// The entry id's target part, e.g. `gfx90a:xnack+`.
    pub(super) target: String,
    pub(super) sha256: [u8; 32],
    pub(super) size: u64,
}

/// The device code of one binary.
#[derive(Debug, Default)]
pub(super) struct Device {
    /// Entries by wrapper index.
    pub(super) by_wrapper: Vec<Vec<DeviceEntry>>,
    /// Entries of bundles without a wrapper.
    pub(super) unreferenced: Vec<DeviceEntry>,
}

/// Everything in the fat binary `content`; `None` if it holds no device code.
pub(super) fn read(content: &Content, elf: &HostElf) -> Result<Option<Device>> {
    let Some(section) = elf.fatbin else {
        return Ok(None);
    };
    let Some(offset) = section.offset else {
        return Ok(None);
    };
    let fatbin = content.slice(offset..offset.saturating_add(section.size))?;
    let mut bundles = walk(&fatbin)?;
    let mut device = Device::default();
    let mut used = Vec::new();
    for wrapper in elf.wrappers.iter().filter(|w| w.magic == HIPF) {
        let at = wrapper.pointer.wrapping_sub(section.address);
        let entries = bundles.get(&at).ok_or_else(|| {
            Error::malformed(format!(
                "wrapper points to {:#x}, where no bundle starts",
                wrapper.pointer
            ))
            .at(&content.place(offset))
        })?;
        device.by_wrapper.push(entries.clone());
        used.push(at);
    }
    bundles.retain(|at, _| !used.contains(at));
    device.unreferenced = bundles.into_values().flatten().collect();
    Ok(Some(device))
}

/// The entries of every bundle by its offset in the section.
fn walk(fatbin: &Content) -> Result<BTreeMap<u64, Vec<DeviceEntry>>> {
    let mut bundles = BTreeMap::new();
    let mut at = 0;
    while let Some(start) = next_non_zero(fatbin, at)? {
        // Padding is zero and bundles are at least 8-aligned: the magic starts where zeros end.
        let rest = fatbin.slice(start..fatbin.len())?;
        let mut magic = [0; 24];
        let len = magic.len().min(usize::try_from(rest.len()).unwrap_or(usize::MAX));
        rest.read_at(0, &mut magic[..len])?;
        let (entries, extent) = if magic.starts_with(COMPRESSED_MAGIC) {
            compressed(&rest)?
        } else if magic == *BUNDLE_MAGIC {
            plain(&rest)?
        } else {
            return Err(Error::malformed("neither padding nor a bundle").at(&rest.place(0)));
        };
        bundles.insert(start, entries);
        at = start + extent.max(1);
    }
    Ok(bundles)
}

fn next_non_zero(content: &Content, from: u64) -> Result<Option<u64>> {
    if from >= content.len() {
        return Ok(None);
    }
    let mut reader = content.slice(from..content.len())?.reader();
    let mut window = vec![0; 64 << 10];
    let mut at = from;
    loop {
        let len = reader.read_window(&mut window)?;
        if let Some(index) = window[..len].iter().position(|byte| *byte != 0) {
            return Ok(Some(at + index as u64));
        }
        if len == 0 {
            return Ok(None);
        }
        at += len as u64;
    }
}

fn word(content: &Content, at: u64) -> Result<u64> {
    Ok(u64::from_le_bytes(content.read_array(at)?))
}

/// Entries of the uncompressed bundle at the start of `bundle`, and how far it reaches.
fn plain(bundle: &Content) -> Result<(Vec<DeviceEntry>, u64)> {
    let count = word(bundle, 24)?;
    let mut at = 32;
    let mut extent = at;
    let mut entries = Vec::new();
    for _ in 0..count {
        let (offset, size, id_len) =
            (word(bundle, at)?, word(bundle, at + 8)?, word(bundle, at + 16)?);
        let id_end = (at + 24).saturating_add(id_len);
        let id = String::from_utf8_lossy(&bundle.read_vec(at + 24..id_end, 4096, "entry id")?)
            .into_owned();
        at = id_end;
        extent = extent.max(at).max(offset.saturating_add(size));
        if id.starts_with("host") {
            continue;
        }
        let target = id.rsplit_once("--").map_or(id.as_str(), |(_, target)| target).to_owned();
        let body = bundle.slice(offset..offset.saturating_add(size))?;
        entries.push(DeviceEntry { target, sha256: body.sha256()?, size });
    }
    Ok((entries, extent))
}

/// Entries of the compressed bundle at the start of `bundle`, and how far it reaches.
fn compressed(bundle: &Content) -> Result<(Vec<DeviceEntry>, u64)> {
    let [v0, v1, m0, m1] = bundle.read_array(4)?;
    let (version, method) = (u16::from_le_bytes([v0, v1]), u16::from_le_bytes([m0, m1]));
    let half = |at| bundle.read_array(at).map(|b| u64::from(u32::from_le_bytes(b)));
    let (header, total, size) = match version {
        1 => (20, None, half(8)?),
        2 => (24, Some(half(8)?), half(12)?),
        3 => (32, Some(word(bundle, 8)?), word(bundle, 16)?),
        _ => return Err(Error::unsupported(format!("CCOB version {version}")).at(&bundle.place(4))),
    };
    let end = total.unwrap_or(bundle.len());
    let mut stream = Counting { inner: bundle.slice(header..end)?.reader(), count: 0 };
    // Version 1 ends where its stream ends: there the decoder must not read a byte ahead.
    let ahead = if total.is_some() { 64 << 10 } else { 1 };
    let mut buffered = std::io::BufReader::with_capacity(ahead, &mut stream);
    let bytes = match method {
        0 => inflate(flate2::bufread::ZlibDecoder::new(&mut buffered), size),
        1 => zstd::stream::read::Decoder::with_buffer(&mut buffered)
            .map_err(|e| Error::malformed("cannot decode").cause(e))
            .and_then(|decoder| inflate(decoder.single_frame(), size)),
        _ => return Err(Error::unsupported(format!("CCOB method {method}")).at(&bundle.place(6))),
    };
    let bytes = bytes.map_err(|error| error.at(&bundle.place(0)))?;
    let extent = total.unwrap_or(header + stream.count);
    Ok((plain(&Content::of_bytes(bytes))?.0, extent))
}

fn inflate(decoder: impl Read, size: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    decoder
        .take(BUNDLE_LIMIT.min(size.saturating_add(1)))
        .read_to_end(&mut bytes)
        .map_err(|error| Error::malformed("cannot decode the compressed bundle").cause(error))?;
    if bytes.len() as u64 == size {
        return Ok(bytes);
    }
    Err(Error::malformed(format!("decodes to {} bytes or more, announced are {size}", bytes.len())))
}

struct Counting<R> {
    inner: R,
    count: u64,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = self.inner.read(buffer)?;
        self.count += len as u64;
        Ok(len)
    }
}
