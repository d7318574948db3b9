//! Translates the dependencies of a package list into package names of the set.
//!
//! An entry names others by the names in the list. The meaning depends on the kind of the dependent:
//!
//! | depends on | a package without device code | one with device code | a metapackage | one per target |
//! |---|---|---|---|---|
//! | host package | it | its host package | it | all of it |
//! | kernel package for a target | – | its kernels for the target | – | it for the target |
//! | metapackage | it | all of it | it | all of it |
//! | metapackage for a target | it | its kernels for the target, or its host | it | it for the target |
//!
//! Dependencies within the set are like those between families. Names that begin with the vendor but belong
//! to no package of the set are findings: a package that depends on them could never be installed. All other
//! names are external and used unchanged.

use std::collections::BTreeSet;

use rockpack_core::error::Result;

use super::file::{PackageList, PackageListEntry, deb_name};
use crate::drafts::{Draft, LinkVersions};
use crate::naming::PackageNames;
use crate::recombine::Group;
use crate::relations;
use crate::settings::PlanSettings;
use rockpack_package::{Format, Relation, RelationKind, Role};
use rockpack_report::{Findings, found};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EntryOutcome {
    /// No package.
    Nothing,
    /// One package.
    Whole(PackageNames),
    /// A host package, kernel packages, and a metapackage of these if the scheme has one.
    Split {
        host: PackageNames,
        all: Option<PackageNames>,
        groups: BTreeSet<usize>,
        /// Kernel packages of generic targets and SPIR-V, each with the groups that need it.
        fallbacks: Vec<(PackageNames, BTreeSet<String>)>,
    },
    /// A metapackage, with one for each of some groups.
    Meta { groups: BTreeSet<usize> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dependent {
    Host,
    Kernels(usize),
    Meta,
    MetaOf(usize),
}

pub(crate) struct Translator<'a> {
    pub setting: &'a PlanSettings,
    pub list: &'a PackageList,
    pub groups: &'a [Group],
    pub made: Vec<EntryOutcome>,
    missing: BTreeSet<(String, String)>,
}

/// The keys of dependencies, then those of recommendations and suggestions.
const NEEDS: [(&str, Format, RelationKind); 6] = [
    ("DEBDepends", Format::Deb, RelationKind::Depends),
    ("RPMRequires", Format::Rpm, RelationKind::Depends),
    ("DEBRecommends", Format::Deb, RelationKind::Recommends),
    ("RPMRecommends", Format::Rpm, RelationKind::Recommends),
    ("DEBSuggests", Format::Deb, RelationKind::Suggests),
    ("RPMSuggests", Format::Rpm, RelationKind::Suggests),
];

const REPLACES: [(&str, Format, RelationKind); 6] = [
    ("Provides", Format::Deb, RelationKind::Provides),
    ("Provides", Format::Rpm, RelationKind::Provides),
    ("Replaces", Format::Deb, RelationKind::Replaces),
    ("Conflicts", Format::Deb, RelationKind::Conflicts),
    ("Conflicts", Format::Rpm, RelationKind::Conflicts),
    ("Obsoletes", Format::Rpm, RelationKind::Obsoletes),
];

struct ListText<'a> {
    entry: &'a PackageListEntry,
    key: &'static str,
    index: usize,
    format: Format,
    kind: RelationKind,
    text: &'a str,
}

impl<'a> Translator<'a> {
    /// Resolves the entries of a list. `drafts` are their packages with files, and the metapackages of single hosts.
    /// Metapackages of the list without members are not made.
    pub fn new(
        setting: &'a PlanSettings,
        list: &'a PackageList,
        groups: &'a [Group],
        drafts: &[Draft],
    ) -> Self {
        let made = list.entries.iter().map(|entry| outcome_of(entry, groups, drafts)).collect();
        let mut translator = Self { setting, list, groups, made, missing: BTreeSet::new() };
        while translator.mark_reachable() {}
        translator
    }

    /// Marks metapackages as made if they lead to a made entry; returns whether any were added.
    fn mark_reachable(&mut self) -> bool {
        let mut changed = false;
        for (index, entry) in self.list.entries.iter().enumerate().filter(|(_, e)| e.is_meta) {
            let members = self.members(entry);
            let alive = members.iter().any(|at| self.made.get(*at) != Some(&EntryOutcome::Nothing));
            let groups: BTreeSet<usize> = members
                .iter()
                .filter(|_| entry.per_target)
                .filter_map(|at| self.made.get(*at))
                .flat_map(groups_of)
                .collect();
            let now = if alive { EntryOutcome::Meta { groups } } else { EntryOutcome::Nothing };
            if let Some(before) = self.made.get_mut(index)
                && *before != now
            {
                *before = now;
                changed = true;
            }
        }
        changed
    }

    /// The entries that `entry` depends on in any format.
    fn members(&self, entry: &PackageListEntry) -> BTreeSet<usize> {
        let depends = NEEDS.iter().filter(|(.., kind)| *kind == RelationKind::Depends);
        let texts = depends.flat_map(|(key, ..)| entry.relations(key));
        let names = texts.flat_map(|text| text.split('|')).filter_map(first_word);
        names.filter_map(|name| Some(self.list.find(name)?.0)).collect()
    }

