//! Metapackages: names for sets of packages.
//!
//! | scheme's template | in `rocm` | depends on | where |
//! |---|---|---|---|
//! | `group` | `rocm-<group>` | every kernel package of the group that users install, and the kernel packages of generic targets and SPIR-V that it needs | one per group |
//! | `component` | `<family>-all` | a host package and all its kernel packages | families with device code |
//! | `hosts` | `rocm` | every host package | the set |
//! | `all` | `rocm-all-gpus` | every `component`, and the hosts without one | the set |
//! | `unversioned` | – | the `component` or, without one, the host package | every host and support package |
//!
//! A metapackage without a template in the scheme is not made. Kernels of tests are only in their own
//! `component`, if the scheme has it: users install tests by name.

use std::collections::BTreeMap;

use minijinja::{Value, context};
use rockpack_core::error::Result;

use crate::config::MetaTemplates;
use crate::drafts::{Draft, LinkVersions};
use crate::loader;
use crate::naming::PackageNames;
use crate::recombine::Group;
use crate::settings::PlanSettings;
use crate::texts::gpu_names;
use rockpack_package::{RelationKind, Role};
use rockpack_report::words::list;

pub(crate) fn add(
    setting: &PlanSettings,
    all_groups: &[Group],
    drafts: &mut Vec<Draft>,
) -> Result<()> {
    let main: Vec<&Draft> = drafts.iter().filter(|draft| draft.is_main).collect();
    let mut metas = groups(setting, all_groups, &main)?;
    let host_metas = host_metas(setting, all_groups, drafts)?;
    metas.extend(whole_set(setting, &main, &host_metas)?);
    metas.extend(unversioned(setting, drafts, &host_metas)?);
    metas.extend(host_metas);
    drafts.extend(metas);
    Ok(())
}

fn groups(setting: &PlanSettings, groups: &[Group], main: &[&Draft]) -> Result<Vec<Draft>> {
    let mut metas = Vec::new();
    let Some(template) = &setting.names.scheme.metas.group else { return Ok(metas) };
    for group in groups {
        let members: Vec<&Draft> =
            main.iter().filter(|draft| draft.serves(&group.name)).copied().collect();
        if members.is_empty() {
            continue;
        }
        let values = context! {
            group => &group.name,
            display_name => &group.display_name,
            archs => list(&group.archs),
            products => gpu_names(&group.archs),
        };
        let names = setting.names.names(template, None, Some(&group.name))?;
        let members = members.iter().map(|draft| &draft.names);
        metas.push(meta(setting, names, ("group", values), members)?);
    }
    Ok(metas)
}

/// Makes one metapackage per host package with device code, and per support package if the scheme wants it.
pub(crate) fn host_metas(
    setting: &PlanSettings,
    all_groups: &[Group],
    drafts: &[Draft],
) -> Result<Vec<Draft>> {
    let MetaTemplates { component: template, every_component, .. } = &setting.names.scheme.metas;
    let Some(template) = template else { return Ok(Vec::new()) };
    let mut by_stem: BTreeMap<&PackageNames, Vec<&Draft>> = BTreeMap::new();
    for draft in drafts.iter().filter(|draft| draft.is_main || *every_component) {
        by_stem.entry(&draft.stem).or_default().push(draft);
    }
    let mut metas = Vec::new();
    for (stem, members) in by_stem {
        let with_code = all_groups.iter().filter(|group| {
            members.iter().any(|draft| draft.role.group() == Some(group.name.as_str()))
        });
        let groups: Vec<&str> = with_code.map(|group| group.display_name.as_str()).collect();
        let host = members.iter().find(|draft| draft.is_base());
        let (Some(host), false) = (host, groups.is_empty()) else { continue };
        let values = context! {
            name => setting.names.without_vendor(&host.family),
            host => &host.names.deb,
            groups => list(groups),
        };
        let names = setting.names.of_stem(template, stem)?;
        // A package that is not called a host package already has the name.
        if names == host.names {
            continue;
        }
        let mut draft =
            meta(setting, names, ("component", values), members.iter().map(|draft| &draft.names))?;
        draft.stem = stem.clone();
        draft.family = host.family.clone();
        draft.components = members.iter().flat_map(|d| d.components.iter().cloned()).collect();
        metas.push(draft);
    }
    Ok(metas)
}

fn whole_set(setting: &PlanSettings, main: &[&Draft], host_metas: &[Draft]) -> Result<Vec<Draft>> {
    let MetaTemplates { hosts: of_hosts, all, .. } = &setting.names.scheme.metas;
    let hosts: Vec<&Draft> = main.iter().copied().filter(|d| d.role == Role::Host).collect();
    let mut metas = Vec::new();
    if hosts.is_empty() {
        return Ok(metas);
    }
    if let Some(template) = of_hosts {
        let names = setting.names.names(template, None, None)?;
        let members = hosts.iter().map(|host| &host.names);
        let has_code = main.iter().any(|draft| draft.role.group().is_some());
        let is_common = main.iter().any(|draft| loader::has_linker_libraries(setting, draft));
        let script = loader::gpu_script(&setting.names.system()?.deb)?;
        let script = (has_code && is_common).then(|| format!("/{script}"));
        metas.push(meta(setting, names, ("hosts", context! { script }), members)?);
    }
    if let Some(template) = all {
        let names = setting.names.names(template, None, None)?;
        let members = hosts.iter().map(|host| full_package(host, host_metas));
        metas.push(meta(setting, names, ("all", context! {}), members)?);
    }
    Ok(metas)
}

pub(crate) fn unversioned(
    setting: &PlanSettings,
    drafts: &[Draft],
    host_metas: &[Draft],
) -> Result<Vec<Draft>> {
    let Some(template) = &setting.names.scheme.metas.unversioned else { return Ok(Vec::new()) };
    let mut metas = Vec::new();
    for draft in drafts.iter().filter(|draft| draft.is_base()) {
        let names = setting.names.of_stem(template, &draft.stem)?;
        let versioned = full_package(draft, host_metas);
        let values = context! {
            name => setting.names.without_vendor(&draft.family),
            versioned => &versioned.deb,
        };
        let mut made = meta(setting, names, ("unversioned", values), std::iter::once(versioned))?;
        made.stem = draft.stem.clone();
        made.family = draft.family.clone();
        made.components = draft.components.clone();
        metas.push(made);
    }
    Ok(metas)
}

/// The package that installs all packages of a stem: its metapackage, or else the host package.
fn full_package<'a>(host: &'a Draft, host_metas: &'a [Draft]) -> &'a PackageNames {
    let meta = host_metas.iter().find(|meta| meta.stem == host.stem);
    meta.map_or(&host.names, |meta| &meta.names)
}

pub(crate) fn meta<'a>(
    setting: &PlanSettings,
    names: PackageNames,
    (template, values): (&str, Value),
    members: impl Iterator<Item = &'a PackageNames>,
) -> Result<Draft> {
    let description = setting.texts.description(template, &names.deb, values)?;
    let links = members.map(|names| LinkVersions::SamePatch.link(RelationKind::Depends, names));
    // The packages that it depends on are for one processor, so it cannot be installed on another.
    let draft = Draft::new(names, Role::Meta, description, "metapackages", "Metapackages");
    Ok(Draft { links: links.collect(), ..draft })
}
