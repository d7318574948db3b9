//! Completes the packages of a package list: adds its metapackages, and the texts of its entries.

use minijinja::context;
use rockpack_core::error::Result;

use super::PackageListOwners;
use super::file::PackageListEntry;
use super::relations::{Dependent, EntryOutcome, Translator};
use crate::config::SUMMARY_LIMIT;
use crate::contents::Portion;
use crate::drafts::{Draft, LinkVersions};
use crate::metapackages;
use crate::naming::PackageNames;
use crate::recombine::Group;
use crate::settings::PlanSettings;
use rockpack_package::{RelationKind, Role};
use rockpack_report::{Findings, IgnoredClaim, found};

impl PackageListOwners<'_> {
    /// Completes the packages with files, which were made of `portions`, and adds the metapackages.
    pub(crate) fn complete(
        &self,
        setting: &PlanSettings,
        groups: &[Group],
        portions: &[Portion<'_>],
        drafts: &mut Vec<Draft>,
        findings: &mut Findings,
    ) -> Result<()> {
        self.note(portions, findings);
        let list = self.list;
        let host_metas = metapackages::host_metas(setting, groups, drafts)?;
        let unversioned = metapackages::unversioned(setting, drafts, &host_metas)?;
        drafts.extend(host_metas);
        let mut translator = Translator::new(setting, list, groups, drafts);
        drafts.extend(unversioned);
        for (index, entry) in list.entries.iter().enumerate() {
            match translator.made.get(index).cloned() {
                Some(EntryOutcome::Meta { groups }) => {
                    let of_groups: Vec<usize> = groups.into_iter().collect();
                    drafts.extend(metapackages(&mut translator, entry, &of_groups)?);
                }
                Some(EntryOutcome::Whole(_) | EntryOutcome::Split { .. }) => {
                    for draft in drafts_of(entry, drafts) {
                        add_dependencies(&mut translator, entry, draft)?;
                    }
                }
                Some(EntryOutcome::Nothing) if entry.is_meta => {
                    let entry = entry.name.clone();
                    findings.add(found::ListedWithoutContent { entry, artifacts: None });
                }
                _ => {}
            }
            add_replacements(&translator, entry, drafts)?;
            for draft in drafts_of(entry, drafts) {
                let group = translator.group_of(entry, &draft.names)?;
                apply_texts(entry, group, draft, findings);
            }
        }
        translator.report(findings);
        Ok(())
    }
}

fn drafts_of<'d>(
    entry: &PackageListEntry,
    drafts: &'d mut [Draft],
) -> impl Iterator<Item = &'d mut Draft> {
    let stem = entry.stem();
    drafts.iter_mut().filter(move |draft| draft.stem == stem)
}

fn add_dependencies<'a>(
    translator: &mut Translator<'a>,
    entry: &'a PackageListEntry,
    draft: &mut Draft,
) -> Result<()> {
    let dependent = match &draft.role {
        Role::Host | Role::Support => Dependent::Host,
        Role::Kernels { group, .. } => {
            match translator.groups.iter().position(|known| known.name == *group) {
                Some(group) => Dependent::Kernels(group),
                None => return Ok(()),
            }
        }
        Role::KernelsCommon { .. } | Role::Meta => return Ok(()),
    };
    translator.add_dependencies(entry, dependent, draft)
}

/// Adds the packages that the entry replaces to its unversioned package, or to the main one if the scheme has no
/// unversioned name.
fn add_replacements(
    translator: &Translator<'_>,
    entry: &PackageListEntry,
    drafts: &mut [Draft],
) -> Result<()> {
    let names = &translator.setting.names;
    let wanted = match &names.scheme.metas.unversioned {
        Some(template) => names.of_stem(template, &entry.stem())?,
        None => names.package(&entry.stem())?,
    };
    match drafts_of(entry, drafts).find(|draft| draft.names == wanted) {
        Some(draft) => translator.add_replacements(entry, draft),
        None => Ok(()),
    }
}

