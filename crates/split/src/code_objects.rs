//! The code objects of a bundle, each checked against its own header.
//!
//! The entry id states the target that the compiler driver requested, the ELF header the one that the
//! compiler wrote. If they disagree, the header decides; if the header does not say, the id does.
//!
//! Also the code objects of a file that is packed unchanged: the file itself, the entries of its offload bundles,
//! or the rows of the kernel archive that it is.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rockpack_core::content::{Content, Sha256Digest};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::gfx::{self, BaseArch, Target, entry_target_text};
use rockpack_core::tree::TreePath;
use rockpack_elf::code_object::{self, CodeObjectHeader, FeatureState};
use rockpack_elf::fatbin::{self, Bundles, FatbinBundle};
use rockpack_elf::kpack::{self, KpackReader};
use rockpack_elf::offload_bundle::{Bundle, BundleEntry, BundleEntryKind, EntryId};
use rockpack_report::{Claimant, RepeatedCode, found};

use super::archives::{DistinctRow, distinct_rows};
use super::parts::{CodeObject, Notes};

/// The code objects of a bundle, which is part of the file at `path`.
pub(super) fn code_objects(
    FatbinBundle { bundle, compression, extent, .. }: &FatbinBundle,
    path: &TreePath,
    notes: &mut Notes,
) -> Result<Vec<CodeObject>> {
    let mut found: Vec<CodeObject> = Vec::new();
    let mut faults = Faults::default();
    let sizes = bundle.entries.iter().map(|entry| entry.content.len());
    let compressed = compression.as_ref().map(|_| (*extent, sizes.sum::<u64>()));
    for entry in &bundle.entries {
        let code = faults.keep(code_object(entry, path, notes)).flatten();
        let Some(mut code) = code else { continue };
        code.stored_size = compressed.and_then(|whole| stored_share(code.content.len(), whole));
        match faults.keep(is_duplicate(&found, &code, bundle)) {
            Some(true) => {
                let (file, target) = (notes.file(path), code.target);
                let repeated = RepeatedCode::Bundle { file, target };
                notes.add(found::DuplicateCode { repeated });
            }
            Some(false) => {
                if faults.keep(entry.content.budget().charge_code_object(0)).is_none() {
                    break;
                }
                found.push(code);
            }
            None => {}
        }
    }
    faults.finish().map(|()| found)
}

/// The share of `size` out of `total` bytes in the compressed bytes. Padding compresses to almost nothing, so it has no
/// share.
fn stored_share(size: u64, (compressed, total): (u64, u64)) -> Option<u64> {
    let share = (u128::from(size) * u128::from(compressed)).checked_div(total.into())?;
    u64::try_from(share).ok()
}

/// Whether `found` has the same code for the same target; other code for that target is an error, unless the
/// bundle is an offload binary.
fn is_duplicate(found: &[CodeObject], code: &CodeObject, bundle: &Bundle) -> Result<bool> {
    match found.iter().find(|other| other.target == code.target) {
        None => Ok(false),
        Some(_) if bundle.is_binary => Ok(false),
        Some(other) if other.content.same_bytes(&code.content)? => Ok(true),
        Some(_) => {
            let message = format!("a bundle holds two different code objects for {}", code.target);
            Err(Error::new(Kind::Conflict, message).at(&code.content.place(0)))
        }
    }
}

/// The code object in an entry; `None` for the empty entry of the host.
fn code_object(
    entry: &BundleEntry,
    path: &TreePath,
    notes: &mut Notes,
) -> Result<Option<CodeObject>> {
    let id = &entry.id;
    match &id.kind {
        BundleEntryKind::Host if entry.content.is_empty() => return Ok(None),
        BundleEntryKind::Host => {
            return Err(unsupported_entry(entry, "has host code, which would be lost"));
        }
        BundleEntryKind::Other(kind) => {
            return Err(unsupported_entry(entry, &format!("is of the unknown kind `{kind}`")));
        }
        BundleEntryKind::Hip | BundleEntryKind::OpenMp => {}
    }
    if entry.content.is_empty() {
        let code_objects = vec![entry.content.digest()?];
        let (file, entry) = (notes.file(path), id.to_string());
        notes.add(found::EmptyCodeObject { file, entry, code_objects });
        return Ok(None);
    }
    let target = if code_object::is_code_object(&entry.content)? {
        checked_target(id, &code_object::read_whole(&entry.content)?, path, notes)
    } else {
        spirv_target(id, &entry.content, path, notes)?
    };
    let Some(target) = target else {
        let message = "names no GPU target, and the target of its code object is unknown";
        return Err(unsupported_entry(entry, message));
    };
    Ok(Some(CodeObject { target, content: entry.content.clone(), stored_size: None }))
}

