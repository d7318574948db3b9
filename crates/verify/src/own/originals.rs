//! The device code of original binaries, read a second way.
//!
//! `verify --against` must not repeat a mistake of the split stage. So the walk over bundles, their tables and
//! compressed streams, the tie of wrappers to bundles and the choice between the targets of entry and header
//! are written again here, and sections and relocations are read in [`host_elf`](super::host_elf).
//!
//! Shared with the split, so that a mistake there is not noticed here:
//!
//! - `artifact::scan`: which files an artifact has, and where they are installed;
//! - `content`: reading, the search for the end of padding, digests;
//! - the decoders of zlib streams and zstd frames;
//! - `rockpack_elf::offload_binary`, whose files are packed whole: LLVM's own tools judge it in the tests;
//! - `rockpack_elf::code_object`: the flags of an ELF header as a target, the names of kernels. The
//!   tests of that module compare headers with foreign tools;
//! - `gfx`: the meaning of a target ID, the order of its features, and its place in
//!   the id of a bundle entry.
//!
//! It refuses bytes that are neither padding nor a bundle, bundles of more entries than there are targets or
//! whose entries have more bytes together than the bundle, wrappers that point elsewhere than to a
//! bundle, and more of them for one bundle than are looked for.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::{Target, entry_target_text};
use rockpack_elf::code_object::{self, CodeObjectHeader, FeatureState};
use rockpack_elf::offload_bundle::{ENTRY_LIMIT, ID_LIMIT};
use rockpack_elf::{ccob, offload_binary, offload_bundle};

use crate::own::Sha;
use crate::own::archive::check_linked;
use crate::own::compressed_bundle::{read_compressed, read_u64};
use crate::own::elf_file::{addresses_of, bytes_of};
use crate::own::host_elf::{HIPF, HostElf};

/// Most entries that wrappers name which another wrapper named before, as all wrappers of what was
/// linked by `-fgpu-rdc` do. Every one of them is looked for in the packages.
const REPEATED_LIMIT: usize = 1 << 20;

/// One device entry of a bundle, or a code object elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeviceEntry {
    /// The id as written; empty for a code object in a file of its own or in a kernel archive.
    pub(crate) id: String,
    /// The target it has to be found under, e.g. `gfx90a:xnack+`.
    pub(crate) target: String,
    pub(crate) size: u64,
    pub(crate) sha256: Sha,
    /// Hashes of the names of its kernels: names are long, and only compared.
    pub(crate) kernels: BTreeSet<u64>,
}

/// The device code of one binary: entries by wrapper index; wrappers may share a bundle. Nothing loads a bundle
/// without a wrapper.
pub(crate) type DeviceCode = Vec<Arc<Vec<DeviceEntry>>>;

/// The device code of the host ELF `content`; `None` if it holds none.
pub(crate) fn read(content: &Content, elf: &HostElf) -> Result<Option<DeviceCode>> {
    let Some(section) = &elf.fatbin else { return Ok(None) };
    let (address, bytes) = (addresses_of(section).start, bytes_of(section));
    let place = content.place(bytes.start);
    let walked = walk(&content.slice(bytes)?)?;
    if walked.is_empty() {
        return Ok(None);
    }
    let bundles: BTreeMap<u64, Arc<Vec<DeviceEntry>>> =
        walked.into_iter().map(|(at, entries)| (at, Arc::new(entries))).collect();
    let mut device = DeviceCode::new();
    let mut used = BTreeSet::new();
    let mut repeated = 0;
    for wrapper in elf.wrappers.iter().filter(|wrapper| wrapper.magic == HIPF) {
        let at = wrapper.pointer.wrapping_sub(address);
        let entries = bundles.get(&at).ok_or_else(|| {
            let message = format!("a wrapper points to {:#x}, where no bundle is", wrapper.pointer);
            Error::malformed(message).at(&place)
        })?;
        device.push(entries.clone());
        if !used.insert(at) {
            repeated += entries.len();
        }
        if repeated > REPEATED_LIMIT {
            let message = format!("its wrappers name {REPEATED_LIMIT} entries and more again");
            let hint = "link fewer wrappers with one bundle, or the file is damaged";
            return Err(Error::new(Kind::Limit, message).at(&place).hint(hint));
        }
    }
    Ok(Some(device))
}

/// The code objects of a file that consists of bundles.
pub(crate) fn bundles(content: &Content) -> Result<Vec<DeviceEntry>> {
    Ok(walk(content)?.into_values().flatten().collect())
}

/// The code objects of a file that is no host binary: the file itself, or those of the bundles
/// that it consists of; none if it is not device code.
pub(crate) fn loose(content: &Content) -> Result<Vec<DeviceEntry>> {
    if code_object::is_code_object(content)? {
        return Ok(vec![entry("", content)?]);
    }
    if content.starts_with(offload_binary::MAGIC)?
        || content.starts_with(ccob::MAGIC)?
        || content.starts_with(offload_bundle::MAGIC)?
    {
        bundles(content)
    } else {
        Ok(Vec::new())
    }
}

/// The entries of every bundle by its offset. One without bytes does not count: libraries load nothing from it.
fn walk(fatbin: &Content) -> Result<BTreeMap<u64, Vec<DeviceEntry>>> {
    let mut bundles = BTreeMap::new();
    let mut at = 0;
    // Padding is zero: a bundle starts where zeros end.
    while let Some(start) = fatbin.first_besides(at..fatbin.len(), &[0])? {
        let rest = fatbin.slice(start..fatbin.len())?;
        let (mut entries, extent) = bundle(&rest)?;
        entries.retain(|entry| entry.size > 0);
        bundles.insert(start, entries);
        at = start.saturating_add(extent.max(1));
    }
    Ok(bundles)
}

