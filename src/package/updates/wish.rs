//! Parses the wishes that packages have of others: alternatives of a `.deb`, boolean dependencies of an
//! `.rpm`.

use std::borrow::Cow;
use std::fmt;

use rockpack_base::formats::rpm_md::is_unlisted_path;

use super::super::bounds::Bound;
use super::super::{Comparison, Format};

/// Deepest nesting of parentheses that is parsed; the limit of rpm is similar.
const DEPTH: usize = 16;

/// The wish of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish<'a> {
    /// A package or capability.
    One(Bound<'a>),
    /// Any of these: `a | b` of dpkg, `(a or b)` of rpm.
    Any(Vec<Wish<'a>>),
    /// All of these: `(a and b)`.
    All(Vec<Wish<'a>>),
    /// The first one if the second is met, else the third: `(a if b)`, `(a if b else c)`.
    If(Vec<Wish<'a>>),
    /// A wish that is not judged: paths in `primary`, other architectures, `with`, `without` and `unless`.
    Unknown,
}

impl<'a> Wish<'a> {
    /// Parses a relation as a receipt records it: `name` has all alternatives or the whole boolean
    /// dependency.
    pub fn of(format: Format, name: &'a str, version: Option<(Comparison, &'a str)>) -> Self {
        match format {
            Format::Rpm if name.starts_with('(') => rich(name),
            Format::Rpm => one(name, version),
            Format::Deb if name.contains('|') => {
                Self::Any(name.split('|').map(of_control).collect())
            }
            Format::Deb if version.is_none() => of_control(name),
            Format::Deb => qualified(name, version),
        }
    }

    /// Parses a field of a control file.
    pub fn of_field(list: &'a str) -> impl Iterator<Item = Self> {
        let texts = list.split(',').map(str::trim).filter(|text| !text.is_empty());
        texts.map(|text| Self::of(Format::Deb, text, None))
    }

    /// Copies borrowed texts.
    pub fn into_owned(self) -> Wish<'static> {
        match self {
            Self::One(bound) => Wish::One(bound.into_owned()),
            Self::Any(wishes) => Wish::Any(all_owned(wishes)),
            Self::All(wishes) => Wish::All(all_owned(wishes)),
            Self::If(wishes) => Wish::If(all_owned(wishes)),
            Self::Unknown => Wish::Unknown,
        }
    }

    /// The bound of a plain relation; `None` for any other wish.
    pub fn bound(&self) -> Option<&Bound<'a>> {
        match self {
            Self::One(bound) => Some(bound),
            _ => None,
        }
    }

    /// All bounds in the wish.
    pub fn bounds(&self) -> Vec<&Bound<'a>> {
        match self {
            Self::One(bound) => vec![bound],
            Self::Any(wishes) | Self::All(wishes) | Self::If(wishes) => {
                wishes.iter().flat_map(Self::bounds).collect()
            }
            Self::Unknown => Vec::new(),
        }
    }

    /// Whether the wish is met, if `is_met` judges single bounds; `None` if that is not known.
    pub fn holds(&self, is_met: &dyn Fn(&Bound<'a>) -> Option<bool>) -> Option<bool> {
        match self {
            Self::One(bound) => is_met(bound),
            Self::Any(wishes) => decided(&Self::each_holds(wishes, is_met), true),
            Self::All(wishes) => decided(&Self::each_holds(wishes, is_met), false),
            Self::If(wishes) => match (&*Self::each_holds(wishes, is_met), wishes.len()) {
                ([then, Some(true), ..], _) => *then,
                ([_, Some(false)], 2) => Some(true),
                ([_, Some(false), other], _) => *other,
                _ => None,
            },
            Self::Unknown => None,
        }
    }

    fn each_holds(
        wishes: &[Self],
        is_met: &dyn Fn(&Bound<'a>) -> Option<bool>,
    ) -> Vec<Option<bool>> {
        wishes.iter().map(|wish| wish.holds(is_met)).collect()
    }
}

fn all_owned(wishes: Vec<Wish<'_>>) -> Vec<Wish<'static>> {
    wishes.into_iter().map(Wish::into_owned).collect()
}

/// The result of wishes. A single result `by` decides it, even if others are unknown.
fn decided(known: &[Option<bool>], by: bool) -> Option<bool> {
    let all = known.iter().all(Option::is_some) && !known.is_empty();
    if known.contains(&Some(by)) { Some(by) } else { all.then_some(!by) }
}

impl fmt::Display for Wish<'_> {
    /// Writes the wish in words of neither format: `a = 1 or b`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(Bound { name, version: None }) => f.write_str(name),
            Self::One(Bound { name, version: Some((sign, version)) }) => {
                write!(f, "{name} {sign} {version}")
            }
            Self::Any(wishes) => f.write_str(&joined_texts(wishes, " or ")),
            Self::All(wishes) => f.write_str(&joined_texts(wishes, " and ")),
            Self::If(wishes) => match wishes.as_slice() {
                [then, condition] => write!(f, "{then} if {condition}"),
                [then, condition, other] => write!(f, "{then} if {condition} else {other}"),
                _ => f.write_str("?"),
            },
            Self::Unknown => f.write_str("?"),
        }
    }
}

