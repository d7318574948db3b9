//! The rules of `databases` in the configuration, which have the keys of `database` in
//! `config/databases.toml`.

use std::collections::BTreeSet;

use rockpack_core::error::Faults;

use super::architectures::ArchNames;
use super::document::ConfigDocument;
use rockpack_split::input::database::{DatabaseRules, LazyNames, Rule};

/// The configuration's rules, followed by the shipped ones. A shipped rule with the name of an own rule is
/// dropped. Refused are rules that cannot claim anything, duplicate names, and patterns that pair nothing.
pub(super) fn rules(
    own: &[Rule],
    archs: &ArchNames<'_>,
    document: &ConfigDocument,
    faults: &mut Faults,
) -> Option<DatabaseRules> {
    let mut of_rules = Faults::default();
    check(own, archs, document, &mut of_rules);
    let builtin = faults.keep(DatabaseRules::builtin())?;
    match faults.keep(of_rules.finish()) {
        Some(()) => faults.keep(builtin.behind(own)),
        None => Some(builtin),
    }
}

fn check(rules: &[Rule], archs: &ArchNames<'_>, document: &ConfigDocument, faults: &mut Faults) {
    let mut names = BTreeSet::new();
    for (index, rule) in rules.iter().enumerate() {
        let index = index.to_string();
        if rule.name.is_empty() || !names.insert(&rule.name) {
            let message = format!("`{}` has to be a name that no other rule has", rule.name);
            faults.add(document.fault(&["databases", &index, "name"], message));
        }
        if rule.directories.is_empty() {
            let message = "names no directory, so that the rule claims nothing";
            faults.add(document.fault(&["databases", &index, "directories"], message));
        }
        if let Some(fault) = rule.lazy.as_ref().and_then(LazyNames::fault) {
            let error = document.fault(&["databases", &index, "lazy"], fault);
            faults.add(error.hint("write the names as in `TensileLibrary_lazy_*`"));
        }
        for (directory, named) in &rule.directory_archs {
            let keys = ["databases", &index, "directory_archs", directory];
            for arch in named {
                faults.keep(archs.check(arch, &keys));
            }
        }
    }
}