/// Makes the metapackages of an entry: one for each group, one for all of these, one without a version.
fn metapackages<'a>(
    translator: &mut Translator<'a>,
    entry: &'a PackageListEntry,
    of_groups: &[usize],
) -> Result<Vec<Draft>> {
    let naming = &translator.setting.names;
    let stem = entry.stem();
    let mut made = Vec::new();
    let versioned = naming.package(&stem)?;
    for group in of_groups {
        let names = translator.of_group(entry, *group)?;
        let mut draft = meta(translator.setting, entry, names)?;
        translator.add_dependencies(entry, Dependent::MetaOf(*group), &mut draft)?;
        made.push(draft);
    }
    let mut all = meta(translator.setting, entry, versioned.clone())?;
    if made.is_empty() {
        translator.add_dependencies(entry, Dependent::Meta, &mut all)?
    } else {
        let names = made.iter().map(|draft| &draft.names);
        all.links
            .extend(names.map(|names| LinkVersions::SamePatch.link(RelationKind::Depends, names)));
    }
    made.push(all);
    if let Some(template) = &naming.scheme.metas.unversioned {
        let mut draft = meta(translator.setting, entry, naming.of_stem(template, &stem)?)?;
        draft.links.insert(LinkVersions::SamePatch.link(RelationKind::Depends, &versioned));
        made.push(draft);
    }
    Ok(made)
}

fn meta(setting: &PlanSettings, entry: &PackageListEntry, names: PackageNames) -> Result<Draft> {
    let values = context! { name => setting.names.without_vendor(&entry.name) };
    let mut draft = metapackages::meta(setting, names, ("listed", values), std::iter::empty())?;
    draft.stem = entry.stem();
    draft.family.clone_from(&entry.name);
    Ok(draft)
}

fn apply_texts(
    entry: &PackageListEntry,
    group: Option<&str>,
    draft: &mut Draft,
    findings: &mut Findings,
) {
    draft.text_overrides = entry.text_overrides.clone();
    if let Some(section) = &entry.section {
        draft.section.clone_from(section);
    }
    if let Some(group) = &entry.group {
        draft.rpm_group.clone_from(group);
    }
    match (&draft.role, entry.native) {
        (Role::Meta, Some(native)) => draft.native = native,
        (Role::Host | Role::Support, Some(true)) => draft.native = true,
        (Role::Host | Role::Support, Some(false)) if draft.native => {
            let (entry, claim) = (entry.name.clone(), IgnoredClaim::EveryProcessor);
            findings.add(found::ListClaimIgnored { entry, claim });
        }
        _ => {}
    }
    let mut paragraphs = Vec::new();
    let own = entry.is_meta.then_some(&draft.description.summary);
    if let Some(summary) = entry.summary.as_ref().or(own).cloned() {
        let whole = match group {
            Some(group) => format!("{summary} ({group})"),
            None => summary,
        };
        let cut = shortened(&whole);
        if cut != whole {
            paragraphs.push(whole);
        }
        draft.description.summary = cut;
    }
    let long = entry
        .description
        .iter()
        .flat_map(|text| text.split("\n\n"))
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.extend(long.filter(|text| !text.is_empty()));
    paragraphs.append(&mut draft.description.paragraphs);
    draft.description.paragraphs = paragraphs;
}

/// The leading words of `text` that fit into a summary.
fn shortened(text: &str) -> String {
    let mut summary = String::new();
    for word in text.split_whitespace() {
        let length = summary.chars().count() + usize::from(!summary.is_empty());
        if length + word.chars().count() > SUMMARY_LIMIT {
            break;
        }
        if !summary.is_empty() {
            summary.push(' ');
        }
        summary.push_str(word);
    }
    if summary.is_empty() { text.chars().take(SUMMARY_LIMIT).collect() } else { summary }
}
