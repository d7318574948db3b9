//! Words for numbers, lists and paths in sentences.

use std::fmt::Display;
use std::path::Path;

/// `1 file`, `2 files`, `2 repositories`, `2 prefixes`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if count == N::from(1) => format!("{count} {noun}"),
        Some(stem) => format!("{count} {stem}ies"),
        None if noun.ends_with('x') => format!("{count} {noun}es"),
        None => format!("{count} {noun}s"),
    }
}

pub fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// A byte count with a decimal unit: `3.94 MB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    for (size, unit) in UNITS {
        if count >= size {
            // Hundredths in integers: the same text on every machine.
            let hundredths = count / (size / 100);
            return format!("{}.{:02} {unit}", hundredths / 100, hundredths % 100);
        }
    }
    format!("{count} B")
}

/// All of `items`, joined by commas.
pub fn list(items: impl IntoIterator<Item: Display>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
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

/// The first `most` of `items` joined by "or", and how many more there are.
pub fn either<T: Display>(items: &[T], most: usize) -> String {
    let mut words: Vec<String> = items.iter().take(most).map(T::to_string).collect();
    if items.len() > most {
        words.push(format!("{} more", items.len() - most));
    }
    words.join(" or ")
}

/// `path` as a shell argument: quoted if needed, and never parsed as an option.
pub fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let start = if text.starts_with('-') { "./" } else { "" };
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/+=:@%,".contains(c));
    if !text.is_empty() && is_plain {
        format!("{start}{text}")
    } else {
        format!("'{start}{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_singular() {
        assert_eq!([0, 1, 2].map(|n: usize| counted(n, "file")), ["0 files", "1 file", "2 files"]);
        assert_eq!(
            ["repository", "prefix"].map(|noun| counted(2, noun)),
            ["2 repositories", "2 prefixes"]
        );
        assert_eq!([1, 2].map(are), ["is", "are"]);
    }

    #[test]
    fn units_are_decimal() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_000), "1.00 kB");
        assert_eq!(bytes(3_940_000), "3.94 MB");
        assert_eq!(bytes(12_345_678_901), "12.34 GB");
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(few(&["a", "b"], 2), "a, b");
        assert_eq!(few(&["a", "b", "c"], 2), "a, b and 1 more");
        assert_eq!(few::<u8>(&[], 2), "");
        assert_eq!(either(&["a", "b"], 2), "a or b");
        assert_eq!(either(&["a", "b", "c"], 2), "a or b or 1 more");
    }

    #[test]
    fn a_shell_takes_a_path_for_one_argument() {
        for (path, expected) in [
            ("target/packages", "target/packages"),
            ("my packages", "'my packages'"),
            ("it's", r"'it'\''s'"),
            ("-out", "./-out"),
            ("-o $x", "'./-o $x'"),
        ] {
            assert_eq!(shell_word(Path::new(path)), expected);
        }
    }
}
