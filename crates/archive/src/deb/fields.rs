//! A reader of one paragraph of fields: a control file, a paragraph of an index, `Release`.
//!
//! dpkg and apt compare names of fields without case, so `depends` repeats `Depends`. Refused: a second
//! paragraph, comments, a field twice, and control characters except tabs and line breaks (`\n`, `\r\n`). For
//! dpkg 1.21, 0x1a ends a line, NUL ends a value, and a line that begins with `\r`, `\v` or `\f` continues
//! the one above; apt ends a paragraph at `\n\r\n`.
//!
//! Refuses what dpkg 1.21 or 1.23, or apt 2.6 or 3.3, refuses; fields that they take as any text are not judged.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::relations::{is_package_name, relations};
use crate::relation::Comparison;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::package_format::{WORD_MAX, check_deb_version};

/// The order of names of fields, in any case.
fn compare(one: &str, other: &str) -> Ordering {
    let [one, other] = [one, other].map(|name| name.bytes().map(|byte| byte.to_ascii_lowercase()));
    one.cmp(other)
}

/// The fields of a paragraph: name → value, continuation lines joined by line feeds. They are a sorted list
/// because an index has many paragraphs of few fields, and a map takes more memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlFields(Vec<(String, String)>);

impl ControlFields {
    /// The value of a field, in any case of its name; `None` if the field is missing.
    pub fn get(&self, name: &str) -> Option<&String> {
        let found = self.0.binary_search_by(|(field, _)| compare(field, name));
        found.ok().and_then(|at| self.0.get(at)).map(|(_, value)| value)
    }

    /// The names as written, sorted in any case.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The names as written, with their values.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.0.iter().cloned().collect()
    }
}

/// The number of fields above which their average length is checked.
const FIELDS_CHECKED: usize = 100;

/// Shortest average field in bytes, if there are [`FIELDS_CHECKED`]: in memory, a field takes a hundred bytes.
const SHORTEST: usize = 12;

/// Parses a control file; like dpkg, it skips empty lines in front. Refused: what dpkg or apt refuses.
pub fn parse_control(text: &str) -> Result<ControlFields> {
    let fields = parse(text.trim_start_matches('\n'))?;
    let paragraph = text.trim_matches('\n');
    // dpkg refuses a blank line, and index readers treat it as the end of the paragraph.
    if let Some(index) = paragraph.lines().position(|line| line.trim_ascii().is_empty()) {
        return Err(fault(format!("line {} is blank", index + 1)));
    }
    if let Some(name) = fields.names().find(|name| name.len() < 2) {
        return Err(fault(format!("field {}: dpkg refuses names of one character", excerpt(name))));
    }
    let last = paragraph.rsplit('\n').next().unwrap_or_default();
    let value = last.split_once(':').map_or(last, |(_, value)| value);
    let is_empty = !last.starts_with([' ', '\t']) && value.trim_ascii().is_empty();
    if !text.ends_with('\n') || (is_empty && !text.ends_with("\n\n")) {
        let message = format!("the last line, `{}`, has no line end or no value", excerpt(last));
        return Err(fault(message).hint("dpkg refuses the package: build it again"));
    }
    check_values(fields, "control file")
}

/// Parses one paragraph of an index of packages. Refused: values that dpkg or apt refuses.
pub fn parse_stanza(text: &str) -> Result<ControlFields> {
    let fields = parse(text)?;
    let name = fields.get("Package").map(|name| excerpt(name)).unwrap_or_default();
    check_values(fields, &format!("paragraph of `{name}`"))
}

fn check_values(fields: ControlFields, structure: &str) -> Result<ControlFields> {
    let is = |name, text| fields.get(name).is_some_and(|value| value.eq_ignore_ascii_case(text));
    let both = is("Multi-Arch", "same") && is("Architecture", "all");
    let both = both.then(|| "field Multi-Arch: a package for `all` cannot be `same`".to_owned());
    let why = both.or_else(|| {
        fields.0.iter().find_map(|(name, value)| {
            let why = check_value(&name.to_ascii_lowercase(), value).err()?;
            Some(format!("field {}: {why}", excerpt(name)))
        })
    });
    match why {
        None => Ok(fields),
        Some(why) => Err(Error::malformed(why).structure(structure).hint(
            "dpkg or apt refuses it, and `apt update` can fail for all sources of a client: build the \
             package again with fields as in deb-control(5)",
        )),
    }
}

