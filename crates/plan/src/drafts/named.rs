//! Finds the packages that the configuration names, and adds the configured relations and those that they ask
//! for.

use std::collections::BTreeSet;

use rockpack_core::error::{Error, Faults, Result};
use rockpack_core::tree::TreePath;

use super::draft::Draft;
use crate::config::{Config, nearest};
use crate::naming::place_of;
use crate::relations::plain;
use crate::settings::PlanSettings;
use rockpack_package::requirement::Requirement;
use rockpack_package::{Format, RelationKind, required_paths};
use rockpack_report::words::few;

/// Most packages that an error lists.
const SHOWN: usize = 20;

/// The index of the package that the configuration calls `name`, see [`place_of`].
pub(crate) fn named(drafts: &[Draft], name: &str) -> Option<usize> {
    let known = drafts.iter().map(|draft| (&draft.names, draft.is_base().then_some(&draft.stem)));
    place_of(known, name)
}

/// The error for the table at `keys`, whose last key names no package.
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

/// Adds the relations of the configuration; a package that does not exist is a typo.
pub(crate) fn add_relations(setting: &PlanSettings, drafts: &mut [Draft]) -> Result<()> {
    let mut faults = Faults::default();
    for (place, relations) in setting.relations.iter().enumerate() {
        let index = named(drafts, &relations.package);
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

/// Lets packages provide those of their paths that an `.rpm` of the set requires and `primary` does not list,
/// unless one provides them already. dnf and zypper find no package for them otherwise.
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
    let names = requires.into_iter().map(|relation| &relation.name);
    let required: BTreeSet<String> = names
        .flat_map(|name| {
            required_paths::unmet(&Requirement::of(Format::Rpm, name, None), is_provided)
        })
        .collect();
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
