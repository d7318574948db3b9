//! Spellings of archs inside file names, directory names and ids of bundle entries, where they are part of a longer
//! word, and the search for archs in texts that are too long to hold in memory.

use std::collections::BTreeSet;
use std::io;

use rockpack_kpack::target::last_feature;

use super::{BaseArch, FEATURES, SPIRV, Target, TargetFault, archs_in, processor_row, processors};

/// Splits an id of a bundle entry, `<kind>-<triple>[-<target id>]`, into the text before its target ID and
/// the target ID, if it names a GPU target.
///
/// Triples have three parts or four, and compilers leave the fourth empty or call it `unknown`:
/// `hip-amdgcn-amd-amdhsa-gfx906`, `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+`,
/// `hip-spirv64-amd-amdhsa-unknown-amdgcnspirv`. The target ID is therefore found by its own
/// beginning, and reaches to the end. LLVM 17 to 19 write a dash after targets that they do not know:
/// `hipv4-amdgcn-amd-amdhsa--gfx950-`.
pub fn split_entry_id(id: &str) -> Result<(&str, Option<Target>), TargetFault> {
    let stem = id.strip_suffix('-').unwrap_or(id);
    if let Some(triple) = stem.strip_suffix(SPIRV).and_then(|id| id.strip_suffix('-')) {
        return Ok((triple, Some(SPIRV.parse::<BaseArch>()?.into())));
    }
    let mut ends = id.match_indices('-').filter_map(|(at, _)| Some((at, id.get(at + 1..)?)));
    match ends.find(|(_, end)| is_processor(end)) {
        Some((at, target)) => {
            // The dash in `gfx90a:xnack-` is part of the target.
            let shorter = target.strip_suffix('-').unwrap_or(target);
            let parsed = target.parse::<Target>().or_else(|_| shorter.parse());
            Ok((id.get(..at).unwrap_or_default(), Some(parsed?)))
        }
        None => Ok((id, None)),
    }
}

/// Whether `text` starts with `gfx` and a digit.
pub fn is_processor(text: &str) -> bool {
    let number = text.strip_prefix("gfx");
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// The target ID in an id of a bundle entry, in the spelling of archives. For an entry of other code than an AMD
/// GPU's, the text in the position of the target ID.
pub fn entry_target_text(id: &str) -> String {
    match split_entry_id(id) {
        Ok((_, Some(target))) => target.to_string(),
        _ => id.rsplit_once("--").map_or(id, |(_, target)| target).to_owned(),
    }
}

/// The longest known arch that `text` starts with, whatever follows: names of tuning databases
/// put the number of compute units (decimal, or hexadecimal) directly after it.
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
    let known = processor_row(&base).is_some() || base.as_str().ends_with("-strict");
    known.then_some(base)
}

/// The members of an arch family: the known archs of the same length that differ from `name` only in its
/// trailing `x`s. `gfx110x` is gfx1100 to gfx1103, and `gfx11xx` every arch of its major version. Empty for
/// any other name.
pub fn members_of_arch_family(name: &str) -> Vec<BaseArch> {
    if !name.starts_with("gfx") {
        return Vec::new();
    }
    let stem = name.trim_end_matches(['x', 'X']);
    let is_family = stem.len() < name.len() && stem.len() > "gfx".len();
    let members = processors().iter().map(|row| &row.name).filter(|arch| {
        let arch = arch.as_str();
        is_family && arch.len() == name.len() && arch.starts_with(stem)
    });
    members.cloned().collect()
}

/// The name of an arch family in the names of AMD's device wheels (rocm-bootstrap 0.3.0): `gfx11` of `gfx11xx`,
/// `gfx12-0` of `gfx120X`, but `gfx110x` of `gfx110X`. `None` for other names.
pub fn arch_family_label(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    let stem = name.trim_end_matches('x');
    let (major, minor) = stem.split_at_checked(stem.len().saturating_sub(1))?;
    match name.len() - stem.len() {
        _ if members_of_arch_family(&name).is_empty() => None,
        1 if major != "gfx11" => Some(format!("{major}-{minor}")),
        2 => Some(stem.to_owned()),
        _ => Some(name),
    }
}

