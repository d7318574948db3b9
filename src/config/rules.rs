//! Rules that contradictions are judged by, for all components or for one.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Config;
use crate::gfx::BaseArch;
use crate::input::artifact::{ArtifactName, ComponentKind};

/// Which contradictions fail a run, and what becomes of what cannot be packaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Validation {
    /// Different code for one key in two shards is an error, not a finding.
    pub error_on_duplicate_device_code: bool,
    /// Host files of all shards are compared.
    pub verify_generic_artifacts_match: bool,
    /// A configured arch without code is an error, not a finding.
    pub error_on_missing_architecture: bool,
    /// What becomes of code of an arch that is in no group.
    pub unassigned_architectures: UnassignedArchitectures,
    /// What becomes of fat binaries that cannot be transformed.
    pub untransformable: Untransformable,
}

impl Default for Validation {
    fn default() -> Self {
        Self {
            error_on_duplicate_device_code: true,
            verify_generic_artifacts_match: false,
            error_on_missing_architecture: false,
            unassigned_architectures: UnassignedArchitectures::Warn,
            untransformable: Untransformable::Error,
        }
    }
}

/// What becomes of code of an arch that is in no group. It is packed in no case.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum UnassignedArchitectures {
    /// It fails the run
    Error,
    /// It is left out with a warning
    Warn,
    /// It is left out with a note
    Drop,
}

/// What becomes of a fat binary that cannot be transformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Untransformable {
    /// It fails the run
    Error,
    /// It stays in its host package as it is, with all its device code
    KeepFat,
}

/// What is said of [`Validation`] in one place; what is unset is as elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ValidationOverrides {
    /// Different code for one kernel key in two shards is an error; if `false`, the first shard's is
    /// packed. Different database files at one path are always an error: code and index of a database
    /// fit only each other [default: true]
    pub error_on_duplicate_device_code: Option<bool>,
    /// Host files have to be the same in all shards [default: false]
    pub verify_generic_artifacts_match: Option<bool>,
    /// A grouped architecture without code is an error [default: false]
    pub error_on_missing_architecture: Option<bool>,
    /// What becomes of code of an architecture in no group, which is never packed: `error`, `warn`, or
    /// `drop` (a note only) [default: warn]
    pub unassigned_architectures: Option<UnassignedArchitectures>,
    /// What becomes of fat binaries that cannot be transformed: `error`, or `keep-fat`, which leaves
    /// them in their host package [default: error]
    pub untransformable: Option<Untransformable>,
}

impl ValidationOverrides {
    /// `base`, with what is said here.
    pub fn over(&self, base: Validation) -> Validation {
        let flag = |own: Option<bool>, base| own.unwrap_or(base);
        Validation {
            error_on_duplicate_device_code: flag(
                self.error_on_duplicate_device_code,
                base.error_on_duplicate_device_code,
            ),
            verify_generic_artifacts_match: flag(
                self.verify_generic_artifacts_match,
                base.verify_generic_artifacts_match,
            ),
            error_on_missing_architecture: flag(
                self.error_on_missing_architecture,
                base.error_on_missing_architecture,
            ),
            unassigned_architectures: self
                .unassigned_architectures
                .unwrap_or(base.unassigned_architectures),
            untransformable: self.untransformable.unwrap_or(base.untransformable),
        }
    }
}

/// Rules of one component, or of all components of one artifact. What is unset is as for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComponentRules {
    /// Which contradictions fail a run.
    pub validation: ValidationOverrides,
    /// Which of its archs are packed.
    pub architectures: ArchFilter,
}

/// A choice of archs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchFilter {
    /// The archs that are chosen from; all if unset.
    pub include: Option<BTreeSet<BaseArch>>,
    /// The archs that are not chosen.
    pub exclude: BTreeSet<BaseArch>,
}

impl ArchFilter {
    /// Whether `arch` is chosen.
    pub fn has(&self, arch: &BaseArch) -> bool {
        let included = self.include.as_ref().is_none_or(|archs| archs.contains(arch));
        included && !self.exclude.contains(arch)
    }
}

impl Config {
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
        self.rules_of(artifact, kind).fold(self.validation, over)
    }

    /// Whether fat binaries of an artifact that cannot be transformed stay as they are.
    pub fn keeps_fat(&self, artifact: &ArtifactName) -> bool {
        let validation = self.validation_of(&artifact.name, artifact.component);
        validation.untransformable == Untransformable::KeepFat
    }
}

/// What becomes of the programs in `<prefix>/bin`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Alternatives {
    /// They are found by their path only
    #[default]
    None,
    /// Each is `/usr/bin/<name>` by update-alternatives; the highest version wins
    Programs,
}
