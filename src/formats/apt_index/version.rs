//! Which of two versions is newer, as dpkg compares them.
//!
//! Source: deb-version(7). `[epoch:]upstream[-revision]`; each part is compared in runs of
//! non-digits and of digits in turn: digits as numbers, other characters with `~` before the end,
//! the end before letters, letters before everything else.

use std::cmp::Ordering;

/// Compares two versions.
pub fn compare(left: &str, right: &str) -> Ordering {
    let (left, right) = (parts(left), parts(right));
    digits(left.0, right.0).then_with(|| part(left.1, right.1)).then_with(|| part(left.2, right.2))
}

fn parts(version: &str) -> (&str, &str, &str) {
    let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, "0"));
    (epoch, upstream, revision)
}

/// Numbers of any length.
fn digits(left: &str, right: &str) -> Ordering {
    let (left, right) = (left.trim_start_matches('0'), right.trim_start_matches('0'));
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

fn part(mut left: &str, mut right: &str) -> Ordering {
    while !left.is_empty() || !right.is_empty() {
        let (a, b) =
            (take(&mut left, |c| !c.is_ascii_digit()), take(&mut right, |c| !c.is_ascii_digit()));
        let (a_digits, b_digits) =
            (take(&mut left, |c| c.is_ascii_digit()), take(&mut right, |c| c.is_ascii_digit()));
        let order = letters(a, b).then_with(|| digits(a_digits, b_digits));
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

/// Cuts off the characters that `belongs` holds for.
fn take<'a>(text: &mut &'a str, belongs: fn(char) -> bool) -> &'a str {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    let (head, rest) = text.split_at(end);
    *text = rest;
    head
}

fn letters(left: &str, right: &str) -> Ordering {
    let weight = |c: Option<char>| match c {
        Some('~') => (0, '~'),
        None => (1, '\0'),
        Some(c) if c.is_ascii_alphabetic() => (2, c),
        Some(c) => (3, c),
    };
    let (mut left, mut right) = (left.chars(), right.chars());
    loop {
        let (a, b) = (left.next(), right.next());
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
        let sorted = [
            "1.0~~",
            "1.0~rc1-1",
            "1.0~rc1-2",
            "1.0",
            "1.0-0.1",
            "1.0-1",
            "1.0-1+b1",
            "1.0a-1",
            "1.0+git1-1",
            "1.0.1-1",
            "1.9",
            "1.10",
            "1:0.5",
            "2:0",
        ];
        for (index, left) in sorted.iter().enumerate() {
            for (other, right) in sorted.iter().enumerate() {
                assert_eq!(compare(left, right), index.cmp(&other), "{left} {right}");
            }
        }
        assert_eq!(compare("1.0", "0:1.0-0"), Ordering::Equal);
        assert_eq!(compare("1.01", "1.1"), Ordering::Equal);
    }
}
