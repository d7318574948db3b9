//! Checks that every transformed binary finds its code: marker → pattern → archive → row.
//!
//! A device reports a fully specified target ID. The loader tries the targets that are [`compatible`] with it, commits
//! to the first one that the archive lists, and needs a row for it. The check simulates that for every device
//! ([`Loader`]): this is simpler than a rule about the necessary rows, and independent of one.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::gfx::{BaseArch, Target, compatible, generic_of};

use crate::checks::Scope;
use crate::checks::excuses::{Excuses, matches_any};
use crate::checks::manifests::{ManifestListing, has_listed_archives, listings};
use crate::checks::set_archives::{Archives, TransformedBinary, archives, damaged, transformed};
use crate::problem::{PackagePath, Problem, Problems, SetFault};
use crate::readers::archive::{ArchiveFacts, CodeKind, CodeObjectFacts, runs_on};
use crate::readers::installed::PackageContents;

pub(crate) fn check(
    packages: &[&PackageContents],
    excuses: &Excuses,
    scope: Scope,
    problems: &mut Problems,
) {
    let archives = archives(packages);
    let listings = listings(packages);
    // If a group is missing, all code of a wrapper may be missing with it; findings may explain it, too.
    let damaged = damaged(packages);
    let complete = (scope != Scope::Prefix || has_listed_archives(packages))
        && damaged.is_empty()
        && !excuses.lacks_wheels
        && excuses.absent.is_empty();
    for binary in transformed(packages) {
        // The paths of the archives that match the marker, with the arch in the name.
        let found = archives.keys().filter_map(|archive| {
            binary.match_archive(archive, &listings).map(|arch| (*archive, arch))
        });
        let found: Vec<(&str, Option<BaseArch>)> = found.collect();
        if found.is_empty() {
            // A finding may say that the code is elsewhere, or that none of the wrappers has device code.
            let mut wrappers = 0..binary.host.elf.wrappers.len();
            if damaged.iter().any(|path| binary.leads_to(path, &listings))
                || matches_any(&excuses.kept_files, binary.path)
                || wrappers.all(|wrapper| excuses.has_no_code(binary.path, wrapper))
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
            let wrappers = 0..binary.host.elf.wrappers.len();
            for wrapper in wrappers.filter(|it| !excuses.has_no_code(binary.path, *it)) {
                let key = binary.key(wrapper);
                let mut found = found.iter().filter_map(|(path, _)| archives.get(path));
                if !found.any(|(_, archive)| archive.rows.contains_key(&key)) {
                    let reason = "no archive has a row for it, and no finding explains that";
                    let (file, fault) = (binary.package.at(binary.path), SetFault::absent(reason));
                    problems.add(Problem::RowMissing { file, key, fault });
                }
            }
        }
    }
    if matches!(scope, Scope::Prefix | Scope::Wheels) {
        check_hosts(&transformed(packages), &archives, &listings, problems);
    }
}

/// Checks that every binary that an archive has code for exists, finds that archive, and has the wrappers.
fn check_hosts(
    binaries: &[TransformedBinary<'_>],
    archives: &Archives<'_>,
    listings: &[ManifestListing<'_>],
    problems: &mut Problems,
) {
    for (path, (package, archive)) in archives {
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        for binary in binaries.iter().filter(|binary| binary.leads_to(path, listings)) {
            let wrappers = found.entry(&binary.marker.kernel_name).or_default();
            *wrappers = binary.host.elf.wrappers.len().max(*wrappers);
        }
        let missing = archive.rows.keys().filter_map(|key| {
            let (name, index) = key.rsplit_once('#')?;
            let Some(wrappers) = found.get(name) else { return Some(name) };
            let exists = |at: usize| at < *wrappers && index == at.to_string();
            (!index.parse().is_ok_and(exists)).then_some(key.as_str())
        });
        let missing: BTreeSet<&str> = missing.collect();
        if !missing.is_empty() {
            let binaries = missing.into_iter().map(str::to_owned).collect();
            problems.add(Problem::HostMissing { file: package.at(path), binaries });
        }
    }
}

/// Checks that every device that loads this archive finds its code for each wrapper.
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
        let reason = format!("is where loaders look for {arch}, but lists {target}");
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

/// Checks that the archive of an arch has a row for each wrapper with code in the archive of its generic target:
/// loaders stop at the first archive.
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
                    "{arch} has no row, so loaders stop here with an error, although there is code for \
                     {generic}: build the set again, which copies it here"
                ));
                problems.add(Problem::RowMissing { file: package.at(path), key, fault });
            }
        }
    }
}

