//! The plan stage: from components to packages, with names, files and relations.
//!
//! ```text
//!    setting   what holds whatever the input is: `naming`, `texts`, `prefix`, and the
//!              `relations` of the configuration
//!
//! components ─ contents   what goes into which family and part, or listed package ─► portions
//!    portions ─ libraries  which portion needs which others, and what from outside ─► linkage
//!    portions ─ drafts     host, support and kernel packages of each portion ─► drafts
//!     drafts ─ finish     what is treated or placed otherwise; metapackages; the package of what
//!                         is outside of the prefix
//!            ─ relations  what the configuration adds and takes away
//!            ─ updates    packages whose place these take, and paths that moved
//!            ─ finish     in the words of the formats, those that `--only` keeps ─► packages
//!   packages ─ updates    what the set before this one needs
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
mod loader;
mod metapackages;
mod naming;
mod package_list;
mod placed;
mod prefix;
mod relations;
mod scripts;
mod selection;
mod setting;
mod source;
mod taken_names;
mod texts;
mod updates;
mod words;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use naming::Naming;
pub use package_list::PackageList;
pub use prefix::Prefix;
pub use setting::{Choices, Named, Setting};
pub use source::{ArchiveSet, FileSource, KeptArchive};
pub use updates::effect::note_effect;

use rockpack_base::error::Result;
use rockpack_base::tree::TreePath;

use crate::dependencies::script::FirstLine;
use crate::package::lengths::refuse_overlong;
use crate::package::{Package, Version};
use crate::receipt::listing::Listing;
use crate::receipt::{KeptRecord, PartRecord, Standing};
use crate::recombine::{Group, Recombined};
use crate::report::{Finding, Findings};
use contents::portion::Portion;
use contents::{exclude, selectors};
use drafts::Draft;
use libraries::linkage;
use package_list::PackageListOwners;
use relations::edits::Edits;
use selection::{Only, left_out};
use updates::since::SetNames;
use updates::{since, upgrades};

/// A package set, decided but for its bytes.
#[derive(Debug)]
pub struct Plan {
    /// In the order of their names.
    pub packages: Vec<Package<FileSource>>,
    /// The kernel archives that the packages' files refer to, in the order of families and their parts.
    pub archives: Vec<ArchiveSet>,
    /// Where everything is installed.
    pub prefix: Prefix,
    /// Of all packages.
    pub version: Version,
    /// Time of every packed file, in seconds since 1970.
    pub content_date: u32,
    /// Install-relative paths of files whose library search paths are written anew; in order.
    pub rewritten: BTreeSet<TreePath>,
    /// Install-relative paths of scripts that get another first line, and that line.
    pub first_lines: BTreeMap<TreePath, FirstLine>,
    /// The packages of earlier sets of this version.
    pub standing: Standing,
    /// The packages among them that this set keeps. Of the packages that [`Choices::only`] leaves out these are
    /// all that stand.
    pub kept: KeptRecord,
    /// Install-relative paths of the input that are in no package, because [`Choices::only`]
    /// leaves them out or no package of a list takes them; in order.
    pub left_out: Vec<TreePath>,
    /// What was noticed.
    pub findings: Findings,
}

impl Plan {
    /// [`Plan::left_out`] as absolute paths.
    pub fn left_out_paths(&self) -> Vec<String> {
        let prefix = self.prefix.absolute();
        self.left_out.iter().map(|path| format!("{prefix}/{path}")).collect()
    }

    /// Leaves the packages with these ids, and the archives that they refer to.
    pub fn keep(&mut self, ids: &BTreeSet<String>) {
        self.packages.retain(|package| ids.contains(&package.id));
        self.archives = used(std::mem::take(&mut self.archives), &self.packages);
    }
}

