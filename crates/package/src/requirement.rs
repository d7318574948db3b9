//! Relations of packages: single bounds, alternatives of a `.deb`, boolean dependencies of an `.rpm`. An index has
//! many of them, so names and versions are borrowed from its text.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::{fmt, mem, slice};

use rockpack_archive::deb::relations;
use rockpack_archive::rpm_md::is_unlisted_path;

use super::{Comparison, DEB_FIELDS, Format, RelationKind};

/// Deepest nesting of parentheses that is parsed; the limit of rpm is similar.
const DEPTH: usize = 16;

/// A package or capability with a bound on its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bound<'a> {
    pub name: Cow<'a, str>,
    /// The comparison and the version to compare with; any version if unset.
    pub version: Option<(Comparison, Cow<'a, str>)>,
}

impl Bound<'_> {
    /// Whether `version`, of a package or capability of this name, is within the bound.
    pub fn admits(&self, format: Format, version: &str) -> bool {
        let Some((comparison, limit)) = &self.version else { return true };
        comparison.holds(compare_with_limit(format, version, limit))
    }

    /// The version, if exactly one is within the bound.
    pub fn exact(&self) -> Option<&str> {
        match &self.version {
            Some((Comparison::Equal, version)) => Some(version),
            _ => None,
        }
    }

    /// Whether a package or capability of this name with `version` meets the bound. Without a version, it
    /// meets every bound for rpm, and no bound for dpkg.
    pub fn is_met(&self, format: Format, version: Option<&str>) -> bool {
        match version {
            Some(version) => self.admits(format, version),
            None => self.version.is_none() || format == Format::Rpm,
        }
    }

    pub(crate) fn into_owned(self) -> Bound<'static> {
        let version = self.version.map(|(sign, version)| (sign, version.into_owned().into()));
        Bound { name: self.name.into_owned().into(), version }
    }
}

/// Compares a version with the limit of a bound. In rpm, releases count only if both have one.
pub(super) fn compare_with_limit(format: Format, version: &str, limit: &str) -> Ordering {
    let whole = format == Format::Deb || (version.contains('-') && limit.contains('-'));
    // After the first dash rpm writes the release.
    let [version, limit] = [version, limit].map(|text| match text.split_once('-') {
        Some((version, _)) if !whole => version,
        _ => text,
    });
    format.compare_versions(version, limit)
}

