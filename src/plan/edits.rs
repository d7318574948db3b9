//! What the configuration's `relations` change of what was discovered and decided.
//!
//! `remove` takes relations away by their name. A relation with a version takes the place of those
//! of its kind on the same name; one without a version is said beside them, and in a `.deb`
//! implied by them.

use std::collections::{BTreeMap, BTreeSet};

use super::package::{Format, Package, Relation, RelationKind};
use super::relations::{self, simplified_deb};
use super::setting::Setting;
use crate::config::AddedRelations;
use crate::error::{Faults, Result};

/// The changes of a set.
pub(super) struct Edits<'a> {
    setting: &'a Setting<'a>,
    /// Package → what the configuration calls it, and says of it.
    by_package: BTreeMap<String, Vec<(&'a str, &'a AddedRelations)>>,
}

impl<'a> Edits<'a> {
    pub fn new(setting: &'a Setting<'a>) -> Self {
        Self { setting, by_package: BTreeMap::new() }
    }

    /// Notes what the configuration says of `package` under the name of `key`.
    pub fn add(&mut self, package: &str, key: &'a str, added: &'a AddedRelations) {
        self.by_package.entry(package.to_owned()).or_default().push((key, added));
    }

    /// Changes the relations of `package`, and leaves out those of a `.deb` that others imply.
    pub fn apply<F>(&self, package: &mut Package<F>) -> Result<()> {
        let mut faults = Faults::default();
        for (key, added) in self.by_package.get(&package.id).into_iter().flatten() {
            if let Some(deb) = &mut package.deb {
                faults.keep(self.change((key, added), Format::Deb, &mut [&mut deb.relations]));
            }
            if let Some(rpm) = &mut package.rpm {
                let lists = &mut [&mut rpm.relations, &mut rpm.discovered];
                faults.keep(self.change((key, added), Format::Rpm, lists));
            }
        }
        if let Some(deb) = &mut package.deb {
            deb.relations = simplified_deb(std::mem::take(&mut deb.relations));
        }
        faults.finish()
    }

    fn change(
        &self,
        (package, configured): (&str, &AddedRelations),
        format: Format,
        lists: &mut [&mut Vec<Relation>],
    ) -> Result<()> {
        let removed = match format {
            Format::Deb => &configured.deb.remove,
            Format::Rpm => &configured.rpm.remove,
        };
        let added = relations::added(self.setting, (package, configured), format)?;
        let mut faults = Faults::default();
        for (index, name) in removed.iter().enumerate() {
            if !drop_all(lists, |relation| relation.name == *name && !added.contains(relation)) {
                let index = index.to_string();
                let keys = ["relations", package, format.as_str(), "remove", &index];
                let message = format!("the package has no relation to `{name}`");
                let hint = "name it as `rockpack plan --details` lists it, without its version";
                faults.add(self.setting.config.fault(&keys, message).hint(hint));
            }
        }
        let bounded = added.iter().filter(|relation| relation.version.is_some());
        let bounded: BTreeSet<(RelationKind, &str)> =
            bounded.map(|relation| (relation.kind, relation.name.as_str())).collect();
        drop_all(lists, |relation| {
            let is_bounded = bounded.contains(&(relation.kind, relation.name.as_str()));
            is_bounded && !added.contains(relation)
        });
        faults.finish()
    }
}

/// Drops what is `unwanted`; whether there was any.
fn drop_all(lists: &mut [&mut Vec<Relation>], unwanted: impl Fn(&Relation) -> bool) -> bool {
    let mut found = false;
    for list in lists {
        let before = list.len();
        list.retain(|relation| !unwanted(relation));
        found |= list.len() < before;
    }
    found
}
