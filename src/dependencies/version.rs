//! Debian's order of versions.
//!
//! `[epoch:]upstream[-revision]`. Upstream version and revision are compared in turns of a text
//! without digits and a number. In texts, letters come before other characters, and `~` before
//! everything, even the end. Source: Debian Policy, 5.6.12.

use std::cmp::Ordering;

/// Compares two versions as dpkg does.
pub fn compare(one: &str, other: &str) -> Ordering {
    let (one, other) = (Parts::of(one), Parts::of(other));
    compare_numbers(one.epoch, other.epoch)
        .then_with(|| compare_texts(one.upstream, other.upstream))
        .then_with(|| compare_texts(one.revision, other.revision))
}

struct Parts<'a> {
    epoch: &'a str,
    upstream: &'a str,
    revision: &'a str,
}

impl<'a> Parts<'a> {
    fn of(version: &'a str) -> Self {
        let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
        Self { epoch, upstream, revision }
    }
}

fn compare_texts(mut one: &str, mut other: &str) -> Ordering {
    while !(one.is_empty() && other.is_empty()) {
        let (text, rest) = split(one, |c| !c.is_ascii_digit());
        let (other_text, other_rest) = split(other, |c| !c.is_ascii_digit());
        let (number, rest) = split(rest, |c| c.is_ascii_digit());
        let (other_number, other_rest) = split(other_rest, |c| c.is_ascii_digit());
        let order =
            compare_letters(text, other_text).then_with(|| compare_numbers(number, other_number));
        if order != Ordering::Equal {
            return order;
        }
        (one, other) = (rest, other_rest);
    }
    Ordering::Equal
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// Numbers of any length.
fn compare_numbers(one: &str, other: &str) -> Ordering {
    let (one, other) = (one.trim_start_matches('0'), other.trim_start_matches('0'));
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

/// The end of a text counts as 0.
fn compare_letters(one: &str, other: &str) -> Ordering {
    let weight = |c: Option<char>| match c {
        None => 0,
        Some('~') => -1,
        Some(c) if c.is_ascii_alphabetic() => i64::from(u32::from(c)),
        Some(c) => i64::from(u32::from(c)) + 256,
    };
    let (mut one, mut other) = (one.chars(), other.chars());
    loop {
        let (a, b) = (one.next(), other.next());
        let order = weight(a).cmp(&weight(b));
        if order != Ordering::Equal || (a.is_none() && b.is_none()) {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_dpkgs_order() {
        let ascending = [
            "0~~",
            "0~",
            "0",
            "1.0~rc1-1",
            "1.0-1",
            "1.0-1+b1",
            "1.0-1.1",
            "1.0-2",
            "1.0a",
            "1.0+x",
            "1.0.1",
            "1.2",
            "1.10",
            "20",
            "1:0",
            "1:00001",
        ];
        for (at, one) in ascending.iter().enumerate() {
            for (other_at, other) in ascending.iter().enumerate() {
                assert_eq!(compare(one, other), at.cmp(&other_at), "{one} {other}");
            }
        }
        assert_eq!(compare("1.0", "1.00"), Ordering::Equal);
        assert_eq!(compare("0:1", "1"), Ordering::Equal);
    }
}
