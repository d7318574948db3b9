//! Requirements, as `Requires-Dist` has them, and their markers.
//!
//! ```text
//! name [extras] (versions) ; marker
//! name [extras] @ URL ; marker
//! torch-device-gfx942 == 2.9.0+rocm7.1; extra == "device-gfx942"
//! marker: (python_version > "3" and extra == "a") or os_name == "nt"
//! ```
//!
//! Source: the specification of dependency specifiers (PEP 508). Versions follow PEP 440. Markers are parsed
//! but not evaluated, because they depend on the user's machine; only their extras are returned.

use pep440_rs::{Operator, Version};

pub use pep440_rs::VersionSpecifiers;

use super::name::normalized;
use rockpack_core::error::{Error, Result};

/// The maximum length of a requirement in bytes. Its parsed form takes many times as much memory.
const MAX_LEN: usize = 64 << 10;

/// A dependency of one distribution on another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The normalized name.
    pub project: String,
    /// The requested extras of the distribution, by their normalized names.
    pub extras: Vec<String>,
    /// The accepted versions; empty means any.
    pub versions: VersionSpecifiers,
    pub condition: Condition,
    /// The condition as written; empty if the requirement always applies.
    pub marker: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    Always,
    /// Applies if this extra is requested; the name is normalized.
    Extra(String),
    /// Applies if a marker with other comparisons holds; these extras occur in it.
    Marker(Vec<String>),
}

impl Condition {
    pub fn extras(&self) -> &[String] {
        match self {
            Self::Always => &[],
            Self::Extra(extra) => std::slice::from_ref(extra),
            Self::Marker(extras) => extras,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() {
            return Some(Self::Always);
        }
        let extras = comparisons(text)?;
        if let [Some(extra)] = extras.as_slice() {
            return Some(Self::Extra(normalized(extra)));
        }
        Some(Self::Marker(extras.into_iter().flatten().map(normalized).collect()))
    }
}

impl Requirement {
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > MAX_LEN {
            let message = format!("a requirement has {} bytes, more than {MAX_LEN}", text.len());
            return Err(Error::malformed(message));
        }
        let (name, rest) = name(text.trim())
            .ok_or_else(|| no_requirement(text, "it does not begin with a name"))?;
        let (extras, rest) =
            extras(rest).ok_or_else(|| no_requirement(text, "its extras are not valid names"))?;
        let (bounds, marker) = match rest.strip_prefix('@') {
            // A URL may contain a semicolon.
            Some(rest) => {
                let rest = rest.trim_start();
                let (url, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                let marker = after.trim_start();
                if url.is_empty() || !marker.is_empty() && !marker.starts_with(';') {
                    return Err(no_requirement(text, "it has no URL after @"));
                }
                ("", marker.strip_prefix(';'))
            }
            None => match rest.split_once(';') {
                Some((bounds, marker)) => (bounds, Some(marker)),
                None => (rest, None),
            },
        };
        let versions =
            versions(bounds.trim()).map_err(|cause| no_requirement(text, &cause.to_string()))?;
        let parsed = match marker {
            Some(marker) if marker.trim().is_empty() => None,
            marker => Condition::parse(marker.unwrap_or_default()),
        };
        let marker = marker.unwrap_or_default().trim().to_owned();
        let condition =
            parsed.ok_or_else(|| no_requirement(text, "no valid marker follows the semicolon"))?;
        Ok(Self { project: normalized(name), extras, versions, condition, marker })
    }

    /// The only accepted version, if the specifier is a single `== VERSION`.
    pub fn exact(&self) -> Option<&Version> {
        match &*self.versions {
            [one] if *one.operator() == Operator::Equal => Some(one.version()),
            _ => None,
        }
    }

