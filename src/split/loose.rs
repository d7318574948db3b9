//! The code objects of a file that is packed as it is: the file itself, or the entries of the
//! offload bundles that it consists of.

use super::code::resolve;
use crate::content::Content;
use crate::error::Result;
use crate::formats::code_object;
use crate::formats::fatbin::{self, Bundles};
use crate::formats::offload_bundle::{BundleEntry, BundleEntryKind};
use crate::gfx::{BaseArch, Target, entry_target_text};

/// The target of code whose header and file say nothing that is known.
const UNKNOWN: &str = "unknown";

/// A code object outside of fat binaries.
#[derive(Debug)]
pub struct LooseCode {
    /// The id of its entry, if the file consists of bundles.
    pub entry: Option<String>,
    /// Its target ID, or what its entry says in its place, or else the arch of the file, or
    /// `unknown`.
    pub target: String,
    /// Its size in bytes.
    pub size: u64,
    /// SHA-256 of its bytes, in hex; none if it is the whole file, whose digest whoever packs it
    /// finds out anyway.
    pub sha256: Option<String>,
}

impl LooseCode {
    /// SHA-256 of its bytes, in hex; it was found in the file `content`, which may be read for it.
    pub fn digest(self, content: &Content) -> Result<String> {
        self.sha256.map_or_else(|| content.sha256_hex(), Ok)
    }
}

/// The code objects of the file `content`, of which no more than the beginning is read if it
/// holds none. `arch` is for code of a processor that is not known.
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
            // Compressed bundles are decoded once: `next` keeps what was decoded.
            for entry in next.bundle.bundle.entries.iter().filter(|entry| is_device(entry)) {
                found.push(entry_code(entry)?);
            }
        }
    }
    Ok(found)
}

fn is_device(entry: &BundleEntry) -> bool {
    entry.id.kind != BundleEntryKind::Host && !entry.content.is_empty()
}

fn entry_code(entry: &BundleEntry) -> Result<LooseCode> {
    let text = entry.id.text.clone();
    let target = if code_object::is_code_object(&entry.content)? {
        target(entry.id.target.as_ref(), &entry.content)?
    } else {
        entry.id.target.as_ref().map(Target::to_string)
    };
    let target = target.unwrap_or_else(|| entry_target_text(&text));
    let (size, sha256) = (entry.content.len(), entry.content.sha256_hex()?);
    Ok(LooseCode { entry: Some(text), target, size, sha256: Some(sha256) })
}

/// The target of an AMDGPU code object, as the split takes it.
fn target(claimed: Option<&Target>, content: &Content) -> Result<Option<String>> {
    let header = code_object::read_header(content)?;
    Ok(resolve(claimed, &header).target.map(|target| target.to_string()))
}
