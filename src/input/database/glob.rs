//! Globs over the parts of a path: `**` stands for any number of parts, `*` for any characters
//! within one.

/// Whether the parts of a path match the parts of `pattern`.
pub fn matches_path(pattern: &str, path: &str) -> bool {
    // Most paths do not end as the pattern does.
    let last = pattern.rsplit('/').next().unwrap_or_default();
    if last != "**" && !matches_name(last, path.rsplit('/').next().unwrap_or_default()) {
        return false;
    }
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    parts_match(&pattern, &path)
}

fn parts_match(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => (0..=path.len()).any(|at| parts_match(rest, &path[at..])),
        (Some((first, rest)), Some((part, left))) => {
            matches_name(first, part) && parts_match(rest, left)
        }
        _ => false,
    }
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
    // The earliest match of each middle piece leaves the most for those behind it.
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
}
