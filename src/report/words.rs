//! Numbers and lists in sentences.

use std::fmt::Display;

/// `1 file`, `2 files`; nouns that take an `s`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// The verb behind a number of things.
pub fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// All of `items`.
pub fn list<T: Display>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    items.join(", ")
}

/// The first `most` of `items`, and how many more there are.
pub fn few<T: Display>(items: &[T], most: usize) -> String {
    match items.split_at_checked(most) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{} and {} more", list(first), rest.len())
        }
        _ => list(items),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!([0, 1, 2].map(|n: usize| counted(n, "file")), ["0 files", "1 file", "2 files"]);
        assert_eq!([1, 2].map(are), ["is", "are"]);
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(few(&["a", "b"], 2), "a, b");
        assert_eq!(few(&["a", "b", "c"], 2), "a, b and 1 more");
        assert_eq!(few::<u8>(&[], 2), "");
    }
}