    fn packages(&self, index: usize, dependent: Dependent) -> Result<Vec<PackageNames>> {
        let (Some(entry), Some(made)) = (self.list.entries.get(index), self.made.get(index)) else {
            return Ok(Vec::new());
        };
        match (made, dependent) {
            (EntryOutcome::Nothing, _) => Ok(Vec::new()),
            (_, Dependent::Kernels(group)) => self.only_of_group(entry, made, group),
            (EntryOutcome::Whole(names), _) => Ok(vec![names.clone()]),
            (EntryOutcome::Split { host, .. }, Dependent::Host) => Ok(vec![host.clone()]),
            (EntryOutcome::Split { host, all, groups, .. }, Dependent::Meta) => match all {
                Some(all) => Ok(vec![all.clone()]),
                None => {
                    let kernels = groups.iter().map(|group| self.of_group(entry, *group));
                    std::iter::once(Ok(host.clone())).chain(kernels).collect()
                }
            },
            (EntryOutcome::Split { host, groups, fallbacks, .. }, Dependent::MetaOf(group)) => {
                if groups.contains(&group) {
                    Ok(vec![self.of_group(entry, group)?])
                } else {
                    let group = self.groups.get(group).map_or("", |group| group.name.as_str());
                    let needed = fallbacks.iter().filter(|(_, groups)| groups.contains(group));
                    let kernels = needed.map(|(names, _)| names);
                    Ok(std::iter::once(host).chain(kernels).cloned().collect())
                }
            }
            (EntryOutcome::Meta { groups }, Dependent::MetaOf(group)) if !groups.is_empty() => {
                self.only_of_group(entry, made, group)
            }
            (EntryOutcome::Meta { .. }, _) => Ok(vec![self.setting.names.package(&entry.stem())?]),
        }
    }

    fn only_of_group(
        &self,
        entry: &PackageListEntry,
        made: &EntryOutcome,
        group: usize,
    ) -> Result<Vec<PackageNames>> {
        let known = groups_of(made).find(|known| *known == group);
        known.into_iter().map(|group| self.of_group(entry, group)).collect()
    }

    pub fn of_group(&self, entry: &PackageListEntry, group: usize) -> Result<PackageNames> {
        let group = self.groups.get(group).map_or("", |group| group.name.as_str());
        self.setting.names.kernels(&entry.stem(), group)
    }

