//! Checks repositories: indexes against the files that list them and against packages, signatures, expiry, dependencies
//! within the repository, and orphaned files.
//!
//! The repository is read as clients read it, and compared with the states that its writer keeps. From the states, the
//! checks trust only the digests of unsigned files, and the lists of files that will be removed or belong to an
//! interrupted publication and so are not orphans.

mod apt;
mod clients;
mod context;
mod python;
mod rpm;
mod states;
mod xml;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rockpack_archive::path_digests::path_digest;
use rockpack_core::content::is_folder;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::Budget;
use rockpack_package::Format;
use rockpack_package::offered::OfferedPackage;
use rockpack_package::owners::{Owner, PathConflictKind, path_conflicts};
use rockpack_package::resolver::{Origin, each_unmet};
use rockpack_report::words::either;
use rockpack_signing::Trust;

use crate::problem::{NamedVersion, Problem, Problems, Report};
use crate::repository::context::{Context, NamedFiles};
use crate::repository::states::check_orphans;
use crate::subject::files;

pub use crate::repository::xml::Element;

pub(crate) use crate::repository::python::is_index;

const REPOMD: &str = "repodata/repomd.xml";

const REPOMD_SIGNATURE: &str = "repodata/repomd.xml.asc";

/// Checks the repository at `root`.
pub(super) fn check(
    root: &Path,
    trust: &Trust,
    budget: &Budget,
    report: &mut Report,
    problems: &mut Problems,
) -> Result<()> {
    let files = NamedFiles { root, budget };
    let vouched_keys = clients::vouched_keys(files, trust)?;
    report.additional_keys.extend(vouched_keys.fingerprints());
    report.repositories += 1;
    let package_trust = Trust { keys: trust.keys.clone().and(vouched_keys), ..*trust };
    let mut context = Context {
        files,
        trust,
        package_trust: &package_trust,
        named: BTreeSet::new(),
        states: Vec::new(),
        unsigned: Vec::new(),
        report,
        problems,
        allowance: context::BASE_ALLOWANCE,
    };
    states::read(&mut context)?;
    let (suites, has_rpms) = (suites(root)?, is_folder(&root.join("repodata"))?);
    for suite in &suites {
        apt::check(&mut context, suite)?;
    }
    if has_rpms {
        rpm::check(&mut context)?;
    }
    if is_index(root)? {
        python::check(&mut context)?;
    } else if suites.is_empty() && !has_rpms {
        context.bad_index("dists", "has no suite, and there is no other index".to_owned());
    }
    clients::check(&mut context)?;
    check_orphans(&mut context)
}

/// The suites below `dists`.
fn suites(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("dists");
    let suites = if is_folder(&folder)? { files(&folder, is_folder)? } else { Vec::new() };
    Ok(suites.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
}

/// Minimum average bytes per relation of a package list. Lists of distributions have more than a hundred. In memory, a
/// relation takes about a hundred bytes.
const SHORTEST: usize = 32;

/// Relations that any list may have, however short: more than ten times those of real packages.
const BASE_ALLOWANCE: usize = 100_000;

/// The number of further relations that a package list may have.
struct RelationBudget(usize);

impl RelationBudget {
    /// The limit for a list of `len` bytes.
    pub fn of(len: usize) -> Self {
        Self(len / SHORTEST + BASE_ALLOWANCE)
    }

    pub fn take(&mut self) -> Result<()> {
        self.0 = self.0.checked_sub(1).ok_or_else(|| {
            let message = "states more relations of packages than its bytes can describe";
            Error::new(Kind::Limit, message)
                .hint("the index is corrupt or hostile: publish it again")
        })?;
        Ok(())
    }
}

/// Reports the dependencies of `offered` that no package for the same machine meets. `machines` has the positions of
/// the packages for each machine, and `path` returns the path of a package by its position.
///
/// A dependency is internal if the suite, or the rpm repository, has a package or capability of that name, or if it
/// requires exactly one version, as packages of one set do. A package for the same architecture in the same suite must
/// meet it. All others are on packages of the distribution, and are only counted.
fn check_unmet<'p>(
    context: &mut Context<'_>,
    format: Format,
    offered: &[OfferedPackage<'_>],
    machines: &BTreeMap<&str, Vec<usize>>,
    path: impl Fn(usize) -> &'p str,
) {
    each_unmet(format, offered, machines, |machine, unmet| {
        if unmet.origin == Origin::Elsewhere {
            context.report.external_dependencies += 1;
            return;
        }
        let wanted = either(unmet.requirement.alternatives(), 5);
        let file = path(unmet.package).to_owned();
        let reason = format!("depends on {wanted}, which no package{} provides", for_arch(machine));
        context.problems.add(Problem::DependencyOpen { file, reason });
    });
}

/// Reports every path at which two packages conflict. `named` returns the path of a package that a predicate selects;
/// `differ` tells whether two packages have different files at a path digest.
fn check_owners(
    context: &mut Context<'_>,
    format: Format,
    owners: &[Owner<'_>],
    differ: impl FnMut((usize, usize), u64) -> bool,
    named: impl Fn(usize, &dyn Fn(&str) -> bool) -> Option<String>,
) {
    for shared in path_conflicts(format, owners, differ) {
        let is_it = |path: &str| path_digest(path) == shared.path;
        let [one, other] = [shared.first, shared.second].map(|at| named(at, &is_it));
        // Two paths may have the same digest.
        let (Some(path), true) = (&one, one == other) else { continue };
        let [first, second] =
            [shared.first, shared.second].map(|at| owners[at].package.name_and_version());
        let reason = match shared.kind {
            PathConflictKind::BothInstallable => format!(
                "is owned by {first} and {second} (.{format}), and no Conflicts, Breaks, Replaces or \
                 Obsoletes keeps them apart"
            ),
            PathConflictKind::Moved => format!(
                "was in {first} and is in {second}, which does not replace it: dpkg stops at that \
                 update"
            ),
        };
        let path = format!("/{}", path.trim_start_matches('/'));
        context.problems.add(Problem::RepositoryPath { path, reason });
    }
}

/// ` for <arch>`; empty for an index outside the folders of architectures.
fn for_arch(arch: &str) -> String {
    if arch.is_empty() { String::new() } else { format!(" for {arch}") }
}

/// Checks that each version of a package is one file: otherwise clients may install either. `files` has the path and
/// SHA-256 of each package.
fn check_versions<'a>(
    context: &mut Context<'_>,
    offered: &[OfferedPackage<'_>],
    files: impl Iterator<Item = (&'a str, &'a str)>,
) {
    let mut first = BTreeMap::new();
    for (package, (path, digest)) in offered.iter().zip(files) {
        // No epoch means epoch zero.
        let version = package.version.strip_prefix("0:").unwrap_or(&package.version);
        let identity = (package.name, package.arch, version);
        let (other, known) = *first.entry(identity).or_insert((path, digest));
        if known != digest {
            let identity = NamedVersion::new(package.name, version, package.arch);
            let reason = format!("is {identity}, and so is {other} with other content");
            context.add_inconsistency(path, reason);
        }
    }
}
