//! Relations that let a set replace packages under former names, and take paths that another package had.
//!
//! | | `.deb` | `.rpm` |
//! |---|---|---|
//! | `replaces`: a package under another name | Conflicts, Replaces, Provides | Obsoletes, Provides |
//! | the same, of a package that has its version in its name | Breaks, Replaces | Obsoletes, Provides |
//! | a path that was in another package, which the set still has | Breaks, Replaces | Conflicts; nothing if the package depends on that one in its own version or a later one |
//! | a path that was in a package that the set no longer has | Breaks, Replaces | Obsoletes |
//!
//! Provides have the set's version: dependencies on the former name mostly ask for a minimum, which an
//! unversioned name would not satisfy. A `.deb` that can be installed side by side with other versions of
//! itself provides no former name: the bound of the later version would match the name that the earlier one
//! provides, and exclude it. rpm's Obsoletes match package names only. dpkg unpacks one package after the
//! other, so it may unpack the new owner of a path before it updates the old one: Replaces lets the new one
//! take the path, and Breaks prevents that both are configured (Debian policy 7.6.1). rpm compares the
//! packages at the end of a transaction, so an exact dependency on the old owner is enough, or else a
//! conflict with its old version.
//!
//! Moved paths come from earlier sets (`--since`, see [`super::since`]) or from the configuration (`moved`).

use std::collections::BTreeMap;

use rockpack_core::error::{Faults, Result};

use crate::config::FormerPackage;
use crate::drafts::{self, Draft};
use crate::relations;
use crate::settings::PlanSettings;
use rockpack_package::{Comparison, Format, Relation, RelationKind};

pub(crate) fn add_configured(setting: &PlanSettings, drafts: &mut [Draft]) -> Result<()> {
    let mut faults = Faults::default();
    let config = &setting.config;
    refuse_shared_names(setting, drafts, &mut faults);
    for (key, packages) in [("replaces", &config.replaces), ("moved", &config.moved)] {
        for (package, former) in packages {
            let index = drafts::find_draft(drafts, package);
            let Some(successor) = index.and_then(|index| drafts.get(index)) else {
                faults.add(drafts::no_such_package(config, [key, package], drafts));
                continue;
            };
            let mut added = Vec::new();
            for format in &setting.formats {
                for former in format.select(&former.deb, &former.rpm) {
                    let relations = match key {
                        "replaces" => replaced(setting, successor, former, *format),
                        _ => moved(setting, drafts, successor, former, *format),
                    };
                    let relations = faults.keep(relations).into_iter().flatten();
                    added.extend(relations.map(|relation| (*format, relation)));
                }
            }
            let successor = index.and_then(|index| drafts.get_mut(index));
            successor.into_iter().for_each(|draft| draft.relations.append(&mut added));
        }
    }
    faults.finish()
}

/// Refuses a name that two packages of the set provide or replace: they would conflict with each other.
fn refuse_shared_names(setting: &PlanSettings, drafts: &[Draft], faults: &mut Faults) {
    for format in &setting.formats {
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        for (package, former) in &setting.config.replaces {
            let own = drafts::find_draft(drafts, package);
            for former in format.select(&former.deb, &former.rpm) {
                let keys: Vec<&str> = former.keys.iter().map(String::as_str).collect();
                let message = match owners.insert(&former.name, package) {
                    Some(other) => Some(format!("{other} already replaces {}", former.name)),
                    None => name_conflict(former, own, *format, drafts),
                };
                let hint = "packages that replace the same name cannot be installed together; if a \
                            package was split, let one part replace it, and list it under `moved` \
                            for the others";
                let fault = message.map(|message| setting.config.fault(&keys, message).hint(hint));
                fault.into_iter().for_each(|fault| faults.add(fault));
            }
        }
    }
}

/// The message if another package of the set than that at `own` already has the name.
fn name_conflict(
    former: &FormerPackage,
    own: Option<usize>,
    format: Format,
    drafts: &[Draft],
) -> Option<String> {
    if drafts.iter().any(|draft| draft.names.of(format) == former.name) {
        return Some(format!("the set has a package {}", former.name));
    }
    let mut others = drafts.iter().enumerate().filter(|(index, _)| Some(*index) != own);
    let (_, other) = others.find(|(_, draft)| provides(draft, format, &former.name))?;
    Some(format!("{} provides {}", other.names.of(format), former.name))
}