    pub fn accepts(&self, version: &Version) -> bool {
        self.versions.contains(version)
    }
}

fn no_requirement(text: &str, reason: &str) -> Error {
    let text = text.escape_debug();
    Error::malformed(format!("`{text}` is not a valid Python requirement: {reason}"))
}

/// A name at the start of `text`, and the text after it. Names begin and end with a letter or a digit.
pub(super) fn name(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    let is_end = |c: char| c.is_ascii_alphanumeric();
    let has_ends = name.starts_with(is_end) && name.ends_with(is_end);
    has_ends.then(|| (name, rest.trim_start()))
}

/// The names in optional brackets at the start of `text`, and the text after them.
fn extras(text: &str) -> Option<(Vec<String>, &str)> {
    let Some(inside) = text.strip_prefix('[') else { return Some((Vec::new(), text)) };
    let (inside, rest) = inside.split_once(']')?;
    let names = match inside.trim() {
        "" => Some(Vec::new()),
        inside => inside.split(',').map(extra).collect(),
    };
    Some((names?, rest.trim_start()))
}

fn extra(text: &str) -> Option<String> {
    let (name, rest) = name(text.trim())?;
    rest.is_empty().then(|| normalized(name))
}

fn versions(text: &str) -> Result<VersionSpecifiers, pep440_rs::VersionSpecifiersParseError> {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let list = inner.unwrap_or(text).trim_end();
    // pip accepts a trailing comma.
    list.strip_suffix(',').filter(|list| !list.trim().is_empty()).unwrap_or(list).parse()
}

const EXTRA: &str = "extra";

/// The variables of markers; names with a dot, and the last one, are obsolete.
const VARIABLES: &str = "extra extras dependency_groups implementation_name \
    implementation_version os_name platform_machine platform_python_implementation \
    platform_release platform_system platform_version python_full_version python_version \
    sys_platform os.name platform.machine platform.python_implementation platform.version \
    sys.platform python_implementation";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Text(&'a str),
    /// A variable or a keyword.
    Word(&'a str),
    /// An operator made of symbols, such as `==`.
    Symbols(&'a str),
    Open,
    Close,
}

/// For each comparison of a marker, the extra that it requires, if any; `None` if the marker is invalid.
fn comparisons(marker: &str) -> Option<Vec<Option<&str>>> {
    let tokens = tokens(marker)?;
    let mut rest = tokens.as_slice();
    let (mut found, mut depth) = (Vec::new(), 0usize);
    loop {
        while let [Token::Open, after @ ..] = rest {
            (rest, depth) = (after, depth + 1);
        }
        let (extra, after) = comparison(rest)?;
        found.push(extra);
        rest = after;
        while let [Token::Close, after @ ..] = rest {
            (rest, depth) = (after, depth.checked_sub(1)?);
        }
        match rest {
            [] => return (depth == 0).then_some(found),
            [Token::Word("and" | "or"), after @ ..] => rest = after,
            _ => return None,
        }
    }
}

/// Reads the comparison at the start of `tokens`, and returns the extra that it requires, if any, with the rest.
fn comparison<'a, 'b>(tokens: &'b [Token<'a>]) -> Option<(Option<&'a str>, &'b [Token<'a>])> {
    let (left, operator, right, after) = match tokens {
        [left, Token::Symbols(operator) | Token::Word(operator @ "in"), right, after @ ..] => {
            (left, *operator, right, after)
        }
        [left, Token::Word("not"), Token::Word("in"), right, after @ ..] => {
            (left, "not in", right, after)
        }
        _ => return None,
    };
    let is_known =
        ["<=", "<", "!=", "==", ">=", ">", "~=", "===", "in", "not in"].contains(&operator);
    let extra = match (left, operator, right) {
        (Token::Word(EXTRA), "==", Token::Text(extra))
        | (Token::Text(extra), "==", Token::Word(EXTRA)) => Some(*extra),
        _ => None,
    };
    (is_known && is_operand(left) && is_operand(right)).then_some((extra, after))
}

fn is_operand(token: &Token<'_>) -> bool {
    match token {
        Token::Text(_) => true,
        Token::Word(word) => VARIABLES.split(' ').any(|variable| variable == *word),
        Token::Symbols(_) | Token::Open | Token::Close => false,
    }
}

/// The tokens of a marker; `None` if a quote is not closed, or a character cannot occur in markers.
fn tokens(marker: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = marker.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '"' | '\'' => {
                let (text, after) = rest.strip_prefix(first)?.split_once(first)?;
                (Token::Text(text), after)
            }
            '(' => (Token::Open, rest.strip_prefix('(')?),
            ')' => (Token::Close, rest.strip_prefix(')')?),
            '=' | '<' | '>' | '!' | '~' => {
                let (symbols, after) = split_while(rest, |c| "=<>!~".contains(c));
                (Token::Symbols(symbols), after)
            }
            'a'..='z' => {
                let (word, after) =
                    split_while(rest, |c| c.is_ascii_lowercase() || "._".contains(c));
                (Token::Word(word), after)
            }
            _ => return None,
        };
        tokens.push(token);
        rest = after.trim_start();
    }
    Some(tokens)
}

fn split_while(text: &str, is_in: fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !is_in(c)).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(text: &str) -> String {
        let Requirement { project, extras, versions, condition, .. } =
            Requirement::parse(text).unwrap();
        let condition = match condition {
            Condition::Always => String::new(),
            Condition::Extra(extra) => format!("; {extra}"),
            Condition::Marker(extras) => format!("; marker {extras:?}"),
        };
        format!("{project}{extras:?} {versions}{condition}")
    }

