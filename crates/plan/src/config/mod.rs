//! The packaging configuration: the groups of archs, and the texts and relations of packages.
//!
//! JSON and TOML have the same schema; the extension of the file chooses the syntax. Every key is optional.
//! [`Keys`] declares them, and docs/reference/configuration.md has a list of them.
//!
//! Refused, each with line and column: unknown keys, groups that cannot become packages, and values that do
//! not parse. The stage that knows the artifacts checks the rest (does the primary shard exist?), and asks
//! [`ConfigDocument::fault`] for the position.
//!
//! Keys may also be options ([`KeyOptions`]). The command line overrides the configuration.

mod accept;
mod architectures;
mod archive_level;
mod check;
mod document;
mod keys;
mod packages;
mod per_format;
mod scheme;
mod values;

#[cfg(test)]
mod tests;

pub use accept::{AcceptSchema, SetScope};
pub use architectures::{ArchFilter, ComponentRules};
pub use archive_level::{ArchiveLevel, ArchiveLevels};
pub use check::{Folders, check_glob, is_address, is_lower_or_digit, is_maintainer, matches_any};
pub use document::{ConfigDocument, Position, Syntax, arch_hint, nearest, nearest_arch, option_of};
pub use keys::*;
pub(crate) use packages::paragraphs;
pub use packages::{FormerPackage, FormerPackages, NamesByFormat, Selector};
pub use per_format::{FormatValues, PerFormat};
pub use scheme::{
    KernelsPer, LibrarySchema, MetaTemplates, NameTemplates, OutsideLibrary, RuntimeRelation,
    Scheme, Suffix, Template,
};
pub(crate) use values::deserialize_by_visitor;
pub use values::{
    Alternatives, InterpreterSchema, ListOrMap, UnassignedArchitectures, Untransformable,
};

use std::path::Path;
use std::sync::LazyLock;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use derive_more::Deref;
use rockpack_core::content::read_small;
use rockpack_core::error::{Error, Faults, Kind, Result, ResultExt};
use rockpack_core::gfx::Group;
use rockpack_core::tree::{ArtifactName, TreePath};
use schemars::Schema;
use serde_json::{Map, Value};

use rockpack_report::{Code, Finding, Findings};
use rockpack_split::input::artifact::ComponentKind;
use rockpack_split::input::database::DatabaseRules;

const SCHEMA_HINT: &str = "`rockpack config schema` prints the keys, the same for JSON and TOML; \
                           `rockpack discover SHARDS --propose FILE` writes a configuration";

/// A checked packaging configuration. Keys that are not set have their defaults.
#[derive(Debug, Clone, Deref)]
pub struct Config {
    /// The keys as they were read. For a key that has a checked field here, use that field.
    pub keys: Keys,
    pub grouping: Grouping,
    pub folders: Folders,
    pub databases: DatabaseRules,
    /// Artifact or component → its own rules, in file order.
    pub components: Vec<(String, ComponentRules)>,
    /// Package → the archs that get kernel packages, in file order.
    pub packages: Vec<(String, ArchFilter)>,
    /// Time of packed files, in seconds since 1970.
    pub content_date: u32,
    /// Package → packages that it replaces, in file order.
    pub replaces: Vec<(String, FormerPackages)>,
    /// Package → packages that had some of its paths, each with a bound, in file order.
    pub moved: Vec<(String, FormerPackages)>,
    /// Package → the parts of artifacts that go into it, in file order.
    pub selectors: Vec<(String, Vec<Selector>)>,
    /// Findings that are accepted, by code and in file order.
    pub accept: Vec<(Code, AcceptSchema)>,
    #[deref]
    document: ConfigDocument,
}

