//! Choices that keys offer, and the keys that hold for all components and for single ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