    #[test]
    fn requirements_of_all_forms_are_read() {
        for (text, expected) in [
            ("numpy", "numpy[] "),
            ("Two.Pkg", "two-pkg[] "),
            ("Typing.Extensions>=4,<5", "typing-extensions[] >=4, <5"),
            ("flatbuffers (>=1.0)", "flatbuffers[] >=1.0"),
            ("a[x,Y_z] (==1.0)", r#"a["x", "y-z"] ==1.0"#),
            ("a [] == 1.0+rocm7.1", "a[] ==1.0+rocm7.1"),
            ("a === 1.0", "a[] ===1.0"),
            ("a (>1, <3,)", "a[] >1, <3"),
            ("a==1.0;extra=='Device_gfx942'", "a[] ==1.0; device-gfx942"),
            ("a == 1.0 ; \"device-all\" == extra", "a[] ==1.0; device-all"),
            ("x @ https://example.org/x;y.whl#a ; extra=='A.b'", "x[] ; a-b"),
            ("x@https://example.org/x.whl", "x[] "),
            ("a; extra == 'x' and os_name == 'nt'", r#"a[] ; marker ["x"]"#),
            ("r[libraries]==7.1; python_version > '3.8'", r#"r["libraries"] ==7.1; marker []"#),
            (
                "y; (python_version>'3' and 'a' == extra) or (extra == \"b\")",
                r#"y[] ; marker ["a", "b"]"#,
            ),
            ("z; platform_machine == 'extra == \"no\"'", "z[] ; marker []"),
            ("z; extra != 'x'", "z[] ; marker []"),
            ("z; sys_platform not in 'a b' or os.name in 'c'", "z[] ; marker []"),
        ] {
            assert_eq!(describe(text), expected, "{text}");
        }
        let marker = |text| Requirement::parse(text).unwrap().marker;
        assert_eq!(marker("a == 1 ; (os_name == 'nt') "), "(os_name == 'nt')");
        assert_eq!(marker("x @ https://example.org/x;y.whl ; extra == 'b'"), "extra == 'b'");
        assert_eq!(marker("a[b]"), "");
    }

    #[test]
    fn invalid_requirements_are_refused() {
        for text in [
            "",
            ";",
            "== 1",
            "x[y",
            "x[!]",
            "x[a,]",
            "x === ",
            "x (>=1",
            "é",
            "x y",
            "-x",
            "foo- == 1",
            "a @",
            "a @ url marker",
            "a;",
            "a == 1; nonsense",
            "a; extra == 'cut",
            "a; extra = 'x'",
            "a; (extra == 'x'",
            "a; extra == 'x')",
            "a; extra == 'x' and",
            "a; extra == 'x' extra == 'y'",
            "a; extra == é",
            "a == abc",
            "a ,",
            "a >1,,",
        ] {
            assert!(Requirement::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn one_version_is_exact() {
        assert_eq!(exact_version("x == 1.0"), Some("1.0".to_owned()));
        for text in ["x == 1.0.*", "x >= 1.0", "x", "x == 1.0, != 2", "x === 1.0"] {
            assert_eq!(exact_version(text), None, "{text}");
        }
        let pin = Requirement::parse("x == 1.0").unwrap();
        assert!(pin.accepts(&"1.0+rocm7.1".parse().unwrap()));
    }

    fn exact_version(text: &str) -> Option<String> {
        Requirement::parse(text).unwrap().exact().map(ToString::to_string)
    }
}
