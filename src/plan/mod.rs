//! The plan stage: from components to packages, with names, files and relations.
//!
//! ```text
//!   settings   what holds whatever the input is: `naming`, `texts`, `prefix`, and the `relations` of
//!              the configuration
//!
//! components ─ contents       what goes into which family and part ─► portions
//!            ─ package_list   in its place, what TheRock's list says of both, here and below
//!    portions ─ libraries     which portion needs which others, and what from outside ─► linkage
//!    portions ─ drafts        host, support and kernel packages of each portion ─► drafts
//!     drafts ─ extras         what is treated or placed otherwise
//!            ─ metapackages   names for sets of packages
//!            ─ loader         the package of what is outside of the prefix
//!            ─ conflicts      refused: one name or path in two packages
//!            ─ drafts         relations that the configuration adds and removes
//!            ─ updates        packages whose place these take, and paths that moved
//!            ─ words          what the configuration says of single packages
//!            ─ selection      what `--only` keeps
//!            ─ finish         in the words of the formats, with `layout` and `scripts` ─► packages
//!   packages ─ updates        what the set before this one needs
//! ```
//!
//! A portion gives one package for its host files and one per group that it has device code for.
//! Nothing here knows sizes or the clock; a file of a package says where its bytes come from, and
//! the pack stage makes them. What serves several groups at once is in a package that the kernel
//! packages of exactly these groups depend on. Refused: paths that two packages claim or none,
//! names, versions and prefixes that a format cannot express.
//!
//! Kernel packages are built for the architecture of their host although they hold data only: as
//! `all` or `noarch` they would satisfy, and be pulled in by, hosts of other architectures, whose
//! exact-version dependency no archive could then keep consistent.
//!
//! Libraries from outside of the set become dependencies by the tables of a distribution (deb) and
//! as capabilities (rpm); the configuration's `relations` add what no file shows, and correct it.

mod conflicts;
mod contents;
mod drafts;
mod extras;
mod finish;
mod layout;
mod libraries;
mod links;
mod loader;
mod metapackages;
mod naming;
mod outcome;
mod package_list;
mod placed;
mod prefix;
mod relations;
mod scripts;
mod selection;
mod settings;
mod source;
mod texts;
mod updates;
pub mod wheels;
mod words;

#[cfg(test)]
mod tests;

pub use naming::Naming;
pub use outcome::Plan;
pub use package_list::PackageList;
pub use prefix::Prefix;
pub use settings::{Choices, Named, PlanSettings};
pub use source::{ArchiveSet, FileSource, KeptArchive};

use rockpack_base::error::Result;

use crate::receipt::listing::Listing;
use crate::recombine::Recombined;
use crate::report::Findings;
use contents::selectors;
use drafts::DraftedSet;
use outcome::used;
use package_list::PackageListOwners;
use selection::{Only, Selection};
use updates::since::{self, SetNames};
use updates::{standing, upgrades};

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

/// The plan without its findings.
fn decide(
    recombined: &Recombined,
    setting: &PlanSettings,
    list: Option<&PackageListOwners<'_>>,
    earlier: &[Listing],
    findings: &mut Findings,
) -> Result<Plan> {
    let groups = setting.names.groups(&recombined.groups);
    let (portions, unlisted) = match list {
        Some(list) => list.assign(recombined, findings)?,
        None => (selectors::assign_all(recombined, setting)?, Vec::new()),
    };
    let portions = contents::reduced(portions, setting, findings)?;
    let linkage = libraries::discover(setting, &portions, findings)?;
    let DraftedSet { mut drafts, archives } =
        drafts::make(setting, &groups, &portions, &linkage, findings)?;
    extras::add(recombined, &mut drafts, findings)?;
    match list {
        Some(list) => list.complete(setting, &groups, &portions, &mut drafts, findings)?,
        None => metapackages::add(setting, &groups, &mut drafts)?,
    }
    loader::add(setting, &mut drafts)?;
    conflicts::refuse(&drafts, &setting.formats)?;
    drafts::add_relations(setting, &mut drafts)?;
    upgrades::add_configured(setting, &mut drafts)?;
    words::add_configured(setting, &mut drafts)?;
    scripts::note_odd_programs(setting, &drafts, findings);
    let only = Only::new(recombined, &drafts, &setting.only)?;
    let names = SetNames::of(&drafts, setting.only.is_empty());
    let standing = standing::of_earlier(setting, earlier, findings);
    let Selection { kept, mut left_out } =
        only.select(recombined, setting, drafts, &archives, &standing, findings)?;
    conflicts::note_taken_names(setting, &kept, findings);
    left_out.extend(unlisted);
    left_out.sort();
    let mut packages = finish::finish(setting, kept)?;
    let is_made = |id: &str| packages.iter().any(|package| package.id == id);
    let kept = standing.kept(|record| !names.is_whole() && !is_made(&record.id));
    since::add(setting, &names, &mut packages, (earlier, &standing), findings)?;
    Ok(Plan {
        archives: used(archives, &packages),
        packages,
        prefix: setting.prefix.clone(),
        version: setting.version.clone(),
        content_date: setting.config.content_date,
        standing,
        kept,
        rewritten: linkage.rewritten,
        first_lines: linkage.first_lines,
        left_out,
        findings: Findings::default(),
    })
}
