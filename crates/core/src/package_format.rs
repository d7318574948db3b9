//! The package formats, and the order of their versions.
//!
//! A version of a `.deb` is `[epoch:]upstream[-revision]`. Upstream and revision are split into runs of non-digits and
//! digits, compared in turn: digits as numbers, non-digits by characters. There `~` sorts before the end, the
//! end before letters, and letters before everything else. Source: deb-version(7), and dpkg 1.21.

use std::cmp::Ordering;
use std::path::Path;

use crate::named_enum;

named_enum! {
    pub enum Format {
        /// Debian's format 2.0.
        Deb = "deb",
        /// RPM's format 4 (header v4).
        Rpm = "rpm",
    }
}

impl Format {
    /// Both formats, in the order of package lists.
    pub const ALL: [Self; 2] = [Self::Deb, Self::Rpm];

    /// The format of a package file by its extension, in upper or lower case. `.ddeb` files are packages of
    /// debug files, `.udeb` files those of Debian's installer.
    pub fn of_file_name(name: &Path) -> Option<Self> {
        match name.extension()?.to_ascii_lowercase().to_str()? {
            "deb" | "ddeb" | "udeb" => Some(Self::Deb),
            "rpm" => Some(Self::Rpm),
            _ => None,
        }
    }

    /// The one of two values that is for this format.
    pub fn select<T>(self, deb: T, rpm: T) -> T {
        match self {
            Self::Deb => deb,
            Self::Rpm => rpm,
        }
    }

    /// Compares two full versions as the format's package manager does.
    pub fn compare_versions(self, one: &str, other: &str) -> Ordering {
        match self {
            Self::Deb => compare_deb_versions(one, other),
            Self::Rpm => rpm_version::Evr::parse(one).cmp(&rpm_version::Evr::parse(other)),
        }
    }
}

named_enum! {
    /// A digest without which rpm 6 refuses a package: it ignores MD5 and SHA-1. rpm 4 knows no SHA3-256.
    pub enum MissingDigest {
        /// The digest of the header, which is part of the signature.
        Header = "header",
        /// The digest of the payload, which is part of the header. The package may lack both.
        Payload = "payload",
    }
}

/// Longest word of a relation, such as a version, that apt reads, in bytes.
pub const WORD_MAX: usize = 1 << 14;

/// Refuses versions that dpkg rejects in a package; the error is the reason. Also refuses a sign before the epoch,
/// which dpkg ignores and apt compares.
pub fn check_deb_version(version: &str) -> Result<(), &'static str> {
    let VersionParts { epoch, upstream, revision } = VersionParts::of(version);
    let has_only = |text: &str, others: &str| {
        text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
    };
    if version.len() > WORD_MAX {
        Err("the version is too long for apt")
    } else if !epoch.bytes().all(|c| c.is_ascii_digit()) || epoch.parse::<i32>().is_err() {
        Err("the epoch is not a number up to 2147483647")
    } else if !upstream.starts_with(|c: char| c.is_ascii_digit()) || !has_only(upstream, "+-.~:") {
        Err(
            "the version does not begin with a digit, or has characters other than letters, digits \
             and +-.~:",
        )
    } else if revision.is_empty() || !has_only(revision, "+.~") {
        Err("the revision is empty, or has characters other than letters, digits and +.~")
    } else {
        Ok(())
    }
}

/// Compares two full versions as dpkg does.
pub fn compare_deb_versions(one: &str, other: &str) -> Ordering {
    let (a, b) = (VersionParts::of(one), VersionParts::of(other));
    number(a.epoch)
        .cmp(&number(b.epoch))
        .then_with(|| compare_part(a.upstream, b.upstream))
        .then_with(|| compare_part(a.revision, b.revision))
}

struct VersionParts<'a> {
    epoch: &'a str,
    upstream: &'a str,
    revision: &'a str,
}

impl<'a> VersionParts<'a> {
    fn of(version: &'a str) -> Self {
        let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, "0"));
        Self { epoch, upstream, revision }
    }
}

/// Digits without leading zeros; compared by length first, for numbers of any size.
fn number(digits: &str) -> (usize, &str) {
    let digits = digits.trim_start_matches('0');
    (digits.len(), digits)
}

fn compare_part(mut one: &str, mut other: &str) -> Ordering {
    let is_letter = |c: char| !c.is_ascii_digit();
    let is_digit = |c: char| c.is_ascii_digit();
    let mut compared = Ordering::Equal;
    while compared.is_eq() && !(one.is_empty() && other.is_empty()) {
        let letters = orders(take(&mut one, is_letter)).cmp(orders(take(&mut other, is_letter)));
        let (a, b) = (take(&mut one, is_digit), take(&mut other, is_digit));
        compared = letters.then_with(|| number(a).cmp(&number(b)));
    }
    compared
}

/// Splits off the prefix whose characters `belongs` accepts.
fn take<'a>(text: &mut &'a str, belongs: impl Fn(char) -> bool) -> &'a str {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    let (part, rest) = text.split_at(end);
    *text = rest;
    part
}

/// The ranks of all letters, and that of the end.
fn orders(letters: &str) -> impl Iterator<Item = (u8, u32)> {
    letters.chars().map(Some).chain([None]).map(order)
}

fn order(letter: Option<char>) -> (u8, u32) {
    match letter {
        Some('~') => (0, 0),
        None => (1, 0),
        Some(c) if c.is_ascii_alphabetic() => (2, u32::from(c)),
        Some(c) => (3, u32::from(c)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_of_deb_version() {
        let sorted = [
            "0~~",
            "0~~a",
            "0~",
            "0",
            "0a",
            "0+",
            "1.0~rc1-1",
            "1.0-1",
            "1.0-1.1",
            "1.0-2",
            "1.0a-1",
            "1.0+b-1",
            "1.0.1-1",
            "1.9-1",
            "1.10-1",
            "7.1.0~20251104-1",
            "7.1.0-1",
            "7.1.0-10",
            "7.1.1-1",
            "1:0.1",
        ];
        for (index, one) in sorted.iter().enumerate() {
            for (at, other) in sorted.iter().enumerate() {
                assert_eq!(compare_deb_versions(one, other), index.cmp(&at), "{one} {other}");
            }
        }
        assert!(sorted.iter().all(|version| check_deb_version(version).is_ok()));
        for wrong in [
            "",
            "a",
            "~1",
            "1-",
            "-1",
            "1:",
            ":1",
            "a:1",
            "+1:1",
            "2147483648:1",
            "1 1",
            "1_1",
            "1::1",
            "1:2-3:4",
            "1\n2",
            "1é",
        ] {
            assert!(check_deb_version(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(compare_deb_versions("1.0", "1.0-0"), Ordering::Equal);
        assert_eq!(compare_deb_versions("0:01.00-1", "1.0-1"), Ordering::Equal);
    }
}
