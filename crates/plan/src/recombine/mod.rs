//! The recombine stage: split artifacts of all shards become components with grouped device code.
//!
//! ```text
//! sources ─ host: one tree, the primary shard's first
//!         ├ kernels: wrappers of all shards matched to the primary's, code objects by key
//!         └ databases: shared files brought together, then one file per path
//!                    └ groups: device code without a group is named and left out
//! sources ─ same_name: packed artifacts of one name that differ between shards are named
//! components ─ links and indexes: contradictions within the set are named
//! ```
//!
//! A *source* is one split artifact. Sources of a component are taken in the order of their shards, the
//! primary first and the others by name, and within a shard by family: the first source with a host file
//! provides it. The stage refuses, naming both shards: wrappers that match none or several, different code
//! for one key, different database files at one path, and device code that the chosen host binary could not
//! load.
//!
//! `verify_generic_artifacts_match` compares: the paths in every shard that has the component; plain host
//! files byte for byte, links by their text, files by the executable bit; fat binaries by their host-only
//! form (`host_form.rs`). Database files for all archs of a shard do not count as host files here: the rules
//! of databases judge them.

mod databases;
mod groups;
mod host;
mod host_form;
mod kernels;
mod left_out;
mod same_name;
mod shared;
mod wrappers;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

pub use left_out::{
    LeftOutCode, LeftOutCounts, fallback_groups, fallback_of, note_lost_fallbacks,
    serves_all_devices, wrapper_targets,
};
pub use rockpack_core::gfx::Group;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use derive_more::Display;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::gfx::Target;
use rockpack_core::tree::{DanglingLink, LinkSet, Node, Tree, TreePath};
use rockpack_elf::code_object;

use crate::config::{Config, Grouping, Validation};
use groups::ArchGrouping;
use left_out::NotPacked;
use rockpack_report::words::list;
use rockpack_report::{Findings, found};
use rockpack_split::input::artifact::ComponentKind;
use rockpack_split::input::database::DatabaseRules;
use rockpack_split::{DatabaseFile, HostFile, SplitArtifact};

pub fn recombine(
    split: Vec<SplitArtifact>,
    config: &Config,
    grouping: &Grouping,
) -> Result<Recombined> {
    recombine_with(split, config, grouping, &code_object::kernel_names)
}

/// Returns the findings about an artifact that is kept as it is: those of its split, and contradictions among its
/// indexes.
pub fn findings_of_unsplit(split: SplitArtifact, rules: &DatabaseRules) -> Result<Findings> {
    let SplitArtifact { shard, name, host, databases, mut findings, .. } = split;
    let id = if name.is_wheel() { shard } else { name.component() };
    let (id, artifact, kind, kernels) = (id.into(), name.name, name.kind, Vec::new());
    let component = Component { id, artifact, kind, host, kernels, databases };
    databases::check(&[component], &[], rules, &mut findings)?;
    Ok(findings)
}

/// The names of the kernels in a code object; those of tests are texts.
type KernelNames<'a> = &'a dyn Fn(&Content) -> Result<BTreeSet<String>>;

/// Does [`recombine`] with another reader of code objects.
fn recombine_with(
    split: Vec<SplitArtifact>,
    config: &Config,
    grouping: &Grouping,
    kernel_names: KernelNames<'_>,
) -> Result<Recombined> {
    let noticed = Findings::of(split.iter().map(|artifact| &artifact.findings));
    let mut findings = Findings::default();
    let joined = join(split, config, grouping, kernel_names, &mut findings);
    noticed.explain(findings.explain(joined))
}

/// Joins all artifacts. If it fails, `findings` has the findings until then.
fn join(
    split: Vec<SplitArtifact>,
    config: &Config,
    grouping: &Grouping,
    kernel_names: KernelNames<'_>,
    findings: &mut Findings,
) -> Result<Recombined> {
    let mut sources = ComponentSources::new(split, config, grouping)?;
    let has_groups = !grouping.groups.is_empty();
    let mut grouping = ArchGrouping::new(&sources, config, grouping)?;
    let mut faults = Faults::default();
    faults.keep(sources.check_rules(config));
    let mut not_packed = NotPacked::new();
    let mut components = Vec::new();
    for (key, parts) in &mut sources.components {
        grouping.begin(key, config);
        faults.keep(grouping.refuse_incomplete(key, parts, config));
        let wheel = parts.first().filter(|part| part.name.is_wheel());
        let id: Arc<str> = wheel.map_or_else(|| key.to_string(), |it| it.shard.clone()).into();
        let mut join = Join {
            component: id.to_string(),
            primary: &sources.primary,
            validation: config.validation_of(&key.artifact, key.kind),
            has_groups,
            findings,
            faults: &mut faults,
            not_packed: &mut not_packed,
            grouping: &mut grouping,
            kernel_names,
        };
        join.resolve_shared(parts);
        let host = join.host(parts);
        let kernels = join.kernels(&host, parts);
        let databases = join.databases(&host, parts);
        let (artifact, kind) = (key.artifact.clone(), key.kind);
        components.push(Component { id, artifact, kind, host, kernels, databases });
    }
    faults.keep(grouping.report(config, findings));
    faults.finish()?;
    for differ in same_name::different_artifacts(&sources, config)? {
        findings.add(differ);
    }
    check_links(&components, findings)?;
    databases::check(&components, &grouping.groups, &config.databases, findings)?;
    let mut findings = std::mem::take(findings);
    for artifact in sources.components.into_values().flatten() {
        findings.extend(artifact.findings);
    }
    findings.sort();
    let findings = left_out::correct_not_packed(&findings, &not_packed);
    Ok(Recombined { groups: grouping.groups, components, findings })
}

