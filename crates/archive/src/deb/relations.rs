//! The fields of a control file that name other packages.
//!
//! ```text
//! field     = relation *( ("," / "|") relation )
//! relation  = name [":" arch] ["(" [operator] version ")"]
//! name      = letters, digits, + - . _ ; begins with a letter or digit
//! arch      = letters, digits, - ; begins with a letter or digit
//! operator  = << / <= / = / >= / >> ; `<` means `<=`, `>` means `>=`, and no operator means `=`
//! ```
//!
//! The parts may have blanks and line breaks between them. Source: the parsers of dpkg 1.21 and 1.23, and of apt 2.6
//! and 3.3. Refused: what any of them refuses. dpkg and apt refuse restrictions (`[amd64]`, `<!nocheck>`), which
//! belong to source packages.

use std::iter;

use super::fields::excerpt;
use crate::relation::Comparison;
use rockpack_core::package_format::{WORD_MAX, check_deb_version};

/// apt 2.6 refuses a version if at most this many bytes follow its opening parenthesis.
const BOUND_TOO_SHORT: usize = 3;

/// A package that a field names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DebRelation<'a> {
    pub name: &'a str,
    /// The architecture after the name, such as `any`.
    pub arch: Option<&'a str>,
    /// The comparison and the version to compare with; any version if unset.
    pub bound: Option<(Comparison, &'a str)>,
    /// Whether `|` separates it from the package before it.
    pub is_alternative: bool,
}

/// Parses the value of a field. The last item may be an error that says where and why dpkg or apt refuses it.
pub fn relations(value: &str) -> impl Iterator<Item = Result<DebRelation<'_>, String>> {
    let value = value.trim_ascii_end();
    let mut rest = (!value.is_empty()).then_some(value);
    let (mut count, mut is_alternative) = (0, false);
    iter::from_fn(move || {
        let text = rest.take()?;
        count += 1;
        Some(match relation(text) {
            Ok((read, after)) => {
                let read = DebRelation { is_alternative, ..read };
                is_alternative = after.starts_with('|');
                rest = after.strip_prefix([',', '|']).map(str::trim_ascii_start);
                Ok(read)
            }
            Err(why) => {
                let shown = text.split([',', '|']).next().unwrap_or_default().trim_ascii();
                Err(format!("relation {count}, `{}`: {why}", excerpt(shown)))
            }
        })
    })
}

/// Parses the relation at the beginning of `text`, and returns the rest, which is empty or a separator.
fn relation(text: &str) -> Result<(DebRelation<'_>, &str), &'static str> {
    let (name, mut rest) = word(text, "+-._");
    let mut arch = None;
    if !is_package_name(name) {
        return Err("a package name is expected at the beginning");
    }
    if let Some(qualified) = rest.strip_prefix(':') {
        let (word, after) = word(qualified, "-");
        if !is_package_name(word) {
            return Err("an architecture is expected right after `:`");
        }
        (arch, rest) = (Some(word), after);
    }
    rest = rest.trim_ascii_start();
    let mut bound = None;
    if let Some(inside) = rest.strip_prefix('(') {
        let inside = inside.trim_ascii_start();
        if inside.len() <= BOUND_TOO_SHORT {
            return Err("the version is missing, or too short for apt 2.6: put a blank before it");
        }
        let (inside, after) = inside.split_once(')').ok_or("`)` is missing")?;
        let (operator, version) =
            inside.split_at(inside.find(|c: char| !"<=>".contains(c)).unwrap_or(inside.len()));
        let operator = match operator {
            "<<" => Comparison::Less,
            "<=" | "<" => Comparison::LessEqual,
            "=" | "" => Comparison::Equal,
            ">=" | ">" => Comparison::GreaterEqual,
            ">>" => Comparison::Greater,
            _ => return Err("the operator is not one of <<, <=, =, >= and >>"),
        };
        let version = version.trim_ascii();
        check_deb_version(version)?;
        (bound, rest) = (Some((operator, version)), after.trim_ascii_start());
    }
    if !rest.is_empty() && !rest.starts_with([',', '|']) {
        return Err(match rest.starts_with(['[', '<']) {
            true => "only source packages may have restrictions",
            false => "only `,` or `|` may follow the name and its version",
        });
    }
    Ok((DebRelation { name, arch, bound, is_alternative: false }, rest))
}

/// The letters, digits and characters of `others` at the beginning of `text`, and the rest.
fn word<'a>(text: &'a str, others: &str) -> (&'a str, &'a str) {
    let is_in = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    text.split_at(text.find(|c| !is_in(c)).unwrap_or(text.len()))
}

/// Whether dpkg accepts `name` as a package name, and apt reads one of that length.
pub(super) fn is_package_name(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    begins && name.len() <= WORD_MAX && word(name, "+-._").1.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_parsed() {
        let text = "a, b:any (>= 1:2-1)|\n c(<3.0)\t| d (1.0),A_b (  =\n2 )";
        let read: Vec<_> = relations(text).map(Result::unwrap).collect();
        let one = |name, bound, is_alternative| {
            let arch = (name == "b").then_some("any");
            DebRelation { name, arch, bound, is_alternative }
        };
        let expected = [
            one("a", None, false),
            one("b", Some((Comparison::GreaterEqual, "1:2-1")), false),
            one("c", Some((Comparison::LessEqual, "3.0")), true),
            one("d", Some((Comparison::Equal, "1.0")), true),
            one("A_b", Some((Comparison::Equal, "2")), false),
        ];
        assert_eq!(read, expected);
        assert_eq!(relations("").count(), 0);
    }

    #[test]
    fn what_dpkg_or_apt_refuses_is_refused() {
        let is_refused = |text: &str| relations(text).any(|relation| relation.is_err());
        let texts = "a,/,a/a,,b/a|/|a/a||b/a b/\na/-a/a;b/a:/a: b/a [amd64]/a <!x>/a (=1)/a (1)/\
                     a ()/a (= 1/a (= 1))/a (== 1)/a (<> 1)/a (= 1) b/a (= 1 2)/a (= x)/a (= 1:)/a = 1/\
                     a\u{a0}/(a)/a (= 1)(= 2)";
        for text in texts.split('/') {
            assert!(is_refused(text), "{text:?}");
        }
        let last = relations("a, b (>= 1), c [amd64] | d").last().unwrap();
        let expected = "relation 3, `c [amd64]`: only source packages may have restrictions";
        assert_eq!(last.unwrap_err(), expected);
        let long = |len| ["a".repeat(len), format!("a (= {})", "1".repeat(len))];
        assert!(!long(WORD_MAX).iter().any(|text| is_refused(text)));
        assert!(long(WORD_MAX + 1).iter().all(|text| is_refused(text)));
    }
}
