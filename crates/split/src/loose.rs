//! The code objects of a file that is packed unchanged: the file itself, the entries of its offload bundles,
//! or the rows of the kernel archive that it is.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rockpack_core::content::{Content, Sha256Digest};
use rockpack_core::error::Result;
use rockpack_core::gfx::{BaseArch, Target, entry_target_text};
use rockpack_elf::code_object;
use rockpack_elf::fatbin::{self, Bundles};
use rockpack_elf::kpack::{self, KpackReader};
use rockpack_elf::offload_bundle::{BundleEntry, BundleEntryKind};

use super::archives::{DistinctRow, distinct_rows};
use super::code_objects::resolve;

/// The target of code whose header and file name no known arch.
const UNKNOWN: &str = "unknown";

/// A code object outside of fat binaries.
#[derive(Debug)]
pub struct LooseCode {
    /// The id of its entry, if the file consists of bundles; its key, if the file is an archive.
    pub entry: Option<String>,
    /// Target ID of the code object, or the text of its entry, or else the arch of the file, or `unknown`. In
    /// an archive: the target as the archive spells it.
    pub target: String,
    /// Size in bytes.
    pub size: u64,
    /// Digest of the code object's bytes; `None` if it is the whole file, which the packer digests.
    pub sha256: Option<Sha256Digest>,
}

impl LooseCode {
    /// The digest of the code object, which was found in the file `content`; may read that file.
    pub fn digest(self, content: &Content) -> Result<Sha256Digest> {
        self.sha256.map_or_else(|| content.digest(), Ok)
    }
}

/// Returns the code objects of the file `content`. Reads only its beginning if it holds none. `arch` is for
/// code of a processor that is not known.
pub fn loose_code(content: &Content, arch: Option<&BaseArch>) -> Result<Vec<LooseCode>> {
    let mut found = Vec::new();
    if code_object::is_code_object(content)? {
        let claimed = arch.cloned().map(Target::from);
        let target = target(claimed.as_ref(), content)?;
        found.push(LooseCode {
            entry: None,
            target: target.unwrap_or_else(|| UNKNOWN.to_owned()),
            size: content.len(),
            sha256: None,
        });
    } else if fatbin::starts_bundle(content)? {
        for next in Bundles::new(content) {
            let next = next?;
            // Each compressed bundle is decoded once: `next` keeps the decoded bytes.
            let entries = next.bundle.bundle.entries.iter();
            let entries = entries.filter(|entry| entry.id.kind != BundleEntryKind::Host);
            for entry in entries.filter(|entry| !entry.content.is_empty()) {
                found.push(entry_code(entry)?);
            }
        }
    } else if content.starts_with(&kpack::MAGIC)? {
        found = archived_code(content)?;
    }
    Ok(found)
}

/// The code objects of an archive, each once under the plainest target of its key.
fn archived_code(content: &Content) -> Result<Vec<LooseCode>> {
    let reader = KpackReader::open(content.clone())?;
    let mut found = Vec::new();
    // Many rows may name one code object, which is decoded once.
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
            found.push(LooseCode { entry, target, size, sha256: Some(sha256) });
        }
    }
    Ok(found)
}

fn entry_code(entry: &BundleEntry) -> Result<LooseCode> {
    let text = entry.id.text.clone();
    let known = if code_object::is_code_object(&entry.content)? {
        target(entry.id.target.as_ref(), &entry.content)?
    } else {
        entry.id.target.as_ref().map(Target::to_string)
    };
    let target = known.unwrap_or_else(|| entry_target_text(&text));
    let (size, sha256) = (entry.content.len(), entry.content.digest()?);
    Ok(LooseCode { entry: Some(text), target, size, sha256: Some(sha256) })
}

/// The target of an AMDGPU code object by the rules of the split.
fn target(claimed: Option<&Target>, content: &Content) -> Result<Option<String>> {
    let header = code_object::read_header(content)?;
    Ok(resolve(claimed, &header).target.map(|target| target.to_string()))
}
