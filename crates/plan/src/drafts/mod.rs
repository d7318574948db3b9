//! The packages of all portions, before they are written in the terms of a format.

mod device;
mod draft;
mod host;
mod kernels;
mod maker;
mod named;

use std::collections::HashMap;

use rockpack_core::error::Result;

use super::contents::portion::Portion;
use super::libraries::linkage::Linkage;
use super::settings::PlanSettings;
use super::source::ArchiveSet;
use crate::recombine::{Group, fallback_groups};
use device::contents;
pub(super) use draft::{Draft, Says};
use maker::Maker;
pub(super) use named::{add_relations, named, no_such_package};
use rockpack_report::{Finding, Findings};

/// The drafts of a set without metapackages, and their archives.
pub(super) struct DraftedSet {
    pub drafts: Vec<Draft>,
    pub archives: Vec<ArchiveSet>,
}

/// Makes the packages of all portions.
pub(super) fn make(
    setting: &PlanSettings,
    groups: &[Group],
    portions: &[Portion<'_>],
    linkage: &Linkage,
    findings: &mut Findings,
) -> Result<DraftedSet> {
    let contents: Vec<_> =
        portions.iter().map(|portion| contents(setting, groups, portion)).collect::<Result<_>>()?;
    let names: Vec<_> =
        portions.iter().map(|portion| portion.host_names(&setting.names)).collect::<Result<_>>()?;
    let mut families: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, portion) in portions.iter().enumerate() {
        families.entry(&portion.family).or_default().push(index);
    }
    let fallbacks: Vec<_> = portions
        .iter()
        .map(|portion| fallback_groups(portion.kernels.iter().copied(), groups))
        .collect();
    let maker = Maker {
        setting,
        groups,
        portions,
        families: &families,
        linkage,
        contents: &contents,
        fallbacks: &fallbacks,
        names: &names,
    };
    let mut drafts = Vec::new();
    for (index, contents) in contents.iter().enumerate() {
        drafts.push(maker.host(index)?);
        for group in contents.groups() {
            drafts.push(maker.kernels(index, group)?);
        }
        for served in contents.shared() {
            drafts.push(maker.common(index, served)?);
        }
    }
    let archives: Vec<ArchiveSet> =
        contents.into_iter().filter_map(|contents| contents.archives).collect();
    note_empty_groups(groups, &drafts, findings);
    setting.note_runtime(!archives.is_empty(), findings);
    Ok(DraftedSet { drafts, archives })
}

fn note_empty_groups(groups: &[Group], drafts: &[Draft], findings: &mut Findings) {
    for group in groups {
        if !drafts.iter().any(|draft| draft.role.group() == Some(group.name.as_str())) {
            findings.add(Finding::GroupEmpty { group: group.name.clone() });
        }
    }
}