/// The archs in the label of a device wheel: an arch, several with `-` between them, or the members of a family by
/// its [`arch_family_label`] or its name in file names (`gfx11xx`, `gfx120x`). Empty for other words.
pub fn archs_of_label(label: &str) -> Vec<BaseArch> {
    let several = archs_in(label);
    let are_all = several.iter().map(BaseArch::as_str).collect::<Vec<_>>().join("-") == label;
    match (arch_of_sanitized(&label.replace('-', "_")), label.split_once('-')) {
        (Some(arch), _) => vec![arch],
        _ if are_all => several,
        (_, Some((major, minor))) => members_of_arch_family(&format!("{major}{minor}x")),
        _ if label.ends_with('x') => members_of_arch_family(label),
        _ => members_of_arch_family(&format!("{label}xx")),
    }
}

/// Bytes that are searched together.
const WINDOW: usize = 64 << 10;

/// Longest word that is kept until its end is read, in bytes.
const WORD_LIMIT: usize = 4096;

/// The archs that a text names: those that [`archs_in`] finds in the whole text, unless it has words longer
/// than 4 KiB. The text need not be UTF-8. `fill` writes the next bytes into its buffer and returns their
/// number; zero ends the text.
pub fn archs_in_windows(
    mut fill: impl FnMut(&mut [u8]) -> io::Result<usize>,
) -> io::Result<BTreeSet<BaseArch>> {
    let mut archs = BTreeSet::new();
    let mut buffer = vec![0; WORD_LIMIT + WINDOW];
    let mut kept = 0;
    loop {
        let len = fill(&mut buffer[kept..])?;
        let filled = kept + len;
        let end = match len {
            0 => filled,
            _ => last_word_start(&buffer[..filled]),
        };
        // Many windows of an index hold only numbers. The search for a `g` skips them without a conversion.
        if buffer[..end].contains(&b'g') {
            archs.extend(archs_in(&String::from_utf8_lossy(&buffer[..end])));
        }
        if len == 0 {
            return Ok(archs);
        }
        buffer.copy_within(end..filled, 0);
        kept = filled - end;
    }
}

