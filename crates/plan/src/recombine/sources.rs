//! The artifacts of each component, in their order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use derive_more::Display;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::Node;

use crate::config::{Config, Grouping};
use rockpack_report::Findings;
use rockpack_split::SplitArtifact;
use rockpack_split::input::artifact::ComponentKind;

/// The key of a component: `{name}_{kind}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Display)]
#[display("{artifact}_{kind}")]
pub(super) struct ComponentKey {
    pub artifact: String,
    pub kind: ComponentKind,
}

/// All split artifacts by component, in the order of precedence.
#[derive(Debug)]
pub(super) struct ComponentSources {
    pub primary: String,
    pub components: BTreeMap<ComponentKey, Vec<SplitArtifact>>,
}

/// The family of artifacts with only host files; they precede others.
const GENERIC: &str = "generic";

impl ComponentSources {
    pub fn new(
        mut split: Vec<SplitArtifact>,
        config: &Config,
        grouping: &Grouping,
    ) -> Result<Self> {
        let primary = primary(&split, config, grouping)?;
        split.sort_by_key(|artifact| {
            let is_primary = artifact.shard == primary;
            let generic = artifact.name.gpu_family == GENERIC;
            let name = (artifact.shard.clone(), Reverse(generic));
            (Reverse(is_primary), name, artifact.name.clone())
        });
        let mut components: BTreeMap<ComponentKey, Vec<SplitArtifact>> = BTreeMap::new();
        for artifact in split {
            let key =
                ComponentKey { artifact: artifact.name.name.clone(), kind: artifact.name.kind };
            components.entry(key).or_default().push(artifact);
        }
        Ok(Self { primary, components })
    }

    /// Refuses rules for artifacts or components that do not exist: they are typos.
    pub fn check_rules(&self, config: &Config) -> Result<()> {
        let mut faults = Faults::default();
        for (name, _) in &config.components {
            let mut keys = self.components.keys();
            if !keys.any(|key| key.artifact == *name || key.to_string() == *name) {
                let known: Vec<String> = self.components.keys().map(ToString::to_string).collect();
                let message = "there is no such artifact or component";
                let error = config.fault(&["components", name], message);
                faults.add(error.hint(format!("the components are {}", known.join(", "))));
            }
        }
        faults.finish()
    }

    /// All split artifacts.
    pub fn all(&self) -> impl Iterator<Item = &SplitArtifact> {
        self.components.values().flatten()
    }

    /// Returns `own` with the findings of the split.
    pub fn findings(self, own: Findings) -> Findings {
        let mut findings = own;
        for artifact in self.components.into_values().flatten() {
            findings.extend(artifact.findings);
        }
        findings.sort();
        findings
    }
}

/// Tells whether the shards were joined before: their artifacts are generic ones, and others with only device
/// code. The host files then come from the primary shard, whose name is lost.
fn is_joined(split: &[SplitArtifact]) -> bool {
    split.iter().all(|artifact| artifact.name.gpu_family == GENERIC || !has_host_files(artifact))
}

fn has_host_files(artifact: &SplitArtifact) -> bool {
    artifact.host.iter().any(|(_, node)| !matches!(node, Node::Directory { .. }))
}

fn primary(split: &[SplitArtifact], config: &Config, grouping: &Grouping) -> Result<String> {
    let shards: BTreeSet<&str> = split.iter().map(|a| a.shard.as_str()).collect();
    let Some(first) = shards.first() else {
        return Err(Error::new(Kind::Usage, "there is no artifact to package"));
    };
    let Some(wanted) = &grouping.primary_shard else {
        return Ok((*first).to_owned());
    };
    if shards.contains(wanted.as_str()) {
        return Ok(wanted.clone());
    }
    if shards.len() == 1 && is_joined(split) {
        return Ok((*first).to_owned());
    }
    let known: Vec<&str> = shards.into_iter().collect();
    let message = format!("there is no shard `{wanted}`");
    let hint = format!("the shards are {}", known.join(", "));
    Err(config.fault(&["primary_shard"], message).hint(hint))
}
