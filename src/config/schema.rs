//! The configuration as serde reads it: shapes and key names, no meaning.

use serde::Deserialize;

use super::former::FormerSchema;
use super::rules::{Alternatives, UnassignedArchitectures, Untransformable, ValidationOverrides};
use super::scheme::Suffix;
use crate::database::Rule;
use crate::once::Ordered;
use crate::package::DistributionTag;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Schema {
    pub primary_shard: Option<String>,
    pub architecture_groups: Ordered<GroupSchema>,
    pub validation: ValidationOverrides,
    pub components: Ordered<ComponentSchema>,
    pub packages: Ordered<PackageSchema>,
    pub scheme: Option<String>,
    pub variant: Option<String>,
    pub parts: Vec<PartSchema>,
    pub epoch: Option<u32>,
    pub distribution_tag: DistributionTag,
    pub version: Option<String>,
    pub release: Option<String>,
    pub prefix: Option<String>,
    pub libdir: Option<String>,
    pub kpackdir: Option<String>,
    pub content_date: Option<String>,
    pub maintainer: Option<String>,
    pub vendor: Option<String>,
    pub homepage: Option<String>,
    pub license: Option<String>,
    pub copyright: Option<String>,
    pub alternatives: Option<Alternatives>,
    pub distro: Option<String>,
    pub runpath: Runpath,
    pub libraries: Ordered<OutsideLibrary>,
    pub runtime_relation: RuntimeRelation,
    pub relations: Ordered<AddedRelations>,
    pub replaces: Ordered<FormerSchema>,
    pub moved: Ordered<FormerSchema>,
    pub selectors: Ordered<Vec<Selector>>,
    pub databases: Vec<Rule>,
}

/// One arch group.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupSchema {
    pub display_name: Option<String>,
    pub architectures: Vec<String>,
}

/// Rules of one component. The keys of `validation` are repeated because serde can refuse unknown
/// keys, with their place, only where it flattens nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ComponentSchema {
    pub error_on_duplicate_device_code: Option<bool>,
    pub verify_generic_artifacts_match: Option<bool>,
    pub error_on_missing_architecture: Option<bool>,
    pub unassigned_architectures: Option<UnassignedArchitectures>,
    pub untransformable: Option<Untransformable>,
    pub include_architectures: Option<Vec<String>>,
    pub exclude_architectures: Option<Vec<String>>,
}

/// What is said of one package.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PackageSchema {
    pub summary: Option<String>,
    pub description: Option<String>,
    pub section: Option<String>,
    pub license: Option<String>,
    pub homepage: Option<String>,
    pub copyright: Option<String>,
    pub include_architectures: Option<Vec<String>>,
    pub exclude_architectures: Option<Vec<String>>,
}

/// The HIP runtime that transformed binaries need, in each format's own words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuntimeRelation {
    /// E.g. `libamdhip64-7 (>= 7.1)`.
    pub deb: Option<String>,
    /// E.g. `hip-runtime-amd >= 7.1`.
    pub rpm: Option<String>,
}

/// What becomes of the library search paths in files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Runpath {
    /// They stay.
    #[default]
    Keep,
    /// Only folders relative to the file stay.
    Origin,
}

/// Where a library comes from that neither the set nor the distribution has. An `.rpm` needs it by
/// its name in any case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutsideLibrary {
    /// The dependency of a `.deb`, e.g. `libamdhip64-7 (>= 7.1)`; none if it needs none.
    pub deb: Option<String>,
}

/// Relations that the configuration adds to a package, and takes from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AddedRelations {
    /// To the `.deb`.
    pub deb: DebRelations,
    /// To the `.rpm`.
    pub rpm: RpmRelations,
}

/// Relations in Debian's syntax, by field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the fields of a control file under their own names")]
pub struct DebRelations {
    pub depends: Vec<String>,
    pub recommends: Vec<String>,
    pub suggests: Vec<String>,
    pub enhances: Vec<String>,
    pub provides: Vec<String>,
    pub conflicts: Vec<String>,
    pub breaks: Vec<String>,
    pub replaces: Vec<String>,
    /// Names of relations that the package does not get.
    pub remove: Vec<String>,
}

/// Relations in RPM's syntax, by tag.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the tags of a spec file under their own names")]
pub struct RpmRelations {
    pub requires: Vec<String>,
    pub recommends: Vec<String>,
    pub suggests: Vec<String>,
    pub enhances: Vec<String>,
    pub supplements: Vec<String>,
    pub provides: Vec<String>,
    pub conflicts: Vec<String>,
    pub obsoletes: Vec<String>,
    /// Names of relations that the package does not get.
    pub remove: Vec<String>,
}

/// A part of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selector {
    /// The artifact's name, e.g. `blas`.
    pub artifact: String,
    /// Its modules, e.g. `rocSPARSE`; all of them if left out.
    #[serde(default)]
    pub modules: Option<Vec<String>>,
    /// Its components, e.g. `lib`; all of them if left out.
    #[serde(default)]
    pub components: Option<Vec<String>>,
}

/// A package of every family: which components go into it, and what it says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartSchema {
    /// What other files call it, and what its kernel archives have in their names.
    pub name: String,
    /// The components of an artifact that go into it.
    pub components: Vec<String>,
    /// What each format appends to the family's name.
    pub suffix: Suffix,
    /// Who it is for.
    pub role: PartRole,
    /// Debian's section.
    #[serde(default = "section")]
    pub section: String,
    /// RPM's group.
    #[serde(default = "group")]
    pub group: String,
    /// The description, in `templates/descriptions`.
    #[serde(default = "template")]
    pub template: String,
    /// Whether it depends on the family's host package.
    #[serde(default)]
    pub needs_host: bool,
    /// Whether its programs and libraries are run, so that what they link to is needed.
    #[serde(default)]
    pub programs: bool,
}

/// Who a part is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartRole {
    /// What users install.
    Host,
    /// What developers and testers install.
    Support,
}

fn section() -> String {
    "misc".to_owned()
}

fn group() -> String {
    "Unspecified".to_owned()
}

fn template() -> String {
    "part".to_owned()
}
