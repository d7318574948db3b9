//! The packages that come with a kernel package.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::gfx::{BaseArch, SPIRV, Target, generic_of};

use super::listings::listings;
use super::set_archives::{archives, shipped};
use super::transformed::transformed;
use crate::package::required_paths;
use crate::package::requirement::Bound;
use crate::package::resolver::Resolver;
use crate::verify::own::facts::Class;
use crate::verify::own::installed::Installed;
use crate::verify::problem::{DependencyLack, ForeignCode, Problem, ProblemPlace, Problems};

/// Checks the dependencies of every package of a set. Kernel packages must also depend on exactly their
/// host's version and bring no other group's kernels.
pub(in crate::verify) fn check(packages: &[&Installed], problems: &mut Problems) {
    let hosts = hosts(packages);
    let by_name: BTreeMap<&str, &Installed> =
        packages.iter().map(|package| (package.name.as_str(), *package)).collect();
    check_relations(packages, &by_name, problems);
    for package in packages {
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
        if !is_bound && !package.requires().any(|r| r.exact() == own) {
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
    let needs: Vec<(&Installed, &Bound<'_>)> =
        kernels.flat_map(|package| package.requires().map(move |r| (*package, r))).collect();
    // Content that several groups share is in packages that their kernel packages need.
    let exact = needs.iter().filter(|(_, r)| r.exact().is_some());
    let shared: BTreeSet<&str> = exact.map(|(_, r)| &*r.name).collect();
    let own = needs.iter().filter(|(package, _)| !shared.contains(package.name.as_str()));
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

/// Reports needs for versions of a package that the set has in another, and required paths of the set for
/// which clients find no package.
fn check_relations(
    packages: &[&Installed],
    by_name: &BTreeMap<&str, &Installed>,
    problems: &mut Problems,
) {
    let Some(format) = packages.iter().find_map(|package| package.format) else { return };
    let offered: Vec<_> = packages.iter().map(|package| package.offered()).collect();
    let resolver = Resolver::new(format, offered.iter().collect());
    for unmet in resolver.unmet(&resolver) {
        let Some(bound) = unmet.requirement.bound() else { continue };
        if let (Some(there), Some((sign, wanted))) = (by_name.get(&*bound.name), &bound.version) {
            let (dependency, version) = (there.name.clone(), there.version.clone());
            let (sign, wanted) = (sign.sign(format).to_owned(), wanted.to_string());
            let lack = DependencyLack::OtherVersion { dependency, sign, wanted, version };
            add(packages[unmet.package], lack, problems);
        }
    }
    for (package, offered) in packages.iter().zip(&offered) {
        let paths = offered.relations.needs();
        for path in paths.flat_map(|need| required_paths::unmet(need, |name| resolver.knows(name)))
        {
            if let Some(owner) = packages.iter().find(|other| other.paths.contains_key(&path)) {
                let owner = owner.file.clone();
                add(package, DependencyLack::PathUnlisted { path, owner }, problems);
            }
        }
    }
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
        let needed = from.requires().filter_map(|r| by_name.get(&*r.name));
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
