//! The packages that come with a kernel package.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::gfx::{BaseArch, SPIRV, Target, generic_of};

use super::listings::listings;
use super::set_archives::{archives, shipped};
use super::transformed::transformed;
use crate::package::required_paths;
use crate::verify::own::facts::Class;
use crate::verify::own::installed::Installed;
use crate::verify::problem::{DependencyLack, ForeignCode, Problem, ProblemPlace, Problems};

/// Checks the dependencies of every package of a set. Kernel packages must also depend on exactly their
/// host's version and bring no other group's kernels.
pub(in crate::verify) fn check(packages: &[&Installed], problems: &mut Problems) {
    let hosts = hosts(packages);
    let by_name: BTreeMap<&str, &Installed> =
        packages.iter().map(|package| (package.name.as_str(), *package)).collect();
    for package in packages {
        for lack in unmet(package, &by_name).into_iter().chain(unlisted(package, packages)) {
            add(package, lack, problems);
        }
        if !package.has_kernels() {
            continue;
        }
        let own = hosts.get(package.file.as_str());
        for host in own.into_iter().flatten().filter(|host| !package.is_tied_to(host)) {
            let (host, version) = (host.name.clone(), host.version.clone());
            add(package, DependencyLack::Host { host, version }, problems);
        }
        let is_bound = packages.iter().any(|other| package.is_bound_to(other));
        let own = Some(package.version.as_str());
        if !is_bound && !package.requires.iter().any(|r| r.exact() == own) {
            add(package, DependencyLack::OwnVersion, problems);
        }
        check_brought(package, &by_name, problems);
    }
    check_groups(packages, &hosts, problems);
    check_fallbacks(packages, problems);
}

/// A kernel package depends on exactly the package with the generic code, or SPIR-V, of each wrapper of its host
/// that has no code for one of its archs.
fn check_fallbacks(packages: &[&Installed], problems: &mut Problems) {
    let (archives, listings) = (archives(packages), listings(packages));
    let kernels = packages.iter().filter(|package| package.has_kernels());
    let needs = kernels.flat_map(|package| package.requires.iter().map(move |r| (*package, r)));
    // Content that several groups share is in packages that their kernel packages need.
    let exact = needs.clone().filter(|(_, r)| r.exact().is_some());
    let shared: BTreeSet<&str> = exact.map(|(_, r)| &*r.name).collect();
    let own = needs.filter(|(package, _)| !shared.contains(package.name.as_str()));
    let mut by_host: BTreeMap<&str, Vec<&Installed>> = BTreeMap::new();
    own.for_each(|(package, r)| by_host.entry(&*r.name).or_default().push(package));
    let mut untied = BTreeMap::new();
    for binary in transformed(packages) {
        let Some(kernels) = by_host.get(binary.package.name.as_str()) else { continue };
        let mut sources: BTreeMap<&str, BTreeMap<BaseArch, &Installed>> = BTreeMap::new();
        for (path, arch) in binary.finds(&archives, &listings) {
            let (Some((package, archive)), Some(arch)) = (archives.get(path), arch) else {
                continue;
            };
            for row in archive.entries().filter(|row| !row.is_copy() && binary.has_key(row.key)) {
                sources.entry(row.key).or_default().insert(arch.clone(), package);
            }
        }
        for sources in sources.values() {
            for package in kernels {
                for source in fallbacks(package, sources).filter(|it| !package.is_tied_to(it)) {
                    untied.insert((&package.file, &source.file), (*package, source));
                }
            }
        }
    }
    for (package, source) in untied.into_values() {
        let (host, version) = (source.name.clone(), source.version.clone());
        add(package, DependencyLack::Host { host, version }, problems);
    }
}

/// The packages with the code of a wrapper for generic targets and SPIR-V that GPUs of `package` need.
fn fallbacks<'a>(
    package: &Installed,
    sources: &BTreeMap<BaseArch, &'a Installed>,
) -> impl Iterator<Item = &'a Installed> {
    let stated = package.stated_archs.iter().flatten().filter_map(|arch| arch.parse().ok());
    stated.filter_map(|arch: BaseArch| {
        let is_served = arch.is_generic() || arch.is_spirv() || sources.contains_key(&arch);
        let others = [generic_of(&arch).cloned(), SPIRV.parse().ok()].into_iter().flatten();
        let source = others.filter(|_| !is_served).find_map(|other| sources.get(&other))?;
        (source.file != package.file).then_some(*source)
    })
}

fn add(package: &Installed, lack: DependencyLack, problems: &mut Problems) {
    problems.add(Problem::DependencyMissing { package: package.file.clone(), lack });
}