fn joined_texts(wishes: &[Wish<'_>], word: &str) -> String {
    let texts: Vec<String> = wishes.iter().map(Wish::to_string).collect();
    texts.join(word)
}

fn one<'a>(name: &'a str, version: Option<(Comparison, &'a str)>) -> Wish<'a> {
    if name.starts_with('/') && !is_unlisted_path(name) {
        return Wish::Unknown;
    }
    let version = version.map(|(sign, version)| (sign, Cow::Borrowed(version)));
    Wish::One(Bound { name: name.into(), version })
}

/// Parses `name`, `name (>= 1)` or `name:any`. Architectures in brackets are ignored.
fn of_control(text: &str) -> Wish<'_> {
    let text = text.split('[').next().unwrap_or_default();
    let (name, bound) = text.split_once('(').unwrap_or((text, ""));
    let bound = bound.trim().trim_end_matches(')').trim();
    let version = Comparison::split(bound, Format::Deb);
    if !bound.is_empty() && version.is_none() {
        return Wish::Unknown;
    }
    qualified(name.trim(), version.map(|(sign, version)| (sign, version.trim())))
}

/// A name of a `.deb`, with or without an architecture.
fn qualified<'a>(name: &'a str, version: Option<(Comparison, &'a str)>) -> Wish<'a> {
    match name.trim().split_once(':') {
        None if name.is_empty() => Wish::Unknown,
        None => one(name, version),
        Some((name, "any" | "native")) => one(name, version),
        Some(_) => Wish::Unknown,
    }
}

fn rich(text: &str) -> Wish<'_> {
    match Rich(text).group(DEPTH) {
        Some((wish, "")) => wish,
        _ => Wish::Unknown,
    }
}

/// The rest of a boolean dependency of rpm.
struct Rich<'a>(&'a str);

impl<'a> Rich<'a> {
    /// Parses the group in parentheses at the beginning, and returns the rest.
    fn group(self, depth: usize) -> Option<(Wish<'a>, &'a str)> {
        let (first, mut rest) = Rich(self.0.strip_prefix('(')?).term(depth)?;
        let (mut wishes, mut words) = (vec![first], Vec::new());
        loop {
            if let Some(after) = rest.strip_prefix(')') {
                return Some((joined(wishes, &words)?, after.trim_start()));
            }
            let (word, after) = rest.split_once(char::is_whitespace)?;
            words.push(word);
            let (wish, after) = Rich(after).term(depth)?;
            wishes.push(wish);
            rest = after;
        }
    }

    /// Parses a name with its bound, or a group.
    fn term(self, depth: usize) -> Option<(Wish<'a>, &'a str)> {
        let text = self.0.trim_start();
        if text.starts_with('(') {
            return Rich(text).group(depth.checked_sub(1)?);
        }
        let Word { word: name, rest } = word(text);
        let (wish, rest) = match bound(rest) {
            Some((bound, rest)) => (one(name, Some(bound)), rest),
            None => (one(name, None), rest),
        };
        (!name.is_empty()).then_some((wish, rest.trim_start()))
    }
}

