//! Arch groups, and device code outside of them.
//!
//! Without groups in the configuration each arch is its own group. SPIR-V and generic targets that no group
//! names get groups of their own as well: they serve GPUs of several groups, and one group would hide them
//! from the others.
//!
//! Components are processed one after the other: [`ArchGrouping::begin`] starts the next one, because a
//! component's rules may exclude archs that others pack.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::TreePath;

use super::left_out::{LeftOutCode, LeftOutCounts};
use super::{ComponentKey, ComponentSources, Group};
use crate::config::{ArchFilter, Config, Grouping, UnassignedArchitectures};
use rockpack_report::{ArchFilterTable, ComponentFile, Finding, Findings, found};
use rockpack_split::SplitArtifact;

pub(super) struct ArchGrouping {
    pub groups: Vec<Group>,
    grouped: BTreeSet<BaseArch>,
    found: BTreeSet<BaseArch>,
    left_out: BTreeMap<Reason, LeftOutCode>,
    /// The treatment of archs without a group in the current component.
    unassigned: UnassignedArchitectures,
    /// The arch filters of the current component, by the name of their table in the configuration.
    filters: Vec<(String, ArchFilter)>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    NotGrouped(UnassignedArchitectures, BaseArch),
    /// The table `components.<name>` excludes it.
    Excluded(String, BaseArch),
}

impl ArchGrouping {
    pub fn new(sources: &ComponentSources, config: &Config, grouping: &Grouping) -> Result<Self> {
        let found = archs_with_code(sources);
        let mut groups = grouping.groups.clone();
        let mut grouped: BTreeSet<BaseArch> =
            groups.iter().flat_map(|g| g.archs.iter().cloned()).collect();
        let ungrouped = found.iter().filter(|arch| {
            !grouped.contains(*arch)
                && (grouping.groups.is_empty() || arch.is_generic() || arch.is_spirv())
        });
        let own_groups: Vec<Group> = ungrouped.map(single_arch_group).collect();
        let mut faults = Faults::default();
        for own in &own_groups {
            if let Some(group) = groups.iter().find(|group| group.name.to_lowercase() == own.name) {
                let message = format!("has the name of the arch {}, which is not in it", own.name);
                let error = config.fault(&["architecture_groups", &group.name], message);
                faults.add(error.hint("add the arch to the group or rename the group"));
            }
        }
        faults.finish()?;
        grouped.extend(own_groups.iter().flat_map(|g| g.archs.iter().cloned()));
        groups.extend(own_groups);
        let unassigned = config.keys.validation.unassigned_architectures;
        let (left_out, filters) = (BTreeMap::new(), Vec::new());
        Ok(Self { groups, grouped, found, left_out, unassigned, filters })
    }

    /// Starts the component `key`, to which the following device code belongs.
    pub fn begin(&mut self, key: &ComponentKey, config: &Config) {
        let validation = config.validation_of(&key.artifact, key.kind);
        self.unassigned = validation.unassigned_architectures;
        let rules = config.rules_of(&key.artifact, key.kind);
        let filters = rules.map(|(name, rules)| (name.to_owned(), rules.architectures.clone()));
        self.filters = filters.collect();
    }

    /// Whether code of `arch` is packed: a group has it, and no rule excludes it.
    pub fn has(&self, arch: &BaseArch) -> bool {
        self.reason_against(arch).is_none()
    }

    fn reason_against(&self, arch: &BaseArch) -> Option<Reason> {
        if !self.grouped.contains(arch) {
            return Some(Reason::NotGrouped(self.unassigned, arch.clone()));
        }
        let against = self.filters.iter().find(|(_, filter)| !filter.has(arch));
        against.map(|(name, _)| Reason::Excluded(name.clone(), arch.clone()))
    }

    pub fn leave_out(
        &mut self,
        arch: &BaseArch,
        component: &str,
        path: &TreePath,
        content: &Content,
    ) {
        if let Some(reason) = self.reason_against(arch) {
            let place = ComponentFile::new(component, path).to_string();
            self.left_out.entry(reason).or_default().add(place, content);
        }
    }

