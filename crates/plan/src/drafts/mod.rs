//! The packages of all portions, before they are put into the terms of a format, and their links.

mod builder;
mod configured;
mod device;

pub(super) use configured::{
    EffectiveTexts, add_relations, add_texts, find_draft, no_such_package,
};

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rockpack_core::error::Result;
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::{Node, TreePath};

use crate::config::{HintedGpus, PartRole};
use crate::contents::Portion;
use crate::layout::Extras;
use crate::libraries::Linkage;
use crate::libraries::discovered::Discovered;
use crate::naming::PackageNames;
use crate::outcome::{ArchiveSet, FileSource};
use crate::recombine::{Group, fallback_groups};
use crate::relations::PackageRelations;
use crate::settings::PlanSettings;
use crate::texts::Description;
use builder::DraftBuilder;
use device::contents;
use rockpack_hardware::modaliases;
use rockpack_package::for_gpu::GpuPackage;
use rockpack_package::{Comparison, Format, Relation, RelationKind, Role};
use rockpack_report::{Findings, found};

/// Makes the packages of all portions, and their archives. Metapackages are made later.
pub(super) fn make(
    setting: &PlanSettings,
    groups: &[Group],
    portions: &[Portion<'_>],
    linkage: &Linkage,
    findings: &mut Findings,
) -> Result<(Vec<Draft>, Vec<ArchiveSet>)> {
    let contents: Vec<_> =
        portions.iter().map(|portion| contents(setting, groups, portion)).collect::<Result<_>>()?;
    let names: Vec<_> =
        portions.iter().map(|portion| portion.host_names(&setting.names)).collect::<Result<_>>()?;
    let mut families: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, portion) in portions.iter().enumerate() {
        families.entry(&portion.family).or_default().push(index);
    }
    let kernels = portions.iter().map(|portion| portion.kernels.iter().copied());
    let fallbacks: Vec<_> = kernels.map(|kernels| fallback_groups(kernels, groups)).collect();
    let builder = DraftBuilder {
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
        drafts.push(builder.host(index)?);
        for group in contents.groups() {
            drafts.push(builder.kernels(index, group)?);
        }
        for served in contents.shared() {
            drafts.push(builder.common(index, served)?);
        }
    }
    let needs_runtime = contents.iter().any(|contents| contents.needs_runtime);
    let archives: Vec<ArchiveSet> =
        contents.into_iter().filter_map(|contents| contents.archives).collect();
    for group in groups {
        if !drafts.iter().any(|draft| draft.role.group() == Some(group.name.as_str())) {
            findings.add(found::GroupEmpty { group: group.name.clone() });
        }
    }
    setting.note_runtime(needs_runtime, findings);
    Ok((drafts, archives))
}

pub(super) fn base_archs(archs: &[String]) -> Vec<BaseArch> {
    archs.iter().filter_map(|arch| arch.parse().ok()).collect()
}

#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub names: PackageNames,
    /// The stem that the scheme makes names of: the family with the suffix of the part.
    pub stem: PackageNames,
    pub role: Role,
    /// The groups that need its code because it is for a generic target or SPIR-V.
    pub fallback_for: BTreeSet<String>,
    pub family: String,
    /// Whether it is for users, rather than for developers or testers.
    pub is_main: bool,
    /// Whether it is the package of files outside of the prefix.
    pub is_common: bool,
    /// The ids of the components it is made of; none for metapackages.
    pub components: BTreeSet<String>,
    pub section: String,
    pub rpm_group: String,
    /// Whether it is for one processor.
    pub native: bool,
    pub description: Description,
    pub links: BTreeSet<Link>,
    pub relations: Vec<(Format, Relation)>,
    /// Indexes in [`PlanSettings::relations`] of the configuration's changes to it.
    pub changes: Vec<usize>,
    /// The libraries that its files need from outside of the set, and those that they offer.
    pub discovered: Discovered,
    pub files: BTreeMap<TreePath, Node<FileSource>>,
    /// The package whose documents it shares; `None` if it has its own.
    pub documents_of: Option<PackageNames>,
    pub extras: Extras,
    pub text_overrides: TextOverrides,
}

impl Draft {
    /// Makes a package for one processor, without files and relations.
    pub fn new(
        names: PackageNames,
        role: Role,
        description: Description,
        section: &str,
        rpm_group: &str,
    ) -> Self {
        Self {
            stem: names.clone(),
            family: names.rpm.clone(),
            names,
            role,
            section: section.to_owned(),
            rpm_group: rpm_group.to_owned(),
            native: true,
            description,
            ..Self::default()
        }
    }

    pub fn of(
        portion: &Portion<'_>,
        names: PackageNames,
        role: Role,
        description: Description,
    ) -> Self {
        let part = portion.part;
        Self {
            stem: portion.stem.clone(),
            family: portion.family.clone(),
            is_main: part.role == PartRole::Host,
            components: portion.components.clone(),
            ..Self::new(names, role, description, &part.section, &part.group)
        }
    }

