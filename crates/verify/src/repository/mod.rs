//! Repositories: every index against what lists it and against every package, signatures, expiry,
//! dependencies within the repository, and files that nothing names.
//!
//! The repository is read as a client reads it. What its writer remembers is compared with that. The checks believe
//! of it only the digests of files that no signature covers, and which files wait to be removed or belong to
//! an interrupted publication, so that these are no orphans.

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
use rockpack_package::offered::Offered;
use rockpack_package::owners::{Obstacle, Owner, obstacles};
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

/// Checks the repository at `root`, whose packages are read within `budget`.
pub(super) fn check(
    root: &Path,
    trust: &Trust,
    budget: &Budget,
    report: &mut Report,
    problems: &mut Problems,
) -> Result<()> {
    let files = NamedFiles { root, budget };
    let vouched = clients::vouched(files, trust)?;
    report.keys_beside.extend(vouched.fingerprints());
    report.repositories += 1;
    let takes = Trust { keys: trust.keys.clone().and(vouched), ..*trust };
    let mut context = Context {
        files,
        trust,
        takes: &takes,
        named: BTreeSet::new(),
        states: Vec::new(),
        unsigned: Vec::new(),
        report,
        problems,
        aside: context::ASIDE,
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

/// Bytes that a relation takes at least, on the average of a list of packages: lists of distributions
/// have more than a hundred. In memory it takes some hundred.
const SHORTEST: usize = 32;

/// Relations that any list may have, and those of one package: ten and more times what packages have.
const ASIDE: usize = 100_000;

/// Relations that a list of packages can still have.
struct RelationsLeft(usize);

impl RelationsLeft {
    /// The bounds for a list of `len` bytes.
    pub fn of(len: usize) -> Self {
        Self(len / SHORTEST + ASIDE)
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

/// Reports the dependencies of `offered` that no package for the same machine meets. `machines` has the
/// positions of the packages for each, and `path` gives the path of a package by its position.
///
/// A dependency counts as one within the repository if the suite, or the rpm repository, has a package or
/// capability of that name at all, or if it asks for exactly one version, as packages of one set do of each
/// other. It must then be met by a package for the same architecture, in the same suite. All
/// others are on packages of the distribution, and are counted.
fn check_unmet<'p>(
    context: &mut Context<'_>,
    format: Format,
    offered: &[Offered<'_>],
    machines: &BTreeMap<&str, Vec<usize>>,
    path: impl Fn(usize) -> &'p str,
) {
    each_unmet(format, offered, machines, |machine, unmet| {
        if unmet.origin == Origin::Elsewhere {
            context.report.elsewhere += 1;
            return;
        }
        let wanted = either(unmet.requirement.alternatives(), 5);
        let file = path(unmet.package).to_owned();
        let reason = format!("depends on {wanted}, which no package{} is", for_arch(machine));
        context.problems.add(Problem::DependencyOpen { file, reason });
    });
}

/// Reports every path at which two packages conflict. `named` gives the path of a package
/// by the position of the package and the number of the path; `differ` says whether two have two files there.
fn check_owners(
    context: &mut Context<'_>,
    format: Format,
    owners: &[Owner<'_>],
    differ: impl FnMut((usize, usize), u64) -> bool,
    named: impl Fn(usize, &dyn Fn(&str) -> bool) -> Option<String>,
) {
    for shared in obstacles(format, owners, differ) {
        let is_it = |path: &str| path_digest(path) == shared.path;
        let [one, other] = [shared.first, shared.second].map(|at| named(at, &is_it));
        // Numbers of two paths may be the same.
        let (Some(path), true) = (&one, one == other) else { continue };
        let [first, second] =
            [shared.first, shared.second].map(|at| owners[at].package.name_and_version());
        let reason = match shared.obstacle {
            Obstacle::Together => format!(
                "is owned by {first} and {second} (.{format}), and no Conflicts, Breaks, Replaces or \
                 Obsoletes keeps them apart"
            ),
            Obstacle::Moved => format!(
                "was in {first} and is in {second}, which does not replace it: dpkg stops at that \
                 update"
            ),
        };
        let path = format!("/{}", path.trim_start_matches('/'));
        context.problems.add(Problem::RepositoryPath { path, reason });
    }
}

/// The words for an architecture. An index that is in no architecture's folder is for none.
fn for_arch(arch: &str) -> String {
    if arch.is_empty() { String::new() } else { format!(" for {arch}") }
}

/// A version of a package is one file: of two, some clients install the one and some the other. `files` gives the
/// path and SHA-256 of each package.
fn check_versions<'a>(
    context: &mut Context<'_>,
    offered: &[Offered<'_>],
    files: impl Iterator<Item = (&'a str, &'a str)>,
) {
    let mut first = BTreeMap::new();
    for (package, (path, digest)) in offered.iter().zip(files) {
        // An epoch of zero is that of a version without one.
        let version = package.version.strip_prefix("0:").unwrap_or(&package.version);
        let identity = (package.name, package.arch, version);
        let (other, known) = *first.entry(identity).or_insert((path, digest));
        if known != digest {
            let identity = NamedVersion::new(package.name, version, package.arch);
            let reason = format!("is {identity}, and so is {other} with other content");
            context.contradicts(path, reason);
        }
    }
}