/// Package file → the host packages whose markers or manifests lead to its archives.
fn hosts<'a>(packages: &[&'a Installed]) -> BTreeMap<&'a str, Vec<&'a Installed>> {
    let (archives, listings) = (archives(packages), listings(packages));
    let mut found: Vec<(&Installed, String)> = Vec::new();
    for binary in transformed(packages) {
        let paths = binary.finds(&archives, &listings);
        found.extend(paths.into_iter().map(|(path, _)| (binary.package, path.to_owned())));
    }
    for listing in &listings {
        let files = listing.manifest.archives.values().map(|archive| &archive.file);
        found.extend(files.map(|file| (listing.package, listing.beside(file))));
    }
    let mut hosts: BTreeMap<&str, Vec<&Installed>> = BTreeMap::new();
    for (host, path) in found {
        if let Some((package, _)) = archives.get(path.as_str()) {
            let known = hosts.entry(package.file.as_str()).or_default();
            if !known.iter().any(|known| known.file == host.file) {
                known.push(host);
            }
        }
    }
    hosts
}

/// Needs for versions of a package that the set has in another.
fn unmet(package: &Installed, by_name: &BTreeMap<&str, &Installed>) -> Vec<DependencyLack> {
    let lacks = package.requires.iter().filter_map(|requirement| {
        let (comparison, wanted) = requirement.version.clone()?;
        let there = by_name.get(&*requirement.name)?;
        let format = package.format.filter(|it| !requirement.admits(*it, &there.version))?;
        let (dependency, version) = (there.name.clone(), there.version.clone());
        let (sign, wanted) = (comparison.sign(format).to_owned(), wanted.into_owned());
        Some(DependencyLack::OtherVersion { dependency, sign, wanted, version })
    });
    lacks.collect()
}

/// Required paths of the set for which clients find no package.
fn unlisted(package: &Installed, packages: &[&Installed]) -> impl Iterator<Item = DependencyLack> {
    let offers = move || packages.iter().flat_map(|other| &other.provides);
    let is_provided = move |name: &str| offers().any(|offer| offer.name == name);
    let open = package.named.iter().flat_map(move |name| required_paths::unmet(name, is_provided));
    open.filter_map(move |path| {
        let owner = packages.iter().find(|other| other.paths.contains_key(&path))?;
        Some(DependencyLack::PathUnlisted { path, owner: owner.file.clone() })
    })
}

/// Nothing that comes with a kernel package is for other archs only.
fn check_brought(
    package: &Installed,
    by_name: &BTreeMap<&str, &Installed>,
    problems: &mut Problems,
) {
    let own = archs(package);
    let mut brought = BTreeSet::new();
    let mut next = vec![package];
    while let Some(from) = next.pop() {
        let needed = from.requires.iter().filter_map(|r| by_name.get(&*r.name));
        for needed in needed.filter(|needed| needed.file != package.file) {
            if brought.insert(needed.file.as_str()) {
                next.push(needed);
            }
        }
    }
    let packages = by_name.values().filter(|other| brought.contains(other.file.as_str()));
    for other in packages.filter(|other| other.has_kernels()) {
        let archs = archs(other);
        // Code of generic targets and SPIR-V serves other archs, too.
        let serves_others = archs.iter().all(|arch| arch.ends_with("-generic") || arch == SPIRV);
        if !serves_others && !own.is_empty() && !archs.is_empty() && own.is_disjoint(&archs) {
            problems.add(Problem::OtherGroupNeeded {
                package: package.file.clone(),
                brought: other.file.clone(),
                archs: archs.into_iter().collect(),
            });
        }
    }
}

/// The archs of a kernel package: what it says, or else what its archives list.
fn archs(package: &Installed) -> BTreeSet<String> {
    match &package.stated_archs {
        Some(stated) => stated.iter().cloned().collect(),
        None => archive_archs(package, &BTreeSet::new()),
    }
}

/// The archs that the archives of a package list, without those at the paths `but`.
fn archive_archs(package: &Installed, but: &BTreeSet<&str>) -> BTreeSet<String> {
    let mut archs = BTreeSet::new();
    for (_, facts) in package.files().filter(|(path, _)| !but.contains(path)) {
        if let Class::Archive(archive) = &facts.class {
            let targets = archive.listed.iter().filter_map(|text| text.parse::<Target>().ok());
            archs.extend(targets.map(|target| target.base().to_string()));
        }
    }
    archs
}

/// An arch is in one group: of all kernel packages of a host, one has its archives.
fn check_groups(
    packages: &[&Installed],
    hosts: &BTreeMap<&str, Vec<&Installed>>,
    problems: &mut Problems,
) {
    let shipped = shipped(packages);
    let mut first: BTreeMap<(&str, String), &Installed> = BTreeMap::new();
    for package in packages {
        for host in hosts.get(package.file.as_str()).into_iter().flatten() {
            for arch in archive_archs(package, &shipped) {
                let key = (host.file.as_str(), arch.clone());
                let other = *first.entry(key).or_insert(package);
                if other.file != package.file {
                    let place = ProblemPlace::Package(package.file.clone());
                    let found = ForeignCode::SecondGroup { arch, other: other.file.clone() };
                    problems.add(Problem::ForeignArch { place, found });
                }
            }
        }
    }
}
