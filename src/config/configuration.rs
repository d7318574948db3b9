//! A checked configuration.

use rockpack_base::error::{Error, Result};
use rockpack_base::tree::{ArtifactName, TreePath};

use super::accept::{self, Accepted, SetScope};
use super::document::{ConfigDocument, Position};
use super::folders::Folders;
use super::former::FormerPackages;
use super::globs::matches_any;
use super::grouping::Grouping;
use super::keys::{Keys, Validation};
use super::policies::Untransformable;
use super::rules::{ArchFilter, ComponentRules};
use super::selectors::Selector;
use super::texts::PackageTexts;
use crate::input::artifact::ComponentKind;
use crate::input::database::DatabaseRules;
use crate::report::Findings;

/// What to do about a configuration that does not have the schema.
pub(super) const SCHEMA_HINT: &str = "`rockpack config schema` prints the keys, the same for JSON and TOML; \
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

impl Config {
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

    /// The rules of a component, those of its artifact before its own, with their names.
    pub fn rules_of(
        &self,
        artifact: &str,
        kind: ComponentKind,
    ) -> impl Iterator<Item = (&str, &ComponentRules)> {
        let id = format!("{artifact}_{kind}");
        let of = |wanted: &str| self.components.iter().find(|(name, _)| name == wanted);
        let found = [of(artifact), of(&id)];
        found.into_iter().flatten().map(|(name, rules)| (name.as_str(), rules))
    }

    /// What holds for a component: its own rules before those of its artifact, and these before
    /// those of all.
    pub fn validation_of(&self, artifact: &str, kind: ComponentKind) -> Validation {
        let over = |base, (_, own): (&str, &ComponentRules)| own.validation.over(base);
        self.rules_of(artifact, kind).fold(self.keys.validation, over)
    }

    /// Whether fat binaries of an artifact that cannot be transformed stay as they are.
    pub fn keeps_fat(&self, artifact: &ArtifactName) -> bool {
        let validation = self.validation_of(&artifact.name, artifact.kind);
        validation.untransformable == Untransformable::KeepFat
    }

    /// Whether the file at `path` is packed although it is for another machine than x86-64.
    pub fn allows_other_machine(&self, path: &TreePath) -> bool {
        matches_any(&self.keys.other_machines, path)
    }
}
