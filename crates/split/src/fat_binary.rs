//! Joins each wrapper of a host binary with the code objects of its own bundle, and finds binaries for ROCm 6 and
//! older.
//!
//! No HIP runtime of these releases is known to read kernel archives; this is untested. Sources of the sonames: the
//! dependencies of public wheels for ROCm 4.3 and 5.0 (cupy), 5.4 and 6.0 (jax), 6.4 (bitsandbytes, cyllama) and 7.0 to
//! 10.1 (cupy, jax), and Debian 12 and 13. Sonames that ROCm 7 did not change (of MIOpen, hipFFT, RCCL, rocSOLVER)
//! say nothing, and those that it lowered (of ROCm SMI) are omitted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Faults, Kind, Result, ResultExt};
use rockpack_core::tree::{Tree, TreePath};
use rockpack_elf::fatbin::Bundles;
use rockpack_elf::{Dynamic, ElfFile};
use rockpack_report::{EmbeddedForm, Finding, Soname, found};

use super::alone::StagedFile;
use super::code_objects::code_objects;
use super::parts::{
    CodeObject, FatBinary, HostBinary, HostKind, Notes, SplitArtifact, SplitPolicy, WrapperCode,
};
use crate::host_binary::{self, Analysis, Examined, WrapperRef};

pub(super) struct ArtifactPolicy<'a> {
    pub of_run: &'a SplitPolicy<'a>,
    /// Whether fat binaries that cannot be transformed stay unchanged; they are refused otherwise.
    pub keeps_fat: bool,
    /// All files of the artifact, if fat binaries for HIP runtimes before ROCm 7 stay.
    pub old: Option<Tree<StagedFile>>,
}

/// Classifies the ELF file at `path` for the host side; always refuses a damaged fat binary.
pub(super) fn host_kind(
    path: &TreePath,
    content: Content,
    policy: &ArtifactPolicy<'_>,
    notes: &mut Notes,
) -> Result<HostKind> {
    let SplitPolicy { any_runtime, opens_bundles, .. } = *policy.of_run;
    if let Some(files) = &policy.old
        && !host_binary::device_sections(&content)?.is_empty()
    {
        let libraries = old_libraries(&content, Some(files))?;
        if !libraries.is_empty() && keep_fat(path, &content, Ok(libraries), notes)? {
            return Ok(HostKind::Plain(content));
        }
    }
    let examined = match host_binary::examine_for(&content, any_runtime) {
        Err(error)
            if policy.keeps_fat
                && error.kind() == Kind::Unsupported
                && keep_fat(path, &content, Err(error.message()), notes)? =>
        {
            return Ok(HostKind::Plain(content));
        }
        examined => examined?,
    };
    match examined {
        Examined::NoDeviceCode | Examined::SeparateDebug => Ok(HostKind::Plain(content)),
        Examined::Transformed(transformed) => {
            if !transformed.program_headers_in_front() {
                notes.add(found::ProgramHeadersMoved { file: notes.file(path) });
            }
            let is_registered = |name: &String| name.rsplit('/').next() == Some(host_binary::SHIM);
            if any_runtime && !needed(&content)?.iter().any(is_registered) {
                notes.add(found::ArchivesRuntimeNeeded { file: notes.file(path) });
            }
            let binary = HostBinary::Transformed(transformed);
            // The archives with its code may be in other artifacts of the shard.
            Ok(HostKind::Fat(Arc::new(FatBinary { binary, wrappers: Vec::new() })))
        }
        Examined::Fat(analysis) => {
            let libraries = old_libraries(&content, None)?;
            if !libraries.is_empty() && !any_runtime {
                let (file, code_objects) = (notes.file(path), Vec::new());
                notes.add(found::OldRuntimeNeeded { file, libraries, code_objects });
            }
            let opened = opens_bundles.then(|| wrapper_code(&analysis, path, notes));
            let wrappers = opened.transpose()?.unwrap_or_default();
            Ok(HostKind::Fat(Arc::new(FatBinary { binary: HostBinary::Fat(analysis), wrappers })))
        }
    }
}

/// Reports that a binary stays unchanged, with all its device code: because of the libraries that it needs, or because
/// the transform refused it. Returns false if it has no device code, so that nothing needs a report.
pub(super) fn keep_fat(
    path: &TreePath,
    content: &Content,
    reason: Result<Vec<Soname>, &str>,
    notes: &mut Notes,
) -> Result<bool> {
    let mut digests = BTreeSet::new();
    let mut targets = BTreeSet::new();
    for section in host_binary::device_sections(content)? {
        for next in Bundles::new(&section) {
            for code in code_objects(&next?, path, notes)? {
                digests.insert(code.content.digest()?);
                targets.insert(code.target);
            }
        }
    }
    if targets.is_empty() {
        return Ok(false);
    }
    let (file, code_objects) = (notes.file(path), digests.into_iter().collect());
    notes.add(match reason {
        Ok(libraries) => Finding::from(found::OldRuntimeNeeded { file, libraries, code_objects }),
        Err(refusal) => {
            let (targets, reason) = (targets.into_iter().collect(), refusal.to_owned());
            Finding::from(found::KeptFat { file, targets, reason, code_objects })
        }
    });
    Ok(true)
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
        if next.bundle.is_binary {
            let message =
                "an LLVM offload binary, which HIP runtimes do not load from this section";
            let place = section.place(next.offset);
            return Err(Error::unsupported(message).structure(".hip_fatbin").at(&place));
        }
        let code_objects = code_objects(&next, path, notes)?;
        if !wanted.contains(&next.offset) {
            let digests = code_objects.iter().map(|code| code.content.digest());
            let (file, code_objects) = (notes.file(path), digests.collect::<Result<_>>()?);
            let offset = next.offset;
            notes.add(found::BundleUnreferenced { file, offset, code_objects });
        }
        bundles.insert(next.offset, Arc::<[CodeObject]>::from(code_objects));
    }
    // Several wrappers may share a bundle, such as those of translation units linked with `-fgpu-rdc`; each has rows
    // of its own in the archives.
    let mut tied = Vec::new();
    let mut faults = Faults::default();
    let mut used = BTreeSet::new();
    for wrapper in wrappers {
        let Some(code_objects) = bundles.get(&wrapper.bundle_offset) else {
            faults.add(dangling_wrapper(wrapper, &section));
            continue;
        };
        if !used.insert(wrapper.bundle_offset) {
            section.budget().charge_code_objects_again(code_objects.len())?;
        }
        let symbol = wrapper.symbol.as_deref().map(str::to_owned);
        tied.push(WrapperCode { symbol, code_objects: Arc::clone(code_objects) });
    }
    faults.finish().map(|()| tied)
}

