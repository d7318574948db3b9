//! Paths that two packages of a channel own, by what its state remembers of them: the files and links
//! of a `.deb`, and all that the header of an `.rpm` lists but directories and ghosts.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rayon::prelude::*;
use rockpack_archive::path_digests::path_digest;
use rockpack_archive::rpm::Front;
use rockpack_archive::rpm_md::{FileKind, RpmPackage};
use rockpack_package::Format;
use rockpack_package::indexed::{Facts, deb_path};
use rockpack_package::offered::Offered;
use rockpack_package::owners::{
    Obstacle, Owner, SharedPath, differing_files, each_hidden_path, obstacles,
};
use rockpack_report::{Finding, Findings, found};

use super::catalog::Catalog;
use super::next::Publication;
use super::state::PoolRecord;
use super::store::Store;

/// Findings for any two packages that conflict, for any that takes a path of a package which leaves the
/// repository (clients still have that one), and for required paths that clients do not find.
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
        obstacles(format, &owners, |pair, path| format == Format::Deb || differ(pair, path));
    for shared in shared_paths {
        let SharedPath { obstacle, first, second, path: digest } = shared;
        // Whether no version of a package that leaves the repository stays.
        let is_gone = |at: usize| !names.contains(owners[at].package.name);
        let (obstacle, first, second) = match (first < staying, second < staying) {
            (true, true) => (obstacle, first, second),
            // rpm updates all packages at once.
            _ if format == Format::Rpm => continue,
            (false, true) if obstacle == Obstacle::Moved || is_gone(first) => {
                (Obstacle::Moved, first, second)
            }
            (true, false) if obstacle == Obstacle::Together && is_gone(second) => {
                (Obstacle::Moved, second, first)
            }
            _ => continue,
        };
        let [one, other] = [first, second].map(|at| named(store, catalog, records[at], digest));
        // Numbers of two paths may be the same.
        let (Some(path), true) = (&one, one == other) else { continue };
        let [first, second] = [first, second].map(|at| owners[at].package.name_and_version());
        let path = format!("/{path}");
        findings.add(match obstacle {
            Obstacle::Together => {
                Finding::from(found::PathOwnedTwice { path, format, first, second })
            }
            Obstacle::Moved => {
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

fn owner(facts: &Facts) -> Owner<'_> {
    let (paths, shared) = match facts {
        Facts::Deb(package) => (Cow::Borrowed(&package.paths), Vec::new()),
        Facts::Rpm(package) => (
            package.paths.as_ref().map(Cow::Borrowed).unwrap_or_default(),
            package.shared.iter().collect(),
        ),
        // Wheels are installed into environments, which a repository does not know.
        Facts::Wheel(_) => (Cow::default(), Vec::new()),
    };
    Owner { package: Offered::from(facts), paths, shared }
}

/// The path of a package that has this number, without its leading slash. A package that cannot be
/// read any more has none here; the checks of packages report it.
fn named(
    store: &dyn Store,
    catalog: &Catalog<'_>,
    (pooled, record): (&String, &PoolRecord),
    digest: u64,
) -> Option<String> {
    let found = match &record.indexed.facts {
        Facts::Rpm(_) => {
            let front = Front::read(&catalog.open(store, pooled).ok()?).ok()?;
            let files = RpmPackage::of_front(&front).ok()?.1.files;
            let mut plain = files.into_iter().filter(|file| file.kind == FileKind::Plain);
            plain.find(|file| path_digest(&file.path) == digest).map(|file| file.path)
        }
        Facts::Deb(_) => {
            let content = catalog.open(store, pooled).ok()?;
            deb_path(&content, |path| path_digest(path) == digest)
        }
        Facts::Wheel(_) => None,
    };
    found.map(|path| path.trim_start_matches('/').to_owned())
}
