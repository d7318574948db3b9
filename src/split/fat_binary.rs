//! Joins each wrapper of a host binary with the code objects of its own bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_base::content::Content;
use rockpack_base::error::{Error, Kind, Result};
use rockpack_base::formats::fatbin::{Bundles, FatbinBundle};
use rockpack_base::tree::TreePath;

use super::code_objects::code_objects;
use super::notes::Notes;
use super::parts::{CodeObject, FatBinary, HostBinary, HostKind, SplitArtifact, WrapperCode};
use crate::report::{EmbeddedForm, Finding, InputArtifact};
use crate::split::host_binary::{self, Analysis, Examined, WrapperRef};

/// Classifies the ELF file at `path` for the host side. Refuses a fat binary that cannot be transformed
/// unless `keeps_fat`; always refuses a damaged one.
pub(super) fn host_kind(
    path: &TreePath,
    content: Content,
    keeps_fat: bool,
    notes: &mut Notes,
) -> Result<HostKind> {
    let examined = match host_binary::examine(&content) {
        Err(error) if keeps_fat && error.kind() == Kind::Unsupported => {
            return kept_fat(path, content, error, notes);
        }
        examined => examined?,
    };
    match examined {
        Examined::NoDeviceCode | Examined::SeparateDebug => Ok(HostKind::Plain(content)),
        Examined::Transformed(transformed) => {
            if !transformed.program_headers_in_front() {
                notes.add(Finding::ProgramHeadersMoved { file: notes.file(path) });
            }
            let binary = HostBinary::Transformed(transformed);
            // The archives with its code may be in other artifacts of the shard.
            Ok(HostKind::Fat(Arc::new(FatBinary { binary, wrappers: Vec::new() })))
        }
        Examined::Fat(analysis) => {
            let wrappers = wrapper_code(&analysis, path, notes)?;
            Ok(HostKind::Fat(Arc::new(FatBinary { binary: HostBinary::Fat(analysis), wrappers })))
        }
    }
}

/// The unchanged binary, with a finding that lists all its device code. If no device code is found, no
/// finding could account for it, and this returns `refusal`.
fn kept_fat(
    path: &TreePath,
    content: Content,
    refusal: Error,
    notes: &mut Notes,
) -> Result<HostKind> {
    let mut digests = BTreeSet::new();
    let mut targets = BTreeSet::new();
    for section in host_binary::device_sections(&content)? {
        for next in Bundles::new(&section) {
            for code in code_objects(&next?.bundle.bundle, path, notes)? {
                digests.insert(code.content.digest()?);
                targets.insert(code.target);
            }
        }
    }
    if digests.is_empty() {
        return Err(refusal);
    }
    notes.add(Finding::KeptFat {
        file: notes.file(path),
        targets: targets.into_iter().collect(),
        reason: refusal.message().to_owned(),
        code_objects: digests.into_iter().collect(),
    });
    Ok(HostKind::Plain(content))
}

fn wrapper_code(
    analysis: &Analysis,
    path: &TreePath,
    notes: &mut Notes,
) -> Result<Vec<WrapperCode>> {
    let section = analysis.fatbin();
    let wrappers = analysis.wrappers();
    let wanted: BTreeSet<u64> = wrappers.iter().map(|wrapper| wrapper.bundle_offset).collect();
    let mut bundles = BTreeMap::new();
    for next in Bundles::new(&section) {
        let next = next?;
        if next.bundle.bundle.is_binary {
            let message = "an LLVM offload binary, which no HIP runtime loads from here";
            let place = section.place(next.bundle.offset);
            return Err(Error::unsupported(message).structure(".hip_fatbin").at(&place));
        }
        let code_objects = code_objects(&next.bundle.bundle, path, notes)?;
        if !wanted.contains(&next.bundle.offset) {
            note_unreferenced(&next.bundle, &code_objects, path, notes)?;
        }
        bundles.insert(next.bundle.offset, code_objects.into());
    }
    tie(wrappers, &bundles, &section)
}

