//! Paths that two packages of a channel own, by what its state remembers of them: the files and links
//! of a `.deb`, and all that the header of an `.rpm` lists but directories and ghosts.

use std::collections::BTreeSet;

use rayon::prelude::*;
use rockpack_base::content::Content;
use rockpack_base::formats::apt_index::DebPackage;
use rockpack_base::formats::deb::parse_fields;
use rockpack_base::formats::path_digests::path_digest;
use rockpack_base::formats::rpm_md::{FileKind, IndexedDependency, RpmPackage};

use super::catalog::Catalog;
use super::state::{PoolRecord, PoolRecords};
use super::store::Store;
use crate::package::bounds::{Bound, Relations, deb_bounds};
use crate::package::differing_files::DifferingFiles;
use crate::package::indexed::{Facts, deb_path};
use crate::package::owners::{Obstacle, Owner, SharedPath, obstacles};
use crate::package::updates::RPM_LISTS;
use crate::package::{Comparison, DEB_FIELDS, Format, required_paths};
use crate::report::{Finding, Findings};

/// Findings for any two packages that conflict, for any that takes a path of a package which leaves the
/// repository (clients still have that one), and for required paths that clients do not find.
pub(super) fn findings(
    store: &dyn Store,
    format: Format,
    earlier: &PoolRecords,
    catalog: &Catalog,
) -> Findings {
    let leaving = earlier.iter().filter(|(path, _)| !catalog.records.contains_key(*path));
    let records: Vec<(&String, &PoolRecord)> =
        catalog.records.iter().chain(leaving).map(|(path, record)| (path, &**record)).collect();
    let staying = catalog.records.len();
    let names: BTreeSet<&str> =
        catalog.records.values().map(|record| record.indexed.facts.name()).collect();
    let owners: Vec<Owner<'_>> =
        records.par_iter().map(|(_, record)| owner(&record.indexed.facts)).collect();
    let mut findings = Findings::default();
    let mut files = DifferingFiles::new(|at| open(store, catalog, records[at].0));
    let shared_paths =
        obstacles(format, &owners, |pair, path| format == Format::Deb || files.differ(pair, path));
    for shared in shared_paths {
        let standing = as_it_stands(shared, staying, format, |at| {
            at >= staying && !names.contains(owners[at].name.as_str())
        });
        let Some(shared) = standing else { continue };
        let SharedPath { obstacle, first, second, path: digest } = shared;
        let [one, other] = [first, second].map(|at| named(store, catalog, records[at], digest));
        // Numbers of two paths may be the same.
        let (Some(path), true) = (&one, one == other) else { continue };
        let [first, second] =
            [first, second].map(|at| format!("{} {}", owners[at].name, owners[at].version));
        let path = format!("/{path}");
        findings.add(match obstacle {
            Obstacle::Together => Finding::PathOwnedTwice { path, format, first, second },
            Obstacle::Moved => Finding::PathMovedSilently { path, former: first, owner: second },
        });
    }
    required_paths::each_hidden(&owners[..staying], |path, owner, requirers| {
        let described = |at: &usize| format!("{} {}", owners[*at].name, owners[*at].version);
        let (path, packages) = (path.to_owned(), requirers.iter().map(described).collect());
        findings.add(Finding::RequiredPathUnlisted { path, owner: described(&owner), packages });
    });
    findings
}

/// The rest of `shared` when packages from position `staying` on leave the repository; `None` if nothing is
/// shared any more. `is_gone` tells whether no version of a package stays.
fn as_it_stands(
    shared: SharedPath,
    staying: usize,
    format: Format,
    is_gone: impl Fn(usize) -> bool,
) -> Option<SharedPath> {
    let SharedPath { obstacle, first, second, .. } = shared;
    match (first < staying, second < staying) {
        (true, true) => Some(shared),
        // rpm updates all packages at once.
        _ if format == Format::Rpm => None,
        (false, true) if obstacle == Obstacle::Moved || is_gone(first) => {
            Some(SharedPath { obstacle: Obstacle::Moved, ..shared })
        }
        (true, false) if obstacle == Obstacle::Together && is_gone(second) => {
            Some(SharedPath { obstacle: Obstacle::Moved, first: second, second: first, ..shared })
        }
        _ => None,
    }
}

fn owner(facts: &Facts) -> Owner<'_> {
    let (relations, paths) = match facts {
        Facts::Deb(package) => (deb_relations(package), package.paths.as_slice().to_vec()),
        Facts::Rpm(package) => {
            (rpm_relations(package), rpm_paths(package, true).map(path_digest).collect())
        }
        // Wheels are installed into environments, which a repository does not know.
        Facts::Wheel(_) => (Relations::default(), Vec::new()),
    };
    let shared = match facts {
        Facts::Rpm(package) => rpm_paths(package, false).map(path_digest).collect(),
        _ => Vec::new(),
    };
    let (name, arch) = (facts.name().to_owned(), facts.arch().to_owned());
    Owner { name, version: facts.version(), arch, relations, paths, shared }
}

fn deb_relations(package: &DebPackage) -> Relations<'static> {
    let Ok(fields) = parse_fields(&package.control) else { return Relations::default() };
    let relations = DEB_FIELDS.into_iter().flat_map(|(kind, name)| {
        let bounds = deb_bounds(fields.get(name).map_or("", String::as_str));
        Relations::of(bounds.map(move |bound| (kind, bound)))
    });
    Relations::of(relations.map(|(kind, bound)| (kind, bound.into_owned())))
}

fn rpm_relations(package: &RpmPackage) -> Relations<'_> {
    Relations::of(RPM_LISTS.into_iter().flat_map(|(kind, list)| {
        package.list(list).iter().map(move |dependency| (kind, bound_of(dependency)))
    }))
}

fn bound_of(dependency: &IndexedDependency) -> Bound<'_> {
    let version = dependency
        .bound
        .as_ref()
        .and_then(|(sign, evr)| Some((Comparison::of_index(sign)?, evr.text().into())));
    Bound { name: dependency.name.as_str().into(), version }
}

/// The paths of files and links if `plain`, and of directories and ghosts otherwise.
fn rpm_paths(package: &RpmPackage, plain: bool) -> impl Iterator<Item = &str> {
    let own = package.files.iter().filter(move |file| (file.kind == FileKind::Plain) == plain);
    own.map(|file| file.path.as_str())
}

/// The package at a path of the pool, if it can be read.
fn open(store: &dyn Store, catalog: &Catalog, pooled: &str) -> Option<Content> {
    match catalog.added.get(pooled) {
        Some(addition) => Some(addition.content.clone()),
        None => store.open(pooled).ok(),
    }
}

/// The path of a package that has this number, without its leading slash. A package that cannot be
/// read any more has none here; the checks of packages report it.
fn named(
    store: &dyn Store,
    catalog: &Catalog,
    (pooled, record): (&String, &PoolRecord),
    digest: u64,
) -> Option<String> {
    let found = match &record.indexed.facts {
        Facts::Rpm(package) => {
            rpm_paths(package, true).find(|path| path_digest(path) == digest).map(str::to_owned)
        }
        Facts::Deb(_) => {
            deb_path(&open(store, catalog, pooled)?, |path| path_digest(path) == digest)
        }
        Facts::Wheel(_) => None,
    };
    found.map(|path| path.trim_start_matches('/').to_owned())
}