fn unsupported_entry(entry: &BundleEntry, what: &str) -> Error {
    let id = &entry.id;
    Error::unsupported(format!("entry {id} {what}")).at(&entry.content.place(0))
}

/// The target of an AMDGPU code object, with a finding if the entry claims another.
fn checked_target(
    id: &EntryId,
    header: &CodeObjectHeader,
    path: &TreePath,
    notes: &mut Notes,
) -> Option<Target> {
    let resolved = resolve(id.target.as_ref(), header);
    let (file, entry, flags) = (notes.file(path), id.to_string(), header.flags);
    if header.processor.is_none() {
        notes.add(found::UnknownProcessor { file, entry: Some(entry), flags });
    } else if let (true, Some(actual)) = (resolved.disagrees, resolved.target.clone())
        && !lacks_features(id, &actual)
    {
        let claimant = Claimant::Entry { id: entry, flags };
        notes.add(found::TargetMismatch { file, claimant, actual });
    }
    resolved.target
}

/// Whether compilers cut the features off the entry's target: LLVM 17 to 19 write `…--gfx950-` where they do not
/// know the GPU.
fn lacks_features(id: &EntryId, actual: &Target) -> bool {
    let bare = id.target.as_ref().filter(|target| target.features().is_empty());
    id.text.ends_with('-') && bare.is_some_and(|target| target.base() == actual.base())
}

/// The target of a code object by its entry and its own header.
#[derive(Debug, PartialEq, Eq)]
struct ResolvedTarget {
    target: Option<Target>,
    disagrees: bool,
}

/// Reconciles the claimed target with the header.
fn resolve(claimed: Option<&Target>, header: &CodeObjectHeader) -> ResolvedTarget {
    let (Some(processor), Some(own)) = (&header.processor, &header.target) else {
        return ResolvedTarget { target: claimed.cloned(), disagrees: false };
    };
    let Some(claimed) = claimed else {
        return ResolvedTarget { target: Some(own.clone()), disagrees: true };
    };
    let base = refine(claimed.base(), processor);
    let mut disagrees = base != claimed.base();
    let mut features = own.features().to_vec();
    for (name, on) in claimed.features() {
        let state = match name.as_str() {
            "xnack" => header.xnack,
            "sramecc" => header.sramecc,
            _ => FeatureState::Unknown,
        };
        match state {
            FeatureState::Any | FeatureState::Unknown => features.push((name.clone(), *on)),
            stated => disagrees |= stated.fixed() != Some(*on),
        }
    }
    let mut stated = own.features().iter();
    disagrees |= stated.any(|(name, _)| claimed.features().iter().all(|(n, _)| n != name));
    ResolvedTarget { target: Some(Target::new(base.clone(), features)), disagrees }
}

/// The target of a row of a kernel archive, and the claimed one if the code object is for another.
pub(super) fn row_target(claimed: &Target, content: &Content) -> Result<(Target, Option<Target>)> {
    let _open = content.pin()?;
    if !code_object::is_code_object(content)? {
        return if claimed.base().is_spirv() {
            Ok((claimed.clone(), None))
        } else {
            let message = format!("the row of {claimed} is not an AMDGPU code object");
            Err(Error::malformed(message).at(&content.place(0)))
        };
    }
    let resolved = resolve(Some(claimed), &code_object::read_whole(content)?);
    let target = resolved.target.unwrap_or_else(|| claimed.clone());
    // Archives repeat code of a generic target for archs that have none of their own.
    let is_copy = gfx::generic_of(claimed.base()) == Some(target.base());
    Ok((target, (resolved.disagrees && !is_copy).then(|| claimed.clone())))
}

