//! Invariants of a package set, per format: what is where, who owns it, and whether every marker
//! leads somewhere.

use std::collections::BTreeMap;

use super::facts::{ArchiveFacts, Class, FileFacts};
use super::host_elf::{HIPK, HostElf};
use super::installed::{Installed, InstalledNode};
use super::problem::{Check, Problem};
use crate::formats::marker::Marker;
use crate::gfx::Target;
use crate::tree::TreePath;

/// Checks the packages of one format against each other.
pub(super) fn check(packages: &[&Installed]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let kernels = kernel_packages(packages);
    for package in packages {
        match kernels.get(package.name.as_str()) {
            Some(archs) => check_kernel_package(package, archs, &mut problems),
            None => check_host_package(package, &mut problems),
        }
    }
    check_ownership(packages, &mut problems);
    check_markers(packages, &mut problems);
    problems
}

/// The kernel packages: those that own an archive, or code objects and no host code. Value: the
/// archs they say they are for, or none where they do not say.
fn kernel_packages<'a>(packages: &[&'a Installed]) -> BTreeMap<&'a str, Vec<String>> {
    let own = |p: &&&Installed| p.kernel_archs.is_some();
    packages
        .iter()
        .filter(own)
        .map(|p| (p.name.as_str(), p.kernel_archs.clone().unwrap_or_default()))
        .collect()
}

fn check_kernel_package(package: &Installed, archs: &[String], problems: &mut Vec<Problem>) {
    for (path, facts) in package.files() {
        let subject = format!("{}:{path}", package.file);
        let foreign = |arch: &str| !archs.is_empty() && !archs.iter().any(|own| own == arch);
        match &facts.class {
            Class::Host { .. } => {
                let message = "a kernel package installs x86-64 code";
                problems.push(Problem::new(Check::HostCodeInKernels, subject, message));
            }
            Class::CodeObject(Some(arch)) if foreign(arch.as_str()) => {
                let message = format!("code for {arch} in the package of {}", archs.join(", "));
                problems.push(Problem::new(Check::ForeignArch, subject, message));
            }
            Class::Archive(archive) => check_archive(archive, archs, &subject, problems),
            Class::Broken(error) => {
                problems.push(Problem::new(Check::BadArchive, subject, error.to_string()));
            }
            _ => {}
        }
    }
}

/// An archive's rows are for its archs, and their code objects are what the rows say.
fn check_archive(
    archive: &ArchiveFacts,
    archs: &[String],
    subject: &str,
    problems: &mut Vec<Problem>,
) {
    for listed in &archive.archs {
        let base = listed.split(':').next().unwrap_or_default();
        if !archs.is_empty() && !archs.iter().any(|own| own == base) {
            let message = format!("lists {listed} in the package of {}", archs.join(", "));
            problems.push(Problem::new(Check::ForeignArch, subject, message));
        }
    }
    let by_digest: BTreeMap<_, _> = archive.code_objects.iter().map(|c| (c.sha256, c)).collect();
    for (key, targets) in &archive.rows {
        for (target, sha256) in targets {
            let Some(found) = by_digest.get(sha256) else {
                continue;
            };
            if let Some(message) = row_fault(target, found.arch.as_ref().map(|arch| arch.as_str()))
            {
                let message = format!("{key} [{target}]: {message}");
                problems.push(Problem::new(Check::BadArchive, subject, message));
            }
        }
    }
}

/// What is wrong with a row for `target` whose code object's header names `arch`.
fn row_fault(target: &str, arch: Option<&str>) -> Option<String> {
    let parsed: Target = match target.parse() {
        Ok(parsed) => parsed,
        Err(error) => return Some(error.to_string()),
    };
    let base = parsed.base();
    // The header cannot tell `gfx1250-strict` from `gfx1250`.
    let plain = base.as_str().strip_suffix("-strict").unwrap_or(base.as_str());
    match arch {
        None if base.is_spirv() => None,
        None => Some("its code object is for no known processor".to_owned()),
        Some(arch) if arch == base.as_str() || arch == plain => None,
        Some(arch) => Some(format!("its code object is for {arch}")),
    }
}

