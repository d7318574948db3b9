//! The values of the fields of a control file, as dpkg and apt read them.
//!
//! Source: dpkg 1.21 and 1.23, apt 2.6 and 3.3. A value that one of them refuses is refused here; fields that
//! they take as any text are not judged.

use super::fields::{ControlFields, excerpt};
use super::relations::{is_package_name, relations};
use rockpack_core::package_format::deb_version::{self, WORD_MAX};

/// The priorities that dpkg knows. It takes any other word, but refuses anything behind one of these.
const PRIORITIES: [&str; 5] = ["required", "important", "standard", "optional", "extra"];

/// Length of `Description-md5`, in bytes, that apt 2.6 accepts.
const MD5_DIGITS: usize = 32;

/// The reason why dpkg or apt refuses a paragraph; `None` if both accept it.
pub(super) fn refusal(fields: &ControlFields) -> Option<String> {
    let is = |name, text| fields.get(name).is_some_and(|value| value.eq_ignore_ascii_case(text));
    if is("Multi-Arch", "same") && is("Architecture", "all") {
        return Some("field Multi-Arch: a package for `all` cannot be `same`".to_owned());
    }
    fields.iter().find_map(|(name, value)| {
        let why = check_value(&name.to_ascii_lowercase(), value).err()?;
        Some(format!("field {}: {why}", excerpt(name)))
    })
}

/// Checks the value of the field `name`, which is in small letters.
fn check_value(name: &str, value: &str) -> Result<(), String> {
    let (is_right, why) = match name {
        _ if name.starts_with('-') => (false, "a field name does not begin with `-`"),
        "package" => (is_package_name(value), "not a package name"),
        "version" => return deb_version::check(value).map_err(|why| shown(value, why)),
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
        } else if name == "provides" && relation.bound.is_some_and(|(sign, _)| sign != "=") {
            "expected the sign `=`"
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
    use super::super::fields::{parse_control, parse_stanza};

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
