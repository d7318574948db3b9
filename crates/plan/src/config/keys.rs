//! The keys of a packaging configuration, with their meanings and defaults.
//!
//! Each key is declared here once. serde reads configurations with these types. Their comments are the texts
//! of the documentation's list, of the JSON Schema for editors and, for keys that are also options, of
//! `--help`. The value behind `=` is the default of a key. If the default depends on other values,
//! `[default: …]` at the end of the comment describes it.

use std::path::PathBuf;

use clap::Args;
use derive_more::Display;
use rockpack_core::gfx::BaseArchSchema;
use rockpack_core::unique_keys::OrderedMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::accept::AcceptSchema;
use super::packages::NamesByFormat;
use super::per_format::PerFormat;
use super::scheme::{self, LibrarySchema, RuntimeRelation, Suffix};
use super::values::{
    Alternatives, InterpreterSchema, ListOrMap, UnassignedArchitectures, Untransformable,
    key_table, validation_keys,
};
use rockpack_package::{
    DistributionTag, RelationKind, UNNAMED_PACKAGER, UNSET_RELEASE, UNSET_VERSION,
};
use rockpack_split::input::artifact::ComponentKind;
use rockpack_split::input::database::Rule;

key_table! {
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
    /// Architecture groups by name, in order: each family gets a kernel package per group [default: each
    /// architecture is a group]
    #[arg(skip)]
    pub architecture_groups: OrderedMap<GroupSchema>,
    /// Further base architectures, as in `gfx1400`, that other keys may name besides those of
    /// `config/architectures.toml`
    #[arg(skip)]
    #[schemars(with = "Vec<BaseArchSchema>")]
    pub additional_architectures: Vec<String>,
    /// Contradictions that fail a run
    #[arg(skip)]
    pub validation: Validation,
    /// Artifact (`blas`) or component (`blas_lib`) → its rules; a component overrides its artifact [default: as
    /// for all]
    #[arg(skip)]
    pub components: OrderedMap<ComponentSchema>,
    /// Package → its texts, and the architectures of its kernel packages. `license`, `homepage` and `copyright`
    /// of a host package or family apply to the whole family [default: as for all]
    #[arg(skip)]
    pub packages: OrderedMap<PackageSchema>,
    /// Naming scheme: rocm, rocm-versioned or amdrocm.
    ///
    /// rocm-versioned installs minor versions side by side; amdrocm has AMD's own names and kernel packages
    /// per target; as an option also a FILE.toml of your own, see docs/reference/schemes.md
    #[arg(long, value_name = "NAME")]
    #[schemars(extend("enum" = scheme::Scheme::names().collect::<Vec<_>>()))]
    pub scheme: String = "rocm",
    /// Kind of build, as a word in names and prefix, e.g. asan
    #[arg(long, hide_short_help = true, value_name = "WORD")]
    pub variant: Option<String>,
    /// Upstream version, e.g. 7.1.0.
    ///
    /// Or one for each format, as in deb=7.1.0~pre2,rpm=7.1.0~rc2
    #[arg(long)]
    pub version: PerFormat = UNSET_VERSION,
    /// Release of all packages.
    ///
    /// Or one for each format, as in deb=2,rpm=3
    #[arg(long)]
    pub release: PerFormat = UNSET_RELEASE,
    /// Suffix of the version in each format, as TheRock has it.
    ///
    /// dev:20261120g1a2b3c4d and ci:20261120g1a2b3c4d (~dev20261120 in deb, ~20261120g1a2b3c4d in rpm),
    /// nightly:20261120 (~20261120), prerelease:2 (~pre2 in deb, ~rc2 in rpm), release (no suffix)
    #[arg(long, hide_short_help = true, value_name = "TYPE[:ID]")]
    pub release_type: Option<String>,
    /// Install prefix [default: the scheme's, `/opt/rocm-<major>.<minor>`]
    #[arg(long, value_name = "DIR")]
    pub prefix: Option<String>,
    /// Link to the newest installed series: the prefix without `-<major>.<minor>`, such as `/opt/rocm/core` for
    /// `/opt/rocm/core-7.1`. A build with `variant` has none [default: the scheme's, `true` for amdrocm]
    #[arg(skip)]
    pub series_link: Option<bool>,
    /// Folder below the prefix where the artifacts have their libraries. rockpack moves none; `R083` warns
    /// about those elsewhere
    #[arg(skip)]
    pub libdir: String = "lib",
    /// Folder below the prefix for kernel archives and manifests, such as `lib64/rocm/kpack` [default: `.kpack`
    /// in `libdir`]
    #[arg(skip)]
    pub kpackdir: Option<String>,
    /// Epoch of all versions
    #[arg(skip)]
    // dpkg stores it as a signed 32-bit number.
    #[schemars(range(max = i32::MAX))]
    pub epoch: Option<u32>,
    /// Suffix of all releases
    #[arg(skip)]
    pub distribution_tag: DistributionTag,
    /// Findings to accept under `--strict`, by `code`, a glob `subject`, and the `reason`
    #[arg(skip)]
    pub accept: Vec<AcceptSchema>,
    /// Packages of every family and their component kinds, before those of `config/components.toml`
    #[arg(skip)]
    pub parts: Vec<PartSchema>,
    /// Time of every packed file, in RFC 3339
    #[arg(skip)]
    #[schemars(extend("format" = "date-time"))]
    pub content_date: String = "2025-01-01T00:00:00Z",
    /// Maintainer of the packages, as `Name <address>`
    #[arg(skip)]
    pub maintainer: String = UNNAMED_PACKAGER,
    /// Builder of the packages. Set it once: zypper does not update a package to another vendor (`R138`)
    #[arg(skip)]
    pub vendor: Option<String>,
    /// Home page
    #[arg(skip)]
    pub homepage: Option<String>,
    /// Licence expression
    #[arg(skip)]
    pub license: String = "LicenseRef-Unstated",
    /// Copyright holder and years for the `copyright` files, as in `2015-2026 A Company` [default: the
    /// licence texts of the artifacts]
    #[arg(skip)]
    pub copyright: Option<String>,
    /// Names in `/usr/bin` for the programs in `<prefix>/bin` of host packages: `programs`, by
    /// update-alternatives, the highest version first (`R082` names exceptions), or `none`
    #[arg(skip)]
    pub alternatives: Alternatives,
    /// Distribution of the packages: a name, a FILE.toml, or a folder.
    ///
    /// The one whose libraries .deb packages need (debian-12, debian-13), or that .rpm packages are for (el8, el9, el10,
    /// fedora, sles15, sles16, azurelinux3). A folder is the root of an installed
    /// system (`/` is this one) or has .deb files; a package list of apt with its pool will do, too. `rockpack distro`
    /// makes a FILE.toml of each. As `deb=VALUE,rpm=VALUE`, one for each format
    #[arg(long, value_name = "VALUE")]
    pub distro: PerFormat = "debian-12",
    /// Code files of kernel databases: `plain`, or `compressed` where the library allows it (`compressible` in
    /// `config/databases.toml`): smaller on disk, more time and memory to load
    #[arg(skip)]
    pub code_files: CodeFiles,
    /// Level of kernel archives, as a text: zstd's `1` to `22`, or `none`.
    ///
    /// With `none`, archives are uncompressed, and payloads search for what their code objects have in common: smaller
    /// to download where architectures are nearly equal, several times larger on disk (`R159`). As
    /// `deb=VALUE,rpm=VALUE`, one for each format [default: the preset's]
    #[arg(long, hide_short_help = true, value_name = "LEVEL")]
    pub archive_level: Option<PerFormat>,
    /// Soname (`*` matches any characters) → the packages of a library that neither the set nor the
    /// distribution has, or `false`: no dependency. `FAMILY:SONAME` applies to one family. The first match
    /// decides
    #[arg(skip)]
    #[schemars(with = "OrderedMap<scheme::OutsideLibrary>")]
    pub libraries: OrderedMap<LibrarySchema>,
    /// Interpreter in the first line of scripts (`*` within a name, `**` for any folders) → the absolute path
    /// of its replacement, or `false`: unchanged, no dependency
    #[arg(skip)]
    pub interpreters: OrderedMap<InterpreterSchema>,
    /// Library search paths in files: `keep` keeps all of them, `origin` only folders relative to the file,
    /// `rpath` all of them as `DT_RPATH`, also in programs that users link by `rocm.cfg` [default: the
    /// scheme's, or `keep`]
    #[arg(skip)]
    pub runpath: Option<Runpath>,
    /// How metapackages and packages of different families depend on packages of the set: `exact` on this
    /// version and release, `patch` on this or a later release of the patch version, for hotfixes of one family
    /// [default: patch; pre-releases: exact]
    #[arg(skip)]
    pub set_relations: Option<SetRelations>,
    /// How kernel packages and their host package require each other: `release` in exactly one version and
    /// release, `code` in any release of a patch version with the same device code, unless `set_relations` is
    /// `exact`
    #[arg(skip)]
    pub kernel_relations: KernelRelations,
    /// The HIP runtime that reads `.kpack`
    #[arg(skip)]
    pub runtime_relation: RuntimeRelation,
    /// HIP runtimes that load the device code of binaries: `archives`, those that read kernel archives, or
    /// `any`, by the library `librocm_kpack_shim.so.0`, a package of the set
    #[arg(skip)]
    pub hip_runtime: HipRuntime,
    /// File of that library, relative to the working directory [default: `librocm_kpack_shim.so.0` or
    /// `librocm_kpack_shim.so` next to the program, else `../lib/rockpack/librocm_kpack_shim.so.0` from there]
    #[arg(skip)]
    pub hip_shim: Option<PathBuf>,
    /// GPUs for which kernel packages tell the package manager that the machine needs them, by PCI ids
    #[arg(skip)]
    pub hardware_hints: HardwareHints,
    /// Package → relations to add to it and to remove from it
    #[arg(skip)]
    pub relations: OrderedMap<AddedRelations>,
    /// Package → its former names, `rocblas` or `rocblas < 7.0`
    #[arg(skip)]
    pub replaces: OrderedMap<ListOrMap<NamesByFormat>>,
    /// Package → packages that had some of its paths, `rocm-blas < 7.1.1-1`
    #[arg(skip)]
    pub moved: OrderedMap<ListOrMap<NamesByFormat>>,
    /// Package → its artifacts, modules and kinds [default: those of `config/components.toml`, else each
    /// artifact is a package]
    #[arg(skip)]
    pub selectors: OrderedMap<Vec<SelectorSchema>>,
    /// Rules for kernel databases, before the shipped ones of `config/databases.toml`
    #[arg(skip)]
    pub databases: Vec<Rule>,
    /// Globs of files below the prefix for another machine than x86-64 that are packed as data (`R039`), as in
    /// `share/emulator/**/*.elf`; others are errors
    #[arg(skip)]
    pub other_machines: Vec<String>,
    /// Names and requirements of the wheels that `rockpack wheel` makes
    #[arg(skip)]
    pub wheels: WheelKeys,
    /// The repository that `rockpack repo` and `build --repo` publish
    #[arg(skip)]
    pub repository: RepositoryKeys,
}
}

