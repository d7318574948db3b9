//! The recombine stage: split artifacts of all shards become components with grouped device code.
//!
//! ```text
//! sources ─ host: one tree, the primary shard's first
//!         ├ kernels: wrappers of all shards matched to the primary's, code objects by key
//!         └ databases: shared files brought together, then one file per path
//!                    └ groups: what is in no group is named and left out
//! components ─ links and indexes: what contradicts the rest of the set is named
//! ```
//!
//! A *source* is one split artifact. Sources of a component are taken in the order of their
//! shards, the primary first and the others by name, and within a shard by family: the first that
//! has a host file provides it. Refused, naming both shards: wrappers that match nothing or
//! several, different code for one key, different database files at one path, and device code
//! that the chosen host binary could not load.
//!
//! What `verify_generic_artifacts_match` compares: which paths there are in every shard that has
//! the component; plain host files byte for byte, links by their text, files by the executable bit;
//! fat binaries by their host-only form (`host_form.rs`). Database files that serve all archs of
//! a shard are no host files in this sense: the rules of databases judge them.

mod databases;
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

pub use left_out::{AllLeftOut, CountedLeftOut, LeftOut};

use rockpack_base::content::Content;
use rockpack_base::error::{Faults, Result};
use rockpack_base::formats::{code_object, loaded_code};
use rockpack_base::gfx::{BaseArch, Target};
use rockpack_base::tree::{Tree, TreePath};

use crate::config::{Config, Grouping, Validation};
use crate::report::Findings;
use crate::split::{DatabaseFile, HostFile, SplitArtifact};
use groups::ArchGrouping;
use kept::NotPacked;
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

/// How code objects are looked into; tests look into texts instead.
#[derive(Clone, Copy)]
pub struct Readers<'a> {
    /// The names of the kernels in a code object.
    pub kernel_names: &'a dyn Fn(&Content) -> Result<BTreeSet<String>>,
    /// A digest of what a code object loads: the same for the same code, whatever its names.
    pub loaded_code: &'a dyn Fn(&Content) -> Result<[u8; 32]>,
}

/// [`recombine`] with other readers of code objects.
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

/// Joins all artifacts; `findings` has what was noticed of it where that fails.
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

/// What joining one component needs and where it puts what it notices.
struct Join<'a> {
    /// E.g. `blas_lib`, for messages.
    component: String,
    primary: &'a str,
    validation: Validation,
    /// Whether the configuration has groups.
    has_groups: bool,
    findings: &'a mut Findings,
    faults: &'a mut Faults,
    /// Builds of binaries with device code that no package has.
    not_packed: &'a mut NotPacked,
}

/// All components of a build, by artifact and kind, and its groups, in configuration order.
#[derive(Debug)]
pub struct Recombined {
    /// The arch groups.
    pub groups: Vec<Group>,
    /// The components.
    pub components: Vec<Component>,
    /// What was noticed.
    pub findings: Findings,
}

/// An arch group: the archs that share a kernel package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Name in the configuration, e.g. `gfx110X`.
    pub name: String,
    /// For people, e.g. `ROCm gfx110X (RDNA3)`.
    pub display_name: String,
    /// Base archs in configuration order.
    pub archs: Vec<BaseArch>,
}

/// A component (`blas_lib`): host files of one artifact name and component kind, and the device
/// code of its binaries from all shards.
#[derive(Debug)]
pub struct Component {
    /// Artifact name, e.g. `blas`.
    pub artifact: String,
    /// Component kind, e.g. `lib`.
    pub kind: crate::input::artifact::ComponentKind,
    /// Host files. A fat binary is the primary shard's, or the first other shard's where the primary lacks
    /// it; its device code is in `kernels`.
    pub host: Tree<HostFile>,
    /// Code objects of grouped archs, sorted by (binary, co_index, target).
    pub kernels: Vec<Kernel>,
    /// Database files of grouped archs, sorted by path.
    pub databases: Vec<DatabaseFile>,
}

impl Component {
    /// `{name}_{kind}`, e.g. `blas_lib`.
    pub fn id(&self) -> String {
        format!("{}_{}", self.artifact, self.kind)
    }
}

/// A code object with the key under which the runtime looks it up.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Install-relative path of the host binary.
    pub binary: TreePath,
    /// Index of the wrapper in the *primary* binary.
    pub co_index: u32,
    /// What it is for.
    pub target: Target,
    /// Its bytes.
    pub content: Content,
    /// The shard it came from.
    pub shard: String,
}
