//! Applies the configuration's `relations` to the discovered and decided ones.
//!
//! `remove` takes relations away by their name. A relation with a version replaces those of its kind on the
//! same name. One without a version is added to them; in a `.deb` they imply it.

use std::collections::BTreeSet;

use rockpack_core::error::Faults;

use super::{PackageRelations, RelationChange};
use crate::config::Config;
use rockpack_package::{Format, Package, Relation, RelationKind};

impl PackageRelations {
    /// Changes the relations of `package`.
    pub fn apply<F>(&self, config: &Config, package: &mut Package<F>, faults: &mut Faults) {
        if let Some(deb) = &mut package.deb {
            self.change(config, Format::Deb, &mut [&mut deb.relations], faults);
        }
        if let Some(rpm) = &mut package.rpm {
            let lists = &mut [&mut rpm.relations, &mut rpm.discovered];
            self.change(config, Format::Rpm, lists, faults);
        }
    }

    fn change(
        &self,
        config: &Config,
        format: Format,
        lists: &mut [&mut Vec<Relation>],
        faults: &mut Faults,
    ) {
        let RelationChange { added, removed, .. } = self.of(format);
        for (index, name) in removed.iter().enumerate() {
            // An added relation may equal an existing one: then it stays, and the name was no typo.
            let has_any = lists.iter().any(|list| list.iter().any(|known| known.name == *name));
            drop_all(lists, |relation| relation.name == *name && !added.contains(relation));
            if !has_any {
                let index = index.to_string();
                let keys = ["relations", &self.package, format.as_str(), "remove", &index];
                let message = format!("the package has no relation to `{name}`");
                let hint = "name it as `rockpack plan --details` lists it, without its version";
                faults.add(config.fault(&keys, message).hint(hint));
            }
        }
        let bounded: BTreeSet<(RelationKind, &str)> = added
            .iter()
            .filter(|relation| relation.version.is_some())
            .map(|relation| (relation.kind, relation.name.as_str()))
            .collect();
        drop_all(lists, |relation| {
            let is_bounded = bounded.contains(&(relation.kind, relation.name.as_str()));
            is_bounded && !added.contains(relation)
        });
    }
}

/// Drops the relations that are `unwanted`.
fn drop_all(lists: &mut [&mut Vec<Relation>], unwanted: impl Fn(&Relation) -> bool) {
    lists.iter_mut().for_each(|list| list.retain(|relation| !unwanted(relation)));
}
