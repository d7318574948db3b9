//! Rules that contradictions are judged by, for all components or for one.

use std::collections::BTreeSet;

use rockpack_base::gfx::BaseArch;
use rockpack_base::tree::ArtifactName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::configuration::Config;
use super::keys::{Validation, ValidationOverrides};
use crate::input::artifact::ComponentKind;

/// Declares [`Validation`](super::Validation), [`ValidationOverrides`](super::ValidationOverrides)
/// and [`ComponentSchema`](super::ComponentSchema) from one list of keys. In the tables of components
/// the keys stand beside others: serde refuses unknown keys, with their place, only where it flattens
/// nothing, so the fields are written out there, and by this.
macro_rules! validation_keys {
    (
        everywhere { $($(#[$($about:tt)*])* $key:ident: $type:ty = $default:expr,)* }
        of_components { $($of_components:tt)* }
    ) => {
        declared! {
            /// Which contradictions fail a run, and what becomes of what cannot be packaged.
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
            #[serde(deny_unknown_fields, default)]
            pub struct Validation { $($(#[$($about)*])* pub $key: $type = $default,)* }
        }

        /// What is said of [`Validation`] in one place; what is unset is as elsewhere.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the keys of the configuration say what they mean")]
        pub struct ValidationOverrides { $(pub $key: Option<$type>,)* }

        impl ValidationOverrides {
            /// `base`, with what is said here.
            pub fn over(&self, base: Validation) -> Validation {
                Validation { $($key: self.$key.unwrap_or(base.$key),)* }
            }
        }

        /// Rules of one component.
        #[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct ComponentSchema {
            $(
                /// As in `validation` [default: as there]
                pub $key: Option<$type>,
            )*
            $($of_components)*
        }

        impl ComponentSchema {
            /// What it says of [`Validation`].
            pub fn validation(&self) -> ValidationOverrides {
                ValidationOverrides { $($key: self.$key,)* }
            }
        }
    };
}
pub(super) use validation_keys;

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
        self.rules_of(artifact, kind).fold(self.keys.validation, over)
    }

    /// Whether fat binaries of an artifact that cannot be transformed stay as they are.
    pub fn keeps_fat(&self, artifact: &ArtifactName) -> bool {
        let validation = self.validation_of(&artifact.name, artifact.kind);
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
