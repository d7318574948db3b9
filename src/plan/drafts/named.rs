//! Finds the packages that the configuration names, and adds the configured relations.

use rockpack_base::error::{Error, Faults, Result};

use super::draft::Draft;
use crate::config::{Config, nearest};
use crate::package::Format;
use crate::plan::naming::place_of;
use crate::plan::settings::PlanSettings;
use crate::report::words::few;

/// Most packages that an error lists.
const SHOWN: usize = 20;

/// The index of the package that the configuration calls `name`, see [`place_of`].
pub(in crate::plan) fn named(drafts: &[Draft], name: &str) -> Option<usize> {
    let known = drafts.iter().map(|draft| (&draft.names, draft.is_base().then_some(&draft.stem)));
    place_of(known, name)
}

/// The error for the table at `keys`, whose last key names no package.
pub(in crate::plan) fn no_such_package(
    config: &Config,
    keys: [&str; 2],
    drafts: &[Draft],
) -> Error {
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
pub(in crate::plan) fn add_relations(setting: &PlanSettings, drafts: &mut [Draft]) -> Result<()> {
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
    faults.finish()
}
