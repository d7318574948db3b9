//! The packaging configuration: which archs are grouped, and what the packages say.
//!
//! JSON and TOML carry the same schema; the file's ending chooses. Every key may be left out.
//!
//! | key | meaning | default |
//! |---|---|---|
//! | `primary_shard` | the shard whose host files are packed | the first by name |
//! | `architecture_groups` | name → `display_name`, `architectures`; one kernel package each, in this order | each arch its own group |
//! | `validation.error_on_duplicate_device_code` | different code for one key in two shards fails the run | `true` |
//! | `validation.verify_generic_artifacts_match` | host files must be the same in all shards | `false` |
//! | `validation.error_on_missing_architecture` | a configured arch without code fails the run | `false` |
//! | `validation.unassigned_architectures` | code of an arch in no group: `error`, `warn`, `drop` | `warn` |
//! | `validation.untransformable` | fat binaries that cannot be transformed: `error`, `keep-fat` | `error` |
//! | `components` | artifact (`blas`) or component (`blas_lib`) → the keys of `validation`, `include_architectures`, `exclude_architectures` | as for all |
//! | `packages` | package with host files → `include_architectures`, `exclude_architectures` of its kernel packages | all |
//! | `packages` | any package → its `summary`, `description`, `section`, `license`, `homepage`, `copyright`; of a host package or a family, the last three hold for the other packages of the family, too | as for all |
//! | `scheme` | what packages are called: `rocm`, `rocm-versioned`, `amdrocm` | `rocm` |
//! | `variant` | a word for this kind of build in names and prefix, e.g. `asan` | none |
//! | `version`, `release` | of all packages; the command line wins | `0.0.0` with a finding, `1` |
//! | `epoch` | of all packages | none |
//! | `distribution_tag.deb`, `.rpm` | what all releases end in, e.g. `~deb12`, `.el9` | none |
//! | `prefix` | install prefix | the scheme's: `/opt/rocm-<major>.<minor>` |
//! | `libdir` | the folder below the prefix where the artifacts have their libraries | `lib` |
//! | `kpackdir` | the folder below the prefix for kernel archives and manifests | `<libdir>/.kpack` |
//! | `parts` | which components make up which package of a family | `config/components.toml` |
//! | `content_date` | time of every packed file, RFC 3339 | [`CONTENT_DATE`] |
//! | `maintainer`, `vendor`, `homepage`, `license` | as the formats' fields | [`MAINTAINER`], none, none, [`LICENSE`] |
//! | `copyright` | who has it, where no licence text of the artifacts says so | none |
//! | `alternatives` | `programs`: what lies in `<prefix>/bin` becomes `/usr/bin/…` by update-alternatives; or `none` | `none` |
//! | `distro` | the distribution whose libraries packages depend on; the command line wins | `debian-12` |
//! | `libraries` | soname → `deb`: the dependency for a library that neither the set nor the distribution has, or has otherwise | none |
//! | `runpath` | library search paths in files: `keep`, or `origin`: only folders relative to the file stay | `keep` |
//! | `runtime_relation.deb`, `.rpm` | the HIP runtime that host packages with transformed binaries need | none, with a finding |
//! | `relations` | package → `deb`, `rpm` → kind → relations added to it, `remove` → names of relations taken from it | none |
//! | `replaces` | package → names under which it was known, `name` or `name < version` | none |
//! | `moved` | package → packages that had paths of it, `name < version` | none |
//! | `databases` | kernel database rules, as in `config/databases.toml`, tried before its own | none |
//! | `selectors` | package → list of `artifact`, `modules`, `components` | `config/components.toml` |
//!
//! Refused, each with line and column: unknown keys, groups that no package can be made of, and
//! values that do not parse. What depends on the artifacts (does the primary shard exist?) is
//! checked by the stage that knows them, which asks [`Config::fault`] for the place.

mod architectures;
mod check;
mod databases;
mod former;
mod origin;
mod package_list;
mod rules;
mod schema;
mod scheme;
mod texts;

use std::path::Path;