key_table! {
/// Settings of a repository. What is not set stays as it was published before.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RepositoryKeys {
    /// apt suite; `--suite` overrides it
    pub suite: String = "stable",
    /// apt component that the packages go to
    pub component: String = "main",
    /// Codename of the suite [default: its name]
    pub codename: Option<String>,
    /// Publisher of the suite
    pub origin: Option<String>,
    /// Label of the suite
    pub label: Option<String>,
    /// Description of the repository, in one line
    pub description: Option<String>,
    /// Days after which clients refuse the suite (its field `Valid-Until`), at most 36525; 0: never
    #[schemars(range(max = 36_525))]
    pub valid_days: Option<u32>,
    /// URL that the repository is served at (https://…); `--url` overrides it
    pub url: Option<String>,
    /// Name of the files for clients [default: made from the host of `url`: `example-org` of example.org]
    pub name: Option<String>,
    /// Priority of the repository against the distribution's packages of the same names, as in apt, for which
    /// clients get a preferences file. For dnf and zypper the `.repo` file gets `priority=50` if it is more than
    /// 500, apt's default for repositories, and `priority=150` if it is less
    #[schemars(range(min = 1, max = 32_767))]
    pub pin: Option<u16>,
    /// Compression of the lists for dnf and zypper: `gzip`, or `zstd`, which the yum of Enterprise Linux 7 cannot
    /// read
    pub rpm_md_compression: ListCompression = ListCompression::Gzip,
    /// Publications that unused indexes and packages are kept for, and at least an hour, because clients may be
    /// reading them
    #[schemars(range(min = 1))]
    pub generations: u32 = 3_u32,
    /// Maintainer of the key package [default: the key `maintainer`]
    pub maintainer: Option<String>,
    /// Whether to write `index.html`, the page with the commands that install packages. If `false`, the page that
    /// an earlier run wrote is removed. A page that rockpack did not write is never replaced
    pub index_page: bool = true,
}
}