/// The packages and capabilities that a relation names. Single bounds sort first, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requirement<'a> {
    Bound(Bound<'a>),
    /// Any of these: `a | b` of dpkg, `(a or b)` of rpm.
    Any(Vec<Requirement<'a>>),
    /// All of these: `(a and b)`.
    All(Vec<Requirement<'a>>),
    /// The first one if the second is met, else the third: `(a if b)`, `(a if b else c)`.
    If(Vec<Requirement<'a>>),
    /// A requirement that is not judged: other architectures, `with`, `without` and `unless`.
    Unknown,
}

impl<'a> Requirement<'a> {
    /// Parses a relation of a receipt or rpm index: `name` has all alternatives or the whole boolean dependency.
    pub fn of(format: Format, name: &'a str, version: Option<(Comparison, Cow<'a, str>)>) -> Self {
        match format {
            Format::Rpm if name.starts_with('(') => match group(name, DEPTH) {
                Some((requirement, "")) => requirement,
                _ => Self::Unknown,
            },
            Format::Rpm => one(name, version),
            Format::Deb if version.is_none() => {
                Self::of_field(name).into_iter().next().unwrap_or(Self::Unknown)
            }
            Format::Deb => match name.split_once(':') {
                Some((name, arch)) => qualified(name, Some(arch), version),
                None => qualified(name, None, version),
            },
        }
    }

    /// Parses a field of a control file up to the first fault.
    pub fn of_field(list: &'a str) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for relation in relations(list).map_while(Result::ok) {
            let version = relation.bound.map(|(sign, version)| (sign, version.into()));
            let one = qualified(relation.name, relation.arch, version);
            match all.last_mut().filter(|_| relation.is_alternative) {
                Some(Self::Any(alternatives)) => alternatives.push(one),
                Some(first) => *first = Self::Any(vec![mem::replace(first, Self::Unknown), one]),
                None => all.push(one),
            }
        }
        all
    }

    pub fn into_owned(self) -> Requirement<'static> {
        let all_owned = |all: Vec<Self>| -> Vec<Requirement<'static>> {
            all.into_iter().map(Self::into_owned).collect()
        };
        match self {
            Self::Bound(bound) => Requirement::Bound(bound.into_owned()),
            Self::Any(all) => Requirement::Any(all_owned(all)),
            Self::All(all) => Requirement::All(all_owned(all)),
            Self::If(all) => Requirement::If(all_owned(all)),
            Self::Unknown => Requirement::Unknown,
        }
    }

    /// The bound of a plain relation; `None` for any other.
    pub fn bound(&self) -> Option<&Bound<'a>> {
        match self {
            Self::Bound(bound) => Some(bound),
            _ => None,
        }
    }

    pub fn bounds(&self) -> Vec<&Bound<'a>> {
        match self {
            Self::Bound(bound) => vec![bound],
            Self::Any(all) | Self::All(all) | Self::If(all) => {
                all.iter().flat_map(Self::bounds).collect()
            }
            Self::Unknown => Vec::new(),
        }
    }

    /// The requirements of which any is enough.
    pub fn alternatives(&self) -> &[Self] {
        match self {
            Self::Any(alternatives) => alternatives,
            other => slice::from_ref(other),
        }
    }

    /// Whether the requirement is met, if `is_met` judges single bounds; `None` if that is not known. Paths
    /// that `primary` lists are not known.
    pub fn holds(&self, is_met: &dyn Fn(&Bound<'a>) -> Option<bool>) -> Option<bool> {
        let each_holds = |all: &[Self]| -> Vec<Option<bool>> {
            all.iter().map(|requirement| requirement.holds(is_met)).collect()
        };
        match self {
            Self::Bound(bound) if bound.name.starts_with('/') && !is_unlisted_path(&bound.name) => {
                None
            }
            Self::Bound(bound) => is_met(bound),
            Self::Any(all) => decided(&each_holds(all), true),
            Self::All(all) => decided(&each_holds(all), false),
            Self::If(all) => match (&*each_holds(all), all.len()) {
                ([then, Some(true), ..], _) => *then,
                ([_, Some(false)], 2) => Some(true),
                ([_, Some(false), other], _) => *other,
                _ => None,
            },
            Self::Unknown => None,
        }
    }
}

/// The result of several requirements. A single result `by` decides it, even if others are unknown.
fn decided(known: &[Option<bool>], by: bool) -> Option<bool> {
    let all = known.iter().all(Option::is_some) && !known.is_empty();
    if known.contains(&Some(by)) { Some(by) } else { all.then_some(!by) }
}

impl fmt::Display for Requirement<'_> {
    /// Writes the requirement in words of neither format: `a = 1 or b`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bound(Bound { name, version: None }) => f.write_str(name),
            Self::Bound(Bound { name, version: Some((sign, version)) }) => {
                write!(f, "{name} {sign} {version}")
            }
            Self::Any(all) => f.write_str(&joined_texts(all, " or ")),
            Self::All(all) => f.write_str(&joined_texts(all, " and ")),
            Self::If(all) => match all.as_slice() {
                [then, condition] => write!(f, "{then} if {condition}"),
                [then, condition, other] => write!(f, "{then} if {condition} else {other}"),
                _ => f.write_str("?"),
            },
            Self::Unknown => f.write_str("?"),
        }
    }
}

