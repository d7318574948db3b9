//! Reads a paragraph of fields: a control file, one of an index, `Release`.
//!
//! dpkg and apt tell names of fields apart without case, so that `depends` is `Depends`, and a
//! second one of them. Refused: a second paragraph, comments, a field twice.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Deref;

use crate::error::{Error, Kind, Result};

/// The name of a field as it is written. Names that differ in case are equal.
#[derive(Debug, Clone)]
pub struct FieldName(String);

impl FieldName {
    fn folded(&self) -> impl Iterator<Item = u8> {
        self.0.bytes().map(|byte| byte.to_ascii_lowercase())
    }
}

impl Deref for FieldName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Ord for FieldName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.folded().cmp(other.folded())
    }
}

impl PartialOrd for FieldName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for FieldName {
    fn eq(&self, other: &Self) -> bool {
        self.eq_ignore_ascii_case(other)
    }
}

impl Eq for FieldName {}

/// Fields that were read: name → value, continuation lines joined by line feeds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(BTreeMap<FieldName, String>);

impl Fields {
    /// The value of a field, however its name is written.
    pub fn get(&self, name: &str) -> Option<&String> {
        self.0.get(&FieldName(name.to_owned()))
    }

    /// The names, in the order of their letters.
    pub fn names(&self) -> impl Iterator<Item = &FieldName> {
        self.0.keys()
    }

    /// Names as they are written, with their values.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, value)| (name.0.clone(), value.clone())).collect()
    }
}

/// Parses one paragraph.
pub fn parse(text: &str) -> Result<Fields> {
    let mut fields = BTreeMap::new();
    let mut current: Option<FieldName> = None;
    for line in text.trim_end_matches('\n').split('\n') {
        if let Some(continuation) = line.strip_prefix([' ', '\t']) {
            let name = current.as_ref().ok_or_else(|| fault("begins with a blank".to_owned()))?;
            let value: &mut String = fields.entry(name.clone()).or_default();
            value.push('\n');
            value.push_str(if continuation == "." { "" } else { continuation });
            continue;
        }
        let (name, value) = line
            .split_once(':')
            .filter(|(name, _)| !name.is_empty() && !name.contains(char::is_whitespace))
            .ok_or_else(|| fault(format!("`{}` is no field", line.escape_debug())))?;
        let name = FieldName(name.to_owned());
        if fields.insert(name.clone(), value.trim().to_owned()).is_some() {
            return Err(fault(format!("field {} appears twice", &*name)));
        }
        current = Some(name);
    }
    Ok(Fields(fields))
}

pub(super) fn fault(message: String) -> Error {
    Error::new(Kind::Malformed, message).structure("control file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_without_case() {
        let fields = parse("Package: x\ndepends: y\n").unwrap();
        assert_eq!(fields.get("Depends").unwrap(), "y");
        assert_eq!(fields.get("PACKAGE").unwrap(), "x");
        assert_eq!(fields.get("Depend"), None);
        let written: Vec<&str> = fields.names().map(|name| &**name).collect();
        assert_eq!(written, ["depends", "Package"]);
        assert_eq!(fields, parse("DEPENDS: y\npackage: x\n").unwrap());
        let error = parse("Depends: x\nVersion: 1\ndepends: y\n").unwrap_err();
        assert!(error.to_string().contains("field depends appears twice"), "{error}");
    }

    #[test]
    fn what_is_no_single_paragraph_is_refused() {
        for text in ["", " x", "A: 1\nA: 2", "A: 1\n\nB: 2", "# c", "A 1"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
