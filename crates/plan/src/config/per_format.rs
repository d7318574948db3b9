//! One value for both formats, or a value for each.

use rockpack_core::error::{Error, Kind, Result};
use rockpack_package::Format;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess};
use serde::{Deserialize, Serialize};

use super::values::deserialize_by_visitor;

/// One value for both formats, or a value for each. As an option: `VALUE`, or `deb=VALUE,rpm=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PerFormat {
    /// One value for both.
    One(String),
    /// A value for each.
    Each(FormatValues),
}

/// A value for each format.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FormatValues {
    /// The value for `.deb`
    pub deb: Option<String>,
    /// The value for `.rpm`
    pub rpm: Option<String>,
}

impl PerFormat {
    /// The value for `format`. Fails if only the other format has one.
    pub fn value(&self, format: Format) -> Result<&str> {
        let value = match self {
            Self::One(value) => Some(value),
            Self::Each(values) => format.select(&values.deb, &values.rpm).as_ref(),
        };
        value.map(String::as_str).ok_or_else(|| {
            let message = format!("has no value for {format}");
            let hint = format!("add one for {format}, or leave the format out with --format");
            Error::new(Kind::Config, message).hint(hint)
        })
    }
}

/// Reads the text of an option. A text that does not assign each format at most one value is a value itself.
impl From<&str> for PerFormat {
    fn from(text: &str) -> Self {
        let mut values = FormatValues::default();
        for part in text.split(',') {
            let (place, value) = match part.split_once('=') {
                Some(("deb", value)) => (&mut values.deb, value),
                Some(("rpm", value)) => (&mut values.rpm, value),
                _ => return Self::One(text.to_owned()),
            };
            if place.replace(value.to_owned()).is_some() {
                return Self::One(text.to_owned());
            }
        }
        Self::Each(values)
    }
}

deserialize_by_visitor! { PerFormat, "a text, or a map with the texts `deb` and `rpm`",
    fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<PerFormat, E> {
        Ok(text.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<PerFormat, A::Error> {
        FormatValues::deserialize(MapAccessDeserializer::new(map)).map(PerFormat::Each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Syntax};

    fn values(given: &PerFormat) -> [Option<&str>; 2] {
        Format::ALL.map(|format| given.value(format).ok())
    }

    #[test]
    fn a_text_is_one_value_or_assigns_one_to_each_format() {
        for (text, expected) in [
            ("7.1.0", [Some("7.1.0"); 2]),
            ("deb=1,rpm=2", [Some("1"), Some("2")]),
            ("rpm=2,deb=1", [Some("1"), Some("2")]),
            ("rpm=a=b", [None, Some("a=b")]),
            ("/a=b,c", [Some("/a=b,c"); 2]),
            ("deb=1,deb=2", [Some("deb=1,deb=2"); 2]),
            ("deb=1,2", [Some("deb=1,2"); 2]),
        ] {
            assert_eq!(values(&text.into()), expected, "{text}");
        }
        let error = PerFormat::from("rpm=2").value(Format::Deb).unwrap_err().to_string();
        assert!(error.contains("has no value for deb"), "{error}");
    }

    #[test]
    fn a_configuration_has_a_text_or_a_map() {
        for (toml, expected) in [
            ("version = '7.1.0'", [Some("7.1.0"); 2]),
            ("version = { deb = '1', rpm = '2' }", [Some("1"), Some("2")]),
            ("version.rpm = '2'", [None, Some("2")]),
        ] {
            let config = Config::parse(toml, Syntax::Toml).unwrap();
            assert_eq!(values(&config.keys.version), expected, "{toml}");
        }
        for (toml, expected) in [
            ("version = 7", "a text, or a map with the texts `deb` and `rpm`"),
            ("version = { dep = '1' }", "did you mean `deb`?"),
        ] {
            let error = Config::parse(toml, Syntax::Toml).unwrap_err();
            let shown = format!("{error} {}", error.hint_text().unwrap_or_default());
            assert!(shown.contains(expected) && shown.contains("line 1"), "{shown}");
        }
    }
}