    /// Fails for every grouped arch that a component lacks, if its own rules require all. Components without device
    /// code lack nothing.
    pub fn refuse_incomplete(
        &self,
        key: &ComponentKey,
        parts: &[SplitArtifact],
        config: &Config,
    ) -> Result<()> {
        let wants = config.rules_of(&key.artifact, key.kind).filter_map(|(name, rules)| {
            rules.keys.error_on_missing_architecture.map(|wanted| (name.to_owned(), wanted))
        });
        let Some((name, true)) = wants.last() else { return Ok(()) };
        let found: BTreeSet<&BaseArch> =
            parts.iter().flat_map(SplitArtifact::built_archs).collect();
        let mut faults = Faults::default();
        let archs = self.groups.iter().flat_map(|group| &group.archs);
        let wanted = archs.filter(|arch| self.has(arch) && !found.contains(arch));
        for arch in wanted.filter(|_| !found.is_empty()) {
            let keys = ["components", &name, "error_on_missing_architecture"];
            let error = config.fault(&keys, format!("{key} has no device code for {arch}"));
            let hint = "exclude the arch from the component, or add its shard";
            faults.add(error.hint(hint).into_input_conflict());
        }
        faults.finish()
    }

    /// Adds the findings about archs without a group, and about grouped archs without code.
    pub fn report(&self, config: &Config, findings: &mut Findings) -> Result<()> {
        let mut faults = Faults::default();
        for (reason, left_out) in &self.left_out {
            faults.keep(note(reason, left_out, findings));
        }
        for group in &self.groups {
            for arch in group.archs.iter().filter(|arch| !self.found.contains(arch)) {
                let missing = Finding::from(found::ArchMissing {
                    arch: arch.clone(),
                    group: group.name.clone(),
                });
                if config.keys.validation.error_on_missing_architecture {
                    let keys = ["architecture_groups", &group.name, "architectures"];
                    let error = config.fault(&keys, format!("{arch}: {}", missing.message()));
                    let hint = "validation.error_on_missing_architecture is set";
                    faults.add(error.hint(hint).into_input_conflict());
                } else {
                    findings.add(missing);
                }
            }
        }
        faults.finish()
    }
}

/// The archs with device code. Database files for a whole arch family count only for members with other files, or for
/// all members if none has any: a family may include archs without a build.
fn archs_with_code(sources: &ComponentSources) -> BTreeSet<BaseArch> {
    let built = sources.all().flat_map(SplitArtifact::built_archs);
    let mut found: BTreeSet<BaseArch> = built.cloned().collect();
    let databases = sources.all().flat_map(|artifact| &artifact.databases);
    let families: BTreeSet<&[BaseArch]> =
        databases.filter(|file| file.of_whole_family).map(|file| file.archs.as_slice()).collect();
    let unbuilt: Vec<BaseArch> = families
        .iter()
        .filter(|family| !family.iter().any(|arch| found.contains(arch)))
        .flat_map(|family| family.iter().cloned())
        .collect();
    found.extend(unbuilt);
    found
}

fn single_arch_group(arch: &BaseArch) -> Group {
    let display_name = match (arch.is_spirv(), arch.is_generic()) {
        (true, _) => "any AMD GPU (SPIR-V)".to_owned(),
        (_, true) => format!("the generic target {arch}"),
        _ => arch.to_string(),
    };
    Group { name: arch.to_string(), display_name, archs: vec![arch.clone()] }
}

fn note(reason: &Reason, left_out: &LeftOutCode, findings: &mut Findings) -> Result<()> {
    let LeftOutCounts { count, different, places, code_objects } = left_out.counted()?;
    let finding: Finding = match reason.clone() {
        Reason::Excluded(name, arch) => {
            let table = ArchFilterTable::Component(name);
            found::ArchExcluded { table, arch, count, different, places, code_objects }.into()
        }
        Reason::NotGrouped(UnassignedArchitectures::Drop, arch) => {
            found::ArchDropped { arch, count, different, places, code_objects }.into()
        }
        Reason::NotGrouped(policy, arch) => {
            let finding: Finding =
                found::ArchNotGrouped { arch, count, different, places, code_objects }.into();
            if policy == UnassignedArchitectures::Error {
                let error =
                    Error::new(Kind::Conflict, finding.message()).structure(finding.subject());
                let hint = "unassigned_architectures is `error`: add the arch to a group, or set \
                            it to `warn` or `drop`";
                return Err(error.hint(hint));
            }
            finding
        }
    };
    findings.add(finding);
    Ok(())
}
