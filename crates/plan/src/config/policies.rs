//! Choices that keys offer, and the keys that exist both for all components and for single ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares [`Validation`](super::Validation), [`ValidationOverrides`](super::ValidationOverrides) and
/// [`ComponentSchema`](super::ComponentSchema) from one list of keys. This macro writes the fields out in the
/// table of a component, where they have others beside them. Flattening would be shorter, but then serde
/// accepts unknown keys and loses positions.
macro_rules! validation_keys {
    (
        everywhere { $($(#[$($about:tt)*])* $key:ident: $type:ty = $default:expr,)* }
        of_components { $($of_components:tt)* }
    ) => {
        declared! {
            /// Contradictions that fail a run, and the treatment of code that cannot be packaged.
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
            #[serde(deny_unknown_fields, default)]
            pub struct Validation { $($(#[$($about)*])* pub $key: $type = $default,)* }
        }

        /// The keys of [`Validation`] for one component or artifact; `None` inherits the value.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the keys of the configuration say what they mean")]
        pub struct ValidationOverrides { $(pub $key: Option<$type>,)* }

        impl ValidationOverrides {
            /// Replaces the values of `base` that are set here.
            pub fn over(&self, base: Validation) -> Validation {
                Validation { $($key: self.$key.unwrap_or(base.$key),)* }
            }
        }

        /// Rules of one component.
        #[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct ComponentSchema {
            $(
                /// Override of the same key of `validation` [default: as there]
                pub $key: Option<$type>,
            )*
            $($of_components)*
        }

        impl ComponentSchema {
            /// The overrides of [`Validation`].
            pub fn validation(&self) -> ValidationOverrides {
                ValidationOverrides { $($key: self.$key,)* }
            }
        }
    };
}
pub(super) use validation_keys;

/// The treatment of code of an arch that is in no group. It is never packed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum UnassignedArchitectures {
    /// The run fails
    Error,
    /// The code is left out with a warning
    Warn,
    /// The code is left out with a note
    Drop,
}

/// The treatment of a fat binary that cannot be transformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Untransformable {
    /// The run fails
    Error,
    /// The binary stays in its host package unchanged, with all its device code
    KeepFat,
}

/// The names of the programs in `<prefix>/bin`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Alternatives {
    /// The path in the prefix only
    #[default]
    None,
    /// The path, and `/usr/bin/<name>` by update-alternatives; the highest version wins
    Programs,
}