    pub fn group_of(
        &self,
        entry: &PackageListEntry,
        names: &PackageNames,
    ) -> Result<Option<&'a str>> {
        for (index, group) in self.groups.iter().enumerate() {
            if self.of_group(entry, index)? == *names {
                return Ok(Some(&group.name));
            }
        }
        Ok(None)
    }

    pub fn add_dependencies(
        &mut self,
        entry: &'a PackageListEntry,
        dependent: Dependent,
        draft: &mut Draft,
    ) -> Result<()> {
        let is_kernels = matches!(dependent, Dependent::Kernels(_));
        for (key, format, kind) in NEEDS {
            let is_left_out = is_kernels && kind != RelationKind::Depends;
            if is_left_out || !self.setting.formats.contains(&format) {
                continue;
            }
            for (index, text) in entry.relations(key).iter().enumerate() {
                let text = ListText { entry, key, index, format, kind, text };
                let found = if format == Format::Deb && text.text.contains('|') {
                    self.alternatives(&text, dependent)?
                } else {
                    self.single(&text, dependent)?
                };
                draft.relations.extend(found.into_iter().map(|relation| (format, relation)));
            }
        }
        // Drops unbounded dependencies of an `.rpm` next to bounded ones on the same name. Those of a `.deb` are
        // dropped at the end, when the discovered ones are known as well.
        let required = draft.relations.iter().filter(|(format, r)| is_rpm_requirement(*format, r));
        let bounded: BTreeSet<String> = required
            .filter(|(_, relation)| relation.version.is_some())
            .map(|(_, relation)| relation.name.clone())
            .collect();
        draft.relations.retain(|(format, relation)| {
            let is_bare = is_rpm_requirement(*format, relation) && relation.version.is_none();
            !(is_bare && bounded.contains(&relation.name))
        });
        Ok(())
    }

    pub fn add_replacements(&self, entry: &PackageListEntry, draft: &mut Draft) -> Result<()> {
        let wanted = REPLACES.iter().filter(|(_, format, _)| self.setting.formats.contains(format));
        for &(key, format, kind) in wanted {
            for (index, text) in entry.relations(key).iter().enumerate() {
                let name = match format {
                    Format::Deb => deb_name(text),
                    Format::Rpm => text.clone(),
                };
                let text = ListText { entry, key, index, format, kind, text: &name };
                draft.relations.push((format, self.parse(&text, &name)?));
            }
        }
        Ok(())
    }

    fn single(&mut self, text: &ListText<'a>, dependent: Dependent) -> Result<Vec<Relation>> {
        let relation = self.parse(text, text.text)?;
        let Some((index, _)) = self.list.find(&relation.name) else {
            if self.setting.names.is_vendor_name(&relation.name) {
                self.note_missing(text, &relation.name);
                return Ok(Vec::new());
            }
            let outside = !matches!(dependent, Dependent::Kernels(_));
            return Ok(outside.then_some(relation).into_iter().collect());
        };
        if self.made.get(index) == Some(&EntryOutcome::Nothing) {
            self.note_missing(text, &relation.name);
        }
        let mut relations = Vec::new();
        for names in self.packages(index, dependent)? {
            let link = LinkVersions::SamePatch.link(text.kind, &names);
            relations.extend(link.relations(text.format, self.setting));
            // An explicit bound of the entry is kept as well.
            if let Some(bound) = &relation.version {
                let name = names.of(text.format).to_owned();
                relations.push(Relation { kind: text.kind, name, version: Some(bound.clone()) });
            }
        }
        Ok(relations)
    }

    /// Resolves `a | b`: names of packages of the set are translated, and dropped if the set lacks them.
    fn alternatives(&mut self, text: &ListText<'a>, dependent: Dependent) -> Result<Vec<Relation>> {
        let mut kept = Vec::new();
        let mut outside = false;
        for alternative in text.text.split('|').map(str::trim) {
            let name = first_word(alternative).unwrap_or_default();
            match self.list.find(name) {
                Some((index, _)) => {
                    let version = self.setting.version.full(text.format);
                    // An alternative can have only one bound.
                    let sign = if self.setting.next_patch.is_some() { ">=" } else { "=" };
                    let found = self.packages(index, dependent)?;
                    if self.made.get(index) == Some(&EntryOutcome::Nothing) {
                        self.note_missing(text, name);
                    }
                    let named = found.iter().map(|names| names.of(text.format));
                    kept.extend(named.map(|name| format!("{name} ({sign} {version})")));
                }
                None if self.setting.names.is_vendor_name(name) => self.note_missing(text, name),
                None => {
                    outside = true;
                    kept.push(alternative.to_owned());
                }
            }
        }
        let only_outside = outside && matches!(dependent, Dependent::Kernels(_));
        if kept.is_empty() || only_outside {
            return Ok(Vec::new());
        }
        Ok(vec![self.parse(text, &kept.join(" | "))?])
    }

    fn parse(&self, of: &ListText<'_>, text: &str) -> Result<Relation> {
        relations::parse(of.format, of.kind, text).map_err(|error| {
            let keys = [of.key, &of.index.to_string()];
            self.list.located(of.entry, &keys, &error)
        })
    }

    fn note_missing(&mut self, text: &ListText<'_>, name: &str) {
        self.missing.insert((text.entry.name.clone(), name.to_owned()));
    }

    pub fn report(self, findings: &mut Findings) {
        for (entry, dependency) in self.missing {
            findings.add(found::DependencyLeftOut { entry, dependency });
        }
    }
}

fn is_rpm_requirement(format: Format, relation: &Relation) -> bool {
    format == Format::Rpm && relation.kind == RelationKind::Depends
}

fn groups_of(made: &EntryOutcome) -> impl Iterator<Item = usize> {
    let groups = match made {
        EntryOutcome::Split { groups, .. } | EntryOutcome::Meta { groups } => Some(groups),
        EntryOutcome::Nothing | EntryOutcome::Whole(_) => None,
    };
    groups.into_iter().flatten().copied()
}

fn outcome_of(entry: &PackageListEntry, groups: &[Group], drafts: &[Draft]) -> EntryOutcome {
    let stem = entry.stem();
    let own: Vec<&Draft> = drafts.iter().filter(|draft| draft.stem == stem).collect();
    let base = own.iter().find(|draft| draft.is_base());
    let Some(base) = base else { return EntryOutcome::Nothing };
    let names: BTreeSet<&str> = own.iter().filter_map(|draft| draft.role.group()).collect();
    let made = groups.iter().enumerate().filter(|(_, group)| names.contains(group.name.as_str()));
    let found: BTreeSet<usize> = made.map(|(index, _)| index).collect();
    if found.is_empty() {
        EntryOutcome::Whole(base.names.clone())
    } else {
        let meta = own.iter().find(|draft| draft.role == Role::Meta);
        let all = meta.map(|draft| draft.names.clone());
        let needed = own.iter().filter(|draft| !draft.fallback_for.is_empty());
        let fallbacks = needed.map(|draft| (draft.names.clone(), draft.fallback_for.clone()));
        let (host, fallbacks) = (base.names.clone(), fallbacks.collect());
        EntryOutcome::Split { host, all, groups: found, fallbacks }
    }
}

/// The name in `name (>= 1)` or `name >= 1`.
fn first_word(text: &str) -> Option<&str> {
    text.trim().split([' ', '(']).next().filter(|name| !name.is_empty())
}
