//! The keys of a packaging configuration, with their meanings and defaults.
//!
//! Each key is declared here once. serde reads configurations with these types. Their comments are the texts
//! of the documentation's table, of the JSON Schema for editors and, for keys that are also options, of
//! `--help`. The value behind `=` is the default of a key. If the default depends on other values,
//! `[default: …]` at the end of the comment describes it.

use std::path::PathBuf;

use clap::Args;
use derive_more::Display;
use rockpack_core::gfx::BaseArchSchema;
use rockpack_core::once::Ordered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::accept::AcceptSchema;
use super::packages::EachSchema;
use super::per_format::PerFormat;
use super::scheme::{self, LibrarySchema, RuntimeRelation, Suffix};
use super::values::{
    Alternatives, InterpreterSchema, ListOr, UnassignedArchitectures, Untransformable, declared,
    validation_keys,
};
use rockpack_package::{
    DistributionTag, RelationKind, UNNAMED_PACKAGER, UNSET_RELEASE, UNSET_VERSION,
};
use rockpack_split::input::artifact::ComponentKind;
use rockpack_split::input::database::Rule;

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
    /// Architecture groups by name, in order; each family gets one kernel package for each group
    /// [default: each architecture is a group]
    #[arg(skip)]
    pub architecture_groups: Ordered<GroupSchema>,
    /// Base architectures that this version of rockpack does not know, as in `gfx1400`. Other keys may name
    /// only these and those of `config/architectures.toml`
    #[arg(skip)]
    #[schemars(with = "Vec<BaseArchSchema>")]
    pub additional_architectures: Vec<String>,
    /// Contradictions that fail a run
    #[arg(skip)]
    pub validation: Validation,
    /// Artifact (`blas`) or component (`blas_lib`) → its own rules; those of a component override those of
    /// its artifact [default: as for all]
    #[arg(skip)]
    pub components: Ordered<ComponentSchema>,
    /// Package → its texts, and the architectures it has kernel packages for. `license`, `homepage` and
    /// `copyright` of a host package or a family also apply to the other packages of the family [default: as
    /// for all]
    #[arg(skip)]
    pub packages: Ordered<PackageSchema>,
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
    /// Link to the newest installed series: the prefix without `-<major>.<minor>` at its end, such as
    /// `/opt/rocm/core` of `/opt/rocm/core-7.1`. Scripts of the common package make it, move it and remove it.
    /// A build with `variant` has none [default: the scheme's, `true` for amdrocm]
    #[arg(skip)]
    pub series_link: Option<bool>,
    /// Folder below the prefix where the artifacts have their libraries, and where the loader looks for them.
    /// rockpack moves no library, because builds write the folder's name into files (search paths, CMake
    /// targets, places of databases). `R083` warns of libraries elsewhere that no search path leads to
    #[arg(skip)]
    pub libdir: String = "lib",
    /// Folder below the prefix for kernel archives and their manifests, such as `lib64/rocm/kpack`; the
    /// markers of binaries lead there [default: `.kpack` in `libdir`]
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
    /// Findings to accept, by `code`, a glob `subject`, and the `reason`. Accepted findings do not fail a run
    /// under `--strict`, and results show them as accepted. An entry that matches no finding is itself a
    /// finding, `R098`
    #[arg(skip)]
    pub accept: Vec<AcceptSchema>,
    /// Packages of every family and the component kinds that go into them, before those of
    /// `config/components.toml`
    #[arg(skip)]
    pub parts: Vec<PartSchema>,
    /// Time of every packed file, in RFC 3339
    #[arg(skip)]
    #[schemars(extend("format" = "date-time"))]
    pub content_date: String = "2025-01-01T00:00:00Z",
    /// Maintainer of the packages, as `Name <address>`
    #[arg(skip)]
    pub maintainer: String = UNNAMED_PACKAGER,
    /// Builder of the packages, a person or organisation. Set it once: zypper does not update a package to
    /// another vendor (`R138`)
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
    /// Names in `/usr/bin` for the programs in `<prefix>/bin` of host packages: `programs` makes them
    /// `/usr/bin/<name>` by update-alternatives, the highest version first (`R082` names those that cannot
    /// be); `none` makes no names there
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
    /// Code files of kernel databases: `plain`, as the build has them, or `compressed`, those of libraries that pass them
    /// unread to the HIP runtime (`compressible` in `config/databases.toml`). These take a fraction of the room on disk,
    /// and time and memory when the library loads them
    #[arg(skip)]
    pub code_files: CodeFiles,
    /// Level of kernel archives, as a text: zstd's `1` to `22`, or `none`.
    ///
    /// With `none`, archives are uncompressed, and payloads search for what their code objects have in common: smaller
    /// to download where architectures are nearly equal, several times larger on disk (`R159`). As
    /// `deb=VALUE,rpm=VALUE`, one for each format [default: the preset's]
    #[arg(long, hide_short_help = true, value_name = "LEVEL")]
    pub archive_level: Option<PerFormat>,
    /// Soname, in which `*` matches any characters, → the packages of a library that neither the set nor the
    /// distribution has, or that comes from elsewhere, or `false`: no package depends on it. `FAMILY:SONAME` is
    /// about the packages of one family. The first entry that matches decides
    #[arg(skip)]
    #[schemars(with = "Ordered<scheme::OutsideLibrary>")]
    pub libraries: Ordered<LibrarySchema>,
    /// Interpreter in the first line of scripts, with `*` within a name and `**` for any folders → the
    /// absolute path of its replacement, or `false`: the scripts keep it, and packages get no dependency for
    /// it
    #[arg(skip)]
    pub interpreters: Ordered<InterpreterSchema>,
    /// Library search paths in files: `keep` keeps all of them, `origin` only folders relative to the file,
    /// `rpath` keeps all of them as `DT_RPATH`, which also applies to the libraries that the file needs. With
    /// `rpath`, so do programs that users link, by the linker option in each `rocm.cfg` [default: the scheme's, or
    /// `keep`]
    #[arg(skip)]
    pub runpath: Option<Runpath>,
    /// How metapackages and packages of different families depend on packages of the set: `exact` on this
    /// version and release, `patch` on this or a later release of the same patch version, so that a hotfix of
    /// one family updates no other [default: patch; pre-releases: exact]
    #[arg(skip)]
    pub set_relations: Option<SetRelations>,
    /// How kernel packages and their host package require each other: `release` in exactly one version and
    /// release, `code` in any release of a patch version with the same device code, so that a fix of host
    /// code alone ships no kernel package again. If families depend on exactly one version, so do kernel
    /// packages
    #[arg(skip)]
    pub kernel_relations: KernelRelations,
    /// The HIP runtime that reads `.kpack`
    #[arg(skip)]
    pub runtime_relation: RuntimeRelation,
    /// HIP runtimes that load the device code of binaries: `archives`, those that read kernel archives, or
    /// `any`. For `any`, binaries register with the library `librocm_kpack_shim.so.0`, which is a package of the
    /// set; those that were split before need `runtime_relation`
    #[arg(skip)]
    pub hip_runtime: HipRuntime,
    /// File of that library, relative to the working directory [default: `librocm_kpack_shim.so.0` or
    /// `librocm_kpack_shim.so` beside the running program, or else `../lib/rockpack/librocm_kpack_shim.so.0` from
    /// there]
    #[arg(skip)]
    pub hip_shim: Option<PathBuf>,
    /// GPUs for which kernel packages tell the package manager that the machine needs them, by PCI ids
    #[arg(skip)]
    pub hardware_hints: HardwareHints,
    /// Package → relations to add to it and to remove from it
    #[arg(skip)]
    pub relations: Ordered<AddedRelations>,
    /// Package → its former names, `rocblas` or `rocblas < 7.0`
    #[arg(skip)]
    pub replaces: Ordered<ListOr<EachSchema>>,
    /// Package → packages that had some of its paths, `rocm-blas < 7.1.1-1`
    #[arg(skip)]
    pub moved: Ordered<ListOr<EachSchema>>,
    /// Package → the artifacts, modules and kinds that go into it [default: those of
    /// `config/components.toml`, else each artifact is a package]
    #[arg(skip)]
    pub selectors: Ordered<Vec<SelectorSchema>>,
    /// Rules for kernel databases, tried before the shipped ones; `config/databases.toml` explains their keys
    #[arg(skip)]
    pub databases: Vec<Rule>,
    /// Globs of files for another machine than x86-64 that are packed as data, by paths below the prefix:
    /// `share/emulator/**/*.elf` (`R039` names them). Any other ELF file, static archive or bundle with code
    /// for another machine is an error. AMDGPU code objects do not count
    #[arg(skip)]
    pub other_machines: Vec<String>,
    /// Names and requirements of the wheels that `rockpack wheel` makes
    #[arg(skip)]
    pub wheels: WheelKeys,
}
}