/// The claimed arch if it has the same flags as `processor`: `gfx1250-strict` has the flags
/// of gfx1250. Generic targets have flags of their own.
pub(super) fn refine<'a>(claimed: &'a BaseArch, processor: &'a BaseArch) -> &'a BaseArch {
    let qualifier = claimed.as_str().strip_prefix(processor.as_str());
    if qualifier.is_some_and(|rest| rest.starts_with('-')) && !claimed.is_generic() {
        claimed
    } else {
        processor
    }
}

/// First bytes of a SPIR-V module, in either byte order, and of LLVM bitcode.
const NEUTRAL_MAGICS: [[u8; 4]; 3] =
    [[0x03, 0x02, 0x23, 0x07], [0x07, 0x23, 0x02, 0x03], [b'B', b'C', 0xc0, 0xde]];

/// The target of an entry other than an AMDGPU code object: SPIR-V, if it claims to be.
fn spirv_target(
    id: &EntryId,
    content: &Content,
    path: &TreePath,
    notes: &mut Notes,
) -> Result<Option<Target>> {
    let magic = match content.len() {
        0..4 => None,
        _ => Some(content.read_array::<4>(0)?),
    };
    let claimed = id.target.as_ref().filter(|target| target.base().is_spirv());
    match (claimed, magic) {
        (Some(target), Some(magic)) if NEUTRAL_MAGICS.contains(&magic) => {
            let (file, entry) = (notes.file(path), id.to_string());
            notes.add(found::ArchNeutralCode { file, entry });
            Ok(Some(target.clone()))
        }
        _ => Err(Error::malformed(format!("entry {id} is not an AMDGPU code object"))
            .at(&content.place(0))
            .hint("objects compiled with -fgpu-rdc must be linked before they are packaged")),
    }
}

/// The target of code whose header and file name no known arch.
const UNKNOWN: &str = "unknown";

/// A code object outside of fat binaries.
#[derive(Debug)]
pub struct StandaloneCode {
    /// The id of its entry, if the file consists of bundles; its key, if the file is an archive.
    pub entry: Option<String>,
    /// Target ID of the code object, else the text of its entry, else the arch of the file, else `unknown`. In
    /// an archive: the target as the archive spells it.
    pub target: String,
    pub size: u64,
    /// Digest of the code object's bytes; `None` if it is the whole file, which the packer digests.
    pub sha256: Option<Sha256Digest>,
}

impl StandaloneCode {
    /// The digest of the code object, which was found in the file `content`; may read that file.
    pub fn digest(self, content: &Content) -> Result<Sha256Digest> {
        self.sha256.map_or_else(|| content.digest(), Ok)
    }
}

/// Returns the code objects of the file `content`. Reads only its beginning if it holds none. `arch` is for
/// code of a processor that is not known.
pub fn standalone_code(content: &Content, arch: Option<&BaseArch>) -> Result<Vec<StandaloneCode>> {
    let mut found = Vec::new();
    if code_object::is_code_object(content)? {
        let claimed = arch.cloned().map(Target::from);
        let known = target(claimed.as_ref(), content)?;
        let target = known.map_or_else(|| UNKNOWN.to_owned(), |target| target.to_string());
        found.push(StandaloneCode { entry: None, target, size: content.len(), sha256: None });
    } else if fatbin::starts_bundle(content)? {
        for next in Bundles::new(content) {
            let next = next?;
            // Each compressed bundle is decoded once: `next` keeps the decoded bytes.
            let entries = next.bundle.entries.iter();
            let entries = entries.filter(|entry| entry.id.kind != BundleEntryKind::Host);
            for entry in entries.filter(|entry| !entry.content.is_empty()) {
                let text = entry.id.text.clone();
                let known = entry_target(entry)?.map(|target| target.to_string());
                let target = known.unwrap_or_else(|| entry_target_text(&text));
                let (size, sha256) = (entry.content.len(), Some(entry.content.digest()?));
                found.push(StandaloneCode { entry: Some(text), target, size, sha256 });
            }
        }
    } else if content.starts_with(&kpack::MAGIC)? {
        found = archived_code(content)?;
    }
    Ok(found)
}

