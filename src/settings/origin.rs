//! Where values come from.

use std::fmt;

use rockpack_base::error::Faults;
use serde::Serialize;
use serde_json::Value;

use crate::config::{Config, Position, option_of};

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "origin")]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The naming scheme.
    Scheme,
    /// The packaging configuration.
    File(Position),
    /// An option of the command line.
    Flag {
        /// As it is written, e.g. `--version`.
        option: String,
    },
    /// A variable of the environment.
    Environment {
        /// Its name.
        variable: &'static str,
    },
    /// What the artifacts hold: known once they are taken apart.
    Proposed,
}

impl Origin {
    /// An option of the command line, by its key.
    pub fn flag(key: &str) -> Self {
        Self::Flag { option: option_of(key) }
    }

    /// The origin of the value at `keys` of the configuration, if somebody set it.
    pub(super) fn of_key(config: &Config, keys: &[&str]) -> Option<Self> {
        if config.is_given(keys) {
            Some(Self::flag(&keys.concat()))
        } else {
            config.position(keys).map(Self::File)
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Scheme => f.write_str("scheme"),
            Self::File(Position { file, line, column }) => {
                let file = file.as_deref().map(|file| file.display().to_string());
                write!(f, "{}:{line}:{column}", file.as_deref().unwrap_or("configuration"))
            }
            Self::Flag { option } => f.write_str(option),
            Self::Environment { variable } => f.write_str(variable),
            Self::Proposed => f.write_str("proposed"),
        }
    }
}

/// A setting and where its value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resolved {
    /// As the configuration or the command line has it: `validation.untransformable`, `--jobs`.
    pub key: String,
    /// Its value; null if there is none.
    pub value: Value,
    /// What it means that nobody set it, where no value says that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unset: Option<String>,
    /// Where that comes from.
    #[serde(flatten)]
    pub origin: Origin,
}

impl Resolved {
    pub(super) fn new(key: impl Into<String>, value: impl Into<Value>, origin: Origin) -> Self {
        Self { key: key.into(), value: value.into(), unset: None, origin }
    }

    /// Tells if the command line has it.
    pub(super) fn is_given(&self) -> bool {
        matches!(self.origin, Origin::Flag { .. })
    }
}

/// What is gathered while settings are resolved.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// What is wrong.
    pub faults: Faults,
    /// The values of keys and options that are not simply what the command line says.
    pub resolved: Vec<Resolved>,
}

impl Gathered {
    /// Notes the value of a key or option.
    pub fn note(&mut self, key: &str, value: impl Into<Value>, origin: Origin) {
        self.resolved.push(Resolved::new(key, value, origin));
    }

    /// Notes the value of a key that comes from `default` where nobody set it.
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
