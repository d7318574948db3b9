//! A checked configuration.

use std::path::Path;

use rockpack_base::error::{Error, Faults, Kind, Result};
use rockpack_base::gfx::BaseArch;

use super::accept::{self, Accepted, SetScope};
use super::check;
use super::document::{ConfigDocument, Position, Syntax};
use super::folders::Folders;
use super::former::FormerPackages;
use super::keys::Keys;
use super::read::read_text;
use super::rules::{ArchFilter, ComponentRules};
use super::selectors::Selector;
use super::texts::PackageTexts;
use crate::input::database::DatabaseRules;
use crate::report::Findings;

/// What to do about a configuration that does not have the schema.
const SCHEMA_HINT: &str = "`rockpack config schema` prints the keys, the same for JSON and TOML; \
                           `rockpack discover SHARDS --propose FILE` writes a configuration";

/// A checked packaging configuration, with defaults for what it does not say.
#[derive(Debug, Clone)]
pub struct Config {
    /// Keys whose values are used as they stand. Those whose checked value has a field here are not to be
    /// asked.
    pub keys: Keys,
    /// The archs that share a kernel package, and the shard whose host files are packed.
    pub grouping: Grouping,
    /// The folders of libraries and of kernel archives.
    pub folders: Folders,
    /// The rules that say which files are kernel databases.
    pub databases: DatabaseRules,
    /// Artifact or component → rules of its own, in file order.
    pub components: Vec<(String, ComponentRules)>,
    /// Package → the archs that its kernel packages are made for, in file order.
    pub packages: Vec<(String, ArchFilter)>,
    /// Package → what is said of it in words, in file order.
    pub texts: Vec<(String, PackageTexts)>,
    /// Time of packed files, in seconds since 1970.
    pub content_date: u32,
    /// Package → packages whose place it takes, in file order.
    pub replaces: Vec<(String, FormerPackages)>,
    /// Package → packages that had paths of it, each with a bound, in file order.
    pub moved: Vec<(String, FormerPackages)>,
    /// Package → what goes into it, in file order.
    pub selectors: Vec<(String, Vec<Selector>)>,
    /// Findings that are accepted, in file order.
    pub accept: Vec<Accepted>,
    pub(super) document: ConfigDocument,
}

/// The archs that share a kernel package, and the shard whose host files are packed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grouping {
    /// In order; none means that each arch is its own group.
    pub groups: Vec<ArchitectureGroup>,
    /// The shard; the first by name if unset.
    pub primary_shard: Option<String>,
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

impl Config {
    /// The configuration in the file, or else the defaults.
    pub fn of(file: Option<&Path>, faults: &mut Faults) -> Option<Self> {
        match file {
            Some(path) => Self::read(path, faults),
            None => faults.keep(Self::none()),
        }
    }

    /// The configuration in the file at `path`, whose ending says in which syntax it is. Keys at fault have
    /// their defaults; nothing where the file cannot be read or parsed.
    pub fn read(path: &Path, faults: &mut Faults) -> Option<Self> {
        let document = faults.keep(Self::document(path))?;
        let keys = faults.keep(document.decode(SCHEMA_HINT))?;
        check::checked(keys, document, faults)
    }

    /// Reads the configuration file at `path`.
    pub fn open(path: &Path) -> Result<Self> {
        let mut faults = Faults::default();
        let config = Self::read(path, &mut faults);
        faults.settle(config)
    }

    fn document(path: &Path) -> Result<ConfigDocument> {
        // A file that is not there is told as that, whatever its name.
        let text = read_text(path, "configuration")?;
        let syntax = match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => Syntax::Json,
            Some("toml") => Syntax::Toml,
            _ => {
                let message = "the configuration's syntax is unknown, because the name of the file ends \
                               neither in .json nor in .toml";
                let error = Error::new(Kind::Usage, message);
                return Err(error.file(path).hint("give it the ending of what it is written in"));
            }
        };
        Ok(ConfigDocument::new(Some(path.to_path_buf()), text, syntax))
    }

    /// Reads a configuration from text.
    pub fn parse(text: &str, syntax: Syntax) -> Result<Self> {
        let document = ConfigDocument::new(None, text.to_owned(), syntax);
        let mut faults = Faults::default();
        let keys = document.decode(SCHEMA_HINT)?;
        let config = check::checked(keys, document, &mut faults);
        faults.settle(config)
    }

    /// The defaults, which hold without a configuration.
    pub fn none() -> Result<Self> {
        let mut faults = Faults::default();
        let config = check::checked(Keys::default(), ConfigDocument::default(), &mut faults);
        faults.settle(config)
    }

    /// `result`; of the findings that its error keeps, those are marked that the configuration accepts.
    pub fn accept_of_error<T>(&self, result: Result<T>) -> Result<T> {
        let mark = |findings: &mut Findings| self.accept(findings, SetScope::Artifacts);
        result.map_err(|error| Findings::remark_again(error, mark))
    }

    /// Marks the findings that it accepts.
    pub fn accept(&self, findings: &mut Findings, scope: SetScope) {
        accept::accept(&self.accept, findings, scope);
    }

    /// A list of packages decides alone what goes where.
    pub fn refuse_selectors_beside_list(&self) -> Result<()> {
        let keys =
            [("selectors", self.selectors.is_empty()), ("parts", self.keys.parts.is_empty())];
        let given = keys.iter().find(|(_, is_empty)| !is_empty);
        given.map_or(Ok(()), |(key, _)| {
            let message = "says what goes into packages, and so does the list of packages";
            Err(self.fault(&[key], message).hint("take it out, or build without --packages"))
        })
    }

    /// An error about the value at `keys` (`["architecture_groups", "gfx110X"]`; list elements
    /// by their index), with file, line and column where the configuration has them.
    pub fn fault(&self, keys: &[&str], message: impl Into<String>) -> Error {
        self.document.fault(keys, message)
    }

    /// Tells if the command line has the value at `keys`.
    pub fn is_given(&self, keys: &[&str]) -> bool {
        self.document.is_given(keys)
    }

    /// Tells if somebody set the value at `keys`.
    pub fn is_set(&self, keys: &[&str]) -> bool {
        self.is_given(keys) || self.position(keys).is_some()
    }

    /// The place of the value at `keys`; none where the configuration does not have it, or the command
    /// line has another one.
    pub fn position(&self, keys: &[&str]) -> Option<Position> {
        self.document.position(keys)
    }

    /// All values as they stand.
    pub fn values(&self) -> Result<serde_json::Map<String, serde_json::Value>> {
        if self.document.is_empty() {
            Ok(serde_json::Map::new())
        } else {
            self.document.decode(SCHEMA_HINT)
        }
    }

    /// `error`, which does not know where the value at `keys` came from, with its place.
    pub fn located(&self, keys: &[&str], error: &Error) -> Error {
        self.document.located(keys, error)
    }
}