fn provides(draft: &Draft, format: Format, name: &str) -> bool {
    let provides = RelationKind::Provides;
    draft.links.iter().any(|link| link.kind == provides && link.to.of(format) == name)
        || draft.relations.iter().any(|(known, relation)| {
            *known == format && relation.kind == provides && relation.name == name
        })
}

fn replaced(
    setting: &PlanSettings,
    successor: &Draft,
    former: &FormerPackage,
    format: Format,
) -> Result<Vec<Relation>> {
    let (name, before) = (former.name.as_str(), former.before.as_deref());
    let version = Some((Comparison::Equal, setting.version.full(format)));
    let provides = Relation { kind: RelationKind::Provides, name: former.name.clone(), version };
    let own = successor.names.of(format);
    let infix = setting.names.side_by_side(&setting.version).filter(|part| own.contains(part));
    let (kinds, provides) = match (format, infix) {
        // The package of another version provided the name too, so each would conflict with the other.
        (Format::Deb, Some(_)) if before.is_some() => {
            (vec![RelationKind::Breaks, RelationKind::Replaces], None)
        }
        (Format::Deb, Some(part)) => {
            let keys: Vec<&str> = former.keys.iter().map(String::as_str).collect();
            let message = format!(
                "`{}` has no bound: .deb packages with the version ({part}) in their names that \
                 replace every version of it cannot be installed side by side",
                former.name
            );
            let hint = "give the version before which it is replaced, as in `rocblas < 7.0`";
            return Err(setting.config.fault(&keys, message).hint(hint));
        }
        (Format::Deb, None) => {
            (vec![RelationKind::Conflicts, RelationKind::Replaces], Some(provides))
        }
        (Format::Rpm, _) => (vec![RelationKind::Obsoletes], Some(provides)),
    };
    let others = kinds.into_iter().map(|kind| relation_before(kind, name, before));
    Ok(others.chain(provides).collect())
}

fn moved(
    setting: &PlanSettings,
    drafts: &[Draft],
    successor: &Draft,
    former: &FormerPackage,
    format: Format,
) -> Result<Vec<Relation>> {
    let in_set = drafts.iter().any(|draft| draft.names.of(format) == former.name);
    let own = setting.version.full(format);
    let stated = successor.relations_in(format, setting);
    let needed = relations::need_version(stated.iter(), &former.name, &own);
    let before = former.before.clone().unwrap_or_default();
    let relations = takeover(&OldOwner { name: &former.name, in_set, needed }, format, &before);
    if in_set && !relations.is_empty() && is_newer(format, &before, &own) {
        let keys: Vec<&str> = former.keys.iter().map(String::as_str).collect();
        let message = format!(
            "the set's own .{} package {} {own} is older than {before}: the set could not be \
             installed",
            format, former.name
        );
        let hint = format!("write a bound that is not above the set's version, as in `< {own}`");
        return Err(setting.config.fault(&keys, message).hint(hint));
    }
    Ok(relations)
}

pub(crate) struct OldOwner<'a> {
    pub name: &'a str,
    pub in_set: bool,
    /// Whether the path's new package depends on it in the set's version.
    pub needed: bool,
}

pub(crate) fn takeover(former: &OldOwner<'_>, format: Format, before: &str) -> Vec<Relation> {
    let kinds = match format {
        Format::Deb => vec![RelationKind::Breaks, RelationKind::Replaces],
        Format::Rpm if !former.in_set => vec![RelationKind::Obsoletes],
        Format::Rpm if former.needed => Vec::new(),
        Format::Rpm => vec![RelationKind::Conflicts],
    };
    kinds.into_iter().map(|kind| relation_before(kind, former.name, Some(before))).collect()
}

/// A relation to the versions of `name` before `before`; to all versions without a bound.
pub(super) fn relation_before(kind: RelationKind, name: &str, before: Option<&str>) -> Relation {
    let version = before.map(|version| (Comparison::Less, version.to_owned()));
    Relation { kind, name: name.to_owned(), version }
}

pub(crate) fn is_newer(format: Format, one: &str, other: &str) -> bool {
    format.compare_versions(one, other).is_gt()
}