/// Entries of the bundle at the start of `rest`, and how far it reaches.
fn bundle(rest: &Content) -> Result<(Vec<DeviceEntry>, u64)> {
    if rest.starts_with(ccob::MAGIC)? {
        let (bundle, extent) = read_compressed(rest)?;
        Ok((plain(&bundle)?.0, extent))
    } else if rest.starts_with(offload_bundle::MAGIC)? {
        plain(rest)
    } else if rest.starts_with(offload_binary::MAGIC)? {
        let binary = offload_binary::parse(rest)?;
        let images = binary.entries.iter().filter(|image| !image.id.text.starts_with("host-"));
        let entries: Result<_> = images.map(|it| entry(&it.id.text, &it.content)).collect();
        Ok((entries?, binary.len))
    } else {
        Err(Error::malformed("neither padding nor a bundle").at(&rest.place(0)))
    }
}

/// Entries of the uncompressed bundle at the start of `bundle`, and how far it reaches.
fn plain(bundle: &Content) -> Result<(Vec<DeviceEntry>, u64)> {
    let count = read_u64(bundle, 24)?;
    if count > ENTRY_LIMIT {
        let message = format!("{count} entries are more than there are targets");
        let hint = "the file is damaged: build it or copy it again";
        return Err(Error::new(Kind::Limit, message).at(&bundle.place(24)).hint(hint));
    }
    let mut at = 32;
    let mut extent = at;
    let mut entries = Vec::new();
    // Entries that share bytes could have more of them than the bundle, which ends before the next one
    // starts: what is behind it is read again there.
    let mut total = 0_u64;
    for _ in 0..count {
        let [offset, size, id_len] = [at, at + 8, at + 16].map(|at| read_u64(bundle, at));
        let (offset, size) = (offset?, size?);
        let id_end = (at + 24).saturating_add(id_len?);
        let id = bundle.read_vec(at + 24..id_end, ID_LIMIT, "entry id")?;
        let id = String::from_utf8_lossy(&id).into_owned();
        let body = bundle.slice(offset..offset.saturating_add(size))?;
        extent = extent.max(id_end).max(offset.saturating_add(size));
        total = total.saturating_add(size);
        if total > extent {
            let message = "the entries of a bundle have more bytes together than it has so far";
            let hint = "no tool writes entries that overlap: build the file or copy it again";
            return Err(Error::malformed(message).at(&bundle.place(at)).hint(hint));
        }
        at = id_end;
        if id.split('-').next() != Some("host") {
            entries.push(entry(&id, &body)?);
        }
    }
    Ok((entries, extent))
}

pub(crate) fn entry(id: &str, body: &Content) -> Result<DeviceEntry> {
    // In the spelling that archives have, whatever the compiler wrote.
    let (mut target, mut kernels) = (entry_target_text(id), BTreeSet::new());
    if code_object::is_code_object(body)? {
        check_linked(body)?;
        let header = code_object::read_header(body)?;
        target = stated(target.parse().ok(), &header).map_or(target, |target| target.to_string());
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let names = code_object::kernel_names(body)?;
        kernels = names.iter().map(|name| hasher.hash_one(name)).collect();
    }
    let (size, sha256) = (body.len(), body.sha256()?);
    Ok(DeviceEntry { id: id.to_owned(), target, size, sha256, kernels })
}

/// The target of a code object: what its header states, and of the entry what the header leaves
/// open. `None` if neither names a known one.
fn stated(claimed: Option<Target>, header: &CodeObjectHeader) -> Option<Target> {
    let Some(own) = &header.target else { return claimed };
    let Some(claimed) = claimed else { return Some(own.clone()) };
    // The flags of `gfx1250-strict` are those of gfx1250; generic targets have their own.
    let (name, plain) = (claimed.base().as_str(), own.base().as_str());
    let qualifier = name.strip_prefix(plain).filter(|rest| rest.starts_with('-'));
    let qualified = qualifier.is_some() && !claimed.base().is_generic();
    let base = if qualified { claimed.base() } else { own.base() };
    let open = claimed.features().iter().filter(|(name, _)| match name.as_str() {
        "xnack" => matches!(header.xnack, FeatureState::Any | FeatureState::Unknown),
        "sramecc" => matches!(header.sramecc, FeatureState::Any | FeatureState::Unknown),
        _ => true,
    });
    Some(Target::new(base.clone(), own.features().iter().chain(open).cloned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(entries: &[(&str, u64, u64)], len: usize) -> Content {
        let mut bytes = offload_bundle::MAGIC.to_vec();
        bytes.extend((entries.len() as u64).to_le_bytes());
        for (id, offset, size) in entries {
            for word in [*offset, *size, id.len() as u64] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(id.bytes());
        }
        bytes.resize(len, 1);
        Content::of_bytes(bytes)
    }

    /// Whatever their order, they have no more bytes together than there are up to the end of one.
    #[test]
    fn entries_of_a_bundle_are_read_once() {
        let (host, device) = ("host-x86_64-unknown-linux--", "hipv4-amdgcn-amd-amdhsa--gfx90a");
        let apart = [
            (device, 768, 256),
            (host, 0, 0),
            (device, 256, 256),
            (device, 512, 256),
            (host, 0, 0),
        ];
        let (entries, extent) = plain(&bundle(&apart, 4096)).unwrap();
        assert_eq!((entries.len(), extent), (3, 1024));
        let shared = [(device, 512, 512), (device, 512, 512), (device, 512, 512)];
        assert!(plain(&bundle(&shared[..2], 4096)).is_ok());
        let error = plain(&bundle(&shared, 4096)).unwrap_err();
        assert!(error.message().contains("more bytes together"), "{error}");
    }
}
