//! The requirements of a Python package: lines `Requires-Dist` of METADATA.
//!
//! ```text
//! amd-torch-device-gfx942 == 2.13.0 ; extra == "device-gfx942"
//! name [extras] (versions) | name @ URL ; marker
//! ```
//!
//! Source: the specification of dependency specifiers (PEP 508). Markers are not evaluated: they depend on
//! the machine of the user. Only the extras that they compare with are told.

use pep440_rs::{Operator, VersionSpecifiers};

use crate::error::{Error, Result};
use crate::formats::wheel::{Version, normalized};

/// A requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The normalized name of the required project.
    pub project: String,
    /// The versions that it may have; empty if any.
    pub versions: VersionSpecifiers,
    /// The extras that ask for it; empty if it is required in any case.
    pub extras: Vec<String>,
}

impl Requirement {
    /// Parses one line.
    pub fn parse(line: &str) -> Result<Self> {
        let (required, marker) = line.split_once(';').unwrap_or((line, ""));
        let required = required.trim();
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let end = required.find(|c| !is_name(c)).unwrap_or(required.len());
        let (name, rest) = required.split_at(end);
        if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return Err(no_requirement(line));
        }
        let rest = rest.trim_start();
        let behind_extras = match rest.strip_prefix('[') {
            Some(extras) => extras.split_once(']').ok_or_else(|| no_requirement(line))?.1,
            None => rest,
        };
        Ok(Self {
            project: normalized(name),
            versions: versions(behind_extras.trim()).map_err(|cause| {
                let error = no_requirement(line);
                error.cause(cause)
            })?,
            extras: extras(marker),
        })
    }

    /// The one version that it takes, if it is `== VERSION` alone.
    pub fn exact(&self) -> Option<&Version> {
        match &*self.versions {
            [one] if *one.operator() == Operator::Equal => Some(one.version()),
            _ => None,
        }
    }

    /// Whether it takes the version.
    pub fn takes(&self, version: &Version) -> bool {
        self.versions.contains(version)
    }
}

/// The versions of `text`, which may be in parentheses. A URL says nothing of versions.
fn versions(text: &str) -> Result<VersionSpecifiers, pep440_rs::VersionSpecifiersParseError> {
    if text.starts_with('@') {
        return Ok(VersionSpecifiers::empty());
    }
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    inner.unwrap_or(text).parse()
}

fn no_requirement(line: &str) -> Error {
    Error::malformed(format!("`{}` is no requirement of a Python package", line.escape_debug()))
}

/// A part of a marker.
#[derive(Debug, PartialEq)]
enum Token<'a> {
    /// Text in quotes.
    Text(&'a str),
    /// A name or an operator.
    Word(&'a str),
}

/// The extras that a marker compares with, `extra == "…"` or the other way round.
fn extras(marker: &str) -> Vec<String> {
    let tokens = tokens(marker);
    let mut extras = Vec::new();
    for three in tokens.windows(3) {
        if let [Token::Word("extra"), Token::Word("=="), Token::Text(name)]
        | [Token::Text(name), Token::Word("=="), Token::Word("extra")] = three
        {
            extras.push(normalized(name));
        }
    }
    extras
}

fn tokens(marker: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = marker.trim_start();
    while let Some(first) = rest.chars().next() {
        if matches!(first, '"' | '\'') {
            let inside = rest.get(1..).unwrap_or_default();
            let (text, behind) = inside.split_once(first).unwrap_or((inside, ""));
            tokens.push(Token::Text(text));
            rest = behind.trim_start();
            continue;
        }
        let class = class(first);
        let end = rest.find(|c| self::class(c) != class).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        tokens.push(Token::Word(word));
        rest = behind.trim_start();
    }
    tokens
}

/// Kinds of characters: those of names, those of operators, and others, which separate.
fn class(c: char) -> u8 {
    match c {
        _ if c.is_ascii_alphanumeric() || "_.".contains(c) => 0,
        '=' | '<' | '>' | '!' | '~' => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> (String, String, Vec<String>) {
        let it = Requirement::parse(line).unwrap();
        (it.project, it.versions.to_string(), it.extras)
    }

    #[test]
    fn lines_of_all_forms_are_read() {
        for (line, project, versions, extras) in [
            ("numpy", "numpy", "", &[][..]),
            ("Typing.Extensions>=4,<5", "typing-extensions", ">=4, <5", &[]),
            ("flatbuffers (>=1.0)", "flatbuffers", ">=1.0", &[]),
            ("rocm[libraries,devel]==7.1; python_version > '3.8'", "rocm", "==7.1", &[]),
            ("x @ https://example.org/x.whl#a ; extra=='A.b'", "x", "", &["a-b"]),
            (
                "amd-t-device-gfx942 == 2.0+rocm7.1; extra == \"device-gfx942\"",
                "amd-t-device-gfx942",
                "==2.0+rocm7.1",
                &["device-gfx942"],
            ),
            ("y; (python_version>'3' and 'a' == extra) or extra == \"b\"", "y", "", &["a", "b"]),
            ("z; platform_machine == 'extra == \"no\"'", "z", "", &[]),
            ("z; extra == \"cut", "z", "", &["cut"]),
        ] {
            let extras = extras.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(parsed(line), (project.into(), versions.into(), extras), "{line}");
        }
    }

    #[test]
    fn what_is_no_requirement_is_refused() {
        for line in ["", ";", "== 1", "x[y", "x === ", "x (>=1", "é", "x y"] {
            assert!(Requirement::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn one_version_is_exact() {
        let exact = |line: &str| Requirement::parse(line).unwrap().exact().map(ToString::to_string);
        assert_eq!(exact("x == 1.0"), Some("1.0".to_owned()));
        assert_eq!(exact("x == 1.0.*"), None);
        assert_eq!(exact("x >= 1.0"), None);
        assert_eq!(exact("x"), None);
        let pin = Requirement::parse("x == 1.0").unwrap();
        assert!(pin.takes(&"1.0+rocm7.1".parse().unwrap()));
    }
}
