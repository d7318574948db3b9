//! The wishes that packages have of others, taken apart: alternatives of a `.deb`, boolean dependencies of an `.rpm`.

use std::borrow::Cow;
use std::fmt;

use super::super::bounds::Bound;
use super::super::{Comparison, Format};

/// Most parentheses inside each other that are looked into; rpm's own limit is near it.
const DEPTH: usize = 16;

/// The wish of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish<'a> {
    /// A package or capability.
    One(Bound<'a>),
    /// One of these: `a | b` of dpkg, `(a or b)` of rpm.
    Any(Vec<Wish<'a>>),
    /// All of these: `(a and b)`.
    All(Vec<Wish<'a>>),
    /// The first one where the second is met, else the third: `(a if b)`, `(a if b else c)`.
    If(Vec<Wish<'a>>),
    /// Anything that is not judged: paths, other architectures, `with`, `without` and `unless`.
    Unknown,
}

impl<'a> Wish<'a> {
    /// A relation as a receipt has it: `name` with all alternatives or the whole boolean dependency.
    pub fn of(format: Format, name: &'a str, version: Option<(Comparison, &'a str)>) -> Self {
        match format {
            Format::Rpm if name.starts_with('(') => rich(name),
            Format::Rpm if name.starts_with('/') => Self::Unknown,
            Format::Rpm => one(name, version),
            Format::Deb if name.contains('|') => {
                Self::Any(name.split('|').map(of_control).collect())
            }
            Format::Deb if version.is_none() => of_control(name),
            Format::Deb => qualified(name, version),
        }
    }

    /// The relations of a field of a control file.
    pub fn of_field(list: &'a str) -> impl Iterator<Item = Self> {
        let texts = list.split(',').map(str::trim).filter(|text| !text.is_empty());
        texts.map(|text| Self::of(Format::Deb, text, None))
    }

    /// The same with texts of its own.
    pub fn into_owned(self) -> Wish<'static> {
        let all = |wishes: Vec<Self>| wishes.into_iter().map(Self::into_owned).collect();
        match self {
            Self::One(bound) => Wish::One(bound.into_owned()),
            Self::Any(wishes) => Wish::Any(all(wishes)),
            Self::All(wishes) => Wish::All(all(wishes)),
            Self::If(wishes) => Wish::If(all(wishes)),
            Self::Unknown => Wish::Unknown,
        }
    }

    /// The bound of a plain relation.
    pub fn bound(&self) -> Option<&Bound<'a>> {
        match self {
            Self::One(bound) => Some(bound),
            _ => None,
        }
    }

    /// All bounds in it.
    pub fn bounds(&self) -> Vec<&Bound<'a>> {
        match self {
            Self::One(bound) => vec![bound],
            Self::Any(wishes) | Self::All(wishes) | Self::If(wishes) => {
                wishes.iter().flat_map(Self::bounds).collect()
            }
            Self::Unknown => Vec::new(),
        }
    }

    /// Whether it is met, by what `is_met` says of single bounds; nothing where that is not known.
    pub fn holds(&self, is_met: &dyn Fn(&Bound<'a>) -> Option<bool>) -> Option<bool> {
        let each = |wishes: &[Self]| -> Vec<Option<bool>> {
            wishes.iter().map(|wish| wish.holds(is_met)).collect()
        };
        // What decides, whatever the others are.
        let decided = |known: Vec<Option<bool>>, by: bool| {
            let all = known.iter().all(Option::is_some) && !known.is_empty();
            if known.contains(&Some(by)) { Some(by) } else { all.then_some(!by) }
        };
        match self {
            Self::One(bound) => is_met(bound),
            Self::Any(wishes) => decided(each(wishes), true),
            Self::All(wishes) => decided(each(wishes), false),
            Self::If(wishes) => match (each(wishes).as_slice(), wishes.len()) {
                ([then, Some(true), ..], _) => *then,
                ([_, Some(false)], 2) => Some(true),
                ([_, Some(false), other], _) => *other,
                _ => None,
            },
            Self::Unknown => None,
        }
    }
}

impl fmt::Display for Wish<'_> {
    /// In words of neither format: `a = 1 or b`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |wishes: &[Self], word: &str| {
            let texts: Vec<String> = wishes.iter().map(Self::to_string).collect();
            texts.join(word)
        };
        match self {
            Self::One(Bound { name, version: None }) => f.write_str(name),
            Self::One(Bound { name, version: Some((sign, version)) }) => {
                write!(f, "{name} {sign} {version}")
            }
            Self::Any(wishes) => f.write_str(&joined(wishes, " or ")),
            Self::All(wishes) => f.write_str(&joined(wishes, " and ")),
            Self::If(wishes) => match wishes.as_slice() {
                [then, condition] => write!(f, "{then} if {condition}"),
                [then, condition, other] => write!(f, "{then} if {condition} else {other}"),
                _ => f.write_str("?"),
            },
            Self::Unknown => f.write_str("?"),
        }
    }
}

fn one<'a>(name: &'a str, version: Option<(Comparison, &'a str)>) -> Wish<'a> {
    let version = version.map(|(sign, version)| (sign, Cow::Borrowed(version)));
    Wish::One(Bound { name: name.into(), version })
}

/// `name`, `name (>= 1)`, `name:any`, with the architectures that it is for in brackets.
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

/// A name of a `.deb` that may say for which architecture.
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
    /// The wish in the parentheses that it begins with, and what follows them.
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

    /// A name with its bound, or a group.
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
        let wish = if name.starts_with('/') { Wish::Unknown } else { wish };
        (!name.is_empty()).then_some((wish, rest.trim_start()))
    }
}

/// The bound that `text` begins with, and what follows it.
fn bound(text: &str) -> Option<((Comparison, &str), &str)> {
    let (sign, rest) = Comparison::split(text, Format::Rpm)?;
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let Word { word: version, rest } = word(rest);
    Some(((sign, version), rest))
}

/// A word, in which parentheses are closed, and what follows it and blanks.
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

/// `wishes` with these words between them; nothing if rpm takes no such thing.
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
        let known = |bound: &Bound<'_>| match &*bound.name {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        };
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
            assert_eq!(Wish::of(Format::Rpm, text, None).holds(&known), expected, "{text}");
        }
    }
}
