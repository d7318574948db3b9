//! Whether every transformed binary finds its code: marker → pattern → archive → row.

use std::collections::BTreeSet;

use rockpack_core::gfx::{BaseArch, Target, generic_of};

use super::excuses::Excuses;
use super::listings::{ManifestListing, listings};
use super::loader::Loader;
use super::manifests::are_complete;
use super::scope::Scope;
use super::set_archives::{Archives, archives, damaged};
use super::transformed::{TransformedBinary, transformed};
use crate::own::archive::ArchiveFacts;
use crate::own::installed::Installed;
use crate::problem::{PackagePath, Problem, Problems, SetFault};

impl TransformedBinary<'_> {
    /// The paths of the archives that the marker leads to, each with the arch in its name.
    fn finds<'b>(
        &self,
        archives: &Archives<'b>,
        listings: &[ManifestListing<'_>],
    ) -> Vec<(&'b str, Option<BaseArch>)> {
        let found = archives.keys().map(|archive| (*archive, self.finds_one(archive, listings)));
        found.filter_map(|(archive, arch)| Some((archive, arch?))).collect()
    }

    /// Whether a finding says that its code is elsewhere, or of each of its wrappers that no device code belongs to it.
    fn has_no_code(&self, excuses: &Excuses) -> bool {
        let mut wrappers = 0..self.host.elf.wrappers.len();
        excuses.keeps_file(self.path)
            || wrappers.all(|wrapper| excuses.has_no_code(self.path, wrapper))
    }

    fn key(&self, wrapper: usize) -> String {
        format!("{}#{wrapper}", self.marker.kernel_name)
    }
}

/// Checks every transformed binary.
pub(crate) fn check(
    packages: &[&Installed],
    excuses: &Excuses,
    scope: Scope,
    problems: &mut Problems,
) {
    let archives = archives(packages);
    let listings = listings(packages);
    // Where a group is missing, so may be all the code of a wrapper; or findings account for it.
    let complete = scope.has_all_archives() || are_complete(packages);
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
        check_copies(&binary, &found, &archives, problems);
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
        let found: BTreeSet<&str> = binaries
            .iter()
            .filter(|binary| binary.leads_to(path, listings))
            .map(|binary| binary.marker.kernel_name.as_str())
            .collect();
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
        let reason = format!("is where loaders look for {arch}, and lists {target}");
        problems.add(Problem::BadArchive { file: at.clone(), reason });
    }
    let loader = match Loader::new(archive, &arch) {
        Ok(loader) => loader,
        Err(reason) => return problems.add(Problem::BadArchive { file: at.clone(), reason }),
    };
    for wrapper in 0..binary.host.elf.wrappers.len() {
        let key = binary.key(wrapper);
        for fault in loader.faults(&key) {
            problems.add(Problem::RowMissing { file: at.clone(), key: key.clone(), fault });
        }
    }
}

/// The archive of an arch has a row for each wrapper that has code in the archive of its generic target:
/// loaders do not go on to that one.
fn check_copies(
    binary: &TransformedBinary<'_>,
    found: &[(&str, Option<BaseArch>)],
    archives: &Archives<'_>,
    problems: &mut Problems,
) {
    for (path, arch) in found {
        let Some((arch, generic)) = arch.as_ref().and_then(|arch| Some((arch, generic_of(arch)?)))
        else {
            continue;
        };
        let general = found.iter().find(|(_, other)| other.as_ref() == Some(generic));
        let general = general.and_then(|(path, _)| archives.get(path));
        let (Some((package, own)), Some((_, general))) = (archives.get(path), general) else {
            continue;
        };
        let Ok(loader) = Loader::new(own, arch) else { continue };
        for key in (0..binary.host.elf.wrappers.len()).map(|wrapper| binary.key(wrapper)) {
            if loader.hides(general, &key) {
                let fault = SetFault::wrong(format!(
                    "{arch} has no row, and loaders stop here with an error, although there is code for \
                     {generic}: build the set again, which copies it here"
                ));
                problems.add(Problem::RowMissing { file: package.at(path), key, fault });
            }
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
    let wrappers = 0..binary.host.elf.wrappers.len();
    for wrapper in wrappers.filter(|wrapper| !excuses.has_no_code(binary.path, *wrapper)) {
        let key = binary.key(wrapper);
        if !found.iter().any(|archive| archive.rows.contains_key(&key)) {
            let fault = SetFault::absent("no archive has a row for it, and no finding says why");
            problems.add(Problem::RowMissing { file: binary.package.at(binary.path), key, fault });
        }
    }
}
