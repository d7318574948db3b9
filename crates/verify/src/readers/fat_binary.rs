//! A second implementation of the reader of device code in fat binaries.
//!
//! `verify --against` must not repeat a mistake of the split stage. So bundles, their tables and compressed streams, the
//! mapping of wrappers to bundles and the choice between the targets of entry and header are implemented again here,
//! and sections and relocations in [`host_elf`](super::host_elf).
//!
//! Shared with the split, whose mistakes there are not detected:
//!
//! - `artifact::scan`: the files of an artifact and their install paths;
//! - `content`: reading, the search for the end of padding, digests;
//! - the decoders of zlib streams and zstd frames;
//! - `rockpack_elf::offload_binary`, whose files are packed whole: tests compare it with LLVM's tools;
//! - `rockpack_elf::code_object`: the target in the flags of an ELF header, the names of kernels. Tests of that module
//!   compare headers with other tools;
//! - `gfx`: the meaning of a target ID, the order of its features, and its position in the id of a bundle entry.
//!
//! Refused: bytes that are neither padding nor a bundle, bundles with more entries than there are targets or whose
//! entries exceed the size of the bundle, wrappers that do not point to a bundle, and too many wrappers of one bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::{Target, entry_target_text};
use rockpack_elf::code_object::{self, CodeObjectHeader, FeatureState};
use rockpack_elf::offload_bundle::{ENTRY_LIMIT, ID_LIMIT};
use rockpack_elf::{ccob, offload_binary, offload_bundle};

use crate::readers::Sha;
use crate::readers::archive::check_linked;
use crate::readers::compressed_bundle::{read_compressed, read_u64};
use crate::readers::elf_file::{addresses_of, bytes_of};
use crate::readers::host_elf::{HIPF, HostElf};

/// Most repeated entries of wrappers that share a bundle, as all wrappers do after `-fgpu-rdc`. Every one is compared
/// with the packages.
const REPEATED_LIMIT: usize = 1 << 20;

/// One device entry of a bundle, or a code object elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeviceEntry {
    /// The id as written; empty for a code object in a separate file or in a kernel archive.
    pub(crate) id: String,
    /// The target that must be listed for it, e.g. `gfx90a:xnack+`.
    pub(crate) target: String,
    pub(crate) size: u64,
    pub(crate) sha256: Sha,
    /// Hashes of the kernel names, which are long and only compared.
    pub(crate) kernels: BTreeSet<u64>,
}

/// The device code of one binary: entries by wrapper index. Wrappers may share a bundle; bundles without a wrapper are
/// never loaded.
pub(crate) type DeviceCode = Vec<Arc<Vec<DeviceEntry>>>;

/// The device code of the host ELF file `content`; `None` if there is none.
pub(crate) fn read(content: &Content, elf: &HostElf) -> Result<Option<DeviceCode>> {
    let Some(section) = &elf.fatbin else { return Ok(None) };
    let (address, bytes) = (addresses_of(section).start, bytes_of(section));
    let place = content.place(bytes.start);
    let walked = bundles_by_offset(&content.slice(bytes)?)?;
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
            let message =
                format!("a wrapper points to {:#x}, but no bundle is there", wrapper.pointer);
            Error::malformed(message).at(&place)
        })?;
        device.push(entries.clone());
        if !used.insert(at) {
            repeated += entries.len();
        }
        if repeated > REPEATED_LIMIT {
            let message = format!("its wrappers repeat more than {REPEATED_LIMIT} entries");
            let hint = "link fewer wrappers with one bundle, or the file is damaged";
            return Err(Error::new(Kind::Limit, message).at(&place).hint(hint));
        }
    }
    Ok(Some(device))
}

/// The code objects of a file that consists of bundles.
pub(crate) fn bundles(content: &Content) -> Result<Vec<DeviceEntry>> {
    Ok(bundles_by_offset(content)?.into_values().flatten().collect())
}