/// Compression of the lists for dnf and zypper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ListCompression {
    /// Read by every dnf, yum and zypper
    Gzip,
    /// Smaller; not for the yum of Enterprise Linux 7
    Zstd,
}

key_table! {
/// GPUs that kernel packages name to package managers.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HardwareHints {
    /// GPUs in the field `Modaliases` of a `.deb`, for `ubuntu-drivers`: `none`, `discrete`, or `all`
    pub deb: HintedGpus = HintedGpus::Discrete,
    /// GPUs in the tags `Supplements` of an `.rpm`, for which zypper installs it, also in container and image
    /// builds: `none`, `discrete`, or `all`
    pub rpm: HintedGpus = HintedGpus::None,
}
}

key_table! {
/// Names and requirements of the wheels made of a fat wheel.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WheelKeys {
    /// Name of device wheels, with `{name}` of the host wheel and `{group}`, or an owner's prefix
    pub device_name: String = "{name}-device-{group}",
    /// Further requirements of device wheels, as in `rocm-sdk-device-{group} == 7.1`: a list for every
    /// distribution, or distribution → list
    pub device_requires: ListOrMap<OrderedMap<Vec<String>>>,
    /// Further requirements of host wheels
    pub host_requires: Vec<String>,
}
}

impl WheelKeys {
    /// The lists of `device_requires`, each with its distribution; that for all has none.
    pub fn device_lists(&self) -> Vec<(Option<&str>, &Vec<String>)> {
        match &self.device_requires {
            ListOrMap::One(list) => vec![(None, list)],
            ListOrMap::Each(lists) => {
                lists.0.iter().map(|(name, list)| (Some(name.as_str()), list)).collect()
            }
        }
    }

