//! What lets a set take the place of others: packages under their former names, and paths that were
//! in another package.
//!
//! | | `.deb` | `.rpm` |
//! |---|---|---|
//! | `replaces`: a package under another name | Conflicts, Replaces, Provides | Obsoletes, Provides |
//! | a path that was in another package, which the set still has | Breaks, Replaces | Conflicts; nothing where the package needs that one of its own version |
//! | a path that was in a package that the set has no more | Breaks, Replaces | Obsoletes |
//!
//! Provides carry the set's version: those who depend on the former name mostly ask for a minimum,
//! which an unversioned name would not satisfy. dpkg unpacks one package after the other, so a
//! path's new package may come while the old one is still there: Replaces lets it take the path,
//! Breaks keeps the two from being configured together (Debian policy 7.6.1). rpm compares the
//! packages that a transaction leaves installed, so the old version only has to be gone by its end:
//! an exact dependency sees to that, and otherwise a conflict with it.
//!
//! Which paths moved is known from earlier sets (`--since`) or from the configuration (`moved`).

use std::collections::{BTreeMap, BTreeSet};

use super::Source;
use super::drafts::{self, Draft};
use super::package::{Comparison, Format, Package, PackageEntry, Relation, RelationKind};
use super::relations::Link;
use super::setting::Setting;
use crate::config::{FormerPackage, FormerPackages};
use crate::error::{Faults, Result};
use crate::formats::{deb, rpm};
use crate::listing::{ListedPackage, Listing, Owners};
use crate::report::{Code, Finding, Findings};
use crate::tree::Node;

/// Adds what the configuration says under `replaces` and `moved`.
pub(super) fn add_configured(setting: &Setting<'_>, drafts: &mut [Draft]) -> Result<()> {
    let mut faults = Faults::default();
    let config = setting.config;
    refuse_shared_names(setting, drafts, &mut faults);
    for (key, packages) in [("replaces", &config.replaces), ("moved", &config.moved)] {
        for (package, former) in packages {
            let Some(index) = drafts::named(drafts, package) else {
                let message = "there is no such package in the set";
                faults.add(config.fault(&[key, package], message));
                continue;
            };
            for format in &setting.formats {
                let added: Vec<Relation> = of_format(former, *format)
                    .iter()
                    .flat_map(|former| match key {
                        "replaces" => replaced(former, *format, setting),
                        _ => moved(former, *format, (drafts, index)),
                    })
                    .collect();
                if let Some(draft) = drafts.get_mut(index) {
                    draft.relations.extend(added.into_iter().map(|relation| (*format, relation)));
                }
            }
        }
    }
    faults.finish()
}

fn of_format(former: &FormerPackages, format: Format) -> &[FormerPackage] {
    match format {
        Format::Deb => &former.deb,
        Format::Rpm => &former.rpm,
    }
}

/// A name that two packages of the set provide or replace would set them against each other.
fn refuse_shared_names(setting: &Setting<'_>, drafts: &[Draft], faults: &mut Faults) {
    for format in &setting.formats {
        let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
        for (package, former) in &setting.config.replaces {
            for former in of_format(former, *format) {
                let keys: Vec<&str> = former.keys.iter().map(String::as_str).collect();
                let message = match taken.insert(&former.name, package) {
                    Some(other) => Some(format!("{other} replaces {} already", former.name)),
                    None => in_set(former, (package, *format), drafts),
                };
                let hint = "packages that replace one name cannot be installed together; of a \
                            package that became several, one replaces it and the others have \
                            `moved`";
                let fault = message.map(|message| setting.config.fault(&keys, message).hint(hint));
                fault.into_iter().for_each(|fault| faults.add(fault));
            }
        }
    }
}

/// Says who in the set has the name already.
fn in_set(
    former: &FormerPackage,
    (package, format): (&str, Format),
    drafts: &[Draft],
) -> Option<String> {
    let others = |draft: &&Draft| draft.names.deb != package && draft.names.rpm != package;
    let is_named = |draft: &&Draft| draft.names.of(format) == former.name;
    if drafts.iter().any(|draft| is_named(&draft)) {
        return Some(format!("the set has a package {}", former.name));
    }
    let provides = |draft: &&Draft| {
        let own = draft.links.iter().filter(|link| link.kind == RelationKind::Provides);
        let own = own.map(|link| link.to.of(format));
        let added = draft.relations.iter().filter(|(known, relation)| {
            *known == format && relation.kind == RelationKind::Provides
        });
        let mut names = own.chain(added.map(|(_, relation)| relation.name.as_str()));
        names.any(|name| name == former.name)
    };
    let other = drafts.iter().filter(others).find(provides)?;
    Some(format!("{} provides {}", other.names.of(format), former.name))
}

