//! The keys of a packaging configuration: what it may say, and what each means.
//!
//! Each key is declared here once. serde reads configurations by these types; their comments are the
//! texts of the documentation's table, of the JSON Schema for editors and, for keys that are options as
//! well, of `--help`. What stands behind `=` holds where nobody sets the key. Where other values decide
//! that, `[default: …]` at the end of the comment describes it in words.

use clap::Args;
use rockpack_base::gfx::BaseArchSchema;
use rockpack_base::once::Ordered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::accept::AcceptSchema;
use super::declared::declared;
use super::former::FormerSchema;
use super::interpreter::InterpreterSchema;
use super::per_format::{OutsideLibrary, RuntimeRelation, Suffix};
use super::policies::{Alternatives, UnassignedArchitectures, Untransformable, validation_keys};
use super::scheme;
use crate::input::artifact::ComponentKind;
use crate::input::database::Rule;
use crate::package::DistributionTag;

declared! {
/// The keys of a packaging configuration
#[derive(Debug, Clone, Deserialize, JsonSchema, Args)]
#[serde(deny_unknown_fields, default)]
#[allow(rustdoc::broken_intra_doc_links, reason = "these are the words of --help and the schema")]
pub struct Keys {
    /// Address of this schema, for editors
    #[serde(rename = "$schema")]
    #[arg(skip)]
    pub schema: Option<String>,
    /// Shard whose host files are packed [default: the first by name]
    #[arg(skip)]
    pub primary_shard: Option<String>,
    /// Groups of architectures by name; each group gets one kernel package of a family, in this
    /// order [default: each architecture is a group]
    #[arg(skip)]
    pub architecture_groups: Ordered<GroupSchema>,
    /// Base architectures that this version of rockpack does not know, as in `gfx1400`: only these and
    /// those of `config/architectures.toml` may be named by other keys
    #[arg(skip)]
    #[schemars(with = "Vec<BaseArchSchema>")]
    pub additional_architectures: Vec<String>,
    /// Which contradictions fail a run
    #[arg(skip)]
    pub validation: Validation,
    /// Artifact (`blas`) or component (`blas_lib`) → rules of its own; those of a component win over
    /// those of its artifact [default: as for all]
    #[arg(skip)]
    pub components: Ordered<ComponentSchema>,
    /// Package → what it says of itself, and which architectures it has kernel packages for. What
    /// `license`, `homepage` and `copyright` say of a host package or a family holds for the other
    /// packages of the family, too [default: as for all]
    #[arg(skip)]
    pub packages: Ordered<PackageSchema>,
    /// What packages are called: rocm, rocm-versioned or amdrocm.
    ///
    /// rocm-versioned has minor versions side by side; amdrocm has AMD's own names and kernel packages
    /// per target; as an option also a FILE.toml of your own, see docs/reference/schemes.md
    #[arg(long, value_name = "NAME")]
    #[schemars(extend("enum" = scheme::names().collect::<Vec<_>>()))]
    pub scheme: String = "rocm",
    /// Kind of build, as a word in names and prefix, e.g. asan
    #[arg(long, hide_short_help = true, value_name = "WORD")]
    pub variant: Option<String>,
    /// Upstream version of all packages, e.g. 7.1.0
    #[arg(long)]
    pub version: String = "0.0.0",
    /// Release of all packages
    #[arg(long)]
    pub release: String = "1",
    /// Install prefix [default: the scheme's, `/opt/rocm-<major>.<minor>`]
    #[arg(long, value_name = "DIR")]
    pub prefix: Option<String>,
    /// Folder below the prefix where the artifacts have their libraries, and where the loader looks
    /// for them. It moves none: what a build writes into files (search paths, CMake's targets, the
    /// places of databases) knows the folder by its name. `R083` warns of libraries that lie elsewhere
    /// and that no search path leads to
    #[arg(skip)]
    pub libdir: String = "lib",
    /// Folder below the prefix for kernel archives and their manifests, where the markers of
    /// binaries lead: `lib64/rocm/kpack`, say [default: `.kpack` in `libdir`]
    #[arg(skip)]
    pub kpackdir: Option<String>,
    /// Epoch of all versions
    #[arg(skip)]
    // Debian's tools keep it in a signed number of 32 bits.
    #[schemars(range(max = i32::MAX))]
    pub epoch: Option<u32>,
    /// What all releases end in
    #[arg(skip)]
    pub distribution_tag: DistributionTag,
    /// Findings that are accepted: they fail no run under `--strict`, and results show them as
    /// accepted, each by the `code` of the findings, a glob `subject`, and the `reason`. An entry that
    /// fits no finding is one, `R098`
    #[arg(skip)]
    pub accept: Vec<AcceptSchema>,
    /// Which kinds of components make up which package of a family, before those of
    /// `config/components.toml`
    #[arg(skip)]
    pub parts: Vec<PartSchema>,
    /// Time of every packed file, in RFC 3339
    #[arg(skip)]
    #[schemars(extend("format" = "date-time"))]
    pub content_date: String = "2025-01-01T00:00:00Z",
    /// Who maintains the packages, as `Name <address>`
    #[arg(skip)]
    pub maintainer: String = "Unnamed packager <packager@rockpack.invalid>",
    /// Who builds the packages
    #[arg(skip)]
    pub vendor: Option<String>,
    /// Home page
    #[arg(skip)]
    pub homepage: Option<String>,
    /// Licence expression
    #[arg(skip)]
    pub license: String = "LicenseRef-Unstated",
    /// Who has the copyright (`2015-2026 A Company`), for the `copyright` files [default: what the
    /// licence texts of the artifacts say]
    #[arg(skip)]
    pub copyright: Option<String>,
    /// What becomes of the programs in `<prefix>/bin` of host packages: `programs` makes them
    /// `/usr/bin/<name>` by update-alternatives, the highest version first (`R082` names those that
    /// cannot be); `none` leaves `/usr/bin` alone, which is the system's
    #[arg(skip)]
    pub alternatives: Alternatives,
    /// Distribution whose libraries the .deb packages depend on.
    ///
    /// debian-12 or debian-13, which satisfies what packages for debian-12 need where it has the
    /// libraries at all
    #[arg(long, value_name = "NAME")]
    pub distro: String = "debian-12",
    /// Soname → the package with a library that is in neither the set nor the distribution, or that
    /// comes from elsewhere
    #[arg(skip)]
    pub libraries: Ordered<OutsideLibrary>,
    /// Interpreter in the first line of scripts, with `*` within a name and `**` for any folders → the
    /// absolute path of the one that takes its place, or `false`: the scripts keep theirs, and nothing
    /// is needed for them
    #[arg(skip)]
    pub interpreters: Ordered<InterpreterSchema>,
    /// What becomes of library search paths in files: `keep` leaves them; of them, `origin` leaves
    /// only folders relative to the file
    #[arg(skip)]
    pub runpath: Runpath,
    /// How packages of different families, and metapackages, depend on packages of the set: `exact` in
    /// this version and release, `patch` in this one or a later release of the same patch version, so
    /// that a hotfix of one family updates no other [default: patch; pre-releases: exact]
    #[arg(skip)]
    pub set_relations: Option<SetRelations>,
    /// How kernel packages and their host package belong to each other: `release` in exactly one version
    /// and release, `code` in the releases of a patch version in which the device code is the same, so
    /// that a fix of host code alone ships no kernel package again. Where families depend on exactly one
    /// version, so do these
    #[arg(skip)]
    pub kernel_relations: KernelRelations,
    /// The HIP runtime that reads `.kpack`
    #[arg(skip)]
    pub runtime_relation: RuntimeRelation,
    /// Package → relations that are added to it and taken from it
    #[arg(skip)]
    pub relations: Ordered<AddedRelations>,
    /// Package → its former names, `rocblas` or `rocblas < 7.0`
    #[arg(skip)]
    pub replaces: Ordered<FormerSchema>,
    /// Package → packages that had paths of it, `rocm-blas < 7.1.1-1`
    #[arg(skip)]
    pub moved: Ordered<FormerSchema>,
    /// Package → which artifacts, modules and kinds go into it [default: those of
    /// `config/components.toml`, else each artifact is a package]
    #[arg(skip)]
    pub selectors: Ordered<Vec<SelectorSchema>>,
    /// Rules for kernel databases, tried before the shipped ones:
    /// `config/databases.toml` explains their keys
    #[arg(skip)]
    pub databases: Vec<Rule>,
    /// Files for another machine than x86-64 that are packed as data, by globs of their paths below
    /// the prefix, `share/emulator/**/*.elf` (`R039` names them): any other ELF file, static archive
    /// or bundle with code for another machine is an error. AMDGPU code objects are none of them
    #[arg(skip)]
    pub other_machines: Vec<String>,
    /// What `rockpack wheel` makes of a wheel
    #[arg(skip)]
    pub wheels: WheelKeys,
}
}