/// Parses the bound at the beginning of `text`, and returns the rest.
fn bound(text: &str) -> Option<((Comparison, &str), &str)> {
    let (sign, after) = Comparison::split(text, Format::Rpm)?;
    let bare = after.strip_prefix('=').unwrap_or(after).trim_start();
    let Word { word: version, rest } = word(bare);
    Some(((sign, version), rest))
}

/// A word with balanced parentheses, and the text after it and blanks.
struct Word<'a> {
    word: &'a str,
    rest: &'a str,
}

fn word(text: &str) -> Word<'_> {
    let mut open = 0_usize;
    let end = text.find(|c: char| {
        match c {
            '(' => open += 1,
            ')' if open == 0 => return true,
            ')' => open -= 1,
            _ => {}
        }
        c.is_whitespace()
    });
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    Word { word, rest: rest.trim_start() }
}

/// Joins `wishes` by these words; `None` if rpm has no such combination.
fn joined<'a>(mut wishes: Vec<Wish<'a>>, words: &[&str]) -> Option<Wish<'a>> {
    Some(match words {
        [] => wishes.pop()?,
        ["if"] | ["if", "else"] => Wish::If(wishes),
        [first, rest @ ..] if rest.iter().all(|word| word == first) => match *first {
            "or" => Wish::Any(wishes),
            "and" => Wish::All(wishes),
            "with" | "without" | "unless" => Wish::Unknown,
            _ => return None,
        },
        ["unless", "else"] => Wish::Unknown,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_taken_apart() {
        for (format, text, expected) in [
            (Format::Deb, "a", "a"),
            (Format::Deb, "a (>= 1)", "a >= 1"),
            (Format::Deb, "a:any (<<1) | b [amd64]", "a < 1 or b"),
            (Format::Deb, "a:i386 (= 1)", "?"),
            (Format::Deb, "a (> 1)", "?"),
            (Format::Rpm, "a(x86-64)", "a(x86-64)"),
            (Format::Rpm, "/bin/sh", "?"),
            (Format::Rpm, "(a or b >= 1-1)", "a or b >= 1-1"),
            (Format::Rpm, "( a = 1 and (b or c(x)(64bit)) )", "a = 1 and b or c(x)(64bit)"),
            (Format::Rpm, "(a if b < 2 else c)", "a if b < 2 else c"),
            (Format::Rpm, "(a == 1)", "a = 1"),
            (Format::Rpm, "(a with b)", "?"),
            (Format::Rpm, "(a or (b unless c))", "a or ?"),
            (Format::Rpm, "(a or b and c)", "?"),
            (Format::Rpm, "(a or b", "?"),
            (Format::Rpm, "(a or /bin/sh)", "a or ?"),
            (Format::Rpm, "/opt/x", "/opt/x"),
            (Format::Rpm, "(a or /opt/x)", "a or /opt/x"),
            (Format::Rpm, "()", "?"),
        ] {
            let wish = Wish::of(format, text, None);
            assert_eq!(wish.to_string(), expected, "{text}");
            assert_eq!(wish.clone().into_owned(), wish);
        }
        let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
        assert_eq!(Wish::of(Format::Rpm, &deep, None), Wish::Unknown);
        let field = Wish::of_field("a, ,b (= 1) | c").map(|wish| wish.to_string());
        assert_eq!(field.collect::<Vec<_>>(), ["a", "b = 1 or c"]);
    }

    #[test]
    fn what_is_not_known_decides_nothing() {
        for (text, expected) in [
            ("(yes or x)", Some(true)),
            ("(no or x)", None),
            ("(no or no)", Some(false)),
            ("(no and x)", Some(false)),
            ("(yes and x)", None),
            ("(no if yes)", Some(false)),
            ("(no if no)", Some(true)),
            ("(no if x)", None),
            ("(yes if no else no)", Some(false)),
            ("(no with no)", None),
        ] {
            assert_eq!(Wish::of(Format::Rpm, text, None).holds(&yes_or_no), expected, "{text}");
        }
    }

    fn yes_or_no(bound: &Bound<'_>) -> Option<bool> {
        match &*bound.name {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        }
    }
}
