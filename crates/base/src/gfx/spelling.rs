//! Spellings of archs in the names of files and directories, beyond words of their own.

use super::table::{describe, processors};
use super::{BaseArch, FEATURES};
use rockpack_kpack::target::last_feature;

/// The longest known arch that `text` starts with, whatever follows: names of tuning databases
/// put the number of compute units (decimal, or hexadecimal) directly behind it.
///
/// `gfx90878.HIP.fdb.txt` is for gfx908 with 0x78 units, `gfx90a6e.kdb` for gfx90a with 0x6e,
/// `gfx1030_36.db.txt` for gfx1030 with 36.
pub fn arch_at_start(text: &str) -> Option<BaseArch> {
    let known = processors().iter().filter(|row| text.starts_with(row.name.as_str()));
    let longest = known.max_by_key(|row| row.name.as_str().len())?;
    let strict = format!("{}-strict", longest.name);
    if text.starts_with(&strict) { strict.parse().ok() } else { Some(longest.name.clone()) }
}

/// The arch of a target ID in which a build system has replaced all but letters, digits and `_`:
/// `gfx950_xnackp`, `gfx90a_sramecc__xnack_`, `gfx1250_strict`, `gfx9_4_generic`.
pub fn arch_of_sanitized(text: &str) -> Option<BaseArch> {
    let mut rest = text;
    while let Some((before, _)) = FEATURES.iter().find_map(|name| last_feature(rest, name)) {
        rest = before;
    }
    let base: BaseArch = rest.replace('_', "-").parse().ok()?;
    let known = describe(&base).is_some() || base.as_str().ends_with("-strict");
    known.then_some(base)
}

/// The members of a family: the known archs of the same length that differ from `name` in its
/// trailing `x`s alone. `gfx110x` is gfx1100 to gfx1103; `gfx11xx` everything of its major
/// version. Empty for any other name.
pub fn family_members(name: &str) -> Vec<BaseArch> {
    if !name.starts_with("gfx") {
        return Vec::new();
    }
    let stem = name.trim_end_matches(['x', 'X']);
    let is_family = stem.len() < name.len() && stem.len() > "gfx".len();
    let member = |arch: &&BaseArch| {
        let arch = arch.as_str();
        is_family && arch.len() == name.len() && arch.starts_with(stem)
    };
    processors().iter().map(|row| &row.name).filter(member).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_known_arch_wins_before_a_number_of_units() {
        for (name, expected) in [
            ("gfx90878.HIP.fdb.txt", Some("gfx908")),
            ("gfx90a6e.kdb", Some("gfx90a")),
            ("gfx942130.db.txt", Some("gfx942")),
            ("gfx1030_36.db.txt", Some("gfx1030")),
            ("gfx90040.db.txt", Some("gfx900")),
            ("gfx908_ConvAsm1x1U_decoder.ktn.model", Some("gfx908")),
            ("gfx1250-strict40.kdb", Some("gfx1250-strict")),
            ("gfx11-generic.kdb", Some("gfx11-generic")),
            ("gfx1.kdb", None),
            ("x_gfx908.kdb", None),
        ] {
            let arch = arch_at_start(name);
            assert_eq!(arch.as_ref().map(BaseArch::as_str), expected, "{name}");
        }
    }

    #[test]
    fn sanitized_target_ids() {
        for (text, expected) in [
            ("gfx942", Some("gfx942")),
            ("gfx950_xnackp", Some("gfx950")),
            ("gfx90a_sramecc__xnack_", Some("gfx90a")),
            ("gfx90a-xnack+", Some("gfx90a")),
            ("gfx1250_strict", Some("gfx1250-strict")),
            ("gfx1250_strict_xnackp", Some("gfx1250-strict")),
            ("gfx9_4_generic", Some("gfx9-4-generic")),
            ("gfx9_4_generic_xnackp", Some("gfx9-4-generic")),
            ("gfx11_generic", Some("gfx11-generic")),
            ("gfx942_extra_words", None),
            ("gfx1", None),
            ("", None),
        ] {
            let arch = arch_of_sanitized(text);
            assert_eq!(arch.as_ref().map(BaseArch::as_str), expected, "{text}");
        }
    }

    #[test]
    fn families_have_all_known_members() {
        let names = |family: &str| {
            let members = family_members(family).into_iter();
            members.map(|arch| arch.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names("gfx110x"), ["gfx1100", "gfx1101", "gfx1102", "gfx1103"]);
        assert_eq!(names("gfx120X"), ["gfx1200", "gfx1201"]);
        let major = names("gfx11xx");
        assert!(major.contains(&"gfx1100".to_owned()) && major.contains(&"gfx1151".to_owned()));
        assert!(major.iter().all(|name| name.len() == 7 && name.starts_with("gfx11")));
        for name in ["gfx1100", "gfxxx", "gfx", "x", "", "gfx990x"] {
            assert!(names(name).is_empty(), "{name}");
        }
    }
}