/// The start of the last word of `text`, which may continue in the next window. Words may contain dashes, as
/// archs do (`gfx1250-strict`). Words longer than [`WORD_LIMIT`] are cut.
fn last_word_start(text: &[u8]) -> usize {
    let before = text.iter().rposition(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-');
    let start = before.map_or(0, |at| at + 1);
    if text.len() - start <= WORD_LIMIT { start } else { text.len() }
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
    fn targets_of_entry_ids_in_all_spellings() {
        for (id, before, target) in [
            ("hipv4-amdgcn-amd-amdhsa--gfx942:xnack+", "hipv4-amdgcn-amd-amdhsa-", "gfx942:xnack+"),
            ("hip-amdgcn-amd-amdhsa-unknown-gfx906", "hip-amdgcn-amd-amdhsa-unknown", "gfx906"),
            ("hip-amdgcn-amd-amdhsa-gfx906", "hip-amdgcn-amd-amdhsa", "gfx906"),
            (
                "hipv4-amdgcn-amd-amdhsa--gfx1250-strict",
                "hipv4-amdgcn-amd-amdhsa-",
                "gfx1250-strict",
            ),
            (
                "hip-amdgcn-amd-amdhsa-unknown-gfx9-4-generic:xnack-:sramecc+",
                "hip-amdgcn-amd-amdhsa-unknown",
                "gfx9-4-generic:sramecc+:xnack-",
            ),
            ("hip-spirv64-amd-amdhsa--amdgcnspirv", "hip-spirv64-amd-amdhsa-", "amdgcnspirv"),
            (
                "hip-spirv64-amd-amdhsa-unknown-amdgcnspirv",
                "hip-spirv64-amd-amdhsa-unknown",
                "amdgcnspirv",
            ),
            ("hipv4-spirv64-amd-amdhsa-amdgcnspirv", "hipv4-spirv64-amd-amdhsa", "amdgcnspirv"),
        ] {
            let (start, found) = split_entry_id(id).unwrap();
            assert_eq!((start, found.unwrap().to_string().as_str()), (before, target), "{id}");
            assert_eq!(entry_target_text(id), target, "{id}");
        }
        let none = "openmp-nvptx64-nvidia-cuda--sm_70";
        assert_eq!(split_entry_id(none), Ok((none, None)));
        assert_eq!(entry_target_text(none), "sm_70");
        let bad = "hipv4-amdgcn-amd-amdhsa--gfx90a:bad";
        assert!(split_entry_id(bad).is_err());
        assert_eq!(entry_target_text(bad), "gfx90a:bad");
    }

    #[test]
    fn families_have_all_known_members() {
        assert_eq!(member_names("gfx110x"), ["gfx1100", "gfx1101", "gfx1102", "gfx1103"]);
        assert_eq!(member_names("gfx120X"), ["gfx1200", "gfx1201"]);
        let major = member_names("gfx11xx");
        assert!(major.contains(&"gfx1100".to_owned()) && major.contains(&"gfx1151".to_owned()));
        assert!(major.iter().all(|name| name.len() == 7 && name.starts_with("gfx11")));
        for name in ["gfx1100", "gfxxx", "gfx", "x", "", "gfx990x"] {
            assert!(member_names(name).is_empty(), "{name}");
        }
    }

    /// The labels are those of rocm-bootstrap 0.3.0.
    #[test]
    fn families_are_called_as_amd_calls_them() {
        for (names, label) in [
            (&["gfx9xx", "gfx9XX"][..], "gfx9"),
            (&["gfx90x", "gfx90X"], "gfx9-0"),
            (&["gfx94X"], "gfx9-4"),
            (&["gfx95x"], "gfx9-5"),
            (&["gfx10xx"], "gfx10"),
            (&["gfx101X"], "gfx10-1"),
            (&["gfx103x"], "gfx10-3"),
            (&["gfx11xx", "gfx11XX"], "gfx11"),
            (&["gfx110x", "gfx110X"], "gfx110x"),
            (&["gfx115X"], "gfx115x"),
            (&["gfx12xx"], "gfx12"),
            (&["gfx120x", "gfx120X"], "gfx12-0"),
            (&["gfx125X"], "gfx12-5"),
        ] {
            for name in names {
                assert_eq!(arch_family_label(name).as_deref(), Some(label), "{name}");
                let members = archs_of_label(label);
                assert_eq!(members, members_of_arch_family(name), "{name}");
                assert_eq!(members, archs_of_label(&name.to_ascii_lowercase()), "{name}");
            }
            // No family is read as an arch.
            assert!(arch_of_sanitized(&label.replace('-', "_")).is_none(), "{label}");
            assert!(archs_in(label).is_empty(), "{label}");
        }
        for name in ["gfx1100", "gfx11", "gfx12-0", "gfx11-generic", "gfx990x", "gfx", "x", ""] {
            assert_eq!(arch_family_label(name), None, "{name}");
        }
        for (label, expected) in [
            ("gfx1100", "gfx1100"),
            ("gfx11-generic", "gfx11-generic"),
            ("gfx1100-gfx942", "gfx1100 gfx942"),
            ("gfx110x-all", ""),
            ("common", ""),
            ("gfx", ""),
            ("", ""),
        ] {
            let archs: Vec<String> =
                archs_of_label(label).iter().map(ToString::to_string).collect();
            assert_eq!(archs.join(" "), expected, "{label}");
        }
    }

    fn member_names(family: &str) -> Vec<String> {
        members_of_arch_family(family).into_iter().map(|arch| arch.to_string()).collect()
    }

    fn named(text: &[u8]) -> Vec<String> {
        let mut rest = text;
        let archs = archs_in_windows(|buffer| io::Read::read(&mut rest, buffer)).unwrap();
        archs.iter().map(BaseArch::to_string).collect()
    }

    #[test]
    fn names_across_the_end_of_a_window_are_whole() {
        let first = WORD_LIMIT + WINDOW;
        for before in (first - 100..first + 40).chain(first + WINDOW - 20..first + WINDOW + 20) {
            assert_eq!(named_behind(before, "gfx1250-strict gfx90a"), ["gfx1250-strict", "gfx90a"]);
            assert_eq!(named_behind(before, "gfx90a-xnack+ gfx1100.co"), ["gfx1100", "gfx90a"]);
            assert!(named_behind(before, "xgfx942 gfx90a6e gfx000").is_empty(), "{before}");
        }
    }

    /// The archs in `text` behind `before` bytes.
    fn named_behind(before: usize, text: &str) -> Vec<String> {
        named(&[vec![0xff; before], text.as_bytes().to_vec()].concat())
    }

    #[test]
    fn long_words_are_cut() {
        assert!(named(&vec![b'a'; 300_000]).is_empty());
        let text = [&[b'a'; 300_000][..], b" gfx90a ", &[b'-'; 300_000], b" gfx942"].concat();
        assert_eq!(named(&text), ["gfx90a", "gfx942"]);
    }
}