pub use former::{FormerPackage, FormerPackages};
pub use schema::{
    AddedRelations, DebRelations, OutsideLibrary, PartRole, PartSchema, RpmRelations, Runpath,
    RuntimeRelation, Selector,
};

use crate::content::Content;
use crate::database::Rule;
use crate::error::{Error, Kind, Result};
use crate::gfx::BaseArch;
use crate::package::DistributionTag;
use origin::Origin;
pub use origin::Syntax;
pub use package_list::{Claim, ListedPackage, PackageList, deb_name};
pub use rules::{
    Alternatives, ArchFilter, ComponentRules, UnassignedArchitectures, Untransformable, Validation,
    ValidationOverrides,
};
pub use scheme::{
    DEFAULT_SCHEME, KernelsPer, MetaTemplates, NameTemplates, Scheme, Suffix, Template,
};
pub use texts::{PackageTexts, SUMMARY_LIMIT};

/// The default time of packed files: 2025-01-01T00:00:00Z, a date after every supported
/// distribution's idea of an implausibly old file.
pub const CONTENT_DATE: &str = "2025-01-01T00:00:00Z";

/// The default maintainer, in a top-level domain that is reserved for addresses of nobody.
pub const MAINTAINER: &str = "Unnamed packager <packager@rockpack.invalid>";

/// The default licence expression: SPDX's way to say that none was stated.
pub const LICENSE: &str = "LicenseRef-Unstated";

/// What to do about a configuration that does not have the schema.
const SCHEMA_HINT: &str = "the README shows a configuration; JSON and TOML have the same keys";

/// Longest configuration that is read, in bytes: thousands of groups fit.
const CONFIG_LIMIT: u64 = 4 << 20;

/// A checked packaging configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// The shard whose host files are packed.
    pub primary_shard: Option<String>,
    /// The arch groups in file order; none means that each arch is its own group.
    pub groups: Vec<ArchitectureGroup>,
    /// Which contradictions fail a run.
    pub validation: Validation,
    /// Artifact or component → rules of its own, in file order.
    pub components: Vec<(String, ComponentRules)>,
    /// Package → the archs that its kernel packages are made for, in file order.
    pub packages: Vec<(String, ArchFilter)>,
    /// Package → what is said of it in words, in file order.
    pub texts: Vec<(String, PackageTexts)>,
    /// Name of the naming scheme.
    pub scheme: Option<String>,
    /// The kind of build, e.g. `asan`.
    pub variant: Option<String>,
    /// Parts that replace or join the shipped ones, in file order.
    pub parts: Vec<PartSchema>,
    /// Epoch of all versions.
    pub epoch: Option<u32>,
    /// What all releases end in.
    pub distribution_tag: DistributionTag,
    /// Upstream version, e.g. `7.1.0`.
    pub version: Option<String>,
    /// Package release, e.g. `1`.
    pub release: Option<String>,
    /// Install prefix.
    pub prefix: Option<String>,
    /// The folder of libraries, relative to the prefix.
    pub libdir: Option<String>,
    /// The folder of kernel archives, relative to the prefix.
    pub kpackdir: Option<String>,
    /// Time of packed files, in seconds since 1970.
    pub content_date: u32,
    /// `Name <address>`.
    pub maintainer: String,
    /// Who builds the packages.
    pub vendor: Option<String>,
    /// Home page.
    pub homepage: Option<String>,
    /// Licence expression.
    pub license: String,
    /// Who has the copyright.
    pub copyright: Option<String>,
    /// What becomes of programs.
    pub alternatives: Alternatives,
    /// The distribution whose libraries packages depend on.
    pub distro: Option<String>,
    /// What becomes of the library search paths in files.
    pub runpath: Runpath,
    /// Soname → where it comes from, in file order; goes before what the distribution has.
    pub libraries: Vec<(String, OutsideLibrary)>,
    /// The HIP runtime that transformed binaries need.
    pub runtime_relation: RuntimeRelation,
    /// Package → relations added to it, in file order.
    pub relations: Vec<(String, AddedRelations)>,
    /// Package → packages whose place it takes, in file order.
    pub replaces: Vec<(String, FormerPackages)>,
    /// Package → packages that had paths of it, each with a bound, in file order.
    pub moved: Vec<(String, FormerPackages)>,
    /// Package → what goes into it, in file order.
    pub selectors: Vec<(String, Vec<Selector>)>,
    /// Kernel database rules that are tried before the shipped ones.
    pub databases: Vec<Rule>,
    origin: Origin,
}

