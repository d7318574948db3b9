//! What the configuration's `relations` change of what was discovered and decided.
//!
//! `remove` takes relations away by their name. A relation with a version takes the place of those
//! of its kind on the same name; one without a version is said beside them, and in a `.deb`
//! implied by them.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::error::{Faults, Result};

use super::{RelationChange, simplified_deb};
use crate::config::Config;
use crate::package::{Format, Package, Relation, RelationKind};

/// The changes of a set, by package.
#[derive(Default)]
pub(in crate::plan) struct Edits<'a>(BTreeMap<String, Vec<Edit<'a>>>);

/// What the configuration says of a package in one format.
pub(in crate::plan) struct Edit<'a> {
    /// What the configuration calls the package.
    pub key: &'a str,
    pub format: Format,
    pub change: &'a RelationChange,
}

impl<'a> Edits<'a> {
    /// Notes a change of `package`.
    pub fn add(&mut self, package: &str, edit: Edit<'a>) {
        self.0.entry(package.to_owned()).or_default().push(edit);
    }

    /// Changes the relations of `package`, and leaves out those of a `.deb` that others imply.
    pub fn apply<F>(&self, config: &Config, package: &mut Package<F>) -> Result<()> {
        let mut faults = Faults::default();
        for edit in self.0.get(&package.id).into_iter().flatten() {
            match edit.format {
                Format::Deb => package.deb.iter_mut().for_each(|deb| {
                    edit.change(config, &mut [&mut deb.relations], &mut faults);
                }),
                Format::Rpm => package.rpm.iter_mut().for_each(|rpm| {
                    let lists = &mut [&mut rpm.relations, &mut rpm.discovered];
                    edit.change(config, lists, &mut faults);
                }),
            }
        }
        if let Some(deb) = &mut package.deb {
            deb.relations = simplified_deb(std::mem::take(&mut deb.relations));
        }
        faults.finish()
    }
}

impl Edit<'_> {
    fn change(&self, config: &Config, lists: &mut [&mut Vec<Relation>], faults: &mut Faults) {
        let Self { key, format, change: RelationChange { added, removed, .. } } = self;
        for (index, name) in removed.iter().enumerate() {
            // What is added may be what was there: then it stays, and the name was no typo.
            let has_any = lists.iter().any(|list| list.iter().any(|known| known.name == *name));
            drop_all(lists, |relation| relation.name == *name && !added.contains(relation));
            if !has_any {
                let index = index.to_string();
                let keys = ["relations", key, format.as_str(), "remove", &index];
                let message = format!("the package has no relation to `{name}`");
                let hint = "name it as `rockpack plan --details` lists it, without its version";
                faults.add(config.fault(&keys, message).hint(hint));
            }
        }
        let bounded = added.iter().filter(|relation| relation.version.is_some());
        let bounded: BTreeSet<(RelationKind, &str)> =
            bounded.map(|relation| (relation.kind, relation.name.as_str())).collect();
        drop_all(lists, |relation| {
            let is_bounded = bounded.contains(&(relation.kind, relation.name.as_str()));
            is_bounded && !added.contains(relation)
        });
    }
}

/// Drops what is `unwanted`.
fn drop_all(lists: &mut [&mut Vec<Relation>], unwanted: impl Fn(&Relation) -> bool) {
    lists.iter_mut().for_each(|list| list.retain(|relation| !unwanted(relation)));
}
