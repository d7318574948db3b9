//! Paths that two packages of a channel own, from the recorded facts: the files and links of a `.deb`, and the paths
//! in the header of an `.rpm` except directories and ghosts.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rayon::prelude::*;
use rockpack_archive::path_digests::path_digest;
use rockpack_archive::rpm::RpmFront;
use rockpack_archive::rpm_md::{FileKind, RpmPackage};
use rockpack_package::Format;
use rockpack_package::indexed::{IndexMetadata, deb_path};
use rockpack_package::offered::OfferedPackage;
use rockpack_package::owners::{
    Owner, PathConflict, PathConflictKind, differing_files, each_hidden_path, path_conflicts,
};
use rockpack_report::{Finding, Findings, found};

use super::catalog::Catalog;
use super::next::Publication;
use super::state::PoolRecord;
use super::store::Store;

/// Findings about packages that conflict, about packages that take over a path of a removed package, which clients
/// still have, and about required paths that clients do not find.
pub(super) fn findings(run: &Publication<'_>, format: Format, catalog: &Catalog<'_>) -> Findings {
    let Publication { store, earlier, .. } = *run;
    let leaving = earlier.records.iter().filter(|(path, _)| !catalog.records.contains_key(*path));
    let records: Vec<(&String, &PoolRecord)> =
        catalog.records.iter().chain(leaving).map(|(path, record)| (path, &**record)).collect();
    let staying = catalog.records.len();
    let names: BTreeSet<&str> =
        catalog.records.values().map(|record| record.indexed.facts.name()).collect();
    let owners: Vec<Owner<'_>> =
        records.par_iter().map(|(_, record)| owner(&record.indexed.facts)).collect();
    let mut findings = Findings::default();
    let mut differ = differing_files(|at| catalog.open(store, records[at].0).ok());
    let shared_paths =
        path_conflicts(format, &owners, |pair, path| format == Format::Deb || differ(pair, path));
    for shared in shared_paths {
        let PathConflict { kind, first, second, path: digest } = shared;
        // Whether no version of a removed package stays.
        let is_gone = |at: usize| !names.contains(owners[at].package.name);
        let (kind, first, second) = match (first < staying, second < staying) {
            (true, true) => (kind, first, second),
            // rpm updates all packages at once.
            _ if format == Format::Rpm => continue,
            (false, true) if kind == PathConflictKind::Moved || is_gone(first) => {
                (PathConflictKind::Moved, first, second)
            }
            (true, false) if kind == PathConflictKind::BothInstallable && is_gone(second) => {
                (PathConflictKind::Moved, second, first)
            }
            _ => continue,
        };
        let [one, other] =
            [first, second].map(|at| path_by_digest(store, catalog, records[at], digest));
        // Two paths may have the same digest.
        let (Some(path), true) = (&one, one == other) else { continue };
        let [first, second] = [first, second].map(|at| owners[at].package.name_and_version());
        let path = format!("/{path}");
        findings.add(match kind {
            PathConflictKind::BothInstallable => {
                Finding::from(found::PathOwnedTwice { path, format, first, second })
            }
            PathConflictKind::Moved => {
                Finding::from(found::PathMovedSilently { path, former: first, owner: second })
            }
        });
    }
    each_hidden_path(&owners[..staying], |path, owner, requirers| {
        let described = |at: &usize| owners[*at].package.name_and_version();
        let (packages, owner) = (requirers.iter().map(described).collect(), described(&owner));
        let path = path.to_owned();
        findings.add(found::RequiredPathUnlisted { path, owner, packages });
    });
    findings
}

fn owner(facts: &IndexMetadata) -> Owner<'_> {
    let (paths, shared) = match facts {
        IndexMetadata::Deb(package) => (Cow::Borrowed(&package.paths), Vec::new()),
        IndexMetadata::Rpm(package) => {
            (Cow::Borrowed(&package.paths), package.shared.iter().collect())
        }
        // Wheels are installed into environments, which a repository does not know.
        IndexMetadata::Wheel(_) => (Cow::default(), Vec::new()),
    };
    Owner { package: OfferedPackage::from(facts), paths, shared }
}

/// The path in a package with this digest, without its leading slash. `None` if the package is unreadable, which other
/// checks report.
fn path_by_digest(
    store: &dyn Store,
    catalog: &Catalog<'_>,
    (pooled, record): (&String, &PoolRecord),
    digest: u64,
) -> Option<String> {
    let found = match &record.indexed.facts {
        IndexMetadata::Rpm(_) => {
            let front = RpmFront::read(&catalog.open(store, pooled).ok()?).ok()?;
            let files = RpmPackage::of_front(&front).ok()?.1.files;
            let mut plain = files.into_iter().filter(|file| file.kind == FileKind::Plain);
            plain.find(|file| path_digest(&file.path) == digest).map(|file| file.path)
        }
        IndexMetadata::Deb(_) => {
            let content = catalog.open(store, pooled).ok()?;
            deb_path(&content, |path| path_digest(path) == digest)
        }
        IndexMetadata::Wheel(_) => None,
    };
    found.map(|path| path.trim_start_matches('/').to_owned())
}