    /// Gives each requirement to `check`, with the keys of its place.
    pub fn each_requirement(&self, mut check: impl FnMut(&[&str], &str)) {
        let of_devices = self.device_lists().into_iter().map(|(name, list)| {
            (Vec::from_iter(["wheels", "device_requires"].into_iter().chain(name)), list)
        });
        let of_hosts = (vec!["wheels", "host_requires"], &self.host_requires);
        for (place, list) in of_devices.chain([of_hosts]) {
            for (index, text) in list.iter().enumerate() {
                check(&[&place[..], &[index.to_string().as_str()]].concat(), text);
            }
        }
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
        /// Different code for one kernel key in two shards is an error; if `false`, the first shard's code is
        /// packed. Different database files at one path are always an error
        error_on_duplicate_device_code: bool = true,
        /// Host files must be the same in all shards
        verify_generic_artifacts_match: bool = false,
        /// A grouped architecture without code is an error
        error_on_missing_architecture: bool = false,
        /// Code of an architecture in no group, which is never packed: `error`, `warn`, or `drop` (a note)
        unassigned_architectures: UnassignedArchitectures = UnassignedArchitectures::Warn,
        /// Fat binaries that cannot be transformed: `error`, or `keep-fat`: they stay in their host package
        untransformable: Untransformable = Untransformable::Error,
    }

    of_components {
        /// Overrides `code_files` [default: as there]
        pub code_files: Option<CodeFiles>,
        /// Architectures whose code is packed [default: all that are grouped]
        #[schemars(with = "Option<Vec<BaseArchSchema>>", length(min = 1))]
        pub include_architectures: Option<Vec<String>>,
        /// Architectures whose code is not packed
        #[schemars(with = "Option<Vec<BaseArchSchema>>", length(min = 1))]
        pub exclude_architectures: Option<Vec<String>>,
    }
}

/// In characters; package managers show a summary in one line.
pub const SUMMARY_LIMIT: usize = 80;

/// The texts of one package, and its architectures.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PackageSchema {
    /// Summary: one line of at most 80 characters [default: rockpack's own]
    #[schemars(length(min = 1, max = SUMMARY_LIMIT))]
    pub summary: Option<String>,
    /// Description: paragraphs with an empty line between them [default: rockpack's own]
    pub description: Option<String>,
    /// Debian's section, as in `libs` or `contrib/libs` [default: the section of its part]
    #[schemars(regex(pattern = "^[a-z0-9/-]+$"))]
    pub section: Option<String>,
    /// Licence expression [default: as for all]
    pub license: Option<String>,
    /// Home page [default: as for all]
    pub homepage: Option<String>,
    /// Copyright holder and years [default: as for all]
    pub copyright: Option<String>,
    /// Architectures with kernel packages [default: all]
    #[schemars(with = "Option<Vec<BaseArchSchema>>", length(min = 1))]
    pub include_architectures: Option<Vec<String>>,
    /// Architectures without kernel packages
    #[schemars(with = "Option<Vec<BaseArchSchema>>", length(min = 1))]
    pub exclude_architectures: Option<Vec<String>>,
}