pub fn parse(text: &str) -> Result<ControlFields> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in text.trim_end_matches('\n').split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.contains(|c: char| c.is_ascii_control() && c != '\t') {
            let message = format!("`{}` has control characters", excerpt(line));
            let hint = "remove them from the control file: dpkg and apt read some of them differently, and \
                        terminals interpret others";
            return Err(fault(message).hint(hint));
        }
        match line.strip_prefix([' ', '\t']) {
            None => fields.push(field(line)?),
            Some(continuation) => {
                let current = fields.last_mut();
                let (_, value) = current.ok_or_else(|| fault("begins with a blank".to_owned()))?;
                value.push('\n');
                value.push_str(if continuation == "." { "" } else { continuation });
            }
        }
    }
    if fields.len() > FIELDS_CHECKED && fields.len().saturating_mul(SHORTEST) > text.len() {
        let message = format!("has {} fields of a few bytes each", fields.len());
        return Err(Error::new(Kind::Limit, message).structure("control file"));
    }
    fields.shrink_to_fit();
    // The sort is stable, so that the error names the later one of two.
    fields.sort_by(|(one, _), (other, _)| compare(one, other));
    let mut pairs = fields.iter().zip(fields.iter().skip(1));
    match pairs.find(|((one, _), (other, _))| one.eq_ignore_ascii_case(other)) {
        Some((_, (name, _))) => Err(fault(format!("field {} appears twice", excerpt(name)))),
        None => Ok(ControlFields(fields)),
    }
}

fn field(line: &str) -> Result<(String, String)> {
    let parts = line.split_once(':');
    parts
        .filter(|(name, _)| !name.is_empty() && !name.contains(char::is_whitespace))
        .map(|(name, value)| (name.to_owned(), value.trim_ascii().to_owned()))
        .ok_or_else(|| fault(format!("`{}` is not a field", excerpt(line))))
}

/// The beginning of a line, for messages: a line may be as long as the file.
pub(crate) fn excerpt(line: &str) -> String {
    const SHOWN: usize = 200;
    let shown: String = line.chars().take(SHOWN).collect();
    let rest = if shown.len() < line.len() { "…" } else { "" };
    format!("{}{rest}", shown.escape_debug())
}

pub(crate) fn fault(message: String) -> Error {
    Error::malformed(message).structure("control file")
}

/// The priorities that dpkg knows. It accepts any other word, but rejects text after one of these.
const PRIORITIES: [&str; 5] = ["required", "important", "standard", "optional", "extra"];

/// Length of `Description-md5`, in bytes, that apt 2.6 accepts.
const MD5_DIGITS: usize = 32;

/// Checks the value of the field `name`, which is in small letters.
fn check_value(name: &str, value: &str) -> Result<(), String> {
    let (is_right, why) = match name {
        _ if name.starts_with('-') => (false, "a field name does not begin with `-`"),
        "package" => (is_package_name(value), "not a package name"),
        "version" => return check_deb_version(value).map_err(|why| shown(value, why)),
        "config-version" | "status" | "triggers-awaited" | "triggers-pending" => {
            (false, "only dpkg's own database has this field")
        }
        "provides" if value.is_empty() => (false, "apt 2.6 refuses this field without a value"),
        _ if value.is_empty() => return Ok(()),
        "essential" | "protected" => (is_one_of(value, &["yes", "no"]), "expected yes or no"),
        "multi-arch" => (
            is_one_of(value, &["no", "same", "allowed", "foreign"]),
            "expected no, same, allowed or foreign",
        ),
        "priority" | "class" => {
            let low = value.to_ascii_lowercase();
            let has_more = |known: &&str| low.len() > known.len() && low.starts_with(known);
            (!PRIORITIES.iter().any(has_more), "nothing may follow the priority")
        }
        "description-md5" => (value.trim_ascii().len() == MD5_DIGITS, "expected 32 digits"),
        "conffiles" => {
            let lines = value.strip_prefix('\n').map(|value| value.split('\n').all(is_conffile));
            (lines == Some(true), "expected lines with a path and a digest")
        }
        "source" | "architecture" | "section" => (value.len() <= WORD_MAX, "too long for apt"),
        _ => return check_relations(name, value),
    };
    if is_right { Ok(()) } else { Err(shown(value, why)) }
}

/// Refuses the value of a field of relations that dpkg or apt refuses; the error is the reason. `name` is in small
/// letters; other fields are not judged. `Recommended` and `Optional` are old names that dpkg still reads.
pub fn check_relations(name: &str, value: &str) -> Result<(), String> {
    let may_choose = match name {
        "pre-depends" | "depends" | "recommends" | "recommended" | "suggests" | "optional"
        | "enhances" => true,
        "breaks" | "conflicts" | "replaces" | "provides" => false,
        _ => return Ok(()),
    };
    if value.split('\n').skip(1).any(str::is_empty) {
        return Err("has a line ` .`, which dpkg and apt take for a package".to_owned());
    }
    for (index, relation) in relations(value).enumerate() {
        let relation = relation?;
        let why = if relation.is_alternative && !may_choose {
            "this field cannot have alternatives"
        } else if name == "provides"
            && relation.bound.is_some_and(|(operator, _)| operator != Comparison::Equal)
        {
            "expected the operator `=`"
        } else {
            continue;
        };
        return Err(format!("relation {}, `{}`: {why}", index + 1, excerpt(relation.name)));
    }
    Ok(())
}

