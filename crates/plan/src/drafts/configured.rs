//! Finds the packages that the configuration names, and adds the configured relations, those that they ask
//! for, and the texts of single packages.
//!
//! A text in the configuration's `packages` overrides that of a package list, which overrides the configuration's
//! text for all packages. The configuration identifies a package by name or stem. Licence, home page and copyright of
//! a family's host package, or of the family by name, also apply to the family's other packages.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::{Error, Faults, Result};
use rockpack_core::tree::TreePath;

use super::Draft;
use crate::config::{Config, PackageSchema, nearest, paragraphs};
use crate::naming::index_of_package;
use crate::relations::plain;
use crate::settings::PlanSettings;
use rockpack_package::requirement::Requirement;
use rockpack_package::{Format, RelationKind, Rights, Role, owners};
use rockpack_report::words::few;

const SHOWN: usize = 20;

pub(crate) fn find_draft(drafts: &[Draft], name: &str) -> Option<usize> {
    let known = drafts.iter().map(|draft| (&draft.names, draft.is_base().then_some(&draft.stem)));
    index_of_package(known, name)
}

pub(crate) fn no_such_package(config: &Config, keys: [&str; 2], drafts: &[Draft]) -> Error {
    let [_, name] = keys;
    let names = drafts.iter().flat_map(|draft| [&draft.names, &draft.stem]);
    let known = names.flat_map(|names| [names.deb.as_str(), names.rpm.as_str()]);
    let hint = match nearest(name, known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if drafts.is_empty() => "the set has no packages".to_owned(),
        None => {
            let names: Vec<&str> = drafts.iter().map(|draft| draft.names.deb.as_str()).collect();
            format!("the packages are {}", few(&names, SHOWN))
        }
    };
    config.fault(&keys, "there is no such package in the set").hint(hint)
}

/// Refuses relations for packages that do not exist: they are typos.
pub(crate) fn add_relations(setting: &PlanSettings, drafts: &mut [Draft]) -> Result<()> {
    let mut faults = Faults::default();
    for (place, relations) in setting.relations.iter().enumerate() {
        let index = find_draft(drafts, &relations.package);
        let Some(draft) = index.and_then(|index| drafts.get_mut(index)) else {
            let keys = ["relations", &relations.package];
            faults.add(no_such_package(&setting.config, keys, drafts));
            continue;
        };
        for format in Format::ALL.into_iter().filter(|format| setting.formats.contains(format)) {
            let added = relations.of(format).added.iter();
            draft.relations.extend(added.map(|relation| (format, relation.clone())));
        }
        draft.changes.push(place);
    }
    provide_paths(setting, drafts);
    faults.finish()
}

/// Makes packages provide those of their paths that an `.rpm` of the set requires and `primary` does not list.
/// Otherwise dnf and zypper would not find the package.
fn provide_paths(setting: &PlanSettings, drafts: &mut [Draft]) {
    let relations = drafts.iter().flat_map(|draft| {
        let stated = draft.relations.iter().filter(|(format, _)| *format == Format::Rpm);
        let found = draft.discovered.rpm.iter().filter(move |found| {
            !draft.changes(setting).any(|change| change.rpm.removed.contains(&found.name))
        });
        stated.map(|(_, relation)| relation).chain(found)
    });
    let (requires, others): (Vec<_>, Vec<_>) =
        relations.partition(|relation| relation.kind == RelationKind::Depends);
    let is_provided = |name: &str| {
        others.iter().any(|other| other.kind == RelationKind::Provides && other.name == name)
    };
    let requires = requires.iter().map(|it| Requirement::of(Format::Rpm, &it.name, None));
    let required: BTreeSet<String> =
        requires.flat_map(|it| owners::unmet_paths(&it, is_provided)).collect();
    for path in &required {
        let inside = path.strip_prefix(&format!("{}/", setting.prefix.absolute()));
        let Some(inside) = inside.and_then(|inside| TreePath::new(inside).ok()) else { continue };
        for draft in drafts.iter_mut() {
            if draft.files.keys().any(|own| *own == inside || own.is_below(&inside)) {
                draft.relations.push((Format::Rpm, plain(RelationKind::Provides, path)));
            }
        }
    }
}