fn replaced(former: &FormerPackage, format: Format, setting: &Setting<'_>) -> Vec<Relation> {
    let before = former.before.clone().map(|version| (Comparison::Less, version));
    let relation = |kind| Relation { kind, name: former.name.clone(), version: before.clone() };
    let version = Some((Comparison::Equal, setting.version.full(format)));
    let provides = Relation { kind: RelationKind::Provides, name: former.name.clone(), version };
    match format {
        Format::Deb => {
            vec![relation(RelationKind::Conflicts), relation(RelationKind::Replaces), provides]
        }
        Format::Rpm => vec![relation(RelationKind::Obsoletes), provides],
    }
}

fn moved(
    former: &FormerPackage,
    format: Format,
    (drafts, index): (&[Draft], usize),
) -> Vec<Relation> {
    let stays = drafts.iter().any(|draft| draft.names.of(format) == former.name);
    let needs = drafts.get(index).is_some_and(|draft| needs_exactly(draft, format, &former.name));
    let before = former.before.clone().unwrap_or_default();
    of_moved(&Former { name: &former.name, stays, needed: needs }, format, &before)
}

fn needs_exactly(draft: &Draft, format: Format, name: &str) -> bool {
    let exact = |link: &&Link| link.kind == RelationKind::Depends && link.exact;
    draft.links.iter().filter(exact).any(|link| link.to.of(format) == name)
}

/// A package that had a path of another one.
struct Former<'a> {
    name: &'a str,
    /// Whether the set has a package of that name.
    stays: bool,
    /// Whether the path's new package needs it in the set's version.
    needed: bool,
}

fn of_moved(former: &Former<'_>, format: Format, before: &str) -> Vec<Relation> {
    let relation = |kind| Relation {
        kind,
        name: former.name.to_owned(),
        version: Some((Comparison::Less, before.to_owned())),
    };
    match format {
        Format::Deb => vec![relation(RelationKind::Breaks), relation(RelationKind::Replaces)],
        Format::Rpm if !former.stays => vec![relation(RelationKind::Obsoletes)],
        Format::Rpm if former.needed => Vec::new(),
        Format::Rpm => vec![relation(RelationKind::Conflicts)],
    }
}

/// Adds what an update of the sets `since` takes, and notes what it cannot do.
pub(super) fn since(
    packages: &mut [Package<Source>],
    since: &[Listing],
    (whole, findings): (bool, &mut Findings),
) {
    for earlier in since {
        let owners = Owners::of(&earlier.packages);
        for format in [Format::Deb, Format::Rpm] {
            let update = Update { earlier, owners: &owners, format };
            let names: BTreeSet<String> =
                packages.iter().filter_map(|package| name(package, format)).collect();
            for package in packages.iter_mut() {
                update.take_paths(package, &names, findings);
                update.note_kinds(package, findings);
            }
            update.note_versions(packages, findings);
            if whole {
                update.note_dropped(packages, &names, findings);
            }
        }
    }
}

/// The way from one earlier set, in one format.
struct Update<'a> {
    earlier: &'a Listing,
    owners: &'a Owners<'a>,
    format: Format,
}

