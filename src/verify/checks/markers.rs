//! Whether every transformed binary finds its code: marker → pattern → archive → row.

use std::collections::BTreeSet;

use rockpack_base::formats::marker::{ARCH_PLACEHOLDER, Marker};
use rockpack_base::gfx::{BaseArch, Target};
use rockpack_base::tree::TreePath;

use super::excuses::Excuses;
use super::loader::Loader;
use super::manifests::{self, ManifestListing};
use super::scope::Scope;
use super::set_archives::{Archives, archives, damaged};
use crate::verify::own::archive::ArchiveFacts;
use crate::verify::own::facts::{Class, HostFacts};
use crate::verify::own::installed::Installed;
use crate::verify::problem::{ArchiveFault, PackagePath, Problem, Problems, RowLack};

/// A transformed binary of a package.
pub(in crate::verify) struct TransformedBinary<'a> {
    pub(in crate::verify) package: &'a Installed,
    pub(in crate::verify) path: &'a str,
    pub(in crate::verify) host: &'a HostFacts,
    pub(in crate::verify) marker: &'a Marker,
}

/// All transformed binaries of `packages`.
pub(in crate::verify) fn transformed<'a>(packages: &[&'a Installed]) -> Vec<TransformedBinary<'a>> {
    let files = packages.iter().flat_map(|package| package.files().map(move |f| (*package, f)));
    let binaries = files.filter_map(|(package, (path, facts))| match &facts.class {
        Class::Host(host) => {
            Some(TransformedBinary { package, path, host, marker: host.marker.as_ref()? })
        }
        _ => None,
    });
    binaries.collect()
}

