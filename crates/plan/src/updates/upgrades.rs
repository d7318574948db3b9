//! Relations that let a set replace packages under former names, and take paths that another package had.
//!
//! | | `.deb` | `.rpm` |
//! |---|---|---|
//! | `replaces`: a package under another name | Conflicts, Replaces, Provides | Obsoletes, Provides |
//! | the same, of a package that has its version in its name | Breaks, Replaces | Obsoletes, Provides |
//! | a path that was in another package, which the set still has | Breaks, Replaces | Conflicts; nothing where the package needs that one of its own version or a later one |
//! | a path that was in a package that the set no longer has | Breaks, Replaces | Obsoletes |
//!
//! Provides carry the set's version: dependencies on the former name mostly ask for a minimum, which an
//! unversioned name would not satisfy. Packages that stand side by side with those of other versions provide
//! no former name in a `.deb`: the bound of the later one would meet the version that the earlier one
//! provides, and keep the two apart. rpm's Obsoletes look at names alone. dpkg unpacks one package after the
//! other, so the new package of a path may be unpacked before the old one is updated: Replaces lets it take
//! the path, Breaks keeps the two from being configured together (Debian policy 7.6.1). rpm compares the
//! packages that a transaction leaves installed, so the old version only has to be gone by its end: an exact
//! dependency ensures that, or else a conflict with the old version.
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
            let index = drafts::named(drafts, package);
            let Some(heir) = index.and_then(|index| drafts.get(index)) else {
                faults.add(drafts::no_such_package(config, [key, package], drafts));
                continue;
            };
            let mut added = Vec::new();
            for format in &setting.formats {
                for former in format.select(&former.deb, &former.rpm) {
                    let relations = match key {
                        "replaces" => replaced(setting, heir, former, *format),
                        _ => moved(setting, drafts, heir, former, *format),
                    };
                    let relations = faults.keep(relations).into_iter().flatten();
                    added.extend(relations.map(|relation| (*format, relation)));
                }
            }
            let heir = index.and_then(|index| drafts.get_mut(index));
            heir.into_iter().for_each(|draft| draft.relations.append(&mut added));
        }
    }
    faults.finish()
}

/// Refuses a name that two packages of the set provide or replace: they would conflict with each other.
fn refuse_shared_names(setting: &PlanSettings, drafts: &[Draft], faults: &mut Faults) {
    for format in &setting.formats {
        let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
        for (package, former) in &setting.config.replaces {
            let own = drafts::named(drafts, package);
            for former in format.select(&former.deb, &former.rpm) {
                let keys: Vec<&str> = former.keys.iter().map(String::as_str).collect();
                let message = match taken.insert(&former.name, package) {
                    Some(other) => Some(format!("{other} replaces {} already", former.name)),
                    None => in_set(former, own, *format, drafts),
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

/// The reason why the name is taken in the set, apart from the package at `own`.
fn in_set(
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
    heir: &Draft,
    former: &FormerPackage,
    format: Format,
) -> Result<Vec<Relation>> {
    let (name, before) = (former.name.as_str(), former.before.as_deref());
    let version = Some((Comparison::Equal, setting.version.full(format)));
    let provides = Relation { kind: RelationKind::Provides, name: former.name.clone(), version };
    let own = heir.names.of(format);
    let beside = setting.names.side_by_side(&setting.version).filter(|part| own.contains(part));
    let (kinds, provides) = match (format, beside) {
        // The package of another version provided the name too, so each would conflict with the other.
        (Format::Deb, Some(_)) if before.is_some() => {
            (vec![RelationKind::Breaks, RelationKind::Replaces], None)
        }
        (Format::Deb, Some(part)) => {
            let keys: Vec<&str> = former.keys.iter().map(String::as_str).collect();
            let message = format!(
                "`{}` has no bound, and .deb packages named by their version ({part}) that \
                 replace every version of it cannot be installed side by side",
                former.name
            );
            let hint = "say before which version it is replaced, as in `rocblas < 7.0`";
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
    heir: &Draft,
    former: &FormerPackage,
    format: Format,
) -> Result<Vec<Relation>> {
    let stays = drafts.iter().any(|draft| draft.names.of(format) == former.name);
    let own = setting.version.full(format);
    let stated = heir.relations_in(format, setting);
    let needed = relations::need_version(stated.iter(), &former.name, &own);
    let before = former.before.clone().unwrap_or_default();
    let relations = of_moved(&Former { name: &former.name, stays, needed }, format, &before);
    if stays && !relations.is_empty() && is_newer(format, &before, &own) {
        let keys: Vec<&str> = former.keys.iter().map(String::as_str).collect();
        let message = format!(
            "the set's own .{} package {} {own} is before {before}: the set could not be installed",
            format, former.name
        );
        let hint = format!("write a bound that is not above the set's version, as in `< {own}`");
        return Err(setting.config.fault(&keys, message).hint(hint));
    }
    Ok(relations)
}

/// A package that had a path of another one.
pub(crate) struct Former<'a> {
    pub name: &'a str,
    /// Whether the set has a package of that name.
    pub stays: bool,
    /// Whether the path's new package depends on it in the set's version.
    pub needed: bool,
}

pub(crate) fn of_moved(former: &Former<'_>, format: Format, before: &str) -> Vec<Relation> {
    let kinds = match format {
        Format::Deb => vec![RelationKind::Breaks, RelationKind::Replaces],
        Format::Rpm if !former.stays => vec![RelationKind::Obsoletes],
        Format::Rpm if former.needed => Vec::new(),
        Format::Rpm => vec![RelationKind::Conflicts],
    };
    kinds.into_iter().map(|kind| relation_before(kind, former.name, Some(before))).collect()
}

/// A relation to the versions of `name` before `before`; without that, to all of them.
pub(super) fn relation_before(kind: RelationKind, name: &str, before: Option<&str>) -> Relation {
    let version = before.map(|version| (Comparison::Less, version.to_owned()));
    Relation { kind, name: name.to_owned(), version }
}

pub(crate) fn is_newer(format: Format, one: &str, other: &str) -> bool {
    format.compare_versions(one, other).is_gt()
}
