//! Repositories: every index against what lists it and against every package, signatures, expiry,
//! dependencies within the repository, and files that nothing names.
//!
//! The repository is read as a client reads it. What its writer remembers is compared with that. The checks believe
//! of it only the digests of files that no signature covers, and which files wait to be removed or belong to
//! an interrupted publication, so that these are no orphans.

mod apt;
mod clients;
mod closure;
mod context;
mod orphans;
mod owners;
mod places;
mod python;
mod rpm;
mod signers;
mod states;
mod xml;

use std::path::Path;

pub(crate) use python::is_index;
pub use xml::Element;

use rockpack_core::content::{is_folder, list};
use rockpack_core::error::Result;
use rockpack_core::run::Budget;

use super::problem::{Problems, Report};
use context::{Context, NamedFiles};
use rockpack_signing::Trust;

/// Checks the repository at `root`, whose packages are read within `budget`.
pub(super) fn check(
    root: &Path,
    trust: &Trust,
    budget: &Budget,
    report: &mut Report,
    problems: &mut Problems,
) -> Result<()> {
    let files = NamedFiles { root, budget };
    let vouched = signers::vouched(files, trust)?;
    report.keys_beside.extend(vouched.fingerprints());
    report.repositories += 1;
    let takes = Trust { keys: trust.keys.clone().and(vouched), ..*trust };
    let mut context = Context::new(files, (trust, &takes), report, problems);
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
    orphans::check(&mut context)
}

/// The suites below `dists`.
fn suites(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("dists");
    if !is_folder(&folder)? {
        return Ok(Vec::new());
    }
    let mut suites = Vec::new();
    for entry in list(&folder)? {
        let path = entry?.path();
        if is_folder(&path)? {
            suites.extend(path.file_name().and_then(|name| name.to_str()).map(str::to_owned));
        }
    }
    suites.sort();
    Ok(suites)
}
