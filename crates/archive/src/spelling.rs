//! The spelling rules of package managers for names, versions and architectures of packages.
//!
//! | | `.deb` (deb-version(7), Debian policy 5.6.1) | `.rpm` (rpm's build/parsePreamble.c) |
//! |---|---|---|
//! | name | letters, digits, `+ - .`, a letter or digit first | letters, digits, `. _ + - ~ ^`, none of `. + - ~ ^` first |
//! | version | `[epoch:]upstream[-revision]`: letters, digits, `. + - ~` | `[epoch:]version[-release]`: letters, digits, `. _ + ~ ^` |
//! | architecture | letters, digits, `-` | letters, digits, `_` |

use crate::package_file::Format;

/// Whether `text` is a valid package name of the format.
pub fn is_name(format: Format, text: &str) -> bool {
    let (first, all) = format.select(("", "+-."), ("_", "._+-~^"));
    is_of(text, all) && text.starts_with(|c: char| c.is_ascii_alphanumeric() || first.contains(c))
}

/// Whether `text` is a valid version of the format, with an optional epoch and release.
pub fn is_version(format: Format, text: &str) -> bool {
    let rest = match text.split_once(':') {
        None => text,
        Some((epoch, rest)) if !epoch.is_empty() && epoch.bytes().all(|c| c.is_ascii_digit()) => {
            rest
        }
        Some(_) => return false,
    };
    match format {
        Format::Deb => is_of(rest, ".+-~") && rest.starts_with(|c: char| c.is_ascii_alphanumeric()),
        Format::Rpm => rest.splitn(2, '-').all(is_rpm_part),
    }
}

/// Whether `text` is a valid version or release of an `.rpm`, each by itself.
pub fn is_rpm_part(text: &str) -> bool {
    is_of(text, "._+~^") && !text.starts_with('.')
}

/// Whether `text` is a valid architecture of the format.
pub fn is_architecture(format: Format, text: &str) -> bool {
    match format {
        Format::Deb => is_of(text, "-") && !text.starts_with('-'),
        Format::Rpm => is_of(text, "_"),
    }
}

fn is_of(text: &str, signs: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || signs.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_package_managers_take_is_told_from_the_rest() {
        use Format::{Deb, Rpm};
        for (format, name, is_taken) in [
            (Deb, "rocm-blas7.1", true),
            (Rpm, "libstdc++_x-devel", true),
            (Rpm, "_x", true),
            (Deb, "libc6, bash (<< 99)", false),
            (Deb, "a\nBreaks: b", false),
            (Rpm, "-rf", false),
            (Deb, "-rf", false),
            (Rpm, "a = 1", false),
            (Rpm, "../a", false),
            (Rpm, "", false),
        ] {
            assert_eq!(is_name(format, name), is_taken, "{format:?} {name}");
        }
        for (format, version, is_taken) in [
            (Deb, "1:7.1.0~rc1-1+deb12", true),
            (Rpm, "2:7.1.0~rc1-1.el9", true),
            (Rpm, "7.1.0^git_5-1", true),
            (Rpm, "7.1.0", true),
            (Rpm, "7.1-0-1", false),
            (Deb, "1) | bash (= 2", false),
            (Deb, "a:1", false),
            (Rpm, ":1-1", false),
            (Rpm, "1-", false),
        ] {
            assert_eq!(is_version(format, version), is_taken, "{format:?} {version}");
        }
        assert!(is_architecture(Deb, "linux-any") && is_architecture(Rpm, "x86_64"));
        assert!(!is_architecture(Deb, "amd64\n") && !is_architecture(Rpm, "../x"));
    }
}