declared! {
/// GPUs that kernel packages name to package managers.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HardwareHints {
    /// GPUs in the field `Modaliases` of a `.deb`: `none`, `discrete`, or `all`. `ubuntu-drivers` lists such
    /// packages; apt ignores it
    pub deb: HintedGpus = HintedGpus::Discrete,
    /// GPUs in the tags `Supplements` of an `.rpm`: `none`, `discrete`, or `all`. zypper installs such
    /// packages beside their library where it finds the GPU, also in container and image builds, which see the
    /// GPUs of the machine that they run on; dnf ignores it
    pub rpm: HintedGpus = HintedGpus::None,
}
}

declared! {
/// Names and requirements of the wheels made of a fat wheel.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WheelKeys {
    /// Name of device wheels, with `{name}` of the host wheel and `{group}` of the group, or an owner's prefix
    pub device_name: String = "{name}-device-{group}",
    /// Further requirements of device wheels, beside their host wheel, with `{group}` for the group, as in
    /// `rocm-sdk-device-{group} == 7.1`: a list for every distribution, or distribution → list
    pub device_requires: ListOr<Ordered<Vec<String>>>,
    /// Further requirements of host wheels, beside those of the fat wheel
    pub host_requires: Vec<String>,
}
}

impl WheelKeys {
    /// The lists of `device_requires`, each with its distribution; that for all has none.
    pub fn device_lists(&self) -> Vec<(Option<&str>, &Vec<String>)> {
        match &self.device_requires {
            ListOr::One(list) => vec![(None, list)],
            ListOr::Each(lists) => {
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
        /// Different code for one kernel key in two shards is an error; if `false`, the code of the first
        /// shard is packed. Different database files at one path are always an error, because code and index
        /// of a database fit only each other
        error_on_duplicate_device_code: bool = true,
        /// Host files must be the same in all shards
        verify_generic_artifacts_match: bool = false,
        /// A grouped architecture without code is an error
        error_on_missing_architecture: bool = false,
        /// Code of an architecture in no group, which is never packed: `error`, `warn`, or `drop` (a note
        /// only)
        unassigned_architectures: UnassignedArchitectures = UnassignedArchitectures::Warn,
        /// Fat binaries that cannot be transformed: `error`, or `keep-fat`, which leaves them in their host
        /// package
        untransformable: Untransformable = Untransformable::Error,
    }

    of_components {
        /// Override of the same key for all components [default: as there]
        pub code_files: Option<CodeFiles>,
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

/// The texts of one package, and its architectures.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PackageSchema {
    /// Summary: one line of at most 80 characters [default: rockpack's text for such packages]
    #[schemars(length(min = 1, max = SUMMARY_LIMIT))]
    pub summary: Option<String>,
    /// Description: paragraphs with an empty line between them [default: rockpack's text for such packages]
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
    /// Relations of the `.deb`, in Debian's syntax by field; `remove` has names that it must not be related
    /// to
    pub deb: DebRelations,
    /// Relations of the `.rpm`, in RPM's syntax by tag; `remove` has names that it must not be related to
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
            /// The relations to add, by field.
            pub fn added(&self) -> Vec<(&'static str, RelationKind, &[String])> {
                vec![$((stringify!($field), RelationKind::$kind, &self.$field)),*]
            }
        }
    };
}

relation_fields! {
    /// Relations in Debian's syntax, by field.
    #[allow(missing_docs, reason = "the fields of a control file under their own names")]
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
    #[allow(missing_docs, reason = "the tags of a spec file under their own names")]
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
    #[serde(alias = "components", default)]
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
    #[serde(alias = "components")]
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

/// The component kinds, for a schema.
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
