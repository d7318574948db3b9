//! The recombine stage: split artifacts of all shards become components with grouped device code.
//!
//! ```text
//! sources ─ host: one tree, the primary shard's first
//!         ├ kernels: wrappers of all shards matched to the primary's, code objects by key
//!         └ databases: shared files brought together, then one file per path
//!                    └ groups: device code without a group is named and left out
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
mod fallbacks;
mod groups;
mod host;
mod host_form;
mod integrity;
mod kept;
mod kernels;
mod left_out;
mod links;
mod shared;
mod sources;
mod wrappers;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use fallbacks::{
    fallback_groups, fallback_of, note_lost_fallbacks, serves_all_devices, wrapper_targets,
};
pub use left_out::{AllLeftOut, CountedLeftOut, LeftOut};
pub use rockpack_core::gfx::Group;

use rockpack_core::content::Content;
use rockpack_core::error::{Faults, Result};
use rockpack_core::gfx::Target;
use rockpack_core::tree::{Tree, TreePath};
use rockpack_elf::code_object;
use rockpack_elf::loaded_code;

use crate::config::{Config, Grouping, Validation};
use groups::ArchGrouping;
use kept::NotPacked;
use rockpack_report::Findings;
use rockpack_split::input::database::DatabaseRules;
use rockpack_split::{DatabaseFile, HostFile, SplitArtifact};
use sources::ComponentSources;

/// Joins the artifacts of all shards.
pub fn recombine(
    split: Vec<SplitArtifact>,
    config: &Config,
    grouping: &Grouping,
) -> Result<Recombined> {
    let readers =
        Readers { kernel_names: &code_object::kernel_names, loaded_code: &loaded_code::digest };
    recombine_with(split, config, grouping, readers)
}

/// Returns the findings about an artifact that is kept as it is: those of its split, and contradictions among its
/// indexes.
pub fn findings_of_whole(split: SplitArtifact, rules: &DatabaseRules) -> Result<Findings> {
    let SplitArtifact { name, host, databases, mut findings, .. } = split;
    let (artifact, kind, kernels) = (name.name, name.kind, Vec::new());
    let component = Component { artifact, kind, host, kernels, databases };
    integrity::check(&[component], &[], rules, &mut findings)?;
    Ok(findings)
}

/// The readers of code objects; those of tests read texts instead.
#[derive(Clone, Copy)]
pub struct Readers<'a> {
    /// The names of the kernels in a code object.
    pub kernel_names: &'a dyn Fn(&Content) -> Result<BTreeSet<String>>,
    /// A digest of the code that a code object loads, independent of names.
    pub loaded_code: &'a dyn Fn(&Content) -> Result<[u8; 32]>,
}

/// Does [`recombine`] with other readers of code objects.
pub fn recombine_with(
    split: Vec<SplitArtifact>,
    config: &Config,
    grouping: &Grouping,
    readers: Readers<'_>,
) -> Result<Recombined> {
    let noticed = Findings::of(split.iter().map(|artifact| &artifact.findings));
    let mut findings = Findings::default();
    let joined = join(split, config, grouping, readers, &mut findings);
    noticed.explain(findings.explain(joined))
}

/// Joins all artifacts. If it fails, `findings` has the findings until then.
fn join(
    split: Vec<SplitArtifact>,
    config: &Config,
    grouping: &Grouping,
    readers: Readers<'_>,
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
        let mut join = Join {
            component: key.to_string(),
            primary: &sources.primary,
            validation: config.validation_of(&key.artifact, key.kind),
            has_groups,
            findings,
            faults: &mut faults,
            not_packed: &mut not_packed,
        };
        join.settle_shared(parts);
        let host = join.host(parts);
        let kernels = join.kernels(&host, parts, &mut grouping, readers);
        let databases = join.databases(&host, parts, &mut grouping);
        components.push(Component {
            artifact: key.artifact.clone(),
            kind: key.kind,
            host,
            kernels,
            databases,
        });
    }
    faults.keep(grouping.report(config, findings));
    faults.finish()?;
    links::check(&components, findings)?;
    integrity::check(&components, &grouping.groups, &config.databases, findings)?;
    let findings = kept::settle(&sources.findings(std::mem::take(findings)), &not_packed);
    Ok(Recombined { groups: grouping.groups, components, findings })
}

/// The inputs for joining one component, and the outputs for its findings.
struct Join<'a> {
    /// The component's name, e.g. `blas_lib`, for messages.
    component: String,
    primary: &'a str,
    validation: Validation,
    /// Tells whether the configuration has groups.
    has_groups: bool,
    findings: &'a mut Findings,
    faults: &'a mut Faults,
    /// Builds of binaries with device code that is in no package.
    not_packed: &'a mut NotPacked,
}

/// All components of a build, by artifact and kind, and its groups, in configuration order.
#[derive(Debug)]
pub struct Recombined {
    /// The arch groups.
    pub groups: Vec<Group>,
    /// The components.
    pub components: Vec<Component>,
    /// The findings of the stage.
    pub findings: Findings,
}

/// A component (`blas_lib`): host files of one artifact name and component kind, and the device
/// code of its binaries from all shards.
#[derive(Debug)]
pub struct Component {
    /// The artifact name, e.g. `blas`.
    pub artifact: String,
    /// The component kind, e.g. `lib`.
    pub kind: rockpack_split::input::artifact::ComponentKind,
    /// The host files. A fat binary is the primary shard's, or the first other shard's if the primary lacks
    /// it; its device code is in `kernels`.
    pub host: Tree<HostFile>,
    /// Code objects of grouped archs, sorted by (binary, co_index, target).
    pub kernels: Vec<Kernel>,
    /// Database files of grouped archs, sorted by path.
    pub databases: Vec<DatabaseFile>,
}

impl Component {
    /// Returns `{name}_{kind}`, e.g. `blas_lib`.
    pub fn id(&self) -> String {
        format!("{}_{}", self.artifact, self.kind)
    }
}

/// A code object with the key under which the runtime looks it up.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The install-relative path of the host binary.
    pub binary: TreePath,
    /// The index of the wrapper in the *primary* binary.
    pub co_index: u32,
    /// The target of the code.
    pub target: Target,
    /// The bytes.
    pub content: Content,
    /// The shard it came from.
    pub shard: String,
}