/// Maximum number of features of an arch whose combinations are all tried; two exist.
const FEATURE_LIMIT: usize = 8;

/// Simulates the loader for all devices of an archive.
pub(crate) struct Loader<'a> {
    archive: &'a ArchiveFacts,
    /// Each device with the listed target that the loader commits to.
    devices: Vec<(Target, Option<Target>)>,
}

impl<'a> Loader<'a> {
    /// Fails with a reason if `arch` or the archive has too many features.
    pub(crate) fn new(archive: &'a ArchiveFacts, arch: &BaseArch) -> Result<Self, String> {
        let listed: Vec<Target> = archive.listed.iter().filter_map(|t| t.parse().ok()).collect();
        let mut features: BTreeSet<&str> = arch.supported_features().iter().copied().collect();
        let named = listed.iter().flat_map(Target::features);
        features.extend(named.map(|(name, _)| name.as_str()));
        if features.len() > FEATURE_LIMIT {
            let count = features.len();
            return Err(format!("lists {count} features, more than exist"));
        }
        let names: Vec<String> = listed.iter().map(Target::to_string).collect();
        let devices = arch.fully_specified(features).into_iter().map(|device| {
            let id = device.to_string();
            let first = compatible(id.as_bytes())
                .find_map(|target| names.iter().position(|name| target.is(name.as_bytes())));
            (device, first.map(|at| listed[at].clone()))
        });
        Ok(Self { archive, devices: devices.collect() })
    }

    /// Whether the loader stops at this archive without a row, although `generic`, the archive of the generic target,
    /// has code for the device and the wrapper with this key.
    pub(crate) fn hides(&self, generic: &ArchiveFacts, key: &str) -> bool {
        let rows = self.archive.rows.get(key);
        let stops = |listed: &Target| rows.is_none_or(|it| !it.contains_key(&listed.to_string()));
        let targets = generic.rows.get(key).into_iter().flat_map(BTreeMap::keys);
        let code: Vec<_> = targets.filter_map(|target| generic.at(key, target)).collect();
        self.devices.iter().any(|(device, listed)| {
            listed.as_ref().is_some_and(stops)
                && code.iter().any(
                    |facts| matches!(&facts.code_kind, CodeKind::Compiled(own) if runs_on(own, device)),
                )
        })
    }

    /// The faults of the wrapper with this key: devices that can run its code, but find no code or less specific code.
    pub(crate) fn faults(&self, key: &str) -> Vec<SetFault> {
        let Some(rows) = self.archive.rows.get(key) else { return Vec::new() };
        let code = rows.keys().filter_map(|it| Some((it.as_str(), self.archive.at(key, it)?)));
        let code: BTreeMap<&str, &CodeObjectFacts> = code.collect();
        let faults = self.devices.iter().filter_map(|(device, listed)| {
            let running = code.iter().filter(|(target, facts)| {
                let row = target.parse::<Target>().is_ok_and(|target| target.runs_on(device));
                row || matches!(&facts.code_kind, CodeKind::Compiled(own) if runs_on(own, device))
            });
            let best = running.map(|(_, facts)| specificity(facts)).max()?;
            let Some(listed) = listed else {
                return Some(SetFault::absent(format!(
                    "{device} finds no listed target, although there is code for it"
                )));
            };
            match code.get(listed.to_string().as_str()) {
                None => Some(SetFault::wrong(format!(
                    "{device} looks for {listed}, for which there is no row"
                ))),
                Some(found) if specificity(found) < best => Some(SetFault::wrong(format!(
                    "{device} finds the code of {listed}, although there is more specific code"
                ))),
                Some(_) => None,
            }
        });
        faults.collect()
    }
}