declared! {
/// What is made of a Python wheel.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WheelKeys {
    /// What device wheels are called: `{name}` is the name of the host wheel, `{group}` that of the group
    pub device_name: String = "{name}-device-{group}",
    /// What device wheels require beside their host wheel, with `{group}` for the group, as in
    /// `rocm-sdk-device-{group} == 7.1`
    pub device_requires: Vec<String>,
    /// What host wheels require beside what the wheel did
    pub host_requires: Vec<String>,
}
}

/// One group of architectures.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupSchema {
    /// Name for people, as in `ROCm gfx110X (RDNA3)` [default: the group's name]
    pub display_name: Option<String>,
    /// Base architectures, as in `gfx1100`, `gfx90a` or `gfx1250-strict`
    #[schemars(with = "Vec<BaseArchSchema>", length(min = 1))]
    pub architectures: Vec<String>,
}

validation_keys! {
    everywhere {
        /// Different code for one kernel key in two shards is an error; if `false`, the first shard's
        /// is packed. Different database files at one path are always an error: code and index of a
        /// database fit only each other
        error_on_duplicate_device_code: bool = true,
        /// Host files have to be the same in all shards
        verify_generic_artifacts_match: bool = false,
        /// A grouped architecture without code is an error
        error_on_missing_architecture: bool = false,
        /// What becomes of code of an architecture in no group, which is never packed: `error`,
        /// `warn`, or `drop` (a note only)
        unassigned_architectures: UnassignedArchitectures = UnassignedArchitectures::Warn,
        /// What becomes of fat binaries that cannot be transformed: `error`, or `keep-fat`, which
        /// leaves them in their host package
        untransformable: Untransformable = Untransformable::Error,
    }

    of_components {
        /// Architectures whose code is packed [default: all that are grouped]
        #[schemars(with = "Option<Vec<BaseArchSchema>>", length(min = 1))]
        pub include_architectures: Option<Vec<String>>,
        /// Architectures whose code is not packed
        #[schemars(with = "Option<Vec<BaseArchSchema>>", length(min = 1))]
        pub exclude_architectures: Option<Vec<String>>,
    }
}