/// The HIP runtimes that load the device code of binaries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HipRuntime {
    /// Those that read kernel archives
    #[default]
    Archives,
    /// All of them
    Any,
}

/// How packages have code files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CodeFiles {
    /// As the build has them
    #[default]
    Plain,
    /// Compressed, where the library allows it
    Compressed,
}

/// The library search paths that files keep.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Display, Serialize, Deserialize, JsonSchema,
)]
#[display(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Runpath {
    /// All search paths
    #[default]
    Keep,
    /// Only folders relative to the file
    Origin,
    /// All search paths, as `DT_RPATH`
    Rpath,
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

/// How kernel packages and their host package require each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KernelRelations {
    /// One version and release
    #[default]
    Release,
    /// Any release of a patch version with the same device code
    Code,
}

/// The GPUs that a kernel package names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HintedGpus {
    /// None
    None,
    /// Graphics cards and accelerators: nearly every recent processor has a GPU of its own
    Discrete,
    /// Those of processors, too
    All,
}

/// Relations that the configuration adds to a package, and removes from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AddedRelations {
    /// Relations of the `.deb`, in Debian's syntax by field; `remove` has names to drop
    pub deb: DebRelations,
    /// Relations of the `.rpm`, in RPM's syntax by tag; `remove` has names to drop
    pub rpm: RpmRelations,
}

/// Declares the relations of a format by field, with the kind of each, and those to remove.
macro_rules! relation_fields {
    ($(#[$about:meta])* $name:ident: $($field:ident $kind:ident)*) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $(pub $field: Vec<String>,)*
            /// Names of packages and capabilities that it must not be related to
            pub remove: Vec<String>,
        }

        impl $name {
            pub fn added(&self) -> Vec<(&'static str, RelationKind, &[String])> {
                vec![$((stringify!($field), RelationKind::$kind, &self.$field)),*]
            }
        }
    };
}

relation_fields! {
    /// Relations in Debian's syntax, by field.
    DebRelations:
        depends Depends
        recommends Recommends
        suggests Suggests
        enhances Enhances
        provides Provides
        conflicts Conflicts
        breaks Breaks
        replaces Replaces
}

relation_fields! {
    /// Relations in RPM's syntax, by tag.
    RpmRelations:
        requires Depends
        recommends Recommends
        suggests Suggests
        enhances Enhances
        supplements Supplements
        provides Provides
        conflicts Conflicts
        obsoletes Obsoletes
}

/// A part of an artifact.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SelectorSchema {
    /// Name of the artifact, e.g. `blas`
    pub artifact: String,
    /// Modules of the artifact, e.g. `rocSPARSE` [default: all of them]
    #[serde(default)]
    pub modules: Option<Vec<String>>,
    /// Component kinds [default: all of them]
    #[serde(default)]
    #[schemars(extend("items" = component_kinds()))]
    pub kinds: Option<Vec<String>>,
}

/// A package of every family: the component kinds that go into it, and its texts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartSchema {
    /// Name of the part in other files, and in the names of its kernel archives
    #[schemars(regex(pattern = "^[a-z0-9-]+$"))]
    pub name: String,
    /// Component kinds that go into it
    #[schemars(extend("items" = component_kinds()))]
    pub kinds: Vec<String>,
    /// Suffix that each format appends to the family's name
    pub suffix: Suffix,
    /// Intended users
    pub role: PartRole,
    /// Debian's section
    #[serde(default = "section")]
    pub section: String,
    /// RPM's group
    #[serde(default = "group")]
    pub group: String,
    /// Description: a file of `templates/descriptions`, without its extension
    #[serde(default = "template")]
    pub template: String,
    /// Whether it depends on the family's host package
    #[serde(default)]
    pub needs_host: bool,
    /// Whether its programs and libraries are run, so that the package depends on the libraries they link to
    #[serde(default)]
    pub programs: bool,
}

/// The intended users of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PartRole {
    /// Users
    Host,
    /// Developers and testers
    Support,
}

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
