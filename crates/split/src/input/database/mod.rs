//! The recognition of kernel databases: device code, or indexes of it, in separate files.
//!
//! Owns the rules of `config/databases.toml` and the claims that they make on paths, reads the content of
//! indexes, and checks whether the indexes of a folder contradict each other. `split` decides about a claimed
//! file. Refuses rules with unknown keys, and two rules with the same name.

mod index;
mod integrity;
mod rule;
mod union;

pub use index::{Index, IndexDescription, describe_index, index_bytes, is_zlib, read_index};
pub use integrity::{LazyNames, LibraryIndex, inconsistencies, stem};
pub use rule::{Compressible, DatabaseClaim, DatabaseRole, DatabaseRules, Rule, Spelling};
pub use union::{Union, union};

/// Whether `path` matches `pattern`, a glob over the parts of a path, which `/` separates: `**` matches any
/// number of parts, `*` any characters within one part.
pub fn matches_path(pattern: &str, path: &str) -> bool {
    // Checks the last part first: this rejects most paths without splitting them.
    let last = pattern.rsplit('/').next().unwrap_or_default();
    if last != "**" && !matches_name(last, path.rsplit('/').next().unwrap_or_default()) {
        return false;
    }
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    parts_match(&pattern, &path)
}

/// Whether the parts of a path match those of a pattern. The earliest match of the parts between two
/// `**` leaves the most for the rest, so only the last `**` is ever extended. The number of steps is at most
/// the product of both lengths.
fn parts_match(pattern: &[&str], path: &[&str]) -> bool {
    let (mut pattern_at, mut path_at) = (0, 0);
    let mut last: Option<(usize, usize)> = None;
    while let Some(part) = path.get(path_at) {
        match pattern.get(pattern_at) {
            Some(&"**") => {
                pattern_at += 1;
                last = Some((pattern_at, path_at));
            }
            Some(wanted) if matches_name(wanted, part) => {
                pattern_at += 1;
                path_at += 1;
            }
            _ => {
                let Some((behind, taken)) = &mut last else { return false };
                *taken += 1;
                (pattern_at, path_at) = (*behind, *taken);
            }
        }
    }
    pattern.iter().skip(pattern_at).all(|part| *part == "**")
}

/// Whether one name matches one part of a pattern.
pub fn matches_name(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut left) = name.strip_prefix(start) else {
        return false;
    };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    // The earliest match of each middle piece leaves the most for those after it.
    for piece in middle.split('*') {
        match left.find(piece) {
            Some(at) => left = &left[at + piece.len()..],
            None => return false,
        }
    }
    left.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stay_within_a_name() {
        for (pattern, name, expected) in [
            ("*.co", "a.co", true),
            ("*.co", ".co", true),
            ("*.co", "a.cob", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*_lazy_*", "x_lazy_gfx1100.dat", true),
            ("*_lazy_*", "x_lazy.dat", false),
            ("a*b*c*d", "a1b2c3d", true),
            ("a*b*c*d", "a1c2b3d", false),
            ("exact", "exact", true),
            ("*", "", true),
        ] {
            assert_eq!(matches_name(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn two_stars_span_directories() {
        for (path, expected) in [
            ("lib/rocblas/library", true),
            ("rocblas/library", true),
            ("a/b/rocblas/library", true),
            ("lib/rocblas/x/library", false),
            ("lib/rocblas/library/gfx906", false),
        ] {
            assert_eq!(matches_path("**/rocblas/library", path), expected, "{path}");
        }
        assert!(matches_path("**/rocblas/*/library", "lib/rocblas/4.2/library"));
    }

    /// The definition of a match, written as a recursion to test against.
    fn by_definition(pattern: &[&str], path: &[&str]) -> bool {
        match (pattern.split_first(), path.split_first()) {
            (None, None) => true,
            (Some((&"**", rest)), _) => (0..=path.len()).any(|at| by_definition(rest, &path[at..])),
            (Some((first, rest)), Some((part, left))) => {
                matches_name(first, part) && by_definition(rest, left)
            }
            _ => false,
        }
    }

    #[test]
    fn short_patterns_match_by_the_definition() {
        let paths: Vec<_> = words(["a", "b", "ab"], 4).collect();
        for pattern in words(["**", "a", "*b"], 5) {
            for path in &paths {
                let expected = by_definition(&pattern, path);
                assert_eq!(parts_match(&pattern, path), expected, "{pattern:?} {path:?}");
            }
        }
    }

    fn words(letters: [&'static str; 3], most: u32) -> impl Iterator<Item = Vec<&'static str>> {
        (0..=most)
            .flat_map(move |len| (0..3usize.pow(len)).map(move |number| word(letters, number, len)))
    }

    fn word(letters: [&'static str; 3], number: usize, len: u32) -> Vec<&'static str> {
        (0..len).map(|place| letters[number / 3usize.pow(place) % 3]).collect()
    }

    #[test]
    fn many_stars_do_not_take_exponential_time() {
        let path = vec!["a"; 2000].join("/");
        assert!(!matches_path(&format!("{}x/a", "**/a/".repeat(40)), &path));
        assert!(matches_path(&format!("{}a", "**/a/".repeat(40)), &path));
    }
}
