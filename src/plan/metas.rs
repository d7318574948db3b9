//! Metapackages: names for sets of packages.
//!
//! | package | depends on | where |
//! |---|---|---|
//! | `rocm-<group>` | every kernel package of the group that users install | one per group |
//! | `<family>-all` | the family's host and all its kernel packages | families with device code |
//! | `rocm-hosts` | every host package | the set |
//! | `rocm` | every `<family>-all`, and the hosts without one | the set |
//!
//! Kernels of tests are in none of them: who installs tests wants them by name.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{Value, context};

use super::drafts::Draft;
use super::extras::Extras;
use super::naming::{Names, group_meta, package_name, short_name};
use super::package::{RelationKind, Role};
use super::relations::Link;
use super::setting::Setting;
use crate::error::Result;
use crate::recombine::Recombined;

/// Debian's section of packages without files.
const SECTION: &str = "metapackages";

/// RPM's group of packages without files.
const RPM_GROUP: &str = "Metapackages";

/// The metapackage of everything.
const ALL: &str = "rocm";

/// The metapackage of all host packages.
const HOSTS: &str = "rocm-hosts";

/// Makes the metapackages of a set.
pub(super) fn make(
    setting: &Setting<'_>,
    recombined: &Recombined,
    drafts: &[Draft],
) -> Result<Vec<Draft>> {
    let main: Vec<&Draft> = drafts.iter().filter(|draft| draft.is_main).collect();
    let mut metas = groups(setting, recombined, &main)?;
    let families = families(setting, recombined, &main)?;
    let hosts: Vec<&Draft> = main.iter().copied().filter(|d| d.role == Role::Host).collect();
    if !hosts.is_empty() {
        let names = hosts.iter().map(|host| &host.names);
        let about = About { name: HOSTS, template: "hosts", values: context! {} };
        metas.push(meta(setting, about, names)?);
        let names = hosts.iter().map(|host| {
            let all = families.iter().find(|meta| meta.family == host.family);
            all.map_or(&host.names, |meta| &meta.names)
        });
        let about = About { name: ALL, template: "all", values: context! {} };
        metas.push(meta(setting, about, names)?);
    }
    metas.extend(families);
    Ok(metas)
}

fn groups(setting: &Setting<'_>, recombined: &Recombined, main: &[&Draft]) -> Result<Vec<Draft>> {
    let mut metas = Vec::new();
    for group in &recombined.groups {
        let of_group = |draft: &&&Draft| draft.group_name() == Some(group.name.as_str());
        let members: Vec<&Draft> = main.iter().filter(of_group).copied().collect();
        if members.is_empty() {
            continue;
        }
        let archs: Vec<&str> = group.archs.iter().map(|arch| arch.as_str()).collect();
        let values = context! {
            group => &group.name,
            display_name => &group.display_name,
            archs => archs.join(", "),
        };
        let name = package_name(&group_meta(&group.name))?;
        let about = About { name: &name, template: "group", values };
        metas.push(meta(setting, about, members.iter().map(|draft| &draft.names))?);
    }
    Ok(metas)
}

/// One per family with device code.
fn families(setting: &Setting<'_>, recombined: &Recombined, main: &[&Draft]) -> Result<Vec<Draft>> {
    let mut by_family: BTreeMap<&str, Vec<&Draft>> = BTreeMap::new();
    for draft in main {
        by_family.entry(&draft.family).or_default().push(draft);
    }
    let mut metas = Vec::new();
    for (family, members) in by_family {
        let has = |name: &str| members.iter().any(|draft| draft.group_name() == Some(name));
        let groups = recombined.groups.iter().filter(|group| has(&group.name));
        let groups: Vec<&str> = groups.map(|group| group.display_name.as_str()).collect();
        if groups.is_empty() {
            continue;
        }
        let values = context! {
            name => short_name(family),
            host => family,
            groups => groups.join(", "),
        };
        let name = format!("{family}-all");
        let about = About { name: &name, template: "component", values };
        let mut draft = meta(setting, about, members.iter().map(|draft| &draft.names))?;
        draft.family = family.to_owned();
        draft.components = members.iter().flat_map(|d| d.components.iter().cloned()).collect();
        metas.push(draft);
    }
    Ok(metas)
}

struct About<'a> {
    name: &'a str,
    template: &'a str,
    values: Value,
}

fn meta<'a>(
    setting: &Setting<'_>,
    about: About<'_>,
    members: impl Iterator<Item = &'a Names>,
) -> Result<Draft> {
    let description = setting.texts.description(about.template, about.name, about.values)?;
    let links = members.map(|names| Link::exact(RelationKind::Depends, names));
    Ok(Draft {
        names: Names::both(about.name),
        role: Role::Meta,
        family: about.name.to_owned(),
        is_main: false,
        components: BTreeSet::new(),
        section: SECTION.to_owned(),
        rpm_group: RPM_GROUP.to_owned(),
        // Its packages are for one processor, so it cannot be installed on another.
        native: true,
        description,
        links: links.collect(),
        relations: Vec::new(),
        files: BTreeMap::new(),
        documents_of: None,
        extras: Extras::default(),
    })
}
