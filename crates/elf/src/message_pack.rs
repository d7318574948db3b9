//! MessagePack maps with string keys, as kernel archives, manifests and markers use them.
//!
//! This module decodes into open values with a ceiling, and reads fields with errors that name the field.
//! Refused: keys other than strings, keys that occur twice (loaders disagree on which one counts), strings
//! that are not UTF-8, nesting deeper than `DEPTH_LIMIT`, and bytes after the value.

use std::collections::BTreeMap;

use rmpv::Value;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Place, Result};

/// Deepest nesting that is decoded: the formats need five levels, and a recursive decoder without a limit can
/// exhaust its stack.
const DEPTH_LIMIT: usize = 32;

/// Decodes the one value that fills `content`, of at most `limit` bytes.
pub(super) fn decode(content: &Content, limit: u64, structure: &str) -> Result<Value> {
    let bytes = content.read_vec(0..content.len(), limit, structure)?;
    let mut rest = bytes.as_slice();
    let decoded = rmpv::decode::read_value_with_max_depth(&mut rest, DEPTH_LIMIT);
    let position = (bytes.len() - rest.len()) as u64;
    let fault = match decoded {
        Ok(value) if !is_text(&value) => {
            let fault = Error::malformed("has a string that is not UTF-8");
            return Err(fault.structure(structure).at(&content.place(0)));
        }
        Ok(value) if rest.is_empty() => return Ok(value),
        Ok(_) => Error::malformed(format!("{} bytes follow its end", rest.len())),
        Err(cause) if rest.is_empty() => Error::truncated("ends too early").cause(cause),
        Err(cause) => Error::malformed("is not a MessagePack value").cause(cause),
    };
    Err(fault.structure(structure).at(&content.place(position)))
}

/// Whether all strings in `value` are UTF-8: rmpv also decodes others, and writes them as binary data.
pub fn is_text(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_str(),
        Value::Array(items) => items.iter().all(is_text),
        Value::Map(items) => items.iter().all(|(key, value)| is_text(key) && is_text(value)),
        _ => true,
    }
}

/// Encodes `value` in its shortest form.
pub fn encode(value: &Value) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, value)
        .map_err(|cause| Error::bug("a value cannot be encoded as MessagePack").cause(cause))?;
    Ok(bytes)
}

/// A map in the order of `pairs`.
pub(super) fn map(pairs: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::Map(pairs.into_iter().map(|(k, v)| (k.into(), v)).collect())
}

pub(super) struct MapFields<'a> {
    structure: String,
    place: Place,
    by_name: BTreeMap<&'a str, &'a Value>,
}

impl<'a> MapFields<'a> {
    /// Reads the fields of `value`, which is `structure` and lies at `place`.
    pub(super) fn of(value: &'a Value, structure: &str, place: &Place) -> Result<Self> {
        let mut fields = Self {
            structure: structure.to_owned(),
            place: place.clone(),
            by_name: BTreeMap::new(),
        };
        let Value::Map(pairs) = value else {
            return Err(fields.fault("is not a map"));
        };
        for (key, value) in pairs {
            let Some(name) = key.as_str() else {
                return Err(fields.fault(format!("has the key {key}, which is not a string")));
            };
            if fields.by_name.insert(name, value).is_some() {
                return Err(fields.fault(format!("has the key `{name}` twice")));
            }
        }
        Ok(fields)
    }

    pub(super) fn fault(&self, message: impl Into<String>) -> Error {
        Error::malformed(message).structure(self.structure.clone()).at(&self.place)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.by_name.iter().map(|(name, value)| (*name, *value))
    }

    /// The field `name`; `None` if the map lacks it.
    pub(super) fn optional(&self, name: &str) -> Option<&'a Value> {
        self.by_name.get(name).copied()
    }

    pub(super) fn required(&self, name: &str) -> Result<&'a Value> {
        self.optional(name).ok_or_else(|| self.fault(format!("has no field `{name}`")))
    }

    pub(super) fn text(&self, name: &str) -> Result<&'a str> {
        let value = self.required(name)?;
        value
            .as_str()
            .ok_or_else(|| self.fault(format!("its field `{name}` is {value}, not a string")))
    }

    /// The field `name`, a number of at least 0.
    pub(super) fn number(&self, name: &str) -> Result<u64> {
        let value = self.required(name)?;
        value
            .as_u64()
            .ok_or_else(|| self.fault(format!("its field `{name}` is {value}, not a count")))
    }

    pub(super) fn list(&self, name: &str) -> Result<&'a [Value]> {
        match self.required(name)? {
            Value::Array(items) => Ok(items),
            value => Err(self.fault(format!("its field `{name}` is {value}, not an array"))),
        }
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>> {
        let texts: Option<Vec<String>> =
            self.list(name)?.iter().map(|item| item.as_str().map(str::to_owned)).collect();
        texts.ok_or_else(|| {
            self.fault(format!("its field `{name}` holds values other than strings"))
        })
    }
}
