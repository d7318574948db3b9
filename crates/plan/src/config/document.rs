//! The text of a configuration, the positions of values in it, and the known names that mistyped words in it
//! mean.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use derive_more::Display;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::{self, BaseArch};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use strsim::{damerau_levenshtein, jaro_winkler};
use toml::de::{DeTable, DeValue};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Syntax {
    #[default]
    Json,
    Toml,
}

#[derive(Debug, Clone, Default)]
pub struct ConfigDocument {
    file: Option<PathBuf>,
    text: String,
    syntax: Syntax,
    given: BTreeSet<String>,
}

pub fn option_of(key: &str) -> String {
    format!("--{}", key.replace('_', "-"))
}

/// The position of a value. Line and column count from 1, the column in characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Display)]
#[display(
    "{}:{line}:{column}",
    file.as_deref().map_or("configuration".into(), Path::to_string_lossy)
)]
pub struct Position {
    pub file: Option<PathBuf>,
    pub line: usize,
    pub column: usize,
}

impl ConfigDocument {
    pub fn new(file: Option<PathBuf>, text: String, syntax: Syntax) -> Self {
        Self { file, text, syntax, given: BTreeSet::new() }
    }

    /// Parses the text. Errors have line, column, `hint` and, for a mistyped key, the nearest known key.
    pub fn decode<T: DeserializeOwned>(&self, hint: &str) -> Result<T> {
        let decoded = match self.syntax {
            Syntax::Json => serde_json::from_str(&self.text).map_err(|error| {
                let text = error.to_string();
                let message = text.split(" at line ").next().unwrap_or(&text);
                let (line, column) = (error.line(), error.column());
                self.at_line(Some(Position { file: None, line, column }), message)
            }),
            Syntax::Toml => toml::from_str(&self.text).map_err(|error| {
                let at = error.span().map(|span| self.position_of(span.start));
                self.at_line(at, error.message())
            }),
        };
        decoded.map_err(|error| error.hint(hint))
    }

    pub fn give(&mut self, key: &str) {
        self.given.insert(key.to_owned());
    }

    pub fn is_given(&self, keys: &[&str]) -> bool {
        matches!(keys, [key] if self.given.contains(*key))
    }

    /// The position of the value at `keys`; `None` if the text lacks it or the command line overrides it.
    pub fn position(&self, keys: &[&str]) -> Option<Position> {
        if self.is_given(keys) {
            return None;
        }
        let offset = match self.syntax {
            Syntax::Json => offset_in_json(&self.text, keys),
            Syntax::Toml => offset_in_toml(&self.text, keys),
        };
        offset.map(|offset| self.position_of(offset))
    }

    fn position_of(&self, offset: usize) -> Position {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before[start..].chars().count() + 1;
        Position { file: self.file.clone(), line, column }
    }

    /// An error about the value at `keys` (`["architecture_groups", "gfx110X"]`; list elements by index),
    /// with file, line and column if the text has the value.
    pub fn fault(&self, keys: &[&str], message: impl Into<String>) -> Error {
        if self.is_given(keys) {
            return Error::new(Kind::Usage, message).structure(option_of(&keys.concat()));
        }
        let message = match keys {
            [] => message.into(),
            keys => format!("{}: {}", keys.join("."), message.into()),
        };
        self.at_line(self.position(keys), &message)
    }

    /// The `error` about the value at `keys` with its position and hint.
    pub fn located(&self, keys: &[&str], error: &Error) -> Error {
        self.fault(keys, error.message()).hint_if(error.hint_text())
    }

    fn at_line(&self, at: Option<Position>, message: &str) -> Error {
        let mut error = Error::new(Kind::Config, message);
        if let Some(file) = &self.file {
            error = error.file(file);
        }
        if let Some(Position { line, column, .. }) = at {
            error = error.structure(format!("line {line}, column {column}"));
        }
        error.hint_if(nearest_key(message).map(|key| format!("did you mean `{key}`?")))
    }
}