/// Ranks code objects: whether for a single arch, and the number of features that the header fixes.
fn specificity(facts: &CodeObjectFacts) -> (bool, usize) {
    match &facts.code_kind {
        CodeKind::Compiled(own) => (!own.base().is_generic(), own.features().len()),
        CodeKind::UnknownProcessor | CodeKind::NotElf => (false, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive with one wrapper: row → target in the header of its code object.
    fn faults(rows: &[(&str, &str)], listed: &[&str]) -> Vec<SetFault> {
        let mut archive = ArchiveFacts {
            listed: listed.iter().map(|t| (*t).to_owned()).collect(),
            ..ArchiveFacts::default()
        };
        for (ordinal, (target, own)) in (0..).zip(rows) {
            let row = archive.rows.entry("k#0".to_owned()).or_default();
            row.insert((*target).to_owned(), ordinal);
            let code_kind = CodeKind::Compiled(own.parse().unwrap());
            archive.code_objects.push(Some(CodeObjectFacts { sha256: [0; 32], code_kind }));
        }
        let arch = rows[0].0.parse::<Target>().unwrap().base().clone();
        Loader::new(&archive, &arch).unwrap().faults("k#0")
    }

    #[test]
    fn bare_targets_serve_all_devices() {
        assert!(faults(&[("gfx90a", "gfx90a")], &["gfx90a"]).is_empty());
        assert!(faults(&[("gfx1100", "gfx1100")], &["gfx1100"]).is_empty());
        assert_eq!(faults(&[("gfx1100", "gfx1100")], &[]).len(), 1);
    }

    #[test]
    fn a_variant_of_another_wrapper_does_not_hide_the_bare_code() {
        // Another wrapper's `gfx90a:xnack+` is listed; this one has bare code only.
        let listed = ["gfx90a:xnack+", "gfx90a"];
        let found = faults(&[("gfx90a", "gfx90a")], &listed);
        assert_eq!(found.len(), 2, "both devices with XNACK: {found:?}");
        for fault in &found {
            assert!(fault.reason.ends_with("looks for gfx90a:xnack+, for which there is no row"));
        }
    }

    #[test]
    fn full_target_ids_with_the_most_specific_code_serve_all() {
        let full = ["gfx90a:sramecc+:xnack+", "gfx90a:sramecc-:xnack+"];
        let bare = ["gfx90a:sramecc+:xnack-", "gfx90a:sramecc-:xnack-"];
        let mut rows = vec![("gfx90a:xnack+", "gfx90a:xnack+"), ("gfx90a", "gfx90a")];
        rows.extend(full.map(|target| (target, "gfx90a:xnack+")));
        rows.extend(bare.map(|target| (target, "gfx90a")));
        let listed: Vec<&str> = rows.iter().map(|row| row.0).collect();
        assert!(faults(&rows, &listed).is_empty());
        // The alias of one device names the less specific code.
        rows[2].1 = "gfx90a";
        assert_eq!(faults(&rows, &listed).len(), 1);
    }

    #[test]
    fn hostile_lists_are_refused() {
        let listed: String = (0..20).map(|n| format!(":f{n}+")).collect();
        let archive =
            ArchiveFacts { listed: vec![format!("gfx90a{listed}")], ..ArchiveFacts::default() };
        assert!(Loader::new(&archive, &"gfx90a".parse().unwrap()).is_err());
    }
}