/// Archs that share a kernel package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchitectureGroup {
    /// E.g. `gfx110X`.
    pub name: String,
    /// E.g. `ROCm gfx110X (RDNA3)`.
    pub display_name: String,
    /// In file order.
    pub architectures: Vec<BaseArch>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            primary_shard: None,
            groups: Vec::new(),
            validation: Validation::default(),
            components: Vec::new(),
            packages: Vec::new(),
            texts: Vec::new(),
            scheme: None,
            variant: None,
            parts: Vec::new(),
            epoch: None,
            distribution_tag: DistributionTag::default(),
            version: None,
            release: None,
            prefix: None,
            libdir: None,
            kpackdir: None,
            // The text above in seconds; a test compares the two.
            content_date: 1_735_689_600,
            maintainer: MAINTAINER.to_owned(),
            vendor: None,
            homepage: None,
            license: LICENSE.to_owned(),
            copyright: None,
            alternatives: Alternatives::default(),
            distro: None,
            runpath: Runpath::default(),
            libraries: Vec::new(),
            runtime_relation: RuntimeRelation::default(),
            relations: Vec::new(),
            replaces: Vec::new(),
            moved: Vec::new(),
            selectors: Vec::new(),
            databases: Vec::new(),
            origin: Origin::default(),
        }
    }
}

impl Config {
    /// Reads the configuration file at `path`; its ending says in which syntax it is.
    pub fn open(path: &Path) -> Result<Self> {
        let syntax = match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => Syntax::Json,
            Some("toml") => Syntax::Toml,
            _ => {
                let error = Error::new(Kind::Usage, "the configuration's syntax is unknown");
                let hint = "its name ends in .json or .toml";
                return Err(error.file(path).hint(hint));
            }
        };
        let text = read_text(path, "configuration")?;
        Self::read(Origin::new(Some(path.to_path_buf()), text, syntax))
    }

    /// Reads a configuration from text.
    pub fn parse(text: &str, syntax: Syntax) -> Result<Self> {
        Self::read(Origin::new(None, text.to_owned(), syntax))
    }

    fn read(origin: Origin) -> Result<Self> {
        let schema = origin.decode(SCHEMA_HINT)?;
        check::checked(schema, origin)
    }

    /// A list of packages decides alone what goes where.
    pub fn refuse_selectors_beside_list(&self) -> Result<()> {
        let keys = [("selectors", self.selectors.is_empty()), ("parts", self.parts.is_empty())];
        let given = keys.iter().find(|(_, is_empty)| !is_empty);
        given.map_or(Ok(()), |(key, _)| {
            let message = "says what goes into packages, and so does the list of packages";
            Err(self.fault(&[key], message).hint("take it out, or build without --packages"))
        })
    }

    /// An error about the value at `keys` (`["architecture_groups", "gfx110X"]`; list elements
    /// by their index), with file, line and column where the configuration has them.
    pub fn fault(&self, keys: &[&str], message: impl Into<String>) -> Error {
        self.origin.fault(keys, message)
    }

    /// `error`, which does not know where the value at `keys` came from, with its place.
    pub fn located(&self, keys: &[&str], error: &Error) -> Error {
        self.origin.located(keys, error)
    }
}

/// The text of the file at `path`, which is a `what`.
fn read_text(path: &Path, what: &str) -> Result<String> {
    let content = Content::open(path)?;
    let bytes = content.read_vec(0..content.len(), CONFIG_LIMIT, what)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() as u64;
        let error = Error::new(Kind::Config, format!("the {what} is not UTF-8"));
        error.file(path).offset(at)
    })
}

#[cfg(test)]
mod tests;