    /// Whether it is the host or support package of its stem.
    pub fn is_base(&self) -> bool {
        matches!(self.role, Role::Host | Role::Support)
    }

    /// Whether it holds device code that devices of the group load.
    pub fn serves(&self, group: &str) -> bool {
        self.role.group() == Some(group) || self.fallback_for.contains(group)
    }

    pub fn changes<'s>(
        &self,
        setting: &'s PlanSettings,
    ) -> impl Iterator<Item = &'s PackageRelations> {
        self.changes.iter().filter_map(|place| setting.relations.get(*place))
    }

    /// The relations whose bound is the set's version: those to packages of the set, and configured ones with
    /// `{version}`.
    pub fn bound_to_set(&self, setting: &PlanSettings) -> Vec<(Format, Relation)> {
        let formats = setting.formats.iter();
        let links = formats.flat_map(|format| {
            let relations = self.links.iter().flat_map(|link| link.relations(*format, setting));
            relations.map(|relation| (*format, relation))
        });
        // Bounds of former packages stay as configured.
        let is_former = |it: &Relation| matches!(it.version, Some((Comparison::Less, _)));
        let added = self.relations.iter().filter(|(_, relation)| !is_former(relation));
        let bound = links.chain(added.cloned()).filter(|(format, relation)| {
            let bound = relation.version.as_ref().map(|(_, version)| version);
            bound == Some(&setting.version.full(*format))
                && !self.changes(setting).any(|it| it.of(*format).literal.contains(relation))
        });
        bound.collect()
    }

    /// The package's relations in `format`, without those discovered in its files.
    pub fn relations_in(&self, format: Format, setting: &PlanSettings) -> BTreeSet<Relation> {
        let own = self.links.iter().flat_map(|link| link.relations(format, setting));
        let added = self.relations.iter().filter(|(known, _)| *known == format);
        own.chain(added.map(|(_, r)| r.clone())).collect()
    }

    /// The data by which the GPU script finds out whether a machine needs the package.
    pub fn offer(&self, format: Format, setting: &PlanSettings) -> GpuPackage {
        let (name, version) = (self.names.of(format), setting.version.full(format));
        let relations = self.relations_in(format, setting);
        let kinds_and_names = relations.iter().map(|relation| (relation.kind, &*relation.name));
        GpuPackage::new(name, &version, self.role.archs(), kinds_and_names)
    }

    /// The modalias patterns of the GPUs to hint at in `format`, with the host package. `None` without device code of
    /// its own.
    pub fn hardware_hints(
        &self,
        format: Format,
        setting: &PlanSettings,
    ) -> Option<(&PackageNames, Vec<String>)> {
        let Role::Kernels { archs, .. } = &self.role else { return None };
        let hints = &setting.config.keys.hardware_hints;
        let hinted = format.select(hints.deb, hints.rpm);
        let host = self.links.iter().find(|link| link.kind == RelationKind::Enhances)?;
        let patterns = modaliases(&base_archs(archs), hinted == HintedGpus::All);
        let is_wanted = hinted != HintedGpus::None && !patterns.is_empty();
        is_wanted.then_some((&host.to, patterns))
    }
}

/// Texts of a package list or the configuration that replace those for all packages.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextOverrides {
    pub maintainer: Option<String>,
    pub vendor: Option<String>,
    pub homepage: Option<String>,
    pub license: Option<String>,
    pub copyright: Option<String>,
    pub priority: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    pub kind: RelationKind,
    pub to: PackageNames,
    pub versions: LinkVersions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinkVersions {
    Any,
    /// The set's version, and later releases below [`PlanSettings::next_patch`]: those of a package of another
    /// family, which may be updated by itself.
    SamePatch,
    /// The set's version alone: that of a package of the same family, which is always rebuilt with this one.
    Exact,
    Before,
}

impl LinkVersions {
    pub fn link(self, kind: RelationKind, to: &PackageNames) -> Link {
        Link { kind, to: to.clone(), versions: self }
    }
}

impl Link {
    pub fn relations(&self, format: Format, setting: &PlanSettings) -> Vec<Relation> {
        let version = &setting.version;
        let bounds = match (self.versions, setting.next_patch.as_deref()) {
            (LinkVersions::Any, _) => vec![None],
            (LinkVersions::Before, _) => vec![Some((Comparison::Less, version.full(format)))],
            (LinkVersions::SamePatch, Some(next)) => {
                let least = (Comparison::GreaterEqual, version.full(format));
                vec![Some(least), Some((Comparison::Less, next.to_owned()))]
            }
            (LinkVersions::SamePatch, None) | (LinkVersions::Exact, _) => {
                vec![Some((Comparison::Equal, version.full(format)))]
            }
        };
        let name = self.to.of(format);
        // A `Breaks` of a `.deb` is a `Conflicts` of an `.rpm`.
        let kind = match (self.kind, format) {
            (RelationKind::Breaks, Format::Rpm) => RelationKind::Conflicts,
            (kind, _) => kind,
        };
        let relation = |version| Relation { kind, name: name.to_owned(), version };
        bounds.into_iter().map(relation).collect()
    }
}
