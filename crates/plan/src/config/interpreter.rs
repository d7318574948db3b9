//! The value of an interpreter in the configuration: a replacement, or `false`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// Pattern of an absolute path without blanks.
const PATH_PATTERN: &str = r"^/\S+$";

/// The value of an interpreter under `interpreters`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterpreterSchema {
    /// The absolute path of its replacement in scripts.
    Path(String),
    /// `false`: scripts keep the interpreter, and packages get no dependency for it.
    Ignored,
}

impl InterpreterSchema {
    /// The path of the replacement, if there is one.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Path(path) => Some(path),
            Self::Ignored => None,
        }
    }
}

impl<'de> Deserialize<'de> for InterpreterSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InterpreterVisitor)
    }
}

/// Reads the schema by hand, because serde's untagged enums lose the fault.
struct InterpreterVisitor;

impl Visitor<'_> for InterpreterVisitor {
    type Value = InterpreterSchema;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the absolute path of an interpreter, or false")
    }

    fn visit_str<E: Error>(self, path: &str) -> Result<InterpreterSchema, E> {
        if !path.starts_with('/')
            || path.len() == 1
            || path.contains(|c: char| c.is_whitespace() || c.is_control())
        {
            let message = format!("`{}` is no absolute path without blanks", path.escape_debug());
            return Err(E::custom(message));
        }
        Ok(InterpreterSchema::Path(path.to_owned()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<InterpreterSchema, E> {
        if value {
            return Err(E::custom("`true` names no interpreter; it is a path, or false"));
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
            "anyOf": [{ "type": "string", "pattern": PATH_PATTERN }, { "const": false }]
        })
    }
}