/// Decides the packages of a set, which updates `earlier` ones. A package list says what goes
/// where, in place of the configuration's selectors and parts.
pub fn plan(
    recombined: &Recombined,
    setting: &Setting,
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
    setting: &Setting,
    list: Option<&PackageListOwners<'_>>,
    earlier: &[Listing],
    findings: &mut Findings,
) -> Result<Plan> {
    let groups = setting.names.groups(&recombined.groups);
    let (mut portions, unlisted) = match list {
        Some(list) => list.assign(recombined, findings)?,
        None => (selectors::assign_all(recombined, setting)?, Vec::new()),
    };
    exclude::apply(&mut portions, setting, findings)?;
    portions.retain(|portion| !portion.is_empty());
    note_hostless(setting, &portions, findings)?;
    let linkage = linkage::discover(setting, &portions, findings)?;
    let made = drafts::make(setting, &groups, &portions, &linkage)?;
    note_empty_groups(&groups, &made.drafts, findings);
    setting.note_runtime(!made.archives.is_empty(), findings);
    let mut drafts = made.drafts;
    extras::add(recombined, &mut drafts, findings)?;
    let drafts = with_metas(setting, &groups, drafts, list, &portions, findings)?;
    let (drafts, edits) = configured(setting, drafts, findings)?;
    let only = Only::new(recombined, &drafts, &setting.only)?;
    let names = SetNames::of(&drafts, setting.only.is_empty());
    let (kept, dropped): (Vec<Draft>, Vec<Draft>) =
        drafts.into_iter().partition(|draft| only.keeps(draft));
    taken_names::note(setting, &kept, findings);
    let standing = standing(setting, earlier, findings);
    let stands = |draft: &Draft| {
        setting.formats.iter().any(|format| standing.get(*format, &draft.names.deb).is_some())
    };
    let (stays, dropped): (Vec<&Draft>, Vec<&Draft>) = dropped.iter().partition(|d| stands(d));
    let stays = kept.iter().chain(stays).collect::<Vec<_>>();
    let mut left_out = left_out::left_out(recombined, &made.archives, &stays, &dropped, findings)?;
    left_out.extend(unlisted);
    left_out.sort();
    let mut packages = finished(setting, kept, &edits)?;
    let is_made = |id: &str| packages.iter().any(|package| package.id == id);
    let kept = standing.kept(|record| !names.is_whole() && !is_made(&record.id));
    since::add(setting, &names, &mut packages, (earlier, &standing), findings)?;
    Ok(Plan {
        archives: used(made.archives, &packages),
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

/// The packages that stand of earlier sets of the version that is planned.
fn standing(setting: &Setting, earlier: &[Listing], findings: &mut Findings) -> Standing {
    let receipts = earlier.iter().filter_map(|listing| listing.receipt.as_deref());
    let mut parts: BTreeMap<String, (BTreeSet<u32>, &PartRecord)> = BTreeMap::new();
    for receipt in receipts.clone() {
        if let Some(record) = &receipt.part {
            let (present, _) = parts.entry(receipt.release()).or_insert((BTreeSet::new(), record));
            present.insert(record.part.index);
        }
    }
    for (release, (present, record)) in parts {
        if record.packages.values().any(|part| !present.contains(part)) {
            let (present, of) = (present.len(), record.part.of);
            findings.add(Finding::EarlierPartsAbsent { release, present, of });
        }
    }
    Standing::of(receipts, &setting.version, &setting.prefix.absolute(), &setting.formats)
}

/// The packages with files, those without any, and the one of what is outside of the prefix.
fn with_metas(
    setting: &Setting,
    groups: &[Group],
    mut drafts: Vec<Draft>,
    list: Option<&PackageListOwners<'_>>,
    portions: &[Portion<'_>],
    findings: &mut Findings,
) -> Result<Vec<Draft>> {
    match list {
        Some(list) => drafts = list.complete(setting, groups, portions, drafts, findings)?,
        None => drafts.extend(metapackages::make(setting, groups, &drafts)?),
    }
    let common = loader::make(setting, &mut drafts)?;
    drafts.extend(common);
    conflicts::refuse(&drafts, &setting.formats)?;
    Ok(drafts)
}

/// The packages as the configuration changes them, and what it changes of those that are finished.
fn configured<'s>(
    setting: &'s Setting,
    mut drafts: Vec<Draft>,
    findings: &mut Findings,
) -> Result<(Vec<Draft>, Edits<'s>)> {
    let edits = drafts::add_configured(setting, &mut drafts)?;
    upgrades::add_configured(setting, &mut drafts)?;
    words::add_configured(setting, &mut drafts)?;
    scripts::note_odd_programs(setting, &drafts, findings);
    Ok((drafts, edits))
}

/// In the words of the formats, in the order of their names.
fn finished(
    setting: &Setting,
    drafts: Vec<Draft>,
    edits: &Edits<'_>,
) -> Result<Vec<Package<FileSource>>> {
    let packages = drafts.into_iter().map(|draft| {
        let of_set = draft.of_set(setting);
        let mut package = draft.finish(setting)?;
        edits.apply(&setting.config, &mut package)?;
        package.identity = package.identity(of_set);
        Ok(package)
    });
    let mut packages = packages.collect::<Result<Vec<_>>>()?;
    packages.sort_by(|a, b| a.id.cmp(&b.id));
    refuse_overlong(&packages)?;
    Ok(packages)
}

fn note_empty_groups(groups: &[Group], drafts: &[Draft], findings: &mut Findings) {
    for group in groups {
        let has = |draft: &Draft| draft.group_name() == Some(group.name.as_str());
        if !drafts.iter().any(has) {
            findings.add(Finding::GroupEmpty { group: group.name.clone() });
        }
    }
}

/// Notes host packages without host files: kernel packages need one to depend on.
fn note_hostless(
    setting: &Setting,
    portions: &[Portion<'_>],
    findings: &mut Findings,
) -> Result<()> {
    for portion in portions.iter().filter(|portion| portion.files.is_empty()) {
        let package = portion.host_names(&setting.names)?.deb;
        findings.add(Finding::HostPackageEmpty { package });
    }
    Ok(())
}

/// The archive sets that some package refers to.
fn used(mut archives: Vec<ArchiveSet>, packages: &[Package<FileSource>]) -> Vec<ArchiveSet> {
    let entries = packages.iter().flat_map(|package| &package.entries);
    let names: BTreeSet<&str> = entries.filter_map(|e| e.node.data()?.archives()).collect();
    archives.retain(|set| names.contains(set.name.as_str()));
    archives
}