impl Update<'_> {
    /// Relations to the packages that had paths of `package`.
    fn take_paths(
        &self,
        package: &mut Package<Source>,
        names: &BTreeSet<String>,
        findings: &mut Findings,
    ) {
        let (Some(own), Some(version)) =
            (name(package, self.format), package.full_version(self.format))
        else {
            return;
        };
        let mut taken: BTreeMap<&str, (&ListedPackage, Vec<String>)> = BTreeMap::new();
        for entry in self.entries(package) {
            let path = format!("/{}", entry.path);
            let is_folder = matches!(entry.node, Node::Directory { .. });
            let owner = self.owners.owner(self.format.as_str(), &path);
            if let Some(owner) = owner.filter(|owner| owner.name != own && !is_folder) {
                taken.entry(&owner.name).or_insert((owner, Vec::new())).1.push(path);
            }
        }
        for (from, (owner, paths)) in taken {
            let needed = needs_version(package, self.format, (from, &version));
            let former = Former { name: from, stays: names.contains(from), needed };
            let added = of_moved(&former, self.format, &version);
            if let Some(relations) = relations_mut(package, self.format) {
                relations.extend(added);
                relations.sort();
                relations.dedup();
            }
            findings.add(moved_finding((&own, self.format), from, &paths));
            if !is_newer(self.format, &version, &owner.version) {
                let message = format!(
                    "takes paths of {from} {}, which is not older than {version}: the relations \
                     that let it do not apply to that version",
                    owner.version
                );
                findings.add(Finding::new(Code::VersionNotNewer, own.as_str(), message));
            }
        }
    }

    fn entries<'p>(
        &self,
        package: &'p Package<Source>,
    ) -> impl Iterator<Item = &'p PackageEntry<Source>> {
        let format = self.format;
        package.entries.iter().filter(move |entry| entry.formats.has(format))
    }

    /// Directories that became something else, or were something else.
    fn note_kinds(&self, package: &Package<Source>, findings: &mut Findings) {
        if name(package, self.format).is_none() {
            return;
        }
        for entry in self.entries(package) {
            let path = format!("/{}", entry.path);
            let Some(before) = self.owners.at(self.format.as_str(), &path) else { continue };
            let kind = match entry.node {
                Node::Directory { .. } => "directory",
                Node::Link { .. } => "link",
                Node::File { .. } => "file",
            };
            let was = before.member.kind.as_str();
            if was != kind && (was == "directory" || kind == "directory") {
                let message = format!(
                    "was a {was} in the earlier set and is a {kind}: dpkg leaves what is there, \
                     and rpm fails"
                );
                findings.add(Finding::new(Code::PathKindChanged, path, message));
            }
        }
    }

    /// Packages that are not newer than before.
    fn note_versions(&self, packages: &[Package<Source>], findings: &mut Findings) {
        for package in packages {
            let (Some(own), Some(version)) =
                (name(package, self.format), package.full_version(self.format))
            else {
                continue;
            };
            let same = self.earlier.packages.iter();
            let mut same = same.filter(|p| p.key() == (self.format.as_str(), own.as_str()));
            let newer = same.find(|earlier| is_newer(self.format, &earlier.version, &version));
            if let Some(newer) = newer {
                let message = format!(
                    "is {version} as .{}, and the earlier set has {}: package managers do not \
                     update to it",
                    self.format.as_str(),
                    newer.version
                );
                findings.add(Finding::new(Code::VersionNotNewer, own, message));
            }
        }
    }

    /// Packages that are no more, and that nothing removes.
    fn note_dropped(
        &self,
        packages: &[Package<Source>],
        names: &BTreeSet<String>,
        findings: &mut Findings,
    ) {
        let mut removed = BTreeSet::new();
        for package in packages {
            let kinds = [RelationKind::Breaks, RelationKind::Conflicts, RelationKind::Obsoletes];
            let relations = relations(package, self.format).iter();
            removed.extend(relations.filter(|r| kinds.contains(&r.kind)).map(|r| r.name.as_str()));
        }
        let earlier = self.earlier.packages.iter().filter(|p| p.format == self.format.as_str());
        let gone: BTreeSet<&str> = earlier
            .map(|package| package.name.as_str())
            .filter(|name| !names.contains(*name) && !removed.contains(name))
            .collect();
        for name in gone {
            let message = format!(
                "is a .{} of the earlier set and not of this one: where it is installed, its exact \
                 dependencies hold back the update; name it under `replaces`",
                self.format.as_str()
            );
            findings.add(Finding::new(Code::PackageDropped, name, message));
        }
    }
}

fn moved_finding((to, format): (&str, Format), from: &str, paths: &[String]) -> Finding {
    let first = paths.first().map_or("", String::as_str);
    let message = format!(
        "has {} paths that were in {from} of the earlier set, as .{} ({first}{})",
        paths.len(),
        format.as_str(),
        if paths.len() > 1 { ", …" } else { "" }
    );
    Finding::new(Code::PathMoved, to, message)
}

fn name(package: &Package<Source>, format: Format) -> Option<String> {
    match format {
        Format::Deb => package.deb.as_ref().map(|control| control.name.clone()),
        Format::Rpm => package.rpm.as_ref().map(|control| control.name.clone()),
    }
}

fn relations(package: &Package<Source>, format: Format) -> &[Relation] {
    match format {
        Format::Deb => package.deb.as_ref().map_or(&[], |control| &control.relations),
        Format::Rpm => package.rpm.as_ref().map_or(&[], |control| &control.relations),
    }
}

fn relations_mut(package: &mut Package<Source>, format: Format) -> Option<&mut Vec<Relation>> {
    match format {
        Format::Deb => package.deb.as_mut().map(|control| &mut control.relations),
        Format::Rpm => package.rpm.as_mut().map(|control| &mut control.relations),
    }
}

fn needs_version(package: &Package<Source>, format: Format, (name, version): (&str, &str)) -> bool {
    relations(package, format).iter().any(|relation| {
        let exact = relation.version.as_ref().is_some_and(|(comparison, bound)| {
            *comparison == Comparison::Equal && bound == version
        });
        relation.kind == RelationKind::Depends && relation.name == name && exact
    })
}

fn is_newer(format: Format, one: &str, other: &str) -> bool {
    let order = match format {
        Format::Deb => deb::compare_versions(one, other),
        Format::Rpm => rpm::compare_versions(one, other),
    };
    order.is_gt()
}