impl Config {
    /// Marks the accepted findings among those that the error of `result` carries.
    pub fn accept_in_error<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|mut error| {
            let remarks = error.take_remarks();
            let read = remarks.iter().filter_map(|remark| serde_json::from_str(&remark.json).ok());
            let mut findings = Findings::default();
            findings.extend(read);
            self.accept(&mut findings, SetScope::Artifacts);
            error.with_remarks(findings.iter().map(Finding::remark))
        })
    }

    /// Refuses `selectors` and `parts` together with a package list, which alone decides the packages.
    pub fn refuse_selectors_with_list(&self) -> Result<()> {
        let keys =
            [("selectors", self.selectors.is_empty()), ("parts", self.keys.parts.is_empty())];
        let given = keys.iter().find(|(_, is_empty)| !is_empty);
        given.map_or(Ok(()), |(key, _)| {
            let message = "defines the content of packages, and so does the package list";
            Err(self.fault(&[key], message).hint("remove it, or build without --packages"))
        })
    }

    pub fn is_set(&self, keys: &[&str]) -> bool {
        self.is_given(keys) || self.position(keys).is_some()
    }

    /// All values of the file, unchecked; empty without a file.
    pub fn values(&self) -> Result<Map<String, Value>> {
        self.document.decode(SCHEMA_HINT)
    }

    /// The rules for a component with their names: its artifact's first, then its own.
    pub fn rules_of(
        &self,
        artifact: &str,
        kind: ComponentKind,
    ) -> impl Iterator<Item = (&str, &ComponentRules)> {
        let id = format!("{artifact}_{kind}");
        let found =
            [artifact, &id].map(|wanted| self.components.iter().find(|(name, _)| name == wanted));
        found.into_iter().flatten().map(|(name, rules)| (name.as_str(), rules))
    }

    /// The validation of a component: its own rules override its artifact's, which override the general ones.
    pub fn validation_of(&self, artifact: &str, kind: ComponentKind) -> Validation {
        self.rules_of(artifact, kind)
            .fold(self.keys.validation, |base, (_, own)| own.keys.override_validation(base))
    }

    pub fn code_files_of(&self, artifact: &str, kind: ComponentKind) -> CodeFiles {
        let own = self.rules_of(artifact, kind).filter_map(|(_, own)| own.keys.code_files);
        own.last().unwrap_or(self.keys.code_files)
    }

    pub fn compresses_code_files(&self) -> bool {
        let own = self.components.iter().filter_map(|(_, own)| own.keys.code_files);
        own.chain([self.keys.code_files]).any(|it| it == CodeFiles::Compressed)
    }

    /// Whether fat binaries of an artifact that cannot be transformed are packed unchanged.
    pub fn keeps_fat(&self, artifact: &ArtifactName) -> bool {
        let validation = self.validation_of(&artifact.name, artifact.kind);
        validation.untransformable == Untransformable::KeepFat
    }

    /// Whether the file at `path` is packed although it is for another machine than x86-64.
    pub fn allows_other_machine(&self, path: &TreePath) -> bool {
        matches_any(&self.keys.other_machines, path)
    }

    /// Reads the configuration in `file`, or the defaults without a file; the extension chooses the syntax. A key
    /// with a fault gets its default. `None` if the file cannot be read or parsed.
    pub fn of(file: Option<&Path>, faults: &mut Faults) -> Option<Self> {
        let Some(path) = file else { return faults.keep(Self::defaults()) };
        let document = faults.keep(Self::document(path))?;
        let keys = faults.keep(document.decode(SCHEMA_HINT))?;
        check::checked(keys, document, faults)
    }

    fn document(path: &Path) -> Result<ConfigDocument> {
        // Before the extension is checked, so that a missing file is reported as missing.
        let text = read_text(path, "configuration")?;
        let syntax = match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => Syntax::Json,
            Some("toml") => Syntax::Toml,
            _ => {
                let message = "cannot tell the syntax of the configuration: its name ends neither \
                               in .json nor in .toml";
                let error = Error::new(Kind::Usage, message);
                return Err(error.file(path).hint("rename it to .json or .toml"));
            }
        };
        Ok(ConfigDocument::new(Some(path.to_path_buf()), text, syntax))
    }

    pub fn parse(text: &str, syntax: Syntax) -> Result<Self> {
        let document = ConfigDocument::new(None, text.to_owned(), syntax);
        let mut faults = Faults::default();
        let keys = document.decode(SCHEMA_HINT)?;
        let config = check::checked(keys, document, &mut faults);
        faults.settle(config)
    }

    pub fn defaults() -> Result<Self> {
        Self::parse("{}", Syntax::Json)
    }

    pub fn override_keys(&mut self, options: &KeyOptions) -> Result<()> {
        let KeyOptions(matches) = options;
        self.keys
            .update_from_arg_matches(matches)
            .map_err(|error| Error::bug("an option of a key has no value").cause(error))?;
        for argument in Keys::augment_args(Command::new("keys")).get_arguments() {
            let key = argument.get_id().as_str();
            if matches.contains_id(key) {
                self.document.give(key);
            }
        }
        Ok(())
    }
}

/// Longest configuration that is read, in bytes: room for thousands of groups.
const CONFIG_LIMIT: u64 = 4 << 20;

/// Reads the text of the file at `path`; `what` names its kind in errors.
pub fn read_text(path: &Path, what: &str) -> Result<String> {
    let bytes = read_small(path, CONFIG_LIMIT, what).context(|| format!("reading the {what}"))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() as u64;
        let error = Error::new(Kind::Config, format!("the {what} is not UTF-8"));
        error.file(path).offset(at)
    })
}

#[derive(Debug, Clone)]
pub struct KeyOptions(ArgMatches);

impl Args for KeyOptions {
    fn augment_args(command: Command) -> Command {
        // Each start of the program asks for the options of several commands.
        static SCHEMA: LazyLock<Schema> = LazyLock::new(|| schemars::schema_for!(Keys));
        let keys = Keys::augment_args(Command::new("keys").next_display_order(None));
        command.args(keys.get_arguments().map(|argument| as_option(argument.clone(), &SCHEMA)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The option of a key: optional, with the default at the end of its help.
fn as_option(option: Arg, keys: &Schema) -> Arg {
    let default = keys
        .pointer(&format!("/properties/{}/default", option.get_id()))
        .and_then(Value::as_str)
        .map(|text| format!(" [default: {text}]"))
        .unwrap_or_default();
    let texts = [option.get_long_help(), option.get_help()];
    match texts.map(|text| Some(format!("{}{default}", text?))) {
        [Some(long_help), _] => option.long_help(long_help),
        [None, help] => option.help(help.unwrap_or_default()),
    }
    .required(false)
}

impl FromArgMatches for KeyOptions {
    fn from_arg_matches(matches: &ArgMatches) -> clap::error::Result<Self> {
        Ok(Self(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> clap::error::Result<()> {
        self.0 = matches.clone();
        Ok(())
    }
}

/// The archs that share a kernel package, and the shard whose host files are packed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grouping {
    /// In file order. Without groups, each arch is a group.
    pub groups: Vec<Group>,
    /// The shard whose host files are packed; the first by name if unset.
    pub primary_shard: Option<String>,
}