/// The code objects of a file that is not a host binary: the file itself, or those of the bundles that it consists of.
pub(crate) fn standalone_code(content: &Content) -> Result<Vec<DeviceEntry>> {
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

/// The entries of every bundle by its offset, without empty entries, from which nothing is loaded.
fn bundles_by_offset(fatbin: &Content) -> Result<BTreeMap<u64, Vec<DeviceEntry>>> {
    let mut bundles = BTreeMap::new();
    let mut at = 0;
    // Padding is zero, so a bundle starts at the first non-zero byte.
    while let Some(start) = fatbin.first_other_byte(at..fatbin.len(), &[0])? {
        let rest = fatbin.slice(start..fatbin.len())?;
        let (mut entries, extent) = bundle(&rest)?;
        entries.retain(|entry| entry.size > 0);
        bundles.insert(start, entries);
        at = start.saturating_add(extent.max(1));
    }
    Ok(bundles)
}

/// Entries and length of the bundle at the start of `rest`.
fn bundle(rest: &Content) -> Result<(Vec<DeviceEntry>, u64)> {
    if rest.starts_with(ccob::MAGIC)? {
        let (bundle, extent) = read_compressed(rest)?;
        Ok((uncompressed_bundle(&bundle)?.0, extent))
    } else if rest.starts_with(offload_bundle::MAGIC)? {
        uncompressed_bundle(rest)
    } else if rest.starts_with(offload_binary::MAGIC)? {
        let binary = offload_binary::parse(rest)?;
        let images = binary.entries.iter().filter(|image| !image.id.text.starts_with("host-"));
        let entries: Result<_> = images.map(|it| entry(&it.id.text, &it.content)).collect();
        Ok((entries?, binary.len))
    } else {
        Err(Error::malformed("neither padding nor a bundle").at(&rest.place(0)))
    }
}

/// Entries and length of the uncompressed bundle at the start of `bundle`.
fn uncompressed_bundle(bundle: &Content) -> Result<(Vec<DeviceEntry>, u64)> {
    let count = read_u64(bundle, 24)?;
    if count > ENTRY_LIMIT {
        let message = format!("{count} entries are more than there are targets");
        let hint = "the file is damaged: build it or copy it again";
        return Err(Error::new(Kind::Limit, message).at(&bundle.place(24)).hint(hint));
    }
    let mut at = 32;
    let mut extent = at;
    let mut entries = Vec::new();
    // Entries that share bytes could have more bytes than the bundle. It ends before the next one, so bytes after it
    // would be read again.
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
            let message = "the entries of a bundle have more bytes together than the bundle";
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
    // In the spelling of archives, whatever the compiler wrote.
    let (mut target, mut kernels) = (entry_target_text(id), BTreeSet::new());
    if code_object::is_code_object(body)? {
        check_linked(body)?;
        let header = code_object::read_header(body)?;
        target = effective_target(target.parse().ok(), &header)
            .map_or(target, |target| target.to_string());
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let names = code_object::kernel_names(body)?;
        kernels = names.iter().map(|name| hasher.hash_one(name)).collect();
    }
    let (size, sha256) = (body.len(), body.sha256()?);
    Ok(DeviceEntry { id: id.to_owned(), target, size, sha256, kernels })
}

/// The target of a code object: that of its header, completed by features of the entry that the header leaves open.
/// `None` if neither is known.
fn effective_target(claimed: Option<Target>, header: &CodeObjectHeader) -> Option<Target> {
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

    /// Their total size is limited by the end of the last one, whatever their order.
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
        let (entries, extent) = uncompressed_bundle(&bundle(&apart, 4096)).unwrap();
        assert_eq!((entries.len(), extent), (3, 1024));
        let shared = [(device, 512, 512), (device, 512, 512), (device, 512, 512)];
        assert!(uncompressed_bundle(&bundle(&shared[..2], 4096)).is_ok());
        let error = uncompressed_bundle(&bundle(&shared, 4096)).unwrap_err();
        assert!(error.message().contains("more bytes together"), "{error}");
    }
}