fn check_host_package(package: &Installed, problems: &mut Vec<Problem>) {
    for (path, facts) in package.files() {
        let subject = format!("{}:{path}", package.file);
        let mut device = |what: &str| {
            problems.push(Problem::new(Check::DeviceCodeInHost, &subject, what));
        };
        match &facts.class {
            Class::CodeObject(_) => device("a code object outside of a kernel package"),
            Class::Bundle => device("an offload bundle outside of a kernel package"),
            Class::Archive(_) => device("a kernel archive outside of a kernel package"),
            Class::Host { elf, marker, fat } => {
                for message in host_faults(elf, marker.as_ref()) {
                    problems.push(Problem::new(Check::BadHostBinary, &subject, message));
                }
                if *fat {
                    let message = "its .hip_fatbin still has content";
                    problems.push(Problem::new(Check::DeviceCodeInHost, &subject, message));
                }
            }
            Class::Broken(error) => {
                problems.push(Problem::new(Check::BadHostBinary, &subject, error.to_string()));
            }
            Class::Other | Class::Manifest => {}
        }
    }
}

/// Contradictions between wrappers and marker of one host binary.
fn host_faults(elf: &HostElf, marker: Option<&Marker>) -> Vec<String> {
    let mut faults = Vec::new();
    let transformed = elf.wrappers.iter().filter(|w| w.magic == HIPK).count();
    if transformed != 0 && transformed != elf.wrappers.len() {
        faults.push(format!("{transformed} of {} wrappers are transformed", elf.wrappers.len()));
    }
    if (transformed != 0) != marker.is_some() {
        faults.push("has a marker without transformed wrappers, or the reverse".to_owned());
    }
    let Some(section) = elf.marker else {
        return faults;
    };
    for (position, wrapper) in elf.wrappers.iter().enumerate() {
        if wrapper.pointer != section.address {
            faults.push(format!(
                "wrapper {position} points to {:#x}, not to the marker",
                wrapper.pointer
            ));
        }
        if usize::try_from(wrapper.co_index) != Ok(position) {
            faults.push(format!("wrapper {position} has the index {}", wrapper.co_index));
        }
    }
    faults
}

/// Everything but a directory has one owner; directories agree in their mode.
fn check_ownership(packages: &[&Installed], problems: &mut Vec<Problem>) {
    let mut owners: BTreeMap<&str, (&Installed, &InstalledNode)> = BTreeMap::new();
    for package in packages {
        for (path, node) in &package.paths {
            let Some((first, there)) = owners.insert(path, (package, node)) else {
                continue;
            };
            let shared = matches!(
                (there, node),
                (InstalledNode::Directory { mode: a }, InstalledNode::Directory { mode: b }) if a == b
            );
            if !shared {
                let message = format!("is owned by {} and {}", first.file, package.file);
                problems.push(Problem::new(Check::PathOwnedTwice, path, message));
            }
        }
    }
}

/// Every transformed binary finds an archive, and every archive it finds has a row for each of its
/// wrappers and each target that the archive has for any wrapper of that binary.
fn check_markers(packages: &[&Installed], problems: &mut Vec<Problem>) {
    let archives: BTreeMap<&str, (&ArchiveFacts, &Installed)> = packages
        .iter()
        .flat_map(|package| package.files().map(move |(path, facts)| (path, facts, *package)))
        .filter_map(|(path, facts, package)| match &facts.class {
            Class::Archive(archive) => Some((path, (archive, package))),
            _ => None,
        })
        .collect();
    for package in packages {
        for (path, facts) in package.files() {
            if let Some((elf, marker)) = transformed(facts) {
                let subject = format!("{}:{path}", package.file);
                check_marker(path, elf, marker, &archives, &subject, problems);
            }
        }
    }
}

fn transformed(facts: &FileFacts) -> Option<(&HostElf, &Marker)> {
    match &facts.class {
        Class::Host { elf, marker: Some(marker), .. } => Some((elf, marker)),
        _ => None,
    }
}

