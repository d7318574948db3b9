//! Arch groups, and the device code that is in none.
//!
//! Without groups in the configuration each arch is its own. SPIR-V and generic targets that no
//! group names get groups of their own as well: they serve GPUs of several groups, so putting
//! them into one of these would hide them from the others.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::Group;
use super::sources::Sources;
use crate::config::Config;
use crate::content::Content;
use crate::error::{Error, Faults, Kind, Result};
use crate::gfx::BaseArch;
use crate::report::{Code, Finding, Findings};
use crate::split::{HostKind, SplitArtifact};
use crate::tree::{Node, TreePath};

/// Which group an arch belongs to, and what belongs to none.
pub(super) struct Grouping {
    pub groups: Vec<Group>,
    grouped: BTreeSet<BaseArch>,
    found: BTreeSet<BaseArch>,
    left: BTreeMap<BaseArch, Vec<LeftOut>>,
}

struct LeftOut {
    place: String,
    content: Content,
}

impl Grouping {
    pub fn new(sources: &Sources, config: &Config) -> Result<Self> {
        let found = found(sources);
        let mut groups: Vec<Group> = config.groups.iter().map(configured).collect();
        let mut grouped: BTreeSet<BaseArch> =
            groups.iter().flat_map(|g| g.archs.iter().cloned()).collect();
        let own = |arch: &&BaseArch| {
            !grouped.contains(arch)
                && (config.groups.is_empty() || arch.is_generic() || arch.is_spirv())
        };
        let alone: Vec<Group> = found.iter().filter(own).map(alone).collect();
        refuse_same_name(&groups, &alone, config)?;
        grouped.extend(alone.iter().flat_map(|g| g.archs.iter().cloned()));
        groups.extend(alone);
        Ok(Self { groups, grouped, found, left: BTreeMap::new() })
    }

    /// Whether `arch` is in a group.
    pub fn has(&self, arch: &BaseArch) -> bool {
        self.grouped.contains(arch)
    }

    /// Notes device code of an arch that is in no group.
    pub fn leave_out(
        &mut self,
        arch: &BaseArch,
        (component, path): (&str, &TreePath),
        content: &Content,
    ) {
        self.left
            .entry(arch.clone())
            .or_default()
            .push(LeftOut { place: format!("{component}/{path}"), content: content.clone() });
    }

    /// The findings about archs that are in no group, and about grouped archs without code.
    pub fn report(&self, config: &Config, findings: &mut Findings) -> Result<()> {
        for (arch, left) in &self.left {
            findings.add(not_grouped(arch, left)?);
        }
        let mut faults = Faults::default();
        for group in &self.groups {
            for arch in group.archs.iter().filter(|arch| !self.found.contains(arch)) {
                let message = format!("no shard has device code for it (group {})", group.name);
                if config.validation.error_on_missing_architecture {
                    let keys = ["architecture_groups", &group.name, "architectures"];
                    let error = config.fault(&keys, format!("{arch}: {message}"));
                    faults.add(error.hint("validation.error_on_missing_architecture is set"));
                } else {
                    findings.add(Finding::new(Code::ArchMissing, arch.as_str(), message));
                }
            }
        }
        faults.finish()
    }
}

/// The archs that there is device code for. Members of a family count if other files are for
/// them, too, or if none of the family's members does: a family names archs that nobody builds for.
fn found(sources: &Sources) -> BTreeSet<BaseArch> {
    let mut found: BTreeSet<BaseArch> = sources.all().flat_map(archs_of).cloned().collect();
    let databases = sources.all().flat_map(|artifact| &artifact.databases);
    let families: BTreeSet<&[BaseArch]> =
        databases.filter(|file| file.family).map(|file| file.archs.as_slice()).collect();
    let unbuilt = families.iter().filter(|family| !family.iter().any(|arch| found.contains(arch)));
    let unbuilt: Vec<BaseArch> = unbuilt.flat_map(|family| family.iter().cloned()).collect();
    found.extend(unbuilt);
    found
}

fn archs_of(artifact: &SplitArtifact) -> impl Iterator<Item = &BaseArch> {
    let wrappers = artifact.host.iter().filter_map(|(_, node)| match node {
        Node::File { data, .. } => match &data.kind {
            HostKind::Fat(fat) => Some(&fat.wrappers),
            HostKind::Plain(_) => None,
        },
        _ => None,
    });
    let code_objects = wrappers.flatten().flat_map(|wrapper| &wrapper.code_objects);
    let databases = artifact.databases.iter().filter(|file| !file.family);
    let databases = databases.flat_map(|file| &file.archs);
    code_objects.map(|code| code.target.base()).chain(databases)
}

fn configured(group: &crate::config::ArchitectureGroup) -> Group {
    Group {
        name: group.name.clone(),
        display_name: group.display_name.clone(),
        archs: group.architectures.clone(),
    }
}

fn alone(arch: &BaseArch) -> Group {
    let display_name = match (arch.is_spirv(), arch.is_generic()) {
        (true, _) => "any AMD GPU (SPIR-V)".to_owned(),
        (_, true) => format!("the generic target {arch}"),
        _ => arch.to_string(),
    };
    Group { name: arch.to_string(), display_name, archs: vec![arch.clone()] }
}

fn refuse_same_name(configured: &[Group], alone: &[Group], config: &Config) -> Result<()> {
    let mut faults = Faults::default();
    for own in alone {
        let same = |group: &&Group| group.name.to_lowercase() == own.name;
        if let Some(group) = configured.iter().find(same) {
            let message = format!("has the name of the arch {}, which is not in it", own.name);
            let error = config.fault(&["architecture_groups", &group.name], message);
            faults.add(error.hint("add the arch to the group or rename the group"));
        }
    }
    faults.finish()
}

/// Counts what is left out, says where it was, and accounts for it by digest.
fn not_grouped(arch: &BaseArch, left: &[LeftOut]) -> Result<Finding> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for out in left {
        *places.entry(out.place.as_str()).or_default() += 1;
    }
    let digests = left.par_iter().map(|out| out.content.sha256_hex());
    let digests: BTreeSet<String> = digests.collect::<Result<_>>()?;
    let places: Vec<String> = places.iter().map(|(place, n)| format!("{place}: {n}")).collect();
    let message = format!(
        "{} code objects or database files ({} different) are in no package, because no group has \
         this arch ({})",
        left.len(),
        digests.len(),
        shortened(&places)
    );
    let mut finding = Finding::new(Code::ArchNotGrouped, arch.as_str(), message);
    finding.code_objects = digests.into_iter().collect();
    Ok(finding)
}

/// How many places a finding names.
const NAMED_PLACES: usize = 5;

fn shortened(places: &[String]) -> String {
    let named = places.iter().take(NAMED_PLACES).cloned().collect::<Vec<_>>();
    match places.len() > NAMED_PLACES {
        true => format!("{} and {} more", named.join(", "), places.len() - NAMED_PLACES),
        false => named.join(", "),
    }
}

/// An error for a binary whose device code is all left out: it would look for archives that
/// nothing installs.
pub(super) fn nothing_grouped(path: &TreePath, archs: &BTreeSet<&BaseArch>) -> Error {
    let archs: Vec<&str> = archs.iter().map(|arch| arch.as_str()).collect();
    let message = format!("none of its device code is for a grouped arch ({})", archs.join(", "));
    Error::new(Kind::Config, message)
        .structure(path.to_string())
        .hint("add at least one of these archs to a group of the configuration")
}