fn joined_texts(all: &[Requirement<'_>], word: &str) -> String {
    let texts: Vec<String> = all.iter().map(Requirement::to_string).collect();
    texts.join(word)
}

fn one<'a>(name: &'a str, version: Option<(Comparison, Cow<'a, str>)>) -> Requirement<'a> {
    Requirement::Bound(Bound { name: name.into(), version })
}

/// A package of a `.deb`'s relation, with or without an architecture.
fn qualified<'a>(
    name: &'a str,
    arch: Option<&str>,
    version: Option<(Comparison, Cow<'a, str>)>,
) -> Requirement<'a> {
    match arch {
        None | Some("any" | "native") => one(name, version),
        Some(_) => Requirement::Unknown,
    }
}

/// Parses the group in parentheses at the beginning of `text`, and returns the rest.
fn group(text: &str, depth: usize) -> Option<(Requirement<'_>, &str)> {
    let (mut terms, mut words) = (Vec::new(), Vec::new());
    let mut rest = text.strip_prefix('(')?;
    loop {
        let (requirement, after) = term(rest.trim_start(), depth)?;
        terms.push(requirement);
        if let Some(after) = after.strip_prefix(')') {
            return Some((joined(terms, &words)?, after.trim_start()));
        }
        let (word, after) = after.split_once(char::is_whitespace)?;
        words.push(word);
        rest = after;
    }
}

/// Parses a name with its bound, or a group, at the beginning of `text`, and returns the rest.
fn term(text: &str, depth: usize) -> Option<(Requirement<'_>, &str)> {
    if text.starts_with('(') {
        return group(text, depth.checked_sub(1)?);
    }
    let (name, rest) = word(text);
    let (version, rest) = match bound(rest) {
        Some(((sign, version), rest)) => (Some((sign, version.into())), rest),
        None => (None, rest),
    };
    (!name.is_empty()).then(|| (one(name, version), rest.trim_start()))
}

/// Parses the bound at the beginning of `text`, and returns the rest.
fn bound(text: &str) -> Option<((Comparison, &str), &str)> {
    let (sign, after) = Comparison::split(text, Format::Rpm)?;
    let bare = after.strip_prefix('=').unwrap_or(after).trim_start();
    let (version, rest) = word(bare);
    Some(((sign, version), rest))
}

/// A word with balanced parentheses, and the text after it and blanks.
fn word(text: &str) -> (&str, &str) {
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
    (word, rest.trim_start())
}

/// Joins `terms` by these words; `None` if rpm has no such combination.
fn joined<'a>(mut terms: Vec<Requirement<'a>>, words: &[&str]) -> Option<Requirement<'a>> {
    Some(match words {
        [] => terms.pop()?,
        ["if"] | ["if", "else"] => Requirement::If(terms),
        [first, rest @ ..] if rest.iter().all(|word| word == first) => match *first {
            "or" => Requirement::Any(terms),
            "and" => Requirement::All(terms),
            "with" | "without" | "unless" => Requirement::Unknown,
            _ => return None,
        },
        ["unless", "else"] => Requirement::Unknown,
        _ => return None,
    })
}

/// The relations of a package without duplicates, sorted by kind and name.
#[derive(Debug, Clone, Default, PartialEq, Eq, derive_more::IntoIterator)]
pub struct Relations<'a>(Vec<(RelationKind, Requirement<'a>)>);

impl<'a> Relations<'a> {
    /// Sorts `relations` and removes duplicates.
    pub fn of(relations: impl IntoIterator<Item = (RelationKind, Requirement<'a>)>) -> Self {
        let mut relations: Vec<_> = relations.into_iter().collect();
        relations.sort_unstable();
        relations.dedup();
        relations.shrink_to_fit();
        Self(relations)
    }

    /// The relations of a control file; `field` gives the value of a field, or an empty text.
    pub fn of_control(field: impl Fn(&str) -> &'a str) -> Self {
        let lists = DEB_FIELDS.map(|(kind, name)| (kind, Requirement::of_field(field(name))));
        let all = lists.into_iter();
        Self::of(all.flat_map(|(kind, list)| list.into_iter().map(move |one| (kind, one))))
    }

    pub fn into_owned(self) -> Relations<'static> {
        Relations(self.0.into_iter().map(|(kind, it)| (kind, it.into_owned())).collect())
    }