/// Longest summary that package managers show in one line, in characters.
pub const SUMMARY_LIMIT: usize = 80;

/// What is said of one package.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PackageSchema {
    /// One line of at most 80 characters [default: what rockpack says of such packages]
    #[schemars(length(min = 1, max = SUMMARY_LIMIT))]
    pub summary: Option<String>,
    /// Paragraphs, with an empty line between them [default: what rockpack says of such packages]
    pub description: Option<String>,
    /// Debian's section, as in `libs` or `contrib/libs` [default: that of its part]
    #[schemars(regex(pattern = "^[a-z0-9/-]+$"))]
    pub section: Option<String>,
    /// Licence expression [default: as for all]
    pub license: Option<String>,
    /// Home page [default: as for all]
    pub homepage: Option<String>,
    /// Who has the copyright [default: as for all]
    pub copyright: Option<String>,
    /// Architectures that it has kernel packages for [default: all]
    #[schemars(with = "Option<Vec<BaseArchSchema>>", length(min = 1))]
    pub include_architectures: Option<Vec<String>>,
    /// Architectures that it has no kernel packages for
    #[schemars(with = "Option<Vec<BaseArchSchema>>", length(min = 1))]
    pub exclude_architectures: Option<Vec<String>>,
}

/// What becomes of the library search paths in files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Runpath {
    /// They stay
    #[default]
    Keep,
    /// Only folders relative to the file stay
    Origin,
}

/// How packages of different families depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SetRelations {
    /// One version and release
    Exact,
    /// A version and release or a later one, below the next patch version
    Patch,
}

/// How kernel packages and their host package belong to each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KernelRelations {
    /// One version and release
    #[default]
    Release,
    /// The releases of a patch version in which the device code is the same
    Code,
}

/// Relations that the configuration adds to a package, and takes from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AddedRelations {
    /// Of the `.deb`, in Debian's syntax by field; `remove` has names that it is not to be related to
    pub deb: DebRelations,
    /// Of the `.rpm`, in RPM's syntax by tag; `remove` has names that it is not to be related to
    pub rpm: RpmRelations,
}

/// Relations in Debian's syntax, by field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
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
    /// Names of packages and capabilities that it is not to be related to
    pub remove: Vec<String>,
}

/// Relations in RPM's syntax, by tag.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
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
    /// Names of packages and capabilities that it is not to be related to
    pub remove: Vec<String>,
}

/// A part of an artifact.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SelectorSchema {
    /// Name of the artifact, e.g. `blas`
    pub artifact: String,
    /// Its modules, e.g. `rocSPARSE` [default: all of them]
    #[serde(default)]
    pub modules: Option<Vec<String>>,
    /// Kinds of its components [default: all of them]
    #[serde(alias = "components", default)]
    #[schemars(extend("items" = component_kinds()))]
    pub kinds: Option<Vec<String>>,
}

/// A package of every family: which kinds of components go into it, and what it says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartSchema {
    /// Name that other files use for it, also in the names of its kernel archives
    #[schemars(regex(pattern = "^[a-z0-9-]+$"))]
    pub name: String,
    /// Kinds of an artifact's components that go into it
    #[serde(alias = "components")]
    #[schemars(extend("items" = component_kinds()))]
    pub kinds: Vec<String>,
    /// What each format appends to the family's name
    pub suffix: Suffix,
    /// Who it is for
    pub role: PartRole,
    /// Debian's section
    #[serde(default = "section")]
    pub section: String,
    /// RPM's group
    #[serde(default = "group")]
    pub group: String,
    /// Description, a file of `templates/descriptions` without its ending
    #[serde(default = "template")]
    pub template: String,
    /// Whether it depends on the family's host package
    #[serde(default)]
    pub needs_host: bool,
    /// Whether its programs and libraries are run, so that the package depends on what they link to
    #[serde(default)]
    pub programs: bool,
}

/// Who a part is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PartRole {
    /// What users install
    Host,
    /// What developers and testers install
    Support,
}

/// The kinds that components of an artifact may have, for a schema.
fn component_kinds() -> serde_json::Value {
    serde_json::json!({ "type": "string", "enum": ComponentKind::ALL.map(ComponentKind::as_str) })
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