pub(crate) struct EffectiveTexts<'a> {
    pub rights: Rights,
    pub homepage: Option<&'a str>,
    pub maintainer: &'a str,
}

impl<'a> EffectiveTexts<'a> {
    pub fn of(draft: &'a Draft, setting: &'a PlanSettings) -> Self {
        let (text_overrides, keys) = (&draft.text_overrides, &setting.config.keys);
        Self {
            rights: Rights {
                license: text_overrides.license.as_ref().unwrap_or(&keys.license).clone(),
                copyright: text_overrides.copyright.as_ref().or(keys.copyright.as_ref()).cloned(),
                vendor: text_overrides.vendor.as_ref().or(keys.vendor.as_ref()).cloned(),
            },
            homepage: text_overrides.homepage.as_deref().or(keys.homepage.as_deref()),
            maintainer: text_overrides.maintainer.as_deref().unwrap_or(&keys.maintainer),
        }
    }
}

/// Adds the configuration's texts for single packages. Refuses texts for a package that does not exist, which is a
/// typo, and for one package under two names, where one text would hide the other.
pub(crate) fn add_texts(setting: &PlanSettings, drafts: &mut [Draft]) -> Result<()> {
    let config = &setting.config;
    let mut faults = Faults::default();
    let mut of_packages: BTreeMap<usize, (&str, &PackageSchema)> = BTreeMap::new();
    let mut of_families = Vec::new();
    let packages = config.keys.packages.0.iter();
    for (package, texts) in packages.filter(|(_, package)| package.has_texts()) {
        let found = find_draft(drafts, package);
        let is_family = drafts.iter().any(|draft| draft.family == *package);
        let keys = ["packages", package];
        match found {
            Some(index) => {
                if let Some((other, _)) = of_packages.insert(index, (package, texts)) {
                    let message = format!("is the same package as {other} above");
                    faults.add(config.fault(&keys, message));
                }
            }
            None if is_family && !texts.has_package_texts() => {}
            None if is_family => {
                let message = "there is no such package in the set, only a family: set no other \
                               keys than `license`, `homepage` and `copyright`";
                faults.add(config.fault(&keys, message));
            }
            None => faults.add(no_such_package(config, keys, drafts)),
        }
        let host = found.and_then(|index| drafts.get(index)).filter(|d| d.role == Role::Host);
        let family = host.map(|host| host.family.clone());
        of_families.extend(family.or_else(|| is_family.then(|| package.clone())).zip(Some(texts)));
    }
    faults.finish()?;
    for (family, texts) in of_families {
        let members = drafts.iter_mut().filter(|draft| draft.family == family);
        members.for_each(|draft| apply_rights(draft, texts));
    }
    for (index, (_, texts)) in of_packages {
        drafts.get_mut(index).into_iter().for_each(|draft| apply_texts(draft, texts));
    }
    Ok(())
}

fn apply_rights(draft: &mut Draft, texts: &PackageSchema) {
    let text_overrides = &mut draft.text_overrides;
    for (own, text) in [
        (&mut text_overrides.license, &texts.license),
        (&mut text_overrides.homepage, &texts.homepage),
        (&mut text_overrides.copyright, &texts.copyright),
    ] {
        replace(own, text.clone().map(Some));
    }
}

fn apply_texts(draft: &mut Draft, texts: &PackageSchema) {
    apply_rights(draft, texts);
    replace(&mut draft.description.summary, texts.summary.clone());
    replace(&mut draft.description.paragraphs, texts.description.as_deref().map(paragraphs));
    replace(&mut draft.section, texts.section.clone());
}

fn replace<T>(own: &mut T, new: Option<T>) {
    new.into_iter().for_each(|new| *own = new);
}