    pub fn of_kind(&self, kind: RelationKind) -> impl ExactSizeIterator<Item = &Requirement<'a>> {
        self.slice(kind).iter().map(|(_, requirement)| requirement)
    }

    /// The bounds of the plain relations of a kind.
    pub fn bounds(&self, kind: RelationKind) -> impl Iterator<Item = &Bound<'a>> {
        self.of_kind(kind).map_while(Requirement::bound)
    }

    /// The bounds of the plain relations of a kind with a name.
    pub fn named(&self, kind: RelationKind, name: &str) -> impl Iterator<Item = &Bound<'a>> {
        let all = self.slice(kind);
        let start = all.partition_point(|(_, it)| it.bound().is_some_and(|it| *it.name < *name));
        let bounds = all.get(start..).unwrap_or_default().iter().map_while(|(_, it)| it.bound());
        bounds.take_while(move |bound| *bound.name == *name)
    }

    /// The dependencies, those that have to be configured first included.
    pub fn needs(&self) -> impl Iterator<Item = &Requirement<'a>> {
        self.of_kind(RelationKind::PreDepends).chain(self.of_kind(RelationKind::Depends))
    }

    fn slice(&self, kind: RelationKind) -> &[(RelationKind, Requirement<'a>)] {
        let rest = self.0.get(self.0.partition_point(|(own, _)| *own < kind)..).unwrap_or_default();
        rest.get(..rest.partition_point(|(own, _)| *own == kind)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_taken_apart() {
        for (format, text, expected) in [
            (Format::Deb, "a", "a"),
            (Format::Deb, "a (>= 1)", "a >= 1"),
            (Format::Deb, "a:any (<< 1) | b", "a < 1 or b"),
            (Format::Deb, "a:i386 (= 1)", "?"),
            (Format::Deb, "a (> 1) | b:native | c", "a >= 1 or b or c"),
            (Format::Deb, "a [amd64]", "?"),
            (Format::Rpm, "a(x86-64)", "a(x86-64)"),
            (Format::Rpm, "/bin/sh", "/bin/sh"),
            (Format::Rpm, "(a or b >= 1-1)", "a or b >= 1-1"),
            (Format::Rpm, "( a = 1 and (b or c(x)(64bit)) )", "a = 1 and b or c(x)(64bit)"),
            (Format::Rpm, "(a if b < 2 else c)", "a if b < 2 else c"),
            (Format::Rpm, "(a == 1)", "a = 1"),
            (Format::Rpm, "(a with b)", "?"),
            (Format::Rpm, "(a or (b unless c))", "a or ?"),
            (Format::Rpm, "(a or b and c)", "?"),
            (Format::Rpm, "(a or b", "?"),
            (Format::Rpm, "(a or /opt/x)", "a or /opt/x"),
            (Format::Rpm, "()", "?"),
        ] {
            let requirement = Requirement::of(format, text, None);
            assert_eq!(requirement.to_string(), expected, "{text}");
            assert_eq!(requirement.clone().into_owned(), requirement);
        }
        let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
        assert_eq!(Requirement::of(Format::Rpm, &deep, None), Requirement::Unknown);
        let field = Requirement::of_field("a, b (= 1) | c").into_iter().map(|it| it.to_string());
        assert_eq!(field.collect::<Vec<_>>(), ["a", "b = 1 or c"]);
    }

    #[test]
    fn unknown_requirements_decide_nothing() {
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
            let requirement = Requirement::of(Format::Rpm, text, None);
            assert_eq!(requirement.holds(&yes_or_no), expected, "{text}");
        }
        let path = |name| Requirement::of(Format::Rpm, name, None).holds(&|_| Some(false));
        assert_eq!(["/bin/sh", "/opt/x", "(no or /bin/sh)"].map(path), [None, Some(false), None]);
    }

    fn yes_or_no(bound: &Bound<'_>) -> Option<bool> {
        match &*bound.name {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        }
    }

    #[test]
    fn relations_are_found_by_kind_and_name() {
        let fields = |name: &str| match name {
            "Depends" => "b, a (= 1), b, c | d, a (>= 2) , a:any (= 1)",
            "Breaks" => "a, z",
            _ => "",
        };
        let relations = Relations::of_control(fields);
        let names = ["a", "b", "c", "d", "z", ""];
        let counts = names.map(|name| relations.named(RelationKind::Depends, name).count());
        assert_eq!(counts, [2, 1, 0, 0, 0, 0]);
        assert_eq!(relations.bounds(RelationKind::Depends).count(), 3);
        assert_eq!(relations.needs().count(), 4);
        assert_eq!(relations.of_kind(RelationKind::Breaks).len(), 2);
        assert_eq!(relations.of_kind(RelationKind::Provides).len(), 0);
        assert_eq!(relations.clone().into_owned(), relations);
    }
}