/// Finds the value at `keys`. Its text is borrowed from `text`, so the difference of the addresses is its
/// offset.
fn offset_in_json(text: &str, keys: &[&str]) -> Option<usize> {
    let mut part = text;
    for key in keys {
        let value: &RawValue = match key.parse::<usize>() {
            Ok(index) if part.trim_start().starts_with('[') => {
                let list: Vec<&RawValue> = serde_json::from_str(part).ok()?;
                list.get(index).copied()?
            }
            _ => {
                let map: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(part).ok()?;
                map.get(*key).copied()?
            }
        };
        part = value.get();
    }
    part.as_ptr().addr().checked_sub(text.as_ptr().addr())
}

fn offset_in_toml(text: &str, keys: &[&str]) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let (first, rest) = keys.split_first()?;
    let mut value = table.get_ref().get(*first)?;
    for key in rest {
        value = match value.get_ref() {
            DeValue::Table(table) => table.get(*key)?,
            DeValue::Array(list) => list.get(key.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value.span().start)
}

/// The key nearest to `x` in serde's message ``unknown field `x`, expected one of `a`, `b` ``.
fn nearest_key(message: &str) -> Option<&str> {
    let mut quoted = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    nearest(unknown, quoted)
}

/// The name in `known` that is nearest to `word`, at most one edit away per three characters. Of names at the same
/// distance, the one with the longest common prefix.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let found = known.into_iter().min_by(|one, other| {
        let by_distance = damerau_levenshtein(word, one).cmp(&damerau_levenshtein(word, other));
        let by_beginning = by_distance.then_with(|| shared(word, other).cmp(&shared(word, one)));
        by_beginning.then_with(|| jaro_winkler(word, other).total_cmp(&jaro_winkler(word, one)))
    })?;
    (damerau_levenshtein(word, found) <= found.len().div_ceil(3)).then_some(found)
}

fn shared(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

/// A suggestion for `word`, which is not a known arch: the members of the arch family it names, or the
/// nearest arch.
pub fn arch_hint(word: &str) -> Option<String> {
    let members: Vec<String> =
        gfx::members_of_arch_family(word).iter().map(|arch| format!("`{arch}`")).collect();
    if !members.is_empty() {
        return Some(format!("name the archs of this family one by one: {}", members.join(", ")));
    }
    let lowered = word.to_lowercase();
    nearest_arch(&lowered).map(|arch| format!("did you mean `{arch}`?"))
}

pub fn nearest_arch(word: &str) -> Option<BaseArch> {
    let names: Vec<String> = gfx::known_archs().map(|arch| arch.to_string()).collect();
    nearest(word, names.iter().map(String::as_str))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_near_enough() {
        let known = ["rocm-blas", "rocm-sparse", "rocm"];
        assert_eq!(nearest("rocm-bals", known), Some("rocm-blas"));
        assert_eq!(nearest("hipblaslt", known), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn archs_are_meant_by_their_digits_and_families_by_their_members() {
        for (word, expected) in [
            ("gfx10300x", "did you mean `gfx1030`?"),
            ("gfx11510x", "did you mean `gfx1151`?"),
            ("gfx1203", "did you mean `gfx1200`?"),
            ("gfx1130", "did you mean `gfx1103`?"),
            ("GFX1100", "did you mean `gfx1100`?"),
            ("gfx1250-strct", "did you mean `gfx1250-strict`?"),
            ("gfx11-genric", "did you mean `gfx11-generic`?"),
            ("amdgcnspriv", "did you mean `amdgcnspirv`?"),
            ("gfx120X", "name the archs of this family one by one: `gfx1200`, `gfx1201`"),
        ] {
            assert_eq!(arch_hint(word).as_deref(), Some(expected), "{word}");
        }
        assert_eq!(arch_hint("rdna3"), None);
    }
}