fn check_marker(
    path: &str,
    elf: &HostElf,
    marker: &Marker,
    archives: &BTreeMap<&str, (&ArchiveFacts, &Installed)>,
    subject: &str,
    problems: &mut Vec<Problem>,
) {
    let found: Vec<_> = archives
        .iter()
        .filter(|(archive, _)| marker.kpack_search_paths.iter().any(|p| leads_to(path, p, archive)))
        .collect();
    if found.is_empty() {
        let message = format!("{:?} leads to no archive of the set", marker.kpack_search_paths);
        problems.push(Problem::new(Check::MarkerUnresolved, subject, message));
    }
    let key = |index: usize| format!("{}#{index}", marker.kernel_name);
    let mut served = vec![false; elf.wrappers.len()];
    for (archive_path, (archive, _)) in found {
        for (index, served) in served.iter_mut().enumerate() {
            let row = archive.rows.get(&key(index));
            *served |= row.is_some();
            let missing =
                row.iter().flat_map(|row| missing_targets(row, &archive.archs)).collect::<Vec<_>>();
            if !missing.is_empty() {
                let message = format!(
                    "{archive_path} lists {} but {} has no such row",
                    missing.join(", "),
                    key(index)
                );
                problems.push(Problem::new(Check::RowMissing, subject, message));
            }
        }
    }
    for index in served.iter().enumerate().filter(|(_, served)| !**served).map(|(index, _)| index) {
        let message = format!("no archive has a row for {}", key(index));
        problems.push(Problem::new(Check::RowMissing, subject, message));
    }
}

/// Listed targets that some code object of the row could serve but that have no entry.
fn missing_targets(row: &BTreeMap<String, [u8; 32]>, listed: &[String]) -> Vec<String> {
    let parse = |text: &String| text.parse::<Target>().ok();
    let served = |target: &Target| row.keys().filter_map(parse).any(|own| own.runs_on(target));
    let missing =
        |text: &&String| !row.contains_key(*text) && parse(text).is_some_and(|t| served(&t));
    listed.iter().filter(missing).cloned().collect()
}

/// Whether `pattern`, relative to the directory of the binary at `path`, names `archive` for some
/// arch.
fn leads_to(path: &str, pattern: &str, archive: &str) -> bool {
    let Ok(binary) = TreePath::new(path.trim_start_matches('/')) else {
        return false;
    };
    let Some(resolved) = binary.resolve_link(pattern) else {
        return false;
    };
    let archive = archive.trim_start_matches('/');
    match resolved.as_str().split_once("@GFXARCH@") {
        Some((before, after)) => archive
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after))
            .is_some_and(|arch| !arch.contains('/') && arch.parse::<Target>().is_ok()),
        None => archive == resolved.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_the_archives_of_its_own_component() {
        let to =
            |archive| leads_to("/opt/r/lib/liba.so", ".kpack/blas_lib_@GFXARCH@.kpack", archive);
        assert!(to("/opt/r/lib/.kpack/blas_lib_gfx90a.kpack"));
        assert!(!to("/opt/r/lib/.kpack/sparse_lib_gfx90a.kpack"));
        assert!(!to("/opt/r/lib/.kpack/blas_lib_x.kpack"));
        assert!(leads_to(
            "/opt/r/bin/a",
            "../lib/.kpack/b_@GFXARCH@.kpack",
            "/opt/r/lib/.kpack/b_gfx1100.kpack"
        ));
    }

    #[test]
    fn a_row_must_be_for_its_code_objects_arch() {
        assert!(row_fault("gfx90a:xnack+", Some("gfx90a")).is_none());
        assert!(row_fault("gfx1250-strict", Some("gfx1250")).is_none());
        assert!(row_fault("gfx1100", Some("gfx1101")).is_some());
        assert!(row_fault("gfx1100", None).is_some());
        assert!(row_fault("amdgcnspirv", None).is_none());
    }
}
