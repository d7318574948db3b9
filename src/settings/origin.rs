//! The origins of values.

use derive_more::Display;
use rockpack_core::error::Faults;
use serde::Serialize;
use serde_json::Value;

use rockpack_plan::config::{Config, Position, option_of};

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Display)]
#[display(rename_all = "lowercase")]
#[serde(rename_all = "lowercase", tag = "origin")]
pub enum Origin {
    /// A default, because nothing sets the value.
    Default,
    /// The naming scheme.
    Scheme,
    /// The packaging configuration.
    File(Position),
    /// An option of the command line.
    Flag {
        /// The option with its dashes, e.g. `--version`.
        option: String,
    },
    /// A variable of the environment.
    Environment {
        /// The name.
        variable: &'static str,
    },
    /// The contents of the artifacts, which are known only once they are read.
    Proposed,
}

impl Origin {
    /// The option for a key.
    pub fn flag(key: &str) -> Self {
        Self::Flag { option: option_of(key) }
    }

    /// The origin of the value at `keys`; `None` if neither command line nor configuration sets it.
    pub(super) fn of_key(config: &Config, keys: &[&str]) -> Option<Self> {
        if config.is_given(keys) {
            Some(Self::flag(&keys.concat()))
        } else {
            config.position(keys).map(Self::File)
        }
    }
}

/// A setting with its value and origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resolved {
    /// The key or option: `validation.untransformable`, `--jobs`.
    pub key: String,
    /// The value; null if unset.
    pub value: Value,
    /// The meaning of an unset value, if the value cannot express it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unset: Option<String>,
    /// The origin of the value.
    #[serde(flatten)]
    pub origin: Origin,
}

impl Resolved {
    pub(super) fn new(key: impl Into<String>, value: impl Into<Value>, origin: Origin) -> Self {
        Self { key: key.into(), value: value.into(), unset: None, origin }
    }

    /// Tells whether the command line sets it.
    pub(super) fn is_given(&self) -> bool {
        matches!(self.origin, Origin::Flag { .. })
    }
}

/// Results of resolving settings, apart from the settings themselves.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// The faults so far.
    pub faults: Faults,
    /// Values of keys and options that differ from the text on the command line.
    pub resolved: Vec<Resolved>,
}

impl Gathered {
    /// Notes the value of a key or option.
    pub fn note(&mut self, key: &str, value: impl Into<Value>, origin: Origin) {
        self.resolved.push(Resolved::new(key, value, origin));
    }

    /// Notes the value of a key; `default` is its origin if nothing sets it.
    pub fn note_key(
        &mut self,
        config: &Config,
        keys: &[&str],
        value: impl Into<Value>,
        default: Origin,
    ) {
        let origin = Origin::of_key(config, keys).unwrap_or(default);
        self.note(&keys.join("."), value, origin);
    }
}
