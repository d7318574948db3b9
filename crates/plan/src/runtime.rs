//! The HIP runtime that loads the device code of a wheel or a set (`crates/wheel` judges that of a wheel).
//!
//! Reading kernel archives is a build option of the runtime (`ROCM_KPACK_ENABLED`). With it, a runtime gets
//! `kpack_load_code_object` from `librocm_kpack`, or has it linked in. Strings in the file prove nothing: patchelf
//! leaves the names of libraries that it replaced or removed.

use std::collections::BTreeMap;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::tree::TreePath;
use rockpack_elf::{ElfFile, Linking};

use crate::recombine::{Component, Recombined};
use rockpack_report::{ComponentFile, Findings, found};
use rockpack_split::{FatBinary, HostBinary, needed_shim};

/// Prefix of the runtime's file names; a tool may have added a digest.
pub const RUNTIME: &str = "libamdhip64";

/// Notes the runtimes of a set that cannot read its archives, if they have to.
pub(super) fn note_unable_runtimes(recombined: &Recombined, findings: &mut Findings) -> Result<()> {
    let mut reads_archives = false;
    for component in recombined.components.iter().filter(|it| !it.kernels.is_empty()) {
        reads_archives |= !loads_by_shim(component)?;
    }
    for component in recombined.components.iter().filter(|_| reads_archives) {
        for (path, _) in runtimes(component)?.into_iter().filter(|(_, reads)| !reads) {
            let file = ComponentFile::new(&*component.id, path);
            findings.add(found::SetRuntimeCannotRead { file });
        }
    }
    Ok(())
}

/// Whether all binaries with code in archives register with the shim, by which every runtime loads it.
pub fn loads_by_shim(component: &Component) -> Result<bool> {
    let mut binaries = component.host.values().filter_map(|node| node.data()?.fat());
    binaries.try_fold(true, |all, fat| Ok(all && uses_shim(fat, false)?))
}

/// Whether a binary registers with the shim, in a set that is made for `any_runtime` or not.
pub(super) fn uses_shim(fat: &FatBinary, any_runtime: bool) -> Result<bool> {
    match fat.binary {
        HostBinary::Fat(_) if any_runtime => Ok(true),
        _ => Ok(needed_shim(fat.binary.original())?.is_some()),
    }
}

pub fn runtimes(component: &Component) -> Result<BTreeMap<&TreePath, bool>> {
    let mut found: BTreeMap<&TreePath, bool> = BTreeMap::new();
    for (path, node) in &component.host {
        let is_named = path.name().starts_with(RUNTIME) && path.name().contains(".so");
        if let Some(file) = node.data().filter(|_| is_named) {
            found.extend(reads_archives(file.kind.original())?.map(|reads| (path, reads)));
        }
    }
    Ok(found)
}

/// `None` for separate debug information and for files that are not x86-64 ELF.
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
