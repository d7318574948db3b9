//! A checked configuration.

use rockpack_core::error::{Error, Result};
use rockpack_core::tree::{ArtifactName, TreePath};

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
use rockpack_report::Findings;
use rockpack_split::input::artifact::ComponentKind;
use rockpack_split::input::database::DatabaseRules;

/// The hint for a configuration that violates the schema.
pub(super) const SCHEMA_HINT: &str = "`rockpack config schema` prints the keys, the same for JSON and TOML; \
                           `rockpack discover SHARDS --propose FILE` writes a configuration";

/// A checked packaging configuration. Keys that are not set have their defaults.
#[derive(Debug, Clone)]
pub struct Config {
    /// The keys as they were read. For a key that has a checked field here, use that field.
    pub keys: Keys,
    /// The archs that share a kernel package, and the shard whose host files are packed.
    pub grouping: Grouping,
    /// The folders of libraries and of kernel archives.
    pub folders: Folders,
    /// The rules that say which files are kernel databases.
    pub databases: DatabaseRules,
    /// Artifact or component → its own rules, in file order.
    pub components: Vec<(String, ComponentRules)>,
    /// Package → the archs that get kernel packages, in file order.
    pub packages: Vec<(String, ArchFilter)>,
    /// Package → its texts, in file order.
    pub texts: Vec<(String, PackageTexts)>,
    /// Time of packed files, in seconds since 1970.
    pub content_date: u32,
    /// Package → packages that it replaces, in file order.
    pub replaces: Vec<(String, FormerPackages)>,
    /// Package → packages that had some of its paths, each with a bound, in file order.
    pub moved: Vec<(String, FormerPackages)>,
    /// Package → the parts of artifacts that go into it, in file order.
    pub selectors: Vec<(String, Vec<Selector>)>,
    /// Findings that are accepted, in file order.
    pub accept: Vec<Accepted>,
    pub(super) document: ConfigDocument,
}

impl Config {
    /// Marks the accepted findings among those that the error of `result` carries.
    pub fn accept_of_error<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| {
            Findings::remark_again(error, |findings| self.accept(findings, SetScope::Artifacts))
        })
    }

    /// Marks the findings that the configuration accepts.
    pub fn accept(&self, findings: &mut Findings, scope: SetScope) {
        accept::accept(&self.accept, findings, scope);
    }

    /// Refuses `selectors` and `parts` beside a package list, which alone decides the packages.
    pub fn refuse_selectors_beside_list(&self) -> Result<()> {
        let keys =
            [("selectors", self.selectors.is_empty()), ("parts", self.keys.parts.is_empty())];
        let given = keys.iter().find(|(_, is_empty)| !is_empty);
        given.map_or(Ok(()), |(key, _)| {
            let message = "says what goes into packages, and so does the list of packages";
            Err(self.fault(&[key], message).hint("take it out, or build without --packages"))
        })
    }

    /// An error about the value at `keys` (`["architecture_groups", "gfx110X"]`; list elements by index),
    /// with file, line and column if the configuration has the value.
    pub fn fault(&self, keys: &[&str], message: impl Into<String>) -> Error {
        self.document.fault(keys, message)
    }

    /// Tells whether the command line sets the value at `keys`.
    pub fn is_given(&self, keys: &[&str]) -> bool {
        self.document.is_given(keys)
    }

    /// Tells whether the command line or the configuration sets the value at `keys`.
    pub fn is_set(&self, keys: &[&str]) -> bool {
        self.is_given(keys) || self.position(keys).is_some()
    }

    /// The position of the value at `keys`; `None` if the configuration lacks it or the command line
    /// overrides it.
    pub fn position(&self, keys: &[&str]) -> Option<Position> {
        self.document.position(keys)
    }

    /// All values of the file, unchecked; empty without a file.
    pub fn values(&self) -> Result<serde_json::Map<String, serde_json::Value>> {
        if self.document.is_empty() {
            Ok(serde_json::Map::new())
        } else {
            self.document.decode(SCHEMA_HINT)
        }
    }

    /// Adds the position of the value at `keys` to `error`, which does not know it.
    pub fn located(&self, keys: &[&str], error: &Error) -> Error {
        self.document.located(keys, error)
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

    /// The validation of a component. Its own rules override its artifact's, which override the general ones.
    pub fn validation_of(&self, artifact: &str, kind: ComponentKind) -> Validation {
        self.rules_of(artifact, kind)
            .fold(self.keys.validation, |base, (_, own)| own.validation.over(base))
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
}
