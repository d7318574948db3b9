//! The HIP runtime that loads the device code of a wheel or a set.
//!
//! Reading kernel archives is a build option of the runtime (`ROCM_KPACK_ENABLED`). A runtime with it takes
//! `kpack_load_code_object` from `librocm_kpack`, or has it linked in. Texts in the file prove nothing: patchelf
//! leaves the names of libraries that it replaced or removed.

use std::collections::{BTreeMap, BTreeSet};

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::tree::TreePath;
use rockpack_elf::{ElfFile, Linking};

use crate::recombine::{Component, Recombined};
use rockpack_report::{Code, ComponentFile, Finding, Findings, Soname};
use rockpack_split::input::wheel::Wheel;
use rockpack_split::{is_old, needed};

/// Prefix of the runtime's file names; a tool may have added a digest.
const RUNTIME: &str = "libamdhip64";

/// Looks for the runtime in `wheel`, and refuses one that cannot read archives, unless `any` will do.
pub fn check_wheel(
    wheel: &Wheel,
    component: &Component,
    any: bool,
    findings: &mut Findings,
) -> Result<()> {
    if component.kernels.is_empty() {
        return Ok(());
    }
    let mut runtimes = runtimes(component)?;
    // Binaries for old releases keep their code.
    runtimes.retain(|path, _| any || is_old(path.name()) != Some(true));
    let unable = runtimes.iter().filter(|(_, reads)| !**reads).map(|(path, _)| path.to_string());
    let files: Vec<String> = unable.collect();
    let own = wheel.name.to_string();
    if runtimes.is_empty() {
        let libraries = runtimes_needed(component)?;
        findings.add(Finding::WheelRuntimeOutside { wheel: own, libraries });
    } else if !files.is_empty() {
        findings.add(Finding::WheelRuntimeCannotRead { wheel: own, files });
    }
    let hint = "build the wheel with a runtime that reads them (ROCM_KPACK_ENABLED), or split it all the same \
                with --any-runtime, where another runtime takes its place";
    findings.refuse(|code| code == Code::WheelRuntimeCannotRead && !any, hint)
}

/// The runtimes that fat binaries are linked to.
fn runtimes_needed(component: &Component) -> Result<Vec<Soname>> {
    let mut libraries = BTreeSet::new();
    for fat in component.host.iter().filter_map(|(_, node)| node.data()?.fat()) {
        let own = needed(fat.binary.original())?.into_iter();
        libraries.extend(own.filter(|it| it.starts_with(RUNTIME)).map(Soname::from));
    }
    Ok(libraries.into_iter().collect())
}

/// Notes the runtimes of a set that cannot read its archives.
pub(super) fn note_unable(recombined: &Recombined, findings: &mut Findings) -> Result<()> {
    let has_archives = recombined.components.iter().any(|it| !it.kernels.is_empty());
    for component in recombined.components.iter().filter(|_| has_archives) {
        for (path, _) in runtimes(component)?.into_iter().filter(|(_, reads)| !reads) {
            let file = ComponentFile::new(component.id(), path);
            findings.add(Finding::SetRuntimeCannotRead { file });
        }
    }
    Ok(())
}

/// The runtimes among host files, and whether each reads archives.
fn runtimes(component: &Component) -> Result<BTreeMap<&TreePath, bool>> {
    let mut found: BTreeMap<&TreePath, bool> = BTreeMap::new();
    for (path, node) in &component.host {
        let is_named = path.name().starts_with(RUNTIME) && path.name().contains(".so");
        if let Some(file) = node.data().filter(|_| is_named) {
            found.extend(reads_archives(file.kind.original())?.map(|reads| (path, reads)));
        }
    }
    Ok(found)
}

/// Whether a runtime reads archives; `None` for separate debug information and what is no x86-64 ELF file.
fn reads_archives(content: &Content) -> Result<Option<bool>> {
    let Some(file) = ElfFile::read(content, elf::EM_X86_64)? else { return Ok(None) };
    if file.sections_named(".dynamic").iter().any(|(_, dynamic)| !dynamic.is_in_file()) {
        return Ok(None);
    }
    Ok(Linking::read(&file)?.map(|runtime| {
        let mut symbols = runtime.undefined.iter().chain(&runtime.defined);
        runtime.needed.iter().any(|name| name.starts_with("librocm_kpack"))
            || symbols.any(|symbol| symbol.name.starts_with("kpack_"))
    }))
}