fn shown(value: &str, why: &str) -> String {
    format!("`{}`: {why}", excerpt(value))
}

fn is_one_of(value: &str, words: &[&str]) -> bool {
    words.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Whether dpkg reads a line of `Conffiles`: a path and its digest, and words about them.
fn is_conffile(line: &str) -> bool {
    const FLAGS: [&str; 3] = ["", "obsolete", "remove-on-upgrade"];
    let words = line.split(' ').filter(|word| !FLAGS.contains(word));
    line.trim_start_matches(' ').starts_with('/') && words.count() > 1
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
        let written: Vec<&str> = fields.names().collect();
        assert_eq!(written, ["depends", "Package"]);
        let error = parse("Depends: x\nVersion: 1\ndepends: y\n").unwrap_err();
        assert!(error.to_string().contains("field depends appears twice"), "{error}");
    }

    #[test]
    fn lines_end_as_dpkg_and_apt_end_them() {
        let read = parse("A: 1\r\nB: 2\t3\r\n \tx\r\n").unwrap();
        assert_eq!(read, parse("A: 1\nB: 2\t3\n \tx\n").unwrap());
        for odd in ['\0', '\u{1a}', '\r', '\u{b}', '\u{c}', '\u{1b}', '\u{7f}'] {
            for text in [
                format!("A: 1{odd}B: 2\n"),
                format!("A: 1\n{odd}B: 2\n"),
                format!("A: 1\n x{odd}\n{odd}\n y\n"),
                format!("A{odd}: 1\n"),
            ] {
                assert!(parse(&text).is_err(), "{text:?}");
            }
        }
        let error = parse(&format!("A: {}\u{1a}", "x".repeat(1 << 20))).unwrap_err().to_string();
        assert!(error.len() < 1000 && error.contains("x…` has control characters"), "{error}");
    }

    #[test]
    fn what_is_no_single_paragraph_is_refused() {
        for text in ["", " x", "A: 1\nA: 2", "A: 1\n\nB: 2", "# c", "A 1"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert_eq!(parse(&many_fields("")).unwrap_err().kind(), Kind::Limit);
        assert!(parse(&many_fields(" a value")).is_ok());
    }

    fn many_fields(value: &str) -> String {
        (0..200).map(|n| format!("A{n}:{value}\n")).collect()
    }

    const CONTROL: &str = "Package: x\nVersion: 1\nArchitecture: all\n";

    #[test]
    fn values_are_read_as_dpkg_and_apt_read_them() {
        for line in [
            "Essential: YES",
            "Protected: no",
            "Multi-Arch: Foreign",
            "Priority: foo bar",
            "Description-md5: d41d8cd98f00b204e9800998ecf8427e",
            "Conffiles:\n /x 00\n /y z 00 obsolete",
            "Provides: a (= 1)",
            "Built-Using: ,,",
            "Depends:",
        ] {
            let read = parse_control(&format!("{CONTROL}{line}\nX-Y: z\n"));
            assert!(read.is_ok(), "{line:?}: {read:?}");
        }
        for (line, field) in [
            ("Essential: true", "Essential"),
            ("protected: yes x", "protected"),
            ("Multi-Arch: same", "Multi-Arch"),
            ("Multi-Arch: x", "Multi-Arch"),
            ("Priority: optional,", "Priority"),
            ("Description-md5: 00", "Description-md5"),
            ("Conffiles:\n /x", "Conffiles"),
            ("Triggers-Awaited: x", "Triggers-Awaited"),
            ("Config-Version:", "Config-Version"),
            ("STATUS: install ok installed", "STATUS"),
            ("Provides:", "Provides"),
            ("Provides: a (>= 1)", "Provides"),
            ("Breaks: a | b", "Breaks"),
            ("Depends: a,\n .\n b", "Depends"),
            ("-X: y", "-X"),
        ] {
            let text = format!("{CONTROL}{line}\nX-Y: z\n");
            let name = format!("field {field}: ");
            let error = parse_control(&text).unwrap_err();
            assert!(error.message().starts_with(&name), "{line:?}: {error}");
            assert!(parse_stanza(&text).unwrap_err().to_string().contains(&name));
        }
        let error = parse_stanza(&format!("{CONTROL}Depends: a b\n")).unwrap_err().to_string();
        assert!(
            error.starts_with("paragraph of `x`: field Depends: relation 1, `a b`: "),
            "{error}"
        );
    }

    #[test]
    fn the_last_line_of_a_control_file_ends_and_has_a_value() {
        for (end, is_read) in [
            ("", true),
            ("X-Y: z\n", true),
            ("X-Y: z:\n", true),
            ("X-Y:\n\n", true),
            ("X-Y:\n .\n", true),
            ("X-Y: z", false),
            ("X-Y: \n", false),
            (" \n", false),
            ("z: 1\n", false),
        ] {
            assert_eq!(parse_control(&format!("{CONTROL}{end}")).is_ok(), is_read, "{end:?}");
        }
    }
}
