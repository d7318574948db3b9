//! The types of keys: tables with defaults, choices, one list or a map of lists, interpreters, and the keys
//! that exist both for all components and for single ones.

use std::borrow::Cow;

use rockpack_core::unique_keys::OrderedMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess};
use serde::{Deserialize, Serialize};

use super::packages::NamesByFormat;

/// Declares a table of keys. The value after `=`, or else the default of the type, is the default of a key: of serde,
/// the JSON Schema and `--help`.
macro_rules! key_table {
    ($(#[$($about:tt)*])* pub struct $name:ident {
        $($(#[$($of:tt)*])* pub $key:ident: $type:ty $(= $default:expr)?,)*
    }) => {
        $(#[$($about)*])*
        pub struct $name {
            $($(#[$($of)*])* pub $key: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $crate::config::values::default_of!($($default)?),)* }
            }
        }
    };
}
pub(super) use key_table;

macro_rules! default_of {
    () => {
        Default::default()
    };
    ($default:expr) => {
        ($default).into()
    };
}
pub(super) use default_of;

/// Declares [`Validation`](super::Validation) and [`ComponentSchema`](super::ComponentSchema) from one list of keys.
/// The table of a component has more fields. `serde(flatten)` would be shorter, but it accepts unknown keys and loses
/// positions.
macro_rules! validation_keys {
    (
        everywhere { $($(#[$($about:tt)*])* $key:ident: $type:ty = $default:expr,)* }
        of_components { $($of_components:tt)* }
    ) => {
        key_table! {
            /// Contradictions that fail a run, and the treatment of code that cannot be packaged.
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
            #[serde(deny_unknown_fields, default)]
            pub struct Validation { $($(#[$($about)*])* pub $key: $type = $default,)* }
        }

        /// Rules of one component.
        #[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct ComponentSchema {
            $(
                /// Overrides `validation` [default: as there]
                pub $key: Option<$type>,
            )*
            $($of_components)*
        }

        impl ComponentSchema {
            pub fn override_validation(&self, base: Validation) -> Validation {
                Validation { $($key: self.$key.unwrap_or(base.$key),)* }
            }
        }
    };
}
pub(super) use validation_keys;

/// Implements `Deserialize` with a visitor that expects `$expected` and has these methods. Untagged enums of serde
/// lose the error and its position.
macro_rules! deserialize_by_visitor {
    ($type:ty, $expected:expr, $($visits:tt)*) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct OwnVisitor;

                impl<'de> serde::de::Visitor<'de> for OwnVisitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expected)
                    }

                    $($visits)*
                }
                deserializer.deserialize_any(OwnVisitor)
            }
        }
    };
}
pub(crate) use deserialize_by_visitor;

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

/// One list for all, or a map of lists.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub enum ListOrMap<M> {
    /// One list for all.
    One(Vec<String>),
    /// A list for each.
    Each(M),
}

impl<M> Default for ListOrMap<M> {
    fn default() -> Self {
        Self::One(Vec::new())
    }
}

/// Reads a list, or a map of type `$map`; `$form` describes the map in errors.
macro_rules! list_or_map {
    ($map:ty, $form:literal) => {
        deserialize_by_visitor! { ListOrMap<$map>, concat!("a list of texts, or ", $form),
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(ListOrMap::One)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(map)).map(ListOrMap::Each)
            }
        }
    };
}

list_or_map! { NamesByFormat, "a map with the lists `deb` and `rpm`" }
list_or_map! { OrderedMap<Vec<String>>, "a map from distributions to lists" }

/// The value of an interpreter under `interpreters`: a replacement, or `false`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterpreterSchema {
    Path(String),
    /// `false`: scripts keep the interpreter, and packages get no dependency for it.
    Ignored,
}

deserialize_by_visitor! { InterpreterSchema, "the absolute path of an interpreter, or false",
    fn visit_str<E: Error>(self, path: &str) -> Result<InterpreterSchema, E> {
        if !path.starts_with('/')
            || path.len() == 1
            || path.contains(|c: char| c.is_whitespace() || c.is_control())
        {
            let path = path.escape_debug();
            let message = format!("`{path}` is not an absolute path without whitespace");
            return Err(E::custom(message));
        }
        Ok(InterpreterSchema::Path(path.to_owned()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<InterpreterSchema, E> {
        if value {
            return Err(E::custom("`true` is not allowed; give an absolute path, or false"));
        }
        Ok(InterpreterSchema::Ignored)
    }
}

impl JsonSchema for InterpreterSchema {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "InterpreterSchema".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "string", "pattern": r"^/\S+$" }, { "const": false }]
        })
    }
}