impl TransformedBinary<'_> {
    /// The paths of the archives that the marker leads to, each with the arch in its name.
    pub(in crate::verify) fn finds<'b>(
        &self,
        archives: &Archives<'b>,
        listings: &[ManifestListing<'_>],
    ) -> Vec<(&'b str, Option<BaseArch>)> {
        let found = archives.keys().map(|archive| (*archive, self.finds_one(archive, listings)));
        found.filter_map(|(archive, arch)| Some((archive, arch?))).collect()
    }

    /// Whether the marker leads to the archive at this path.
    pub(in crate::verify) fn leads_to(
        &self,
        archive: &str,
        listings: &[ManifestListing<'_>],
    ) -> bool {
        self.finds_one(archive, listings).is_some()
    }

    fn finds_one(
        &self,
        archive: &str,
        listings: &[ManifestListing<'_>],
    ) -> Option<Option<BaseArch>> {
        let patterns = &self.marker.kpack_search_paths;
        let direct = patterns.iter().find_map(|p| leads_to(self.path, p, archive));
        direct.or_else(|| self.finds_listed(archive, listings))
    }

    /// Loaders of a short period looked for a manifest, and in it for the archive.
    fn finds_listed(
        &self,
        archive: &str,
        listings: &[ManifestListing<'_>],
    ) -> Option<Option<BaseArch>> {
        let patterns = &self.marker.kpack_search_paths;
        let named = |listing: &&ManifestListing<'_>| {
            patterns.iter().any(|p| leads_to(self.path, p, listing.path) == Some(None))
        };
        listings.iter().filter(named).find_map(|listing| {
            let mut files = listing.manifest.archives.iter();
            let (arch, _) = files.find(|(_, stated)| listing.beside(&stated.file) == archive)?;
            Some(arch.parse().ok())
        })
    }

    /// Whether a finding says of each of its wrappers that no device code belongs to it.
    fn has_no_code(&self, excuses: &Excuses) -> bool {
        let mut wrappers = 0..self.host.elf.wrappers.len();
        wrappers.all(|wrapper| excuses.has_no_code(self.path, wrapper))
    }

    fn key(&self, wrapper: usize) -> String {
        format!("{}#{wrapper}", self.marker.kernel_name)
    }
}

/// Checks every transformed binary.
pub(in crate::verify) fn check(
    packages: &[&Installed],
    excuses: &Excuses,
    scope: Scope,
    problems: &mut Problems,
) {
    let archives = archives(packages);
    let listings = manifests::listings(packages);
    // Where a group is missing, so may be all the code of a wrapper; or findings account for it.
    let complete = scope.has_all_archives() || manifests::are_complete(packages);
    let damaged = damaged(packages);
    let complete = complete && damaged.is_empty() && !excuses.any_absence();
    for binary in transformed(packages) {
        let found = binary.finds(&archives, &listings);
        if found.is_empty() {
            if damaged.iter().any(|path| binary.leads_to(path, &listings))
                || binary.has_no_code(excuses)
            {
                continue;
            }
            let file = binary.package.at(binary.path);
            let patterns = binary.marker.kpack_search_paths.clone();
            problems.add(Problem::MarkerUnresolved { file, patterns });
            continue;
        }
        for (path, arch) in &found {
            if let Some((package, archive)) = archives.get(path) {
                let at = package.at(path);
                check_archive(&binary, &at, archive, arch.as_ref(), problems);
            }
        }
        if complete {
            let found = found.iter().filter_map(|(path, _)| Some(archives.get(path)?.1));
            check_served(&binary, &found.collect::<Vec<_>>(), excuses, problems);
        }
    }
    if scope.has_all_binaries() {
        check_hosts(&transformed(packages), &archives, &listings, problems);
    }
}

/// Every binary that an archive has code of is there, and finds that archive.
fn check_hosts(
    binaries: &[TransformedBinary<'_>],
    archives: &Archives<'_>,
    listings: &[ManifestListing<'_>],
    problems: &mut Problems,
) {
    for (path, (package, archive)) in archives {
        let finds = |binary: &&TransformedBinary<'_>| binary.leads_to(path, listings);
        let found = binaries.iter().filter(finds).map(|binary| binary.marker.kernel_name.as_str());
        let found: BTreeSet<&str> = found.collect();
        let named = archive.rows.keys().filter_map(|key| Some(key.rsplit_once('#')?.0));
        let missing: BTreeSet<&str> = named.filter(|name| !found.contains(name)).collect();
        if !missing.is_empty() {
            let binaries = missing.into_iter().map(str::to_owned).collect();
            problems.add(Problem::HostMissing { file: package.at(path), binaries });
        }
    }
}

/// Every device that loads this archive finds what it has for each wrapper.
fn check_archive(
    binary: &TransformedBinary<'_>,
    at: &PackagePath,
    archive: &ArchiveFacts,
    named: Option<&BaseArch>,
    problems: &mut Problems,
) {
    let listed = archive.listed.iter().filter_map(|text| text.parse::<Target>().ok());
    let Some(arch) = named.cloned().or_else(|| listed.clone().map(|t| t.base().clone()).next())
    else {
        return;
    };
    for target in listed.filter(|target| *target.base() != arch) {
        let fault = ArchiveFault::OtherArch { arch: arch.clone(), target };
        problems.add(Problem::BadArchive { file: at.clone(), fault });
    }
    let loader = match Loader::new(archive, &arch) {
        Ok(loader) => loader,
        Err(fault) => return problems.add(Problem::BadArchive { file: at.clone(), fault }),
    };
    for wrapper in 0..binary.host.elf.wrappers.len() {
        let key = binary.key(wrapper);
        for lack in loader.faults(&key) {
            problems.add(Problem::RowMissing { file: at.clone(), key: key.clone(), lack });
        }
    }
}

/// Every wrapper has code in some archive.
fn check_served(
    binary: &TransformedBinary<'_>,
    found: &[&ArchiveFacts],
    excuses: &Excuses,
    problems: &mut Problems,
) {
    let needs_code = |wrapper: &usize| !excuses.has_no_code(binary.path, *wrapper);
    for wrapper in (0..binary.host.elf.wrappers.len()).filter(needs_code) {
        let key = binary.key(wrapper);
        if !found.iter().any(|archive| archive.rows.contains_key(&key)) {
            let (file, lack) = (binary.package.at(binary.path), RowLack::Everywhere);
            problems.add(Problem::RowMissing { file, key, lack });
        }
    }
}

/// Whether `pattern`, relative to the directory of the binary at `path`, names `archive`, and if
/// so, for which arch; a pattern without a placeholder names none.
fn leads_to(path: &str, pattern: &str, archive: &str) -> Option<Option<BaseArch>> {
    let binary = TreePath::new(path.trim_start_matches('/')).ok()?;
    let resolved = binary.resolve_link(pattern)?;
    let archive = archive.trim_start_matches('/');
    match resolved.as_str().split_once(ARCH_PLACEHOLDER) {
        Some((before, after)) => {
            let arch = archive.strip_prefix(before)?.strip_suffix(after)?;
            arch.parse().ok().map(Some)
        }
        None => (archive == resolved.as_str()).then_some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_the_archives_of_its_own_component() {
        let to = |binary, pattern, archive| leads_to(binary, pattern, archive);
        let library =
            |archive| to("/opt/r/lib/liba.so", ".kpack/blas_lib_@GFXARCH@.kpack", archive);
        assert_eq!(library("/opt/r/lib/.kpack/blas_lib_gfx90a.kpack"), Some("gfx90a".parse().ok()));
        assert_eq!(library("/opt/r/lib/.kpack/sparse_lib_gfx90a.kpack"), None);
        assert_eq!(library("/opt/r/lib/.kpack/blas_lib_x.kpack"), None);
        let binary = "/opt/r/bin/a";
        let archive = "/opt/r/lib/.kpack/b_gfx1100.kpack";
        let found = to(binary, "../lib/.kpack/b_@GFXARCH@.kpack", archive);
        assert_eq!(found, Some("gfx1100".parse().ok()));
        assert_eq!(to(binary, "../lib/.kpack/b_gfx1100.kpack", archive), Some(None));
        assert_eq!(to(binary, "../../../../etc/@GFXARCH@", archive), None);
    }
}