struct Join<'a> {
    /// The component's name for messages: `blas_lib`, or the file name of a wheel.
    component: String,
    primary: &'a str,
    validation: Validation,
    has_groups: bool,
    findings: &'a mut Findings,
    faults: &'a mut Faults,
    /// Builds of binaries with device code that is in no package.
    not_packed: &'a mut NotPacked,
    grouping: &'a mut ArchGrouping,
    kernel_names: KernelNames<'a>,
}

/// All components of a build, by artifact and kind, and its groups, in configuration order.
#[derive(Debug)]
pub struct Recombined {
    pub groups: Vec<Group>,
    pub components: Vec<Component>,
    pub findings: Findings,
}

/// A component (`blas_lib`): host files of one artifact name and component kind, and the device
/// code of its binaries from all shards.
#[derive(Debug)]
pub struct Component {
    /// `{artifact}_{kind}`, e.g. `blas_lib`, or the file name of a wheel.
    pub id: Arc<str>,
    pub artifact: String,
    pub kind: ComponentKind,
    /// The host files. A fat binary is the primary shard's, or the first other shard's if the primary lacks
    /// it; its device code is in `kernels`.
    pub host: Tree<HostFile>,
    /// Code objects of grouped archs, sorted by (binary, co_index, target).
    pub kernels: Vec<Kernel>,
    /// Database files of grouped archs, sorted by path.
    pub databases: Vec<DatabaseFile>,
}

/// A code object with the key under which the runtime looks it up.
#[derive(Debug, Clone)]
pub struct Kernel {
    pub binary: TreePath,
    /// The index of the wrapper in the *primary* binary.
    pub co_index: u32,
    pub target: Target,
    pub content: Content,
    /// Bytes that it took up in its compressed bundle; see [`CodeObject`](rockpack_split::CodeObject).
    pub stored_size: Option<u64>,
    pub shard: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Display)]
#[display("{artifact}_{kind}")]
struct ComponentKey {
    pub artifact: String,
    pub kind: ComponentKind,
}

/// All split artifacts by component, those of each in the order of precedence.
#[derive(Debug)]
struct ComponentSources {
    pub primary: String,
    pub components: BTreeMap<ComponentKey, Vec<SplitArtifact>>,
}

impl ComponentSources {
    pub fn new(
        mut split: Vec<SplitArtifact>,
        config: &Config,
        grouping: &Grouping,
    ) -> Result<Self> {
        let primary = primary(&split, config, grouping)?;
        split.sort_by_key(|artifact| {
            let is_primary = artifact.shard == primary;
            // Artifacts with only host files precede others.
            let name = (artifact.shard.clone(), Reverse(artifact.name.is_generic()));
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
                let message = "there is no such artifact or component";
                let error = config.fault(&["components", name], message);
                faults.add(
                    error.hint(format!("the components are {}", list(self.components.keys()))),
                );
            }
        }
        faults.finish()
    }

    pub fn all(&self) -> impl Iterator<Item = &SplitArtifact> {
        self.components.values().flatten()
    }
}

fn primary(split: &[SplitArtifact], config: &Config, grouping: &Grouping) -> Result<String> {
    let shards: BTreeSet<&str> = split.iter().map(|a| a.shard.as_str()).collect();
    let Some(first) = shards.first() else {
        return Err(Error::new(Kind::Usage, "there is no artifact to package"));
    };
    let Some(wanted) = &grouping.primary_shard else { return Ok((*first).to_owned()) };
    if shards.contains(wanted.as_str()) {
        return Ok(wanted.clone());
    }
    // Shards that were joined before have generic artifacts, and others with only device code. The host files
    // then come from the primary shard, whose name is lost.
    let has_host_files = |artifact: &SplitArtifact| {
        artifact.host.iter().any(|(_, node)| !matches!(node, Node::Directory { .. }))
    };
    let is_joined =
        |artifact: &SplitArtifact| artifact.name.is_generic() || !has_host_files(artifact);
    if shards.len() == 1 && split.iter().all(is_joined) {
        return Ok((*first).to_owned());
    }
    let message = format!("there is no shard `{wanted}`");
    let hint = format!("the shards are {}", list(shards));
    Err(config.fault(&["primary_shard"], message).hint(hint))
}

/// Notes every link without a target in any component: `libx.so` of a development component may lead to a
/// library component's file, so only the whole set decides. Refuses links that leave the prefix through
/// another component's link.
fn check_links(components: &[Component], findings: &mut Findings) -> Result<()> {
    let mut set = LinkSet::default();
    for component in components {
        set.add_tree(&component.host, &component.id);
        for file in &component.databases {
            set.add(&file.path);
        }
    }
    set.refuse_outside_links()?;
    for DanglingLink { owner, path, target } in set.dangling() {
        findings.add(found::LinkDangling { owner, path, target });
    }
    Ok(())
}
