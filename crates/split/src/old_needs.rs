//! Binaries for ROCm 6 and older.
//!
//! No HIP runtime of these releases is known to read kernel archives; nobody has tried. Sources of the sonames:
//! what public wheels for ROCm 4.3 and 5.0 (cupy), 5.4 and 6.0 (jax), 6.4 (bitsandbytes, cyllama) and 7.0 to 10.1
//! (cupy, jax) need, and Debian 12 and 13. Sonames that ROCm 7 did not change (of MIOpen, hipFFT, RCCL, rocSOLVER)
//! say nothing, and those that it lowered (of ROCm SMI) are left out.

use std::collections::BTreeSet;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::tree::Tree;
use rockpack_elf::{Dynamic, ElfFile};

use super::flatten::Located;
use rockpack_report::Soname;

/// Sonames of ROCm 7.0. Lower numbers are of older releases.
const OF_ROCM_7: &str = "libamd_comgr.so.3 libamdhip64.so.7 libhipblas.so.3 libhipblaslt.so.1 libhiprtc.so.7 \
                         libhiprtc-builtins.so.7 libhipsolver.so.1 libhipsparse.so.4 librocblas.so.5 \
                         librocprofiler-sdk.so.1 librocsparse.so.1";

/// Whether only ROCm 6 and older have the library; `None` if its name does not tell.
pub fn is_old(library: &str) -> Option<bool> {
    let (name, number) = numbered(library)?;
    let mut known = OF_ROCM_7.split(' ').filter_map(numbered);
    known.find(|(of_7, _)| *of_7 == name).map(|(_, of_7)| number < of_7)
}

/// A library without its folder and the digest that auditwheel adds to its name, and its number.
fn numbered(library: &str) -> Option<(&str, u32)> {
    let (name, version) = library.rsplit('/').next()?.split_once(".so.")?;
    let number = version.split('.').next()?.parse().ok()?;
    let (stem, end) = name.rsplit_once('-').unwrap_or((name, ""));
    let is_digest = end.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some((if is_digest { stem } else { name }, number))
}

/// The libraries of ROCm 6 and older that a binary of `files` needs. If the names in it tell no release, those in
/// its libraries decide, and at last those in all `files`, unless one is of a newer release: a binary that names
/// no runtime takes the one that others load.
pub(super) fn old_needs(content: &Content, files: Option<&Tree<Located>>) -> Result<Vec<Soname>> {
    let mut names: BTreeSet<String> = named(content)?.into_iter().collect();
    let files = files.into_iter().flat_map(Tree::iter);
    let mut others: Vec<(&str, &Located)> =
        files.filter_map(|(path, node)| Some((path.name(), node.data()?))).collect();
    while !others.is_empty() && names.iter().all(|name| is_old(name).is_none()) {
        let all = !others.iter().any(|(name, _)| names.contains(*name));
        let (next, rest): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(name, _)| all || names.contains(*name));
        for (name, file) in next {
            names.insert(name.to_owned());
            names.extend(named(&file.content)?);
        }
        if all && names.iter().any(|name| is_old(name) == Some(false)) {
            names.clear();
        }
        others = rest;
    }
    Ok(names.into_iter().filter(|name| is_old(name) == Some(true)).map(Soname::from).collect())
}

/// The libraries that a file names; none if it is damaged, which its reader reports.
fn named(content: &Content) -> Result<Vec<String>> {
    match needed(content) {
        Err(error) if error.is_of_format() => Ok(Vec::new()),
        names => names,
    }
}

/// The libraries that an x86-64 program or library names.
pub fn needed(content: &Content) -> Result<Vec<String>> {
    let Some(file) = ElfFile::read(content, elf::EM_X86_64)? else { return Ok(Vec::new()) };
    let dynamic = Dynamic::read(&file)?;
    dynamic.map_or(Ok(Vec::new()), |dynamic| dynamic.names(&file, elf::DT_NEEDED))
}