pub(super) fn dangling_wrapper(wrapper: &WrapperRef, section: &Content) -> Error {
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

pub(super) fn note_without_code(artifact: &mut SplitArtifact) {
    let label = artifact.label();
    let noted: Vec<Finding> = artifact
        .binaries()
        .filter_map(|(path, fat)| {
            let all = fat.wrappers.iter().enumerate();
            let empty = all.filter(|(_, wrapper)| wrapper.code_objects.is_empty());
            let wrappers: Vec<usize> = empty.map(|(index, _)| index).collect();
            let (file, of) = (label.file(path), fat.wrappers.len());
            (!wrappers.is_empty())
                .then(|| Finding::from(found::WrapperWithoutCode { file, wrappers, of }))
        })
        .collect();
    artifact.findings.extend(noted);
}

/// Sonames of ROCm 7.0. Lower numbers are of older releases.
const ROCM_7_SONAMES: &str = "libamd_comgr.so.3 libamdhip64.so.7 libhipblas.so.3 libhipblaslt.so.1 libhiprtc.so.7 \
                         libhiprtc-builtins.so.7 libhipsolver.so.1 libhipsparse.so.4 librocblas.so.5 \
                         librocprofiler-sdk.so.1 librocsparse.so.1";

/// Whether only ROCm 6 and older have the library; `None` if its name does not say.
pub fn is_old(library: &str) -> Option<bool> {
    let (name, number) = soname_number(library)?;
    let mut known = ROCM_7_SONAMES.split(' ').filter_map(soname_number);
    known.find(|(of_7, _)| *of_7 == name).map(|(_, of_7)| number < of_7)
}

/// A library without its folder and the digest that auditwheel adds to its name, and its number.
fn soname_number(library: &str) -> Option<(&str, u32)> {
    let (name, version) = library.rsplit('/').next()?.split_once(".so.")?;
    let number = version.split('.').next()?.parse().ok()?;
    let (stem, end) = name.rsplit_once('-').unwrap_or((name, ""));
    let is_digest = end.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some((if is_digest { stem } else { name }, number))
}

/// The libraries of ROCm 6 and older that a binary of `files` needs. If the names in it belong to no known release,
/// those in its libraries decide, and finally those in all `files`, unless one is of a newer release: a binary that
/// names no runtime uses the one that others load.
fn old_libraries(content: &Content, files: Option<&Tree<StagedFile>>) -> Result<Vec<Soname>> {
    let mut names: BTreeSet<String> = library_names(content)?.into_iter().collect();
    let files = files.into_iter().flatten();
    let mut others: Vec<(&str, &StagedFile)> =
        files.filter_map(|(path, node)| Some((path.name(), node.data()?))).collect();
    while !others.is_empty() && names.iter().all(|name| is_old(name).is_none()) {
        let all = !others.iter().any(|(name, _)| names.contains(*name));
        let (next, rest): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(name, _)| all || names.contains(*name));
        for (name, file) in next {
            names.insert(name.to_owned());
            names.extend(library_names(&file.content)?);
        }
        if all && names.iter().any(|name| is_old(name) == Some(false)) {
            names.clear();
        }
        others = rest;
    }
    Ok(names.into_iter().filter(|name| is_old(name) == Some(true)).map(Soname::from).collect())
}

/// The libraries that a file names; none if it is damaged, which its reader reports.
fn library_names(content: &Content) -> Result<Vec<String>> {
    Ok(needed(content).if_readable()?.unwrap_or_default())
}

/// The libraries that an x86-64 program or library names.
pub fn needed(content: &Content) -> Result<Vec<String>> {
    let Some(file) = ElfFile::read(content, elf::EM_X86_64)? else { return Ok(Vec::new()) };
    let dynamic = Dynamic::read(&file)?;
    dynamic.map_or(Ok(Vec::new()), |dynamic| dynamic.names(&file, elf::DT_NEEDED))
}

/// The `DT_NEEDED` by which an x86-64 program or library needs [`SHIM`](host_binary::SHIM); none if it is damaged.
pub fn needed_shim(content: &Content) -> Result<Option<String>> {
    Ok(library_names(content)?.into_iter().find(|name| host_binary::is_shim(name)))
}
