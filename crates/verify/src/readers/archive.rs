//! Reads a kernel archive, and decodes every code object once.

use std::collections::BTreeMap;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use rockpack_core::gfx::{Target, generic_of};
use rockpack_elf::{code_object, kpack};

use crate::readers::Sha;

/// The offset of the type in an ELF header.
const E_TYPE: u64 = 16;

const ELF_HEADER: u64 = 64;

#[derive(Debug, Default)]
pub(crate) struct ArchiveFacts {
    /// `gfx_arches`, in its order.
    pub(crate) listed: Vec<String>,
    /// Key → target → ordinal.
    pub(crate) rows: BTreeMap<String, BTreeMap<String, u32>>,
    /// By ordinal; `None` if a code object cannot be decoded.
    pub(crate) code_objects: Vec<Option<CodeObjectFacts>>,
    /// The reasons why code objects or rows cannot be read.
    pub(crate) faults: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeObjectFacts {
    pub(crate) sha256: Sha,
    pub(crate) code_kind: CodeKind,
}

/// The kind of a code object, by its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CodeKind {
    /// The target in the header: the arch and the features that it fixes.
    Compiled(Target),
    /// An AMDGPU ELF file with an unknown processor.
    UnknownProcessor,
    /// Not an AMDGPU ELF file.
    NotElf,
}

pub(crate) struct ArchiveRow<'a> {
    pub(crate) key: &'a str,
    pub(crate) target: &'a str,
    pub(crate) facts: &'a CodeObjectFacts,
}

impl ArchiveFacts {
    pub(crate) fn at(&self, key: &str, target: &str) -> Option<&CodeObjectFacts> {
        let ordinal = *self.rows.get(key)?.get(target)?;
        self.code_objects.get(usize::try_from(ordinal).ok()?)?.as_ref()
    }

    /// All rows with a decoded code object.
    pub(crate) fn entries(&self) -> impl Iterator<Item = ArchiveRow<'_>> {
        self.rows.iter().flat_map(move |(key, targets)| {
            let found = targets.keys().map(move |target| (target, self.at(key, target)));
            found.filter_map(move |(target, facts)| Some(ArchiveRow { key, target, facts: facts? }))
        })
    }
}

pub(crate) fn read(content: &Content) -> Result<ArchiveFacts> {
    let reader = kpack::KpackReader::open(content.clone())?;
    let toc = reader.toc();
    let mut facts = ArchiveFacts { listed: toc.gfx_arches.clone(), ..ArchiveFacts::default() };
    for ordinal in 0..u32::try_from(reader.len()).map_err(|_| Error::bug("frame limit"))? {
        let found = reader.code_object(ordinal).and_then(|content| examine(&content));
        if let Err(error) = &found {
            facts.faults.push(format!("code object {ordinal} cannot be read: {error}"));
        }
        facts.code_objects.push(found.ok());
    }
    for (key, targets) in &toc.rows {
        let row = targets.iter().map(|(target, row)| (target.clone(), row.ordinal));
        facts.rows.insert(key.clone(), row.collect());
    }
    Ok(facts)
}

fn examine(content: &Content) -> Result<CodeObjectFacts> {
    // Decompressing twice would be expensive.
    let _open = content.pin()?;
    let head = content.read_vec(0..content.len().min(ELF_HEADER), ELF_HEADER, "header")?;
    let sha256 = content.sha256()?;
    check_linked(&Content::of_bytes(head.clone()))?;
    Ok(CodeObjectFacts { sha256, code_kind: code_kind(head)? })
}

/// Fails for a code object whose header loaders refuse; `content` starts with the header. Unlinked objects and files
/// that are not code objects pass.
pub(crate) fn check_linked(content: &Content) -> Result<()> {
    if !code_object::is_code_object(content)? {
        return Ok(());
    }
    let kind = content.read_array::<2>(E_TYPE)?;
    if kind == object::elf::ET_REL.0.to_le_bytes() {
        Ok(())
    } else {
        code_object::check_loadable(content)
    }
}

pub(crate) fn code_kind(head: Vec<u8>) -> Result<CodeKind> {
    let head = Content::of_bytes(head);
    if !code_object::is_code_object(&head)? {
        return Ok(CodeKind::NotElf);
    }
    let target = code_object::read_header(&head)?.target;
    Ok(target.map_or(CodeKind::UnknownProcessor, CodeKind::Compiled))
}

/// The fault of a row for `target` with a code object of this kind.
pub(crate) fn row_fault(target: &str, code_kind: &CodeKind) -> Option<String> {
    let target: Target = match target.parse() {
        Ok(target) => target,
        Err(error) => return Some(error.to_string()),
    };
    match code_kind {
        CodeKind::NotElf if target.base().is_spirv() => None,
        CodeKind::NotElf => Some("its content is not a code object".to_owned()),
        // Newer compilers know more processors; only the row states the target.
        CodeKind::UnknownProcessor => None,
        CodeKind::Compiled(own) if runs_on(own, &target) => None,
        CodeKind::Compiled(own) => Some(format!("its code object is for {own}")),
    }
}

/// Whether code compiled for `own` runs on `device`. The header does not distinguish `gfx1250-strict` from `gfx1250`.
/// Code for the generic target of an arch runs on the arch.
pub(crate) fn runs_on(own: &Target, device: &Target) -> bool {
    let plain = device.base().as_str().strip_suffix("-strict");
    let same = own.base() == device.base() || plain == Some(own.base().as_str());
    (same || generic_of(device.base()) == Some(own.base()))
        && own.features().iter().all(|feature| device.features().contains(feature))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_must_be_for_its_code_objects_target() {
        for (target, code_kind, fine) in [
            ("gfx90a", compiled("gfx90a"), true),
            ("gfx90a:xnack+", compiled("gfx90a"), true),
            ("gfx90a:sramecc+:xnack+", compiled("gfx90a:xnack+"), true),
            ("gfx90a", compiled("gfx90a:xnack+"), false),
            ("gfx90a:xnack-", compiled("gfx90a:xnack+"), false),
            ("gfx1250-strict", compiled("gfx1250"), true),
            ("gfx1250", compiled("gfx1250-strict"), false),
            ("gfx1100", compiled("gfx1101"), false),
            ("gfx1100", compiled("gfx11-generic"), true),
            ("gfx942:xnack+", compiled("gfx9-4-generic:xnack-"), false),
            ("gfx1100", compiled("gfx12-generic"), false),
            ("gfx11-generic", compiled("gfx1100"), false),
            ("gfx1100", CodeKind::NotElf, false),
            ("amdgcnspirv", CodeKind::NotElf, true),
            ("gfx1100", CodeKind::UnknownProcessor, true),
            ("no target", compiled("gfx1100"), false),
        ] {
            assert_eq!(row_fault(target, &code_kind).is_none(), fine, "{target} {code_kind:?}");
        }
    }

    fn compiled(text: &str) -> CodeKind {
        CodeKind::Compiled(text.parse().unwrap())
    }
}
