//! The plan stage: from components to packages, with names, files and relations.
//!
//! ```text
//!   settings   facts that do not depend on the input: `naming`, `texts`, `prefix`, and the `relations`
//!              of the configuration
//!
//! components ─ contents       assigns content to families and parts ─► portions
//!            ─ package_list   replaces that, and steps below, by TheRock's list
//!    portions ─ libraries     finds needs of portions from each other and from outside ─► linkage
//!    portions ─ drafts        host, support and kernel packages of each portion ─► drafts
//!     drafts ─ extras         special files, and files outside of the prefix
//!            ─ metapackages   names for sets of packages
//!            ─ loader         the package of files outside of the prefix
//!            ─ conflicts      refuses a name or path in two packages
//!            ─ drafts         relations that the configuration adds and removes, and required paths
//!            ─ updates        relations to replaced packages, and to those that had moved paths
//!            ─ drafts         the configuration's texts for single packages
//!            ─ selection      the packages that `--only` keeps
//!            ─ loader         the script that finds packages for GPUs
//!            ─ finish         the terms of the formats, with `layout` and `scripts` ─► packages
//!   packages ─ updates        relations and scripts for updates from earlier sets
//! ```
//!
//! A portion becomes one package for its host files and one per group with device code. The stage knows
//! neither sizes nor the clock: each file of a package names the source of its bytes, and the pack stage
//! makes them. Content that serves several groups is in a package that the kernel packages of exactly these
//! groups depend on. Refused: paths that two packages claim or that no package claims, and names, versions
//! and prefixes that a format cannot express.
//!
//! Kernel packages are built for the architecture of their host although they hold only data: as `all` or
//! `noarch` they would satisfy, and be pulled in by, hosts of other architectures, and no archive could keep
//! the exact-version dependencies of these consistent.
//!
//! Libraries from outside of the set become dependencies by the tables of a distribution (deb) and
//! capabilities (rpm). The configuration's `relations` correct them, and add dependencies that no file shows.

mod code_files;
pub mod config;
mod conflicts;
mod contents;
mod drafts;
mod extras;
mod finish;
mod layout;
mod libraries;
mod loader;
mod metapackages;
mod naming;
mod outcome;
mod package_list;
mod prefix;
pub mod recombine;
mod relations;
pub mod runtime;
mod scripts;
mod selection;
mod settings;
mod shim;
mod texts;
mod updates;

#[cfg(test)]
mod tests;

pub use naming::Naming;
pub use outcome::{ArchiveSet, FileSource, KeptArchives, Plan};
pub use package_list::PackageList;
pub use prefix::Prefix;
pub use settings::{Choices, PlanSettings};
pub use shim::Shim;

use rockpack_core::error::Result;

use crate::recombine::Recombined;
use contents::selectors;
use outcome::used;
use package_list::PackageListOwners;
use rockpack_package::receipt::listing::Listing;
use rockpack_report::Findings;
use selection::PackageSelection;
use updates::since::{self, SetNames};
use updates::upgrades;

/// Decides the packages of a set, which updates `earlier` ones. A package list assigns content in place of
/// the configuration's selectors and parts.
pub fn plan(
    recombined: &Recombined,
    setting: &PlanSettings,
    list: Option<&PackageListOwners<'_>>,
    earlier: &[Listing],
) -> Result<Plan> {
    let mut findings = setting.findings.clone();
    let decided = decide(recombined, setting, list, earlier, &mut findings);
    findings.sort();
    findings.explain(decided).map(|plan| Plan { findings, ..plan })
}

fn decide(
    recombined: &Recombined,
    setting: &PlanSettings,
    list: Option<&PackageListOwners<'_>>,
    earlier: &[Listing],
    findings: &mut Findings,
) -> Result<Plan> {
    if setting.shim.is_none() {
        runtime::note_unable_runtimes(recombined, findings)?;
    }
    let groups = setting.names.groups(&recombined.groups);
    let (portions, unlisted) = match list {
        Some(list) => list.assign(recombined, setting, findings)?,
        None => (selectors::assign_all(recombined, setting)?, Vec::new()),
    };
    let portions = contents::without_excluded(portions, &groups, setting, findings)?;
    let linkage = libraries::discover(setting, &portions, earlier, findings)?;
    let (mut drafts, archives) = drafts::make(setting, &groups, &portions, &linkage, findings)?;
    extras::add(recombined, &mut drafts, findings)?;
    match list {
        Some(list) => list.complete(setting, &groups, &portions, &mut drafts, findings)?,
        None => metapackages::add(setting, &groups, &mut drafts)?,
    }
    loader::add(setting, &mut drafts)?;
    conflicts::refuse(&drafts, &setting.formats)?;
    drafts::add_relations(setting, &mut drafts)?;
    upgrades::add_configured(setting, &mut drafts)?;
    drafts::add_texts(setting, &mut drafts)?;
    scripts::note_odd_programs(setting, &drafts, findings);
    let only = PackageSelection::new(recombined, &drafts, &setting.only)?;
    let names = SetNames::of(&drafts, setting.only.is_empty());
    let offers = loader::offers(setting, &drafts);
    let current_packages = updates::current_packages(setting, earlier, findings);
    let (mut drafts, mut left_out) =
        only.select(recombined, setting, drafts, &archives, &current_packages, findings)?;
    conflicts::note_shared_names(setting, &drafts, findings);
    left_out.extend(unlisted);
    left_out.sort();
    let kept =
        current_packages.kept(|it| !names.is_whole && !drafts.iter().any(|d| d.names.deb == it.id));
    loader::add_gpu_script(setting, &offers, &kept, &mut drafts)?;
    let mut packages = finish::finish(setting, drafts)?;
    since::add(setting, &names, &mut packages, (earlier, &current_packages), findings)?;
    updates::add_imports(
        &linkage.symbols,
        &kept,
        (earlier, &current_packages),
        &mut packages,
        findings,
    );
    Ok(Plan {
        archives: used(archives, &packages),
        compressed: code_files::compressed(recombined, &packages, setting, findings)?,
        packages,
        prefix: setting.prefix.clone(),
        version: setting.version.clone(),
        content_date: setting.config.content_date,
        current_packages,
        kept,
        runpath: setting.runpath(),
        rewritten: linkage.rewritten,
        first_lines: linkage.first_lines,
        left_out,
        distributions: setting.distribution_records(),
        findings: Findings::default(),
    })
}