/// Gives each wrapper the bundle it points to. Several wrappers may share one, such as those of translation
/// units linked with `-fgpu-rdc`; each has rows of its own in the archives.
fn tie(
    wrappers: &[WrapperRef],
    bundles: &BTreeMap<u64, Arc<[CodeObject]>>,
    section: &Content,
) -> Result<Vec<WrapperCode>> {
    let mut tied = Vec::new();
    let mut faults = Vec::new();
    let mut used = BTreeSet::new();
    for (index, wrapper) in (0..).zip(wrappers) {
        if wrapper.index != index {
            let message = format!("wrapper {} is in place {index}", wrapper.index);
            return Err(Error::bug(message));
        }
        match bundles.get(&wrapper.bundle_offset) {
            Some(code_objects) => {
                if !used.insert(wrapper.bundle_offset) {
                    section.budget().charge_code_objects_again(code_objects.len())?;
                }
                tied.push(WrapperCode {
                    symbol: wrapper.symbol.as_deref().map(str::to_owned),
                    code_objects: Arc::clone(code_objects),
                });
            }
            None => faults.push(points_nowhere(wrapper, section)),
        }
    }
    Error::gather(faults).map_or(Ok(tied), Err)
}

fn points_nowhere(wrapper: &WrapperRef, section: &Content) -> Error {
    let message = format!(
        "wrapper {} points {:#x} bytes into the section, where no bundle starts",
        wrapper.index, wrapper.bundle_offset
    );
    Error::malformed(message).structure(".hip_fatbin").at(&section.place(wrapper.bundle_offset))
}

/// Refuses a linked file without section table that has a bundle of device code, unless `keeps_fat`: without
/// the table, the extent of its device code is unknown.
pub(super) fn refuse_stripped(content: &Content, keeps_fat: bool) -> Result<()> {
    let places = host_binary::embedded_code(content)?;
    let bundle = places.into_iter().find(|place| place.form != EmbeddedForm::CodeObject);
    let Some(bundle) = bundle.filter(|_| !keeps_fat) else { return Ok(()) };
    let message = format!("has no section table, and {}", bundle.form);
    Err(Error::unsupported(message).at(&content.place(bundle.offset)).hint(
        "strip it without taking its section table (`strip --strip-unneeded`), or keep its device \
         code in it: `validation.untransformable = \"keep-fat\"` in the configuration",
    ))
}

/// Notes the device code of the ELF file at `path` that the transform leaves in it.
pub(super) fn note_embedded(path: &TreePath, content: &Content, notes: &mut Notes) -> Result<()> {
    let places = host_binary::embedded_code(content)?;
    if !places.is_empty() {
        notes.add(Finding::DeviceCodeEmbedded { file: notes.file(path), places });
    }
    Ok(())
}

/// Notes the wrappers of an artifact's binaries that have no device code anywhere.
pub(super) fn note_without_code(artifact: &mut SplitArtifact) {
    let label = InputArtifact::new(&artifact.shard, &artifact.name);
    let noted: Vec<Finding> = artifact
        .binaries()
        .filter_map(|(path, fat)| {
            let all = fat.wrappers.iter().enumerate();
            let empty = all.filter(|(_, wrapper)| wrapper.code_objects.is_empty());
            let wrappers: Vec<usize> = empty.map(|(index, _)| index).collect();
            let (file, of) = (label.file(path), fat.wrappers.len());
            (!wrappers.is_empty()).then_some(Finding::WrapperWithoutCode { file, wrappers, of })
        })
        .collect();
    noted.into_iter().for_each(|finding| artifact.findings.add(finding));
}

fn note_unreferenced(
    bundle: &FatbinBundle,
    code_objects: &[CodeObject],
    path: &TreePath,
    notes: &mut Notes,
) -> Result<()> {
    let digests = code_objects.iter().map(|code| code.content.digest());
    let (file, code_objects) = (notes.file(path), digests.collect::<Result<_>>()?);
    notes.add(Finding::BundleUnreferenced { file, offset: bundle.offset, code_objects });
    Ok(())
}
