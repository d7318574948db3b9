//! Finds the known name that a mistyped word means.

use std::cmp::Ordering;

use rockpack_core::gfx::{self, BaseArch};
use strsim::{damerau_levenshtein, jaro_winkler};

/// Largest edit distance between a mistyped name and the known one: one edit for this many characters.
const TYPO_SHARE: usize = 3;

/// The name in `known` that is nearest to `word`; `None` if all are too far away. Among names at the same
/// distance, the one with the longest common beginning.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let found = known.into_iter().min_by(|one, other| compare_nearness(word, one, other))?;
    (damerau_levenshtein(word, found) <= found.len().div_ceil(TYPO_SHARE)).then_some(found)
}

fn compare_nearness(word: &str, one: &str, other: &str) -> Ordering {
    let by_distance = damerau_levenshtein(word, one).cmp(&damerau_levenshtein(word, other));
    let by_beginning = by_distance.then_with(|| shared(word, other).cmp(&shared(word, one)));
    by_beginning.then_with(|| jaro_winkler(word, other).total_cmp(&jaro_winkler(word, one)))
}

/// Number of characters that both words begin with.
fn shared(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

/// A suggestion for `word`, which is not a known arch: the members of the arch family it names, or the
/// nearest arch.
pub fn meant_arch(word: &str) -> Option<String> {
    let members: Vec<String> =
        gfx::members_of_arch_family(word).iter().map(|arch| format!("`{arch}`")).collect();
    if !members.is_empty() {
        return Some(format!("name the archs of this family one by one: {}", members.join(", ")));
    }
    let lowered = word.to_lowercase();
    nearest_arch(&lowered).map(|arch| format!("did you mean `{arch}`?"))
}

/// The known arch that is nearest to `word`.
pub fn nearest_arch(word: &str) -> Option<BaseArch> {
    let names: Vec<String> = gfx::known_archs().map(|arch| arch.to_string()).collect();
    nearest(word, names.iter().map(String::as_str))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_near_enough() {
        let known = ["rocm-blas", "rocm-sparse", "rocm"];
        assert_eq!(nearest("rocm-bals", known), Some("rocm-blas"));
        assert_eq!(nearest("hipblaslt", known), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn archs_are_meant_by_their_digits_and_families_by_their_members() {
        for (word, expected) in [
            ("gfx10300x", "did you mean `gfx1030`?"),
            ("gfx11510x", "did you mean `gfx1151`?"),
            ("gfx1203", "did you mean `gfx1200`?"),
            ("gfx1130", "did you mean `gfx1103`?"),
            ("GFX1100", "did you mean `gfx1100`?"),
            ("gfx1250-strct", "did you mean `gfx1250-strict`?"),
            ("gfx11-genric", "did you mean `gfx11-generic`?"),
            ("amdgcnspriv", "did you mean `amdgcnspirv`?"),
            ("gfx120X", "name the archs of this family one by one: `gfx1200`, `gfx1201`"),
        ] {
            assert_eq!(meant_arch(word).as_deref(), Some(expected), "{word}");
        }
        assert_eq!(meant_arch("rdna3"), None);
    }
}