/// The code objects of an archive, each once, under the target of its key with the fewest features.
fn archived_code(content: &Content) -> Result<Vec<StandaloneCode>> {
    let reader = KpackReader::open(content.clone())?;
    let mut found = Vec::new();
    // Many rows may refer to one code object, which is decoded once.
    let mut digests: BTreeMap<u32, (u64, Sha256Digest)> = BTreeMap::new();
    for (key, targets) in &reader.toc().rows {
        for DistinctRow { spelled, ordinal, .. } in distinct_rows(targets)? {
            let (size, sha256) = match digests.entry(ordinal) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(slot) => {
                    let code = reader.code_object(ordinal)?;
                    *slot.insert((code.len(), code.digest()?))
                }
            };
            let (entry, target) = (Some(key.clone()), spelled.to_owned());
            found.push(StandaloneCode { entry, target, size, sha256: Some(sha256) });
        }
    }
    Ok(found)
}

/// The target of the code in an entry; `None` if it has none, or for no known GPU.
pub(super) fn entry_target(entry: &BundleEntry) -> Result<Option<Target>> {
    let claimed = entry.id.target.as_ref().filter(|_| !entry.content.is_empty());
    if code_object::is_code_object(&entry.content)? {
        target(claimed, &entry.content)
    } else {
        Ok(claimed.cloned())
    }
}

/// The target of an AMDGPU code object by the rules of the split.
fn target(claimed: Option<&Target>, content: &Content) -> Result<Option<Target>> {
    let header = code_object::read_header(content)?;
    Ok(resolve(claimed, &header).target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(processor: &str, xnack: FeatureState, sramecc: FeatureState) -> CodeObjectHeader {
        let base: BaseArch = processor.parse().unwrap();
        let fixed = [("xnack", xnack), ("sramecc", sramecc)]
            .into_iter()
            .filter_map(|(name, state)| Some((name.to_owned(), state.fixed()?)));
        CodeObjectHeader {
            target: Some(Target::new(base.clone(), fixed)),
            processor: Some(base),
            flags: 0,
            abi_version: 2,
            xnack,
            sramecc,
        }
    }

    #[test]
    fn the_header_decides_what_it_can_tell() {
        use FeatureState::{Any, Off, On, Unknown, Unsupported};
        for (claimed, own, expected, disagrees) in [
            ("gfx90a", header("gfx90a", Any, Any), "gfx90a", false),
            ("gfx90a:xnack+", header("gfx90a", On, Any), "gfx90a:xnack+", false),
            ("gfx90a:xnack+", header("gfx90a", Any, Any), "gfx90a:xnack+", false),
            ("gfx90a:xnack+", header("gfx90a", Off, Any), "gfx90a:xnack-", true),
            ("gfx90a", header("gfx90a", Off, Any), "gfx90a:xnack-", true),
            ("gfx906:xnack-", header("gfx906", Unknown, On), "gfx906:sramecc+:xnack-", true),
            ("gfx1030:xnack+", header("gfx1030", Unsupported, Unsupported), "gfx1030", true),
            ("gfx1030", header("gfx1031", Unsupported, Unsupported), "gfx1031", true),
            ("gfx1250-strict", header("gfx1250", Any, Unsupported), "gfx1250-strict", false),
            ("gfx1250", header("gfx1250", Any, Unsupported), "gfx1250", false),
            ("gfx11-generic", header("gfx11-generic", Any, Any), "gfx11-generic", false),
            ("gfx1100", header("gfx11-generic", Any, Any), "gfx11-generic", true),
            ("gfx9-4-generic", header("gfx942", Any, Any), "gfx942", true),
        ] {
            let claimed: Target = claimed.parse().unwrap();
            let resolved = resolve(Some(&claimed), &own);
            let target = resolved.target.unwrap().to_string();
            assert_eq!((target.as_str(), resolved.disagrees), (expected, disagrees), "{claimed}");
        }
    }
}
