//! Versions in the syntax of each format.
//!
//! | upstream | deb | rpm |
//! |---|---|---|
//! | `7.1.0`, release `1` | `7.1.0-1` | `7.1.0`, `1` |
//! | `7.1.0-rc1`, `7.1.0rc1`, `7.1.0~rc1` | `7.1.0~rc1-1` | `7.1.0~rc1`, `1` |
//! | `7.1.0-20251104` | `7.1.0~20251104-1` | `7.1.0~20251104`, `1` |
//! | `7.1.0.dev0` | `7.1.0~dev0-1` | `7.1.0~dev0`, `1` |
//!
//! An epoch comes first, if one is set: `1:7.1.0-1` in relations of both formats and in Debian's version. In
//! rpm it is a tag of its own.
//!
//! The tag of a distribution is appended to the release: `1~deb12` in deb, `1.el9` in rpm.
//!
//! In both formats `~` sorts before the end, so a pre-release is older than its release. Both accept letters,
//! digits, `.`, `+` and `~`; other characters are refused. After a separator, dpkg sorts digits before
//! letters, and rpm letters before digits: `7.1.0~20251104` is older than `7.1.0~dev1` for dpkg and newer for
//! rpm. `repo` warns of such versions (`repo::orders`).

use rockpack_core::error::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Format;

/// Words that begin a pre-release.
const PRE_RELEASES: [&str; 7] = ["alpha", "beta", "pre", "rc", "dev", "a", "b"];

/// Major versions above this have the same priority, because alternatives count in 31 bits.
const PRIORITY_MAJOR_MAX: u32 = 100_000;

/// Parts of a version from this number on sort the same.
const NEWEST: u32 = 9999;

/// Digits of a date, `YYYYMMDD`.
const DATE_DIGITS: usize = 8;

/// Suffix of the release in each format.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DistributionTag {
    /// Suffix of `.deb` releases, e.g. `~deb12`
    pub deb: Option<String>,
    /// Suffix of `.rpm` releases, e.g. `.el9`
    pub rpm: Option<String>,
}

/// The version and release of all packages of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    epoch: Option<u32>,
    upstream: String,
    release: String,
    /// Suffix of the release in each format.
    tags: DistributionTag,
}

impl Version {
    /// Makes a version of an upstream version and a release. Refuses characters that a format lacks.
    pub fn new(version: &str, release: &str) -> Result<Self> {
        let upstream = with_tilde(version);
        if !is_upstream(&upstream) {
            let message = format!("`{version}` is no version that deb and rpm both can express");
            return Err(Error::new(Kind::Config, message).hint(version_hint(version)));
        }
        if !legal(release) {
            let message = format!("`{release}` is no release that deb and rpm both can express");
            return Err(Error::new(Kind::Config, message)
                .hint("a release has letters, digits, `.`, `+` and `~`, as in 1 or 1.el9"));
        }
        let release = release.to_owned();
        Ok(Self { epoch: None, upstream, release, tags: DistributionTag::default() })
    }

    /// Sets the suffix of the release in each format.
    pub fn with_tags(self, tags: &DistributionTag) -> Result<Self> {
        if let Some(tag) = [&tags.deb, &tags.rpm].into_iter().flatten().find(|tag| !legal(tag)) {
            let message = format!("`{tag}` is no tag that a release can end in");
            let hint = "a tag has letters, digits, `.`, `+` and `~`, as in ~deb12 or .el9";
            return Err(Error::new(Kind::Config, message).hint(hint));
        }
        Ok(Self { tags: tags.clone(), ..self })
    }

    /// Sets the epoch; 0 is the same as no epoch in both formats.
    pub fn with_epoch(self, epoch: Option<u32>) -> Self {
        Self { epoch: epoch.filter(|epoch| *epoch > 0), ..self }
    }

    /// The epoch, which outweighs the rest of the version.
    pub fn epoch(&self) -> Option<u32> {
        self.epoch
    }

    /// The version alone, which is the same in both formats, e.g. `7.1.0~rc1`.
    pub fn upstream(&self) -> &str {
        &self.upstream
    }

    /// The release without any tag, e.g. `1`.
    pub fn release(&self) -> &str {
        &self.release
    }

    /// The release with the distribution's tag, e.g. `1.el9`.
    pub fn tagged_release(&self, format: Format) -> String {
        let tag = format.select(&self.tags.deb, &self.tags.rpm);
        format!("{}{}", self.release, tag.as_deref().unwrap_or_default())
    }

    /// Version and release as relations write them: `7.1.0-1` in both formats.
    pub fn full(&self, format: Format) -> String {
        let epoch = self.epoch.map(|epoch| format!("{epoch}:")).unwrap_or_default();
        format!("{epoch}{}-{}", self.upstream, self.tagged_release(format))
    }

    /// The priority for alternatives, higher for later versions: 70102 for 7.1.2. A part that is not a number
    /// counts as 0. The second and third parts count as 99 at most.
    pub fn priority(&self) -> u32 {
        let mut parts = self.parts();
        let most = [PRIORITY_MAJOR_MAX, 99, 99];
        let [major, minor, patch] = most.map(|most| number(parts.next().unwrap_or_default(), most));
        major * 10_000 + minor * 100 + patch
    }

    /// The first `parts` parts of the version, as digits that sort the newest first: 99929998 for two parts
    /// of 7.1, and before it 99929989 for 7.10. A part that is not a number counts as 0, and one with more
    /// than four digits as 9999.
    pub fn newest_first(&self, parts: usize) -> String {
        let texts = self.parts().chain(std::iter::repeat(""));
        texts.take(parts).map(|part| format!("{:04}", NEWEST - number(part, NEWEST))).collect()
    }

    /// `<major>.<minor>`, if the version has both.
    pub fn series(&self) -> Option<String> {
        let mut numbers = self.parts().take_while(|part| is_number(part));
        let (major, minor) = (numbers.next()?, numbers.next()?);
        Some(format!("{major}.{minor}"))
    }

    /// Whether `full`, a version and release after the epoch if any, has this version, epoch and distribution
    /// tag in `format`. Any release counts.
    pub fn is_of_release(&self, full: &str, format: Format) -> bool {
        let tagged = self.tagged_release(format);
        let tag = tagged.strip_prefix(&self.release).unwrap_or_default();
        let epoch = self.epoch.map(|epoch| format!("{epoch}:")).unwrap_or_default();
        let rest = full.strip_prefix(&epoch).and_then(|rest| rest.strip_prefix(&self.upstream));
        rest.is_some_and(|rest| rest.starts_with('-') && rest.ends_with(tag))
    }

    /// Whether the version precedes a release, such as a release candidate or a nightly build.
    pub fn is_pre_release(&self) -> bool {
        self.upstream.contains('~')
    }

    /// The upper bound of all releases of this patch version, which excludes pre-releases of the next one:
    /// `7.1.1~` for 7.1.0, after the epoch if there is one. `None` if one of the first three parts is not a
    /// number.
    pub fn next_patch(&self) -> Option<String> {
        let parts = self.parts().map(|part| part.parse::<u64>().ok().filter(|_| is_number(part)));
        let mut numbers = parts.chain(std::iter::repeat(Some(0)));
        let (major, minor) = (numbers.next()??, numbers.next()??);
        let patch = numbers.next()??.checked_add(1)?;
        let epoch = self.epoch.map(|epoch| format!("{epoch}:")).unwrap_or_default();
        Some(format!("{epoch}{major}.{minor}.{patch}~"))
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        self.upstream.split(['.', '~', '+'])
    }
}

fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit())
}

/// The number in `part`, at most `most`; 0 if `part` is not a number.
fn number(part: &str, most: u32) -> u32 {
    if is_number(part) { part.parse().unwrap_or(most).min(most) } else { 0 }
}

/// Whether both formats accept `text` as an upstream version.
fn is_upstream(text: &str) -> bool {
    legal(text) && text.starts_with(|c: char| c.is_ascii_digit())
}

/// The hint for a refused version. Versions as package managers print them contain the epoch and release,
/// which are settings of their own.
fn version_hint(version: &str) -> String {
    let (epoch, rest) = match version.split_once(':') {
        Some((epoch, rest)) if is_number(epoch) => (Some(epoch), rest),
        _ => (None, version),
    };
    let (upstream, release) = match rest.rsplit_once('-') {
        Some((upstream, release)) if is_upstream(release) => (upstream, Some(release)),
        _ => (rest, None),
    };
    if !is_upstream(&with_tilde(upstream)) || (epoch, release) == (None, None) {
        return "a version starts with a digit and has letters, digits, `.`, `+` and `~`; \
                pre-releases are written as in 7.1.0-rc1 or 7.1.0-20251104"
            .to_owned();
    }
    let option = release.map(|release| format!(" --release {release}")).unwrap_or_default();
    let key = epoch.map(|epoch| format!(", and the key `epoch = {epoch}`")).unwrap_or_default();
    format!(
        "the version has its release, or its epoch, in it: give --version {upstream}{option}{key} \
         (in a configuration, `version` and `release`)"
    )
}

/// Whether both formats accept every character of `text`.
fn legal(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || ".+~".contains(c))
}

/// Puts `~` before a pre-release.
fn with_tilde(version: &str) -> String {
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    let (head, rest) = version.split_at(end);
    let head = if rest.is_empty() { head } else { head.trim_end_matches('.') };
    let bare = rest.trim_start_matches(['-', '~']);
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    let is_date = rest.starts_with(['-', '~']) && digits == DATE_DIGITS;
    if is_pre_release(bare) || is_date { format!("{head}~{bare}") } else { version.to_owned() }
}

fn is_pre_release(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_alphabetic());
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    let rest_fits = rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    PRE_RELEASES.contains(&word) && rest_fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_rise_with_versions() {
        assert_eq!(["7.1.2", "7.1", "7.1.0~rc1"].map(priority_of), [70_102, 70_100, 70_100]);
        assert!(priority_of("7.10.0") > priority_of("7.9.5"));
        assert!(priority_of("10.0") > priority_of("7.99.99"));
        assert_eq!(priority_of("99999999999.300.1"), 1_000_009_901);
    }

    fn priority_of(version: &str) -> u32 {
        Version::new(version, "1").unwrap().priority()
    }

    #[test]
    fn pre_releases_sort_before_the_release() {
        for (text, expected) in [
            ("7.1.0", "7.1.0"),
            ("7.1.0-rc1", "7.1.0~rc1"),
            ("7.1.0rc1", "7.1.0~rc1"),
            ("7.1.0~rc1", "7.1.0~rc1"),
            ("7.1.0-pre2", "7.1.0~pre2"),
            ("7.10.0a20251008", "7.10.0~a20251008"),
            ("7.1.0.dev0", "7.1.0~dev0"),
            ("7.1.0-20251104", "7.1.0~20251104"),
            ("7.1.0-rc1+git5", "7.1.0~rc1+git5"),
            ("7.1.0+git5", "7.1.0+git5"),
            ("7.1.0.post1", "7.1.0.post1"),
        ] {
            let version = Version::new(text, "1").unwrap();
            assert_eq!(version.full(Format::Deb), format!("{expected}-1"), "{text}");
            assert_eq!(version.upstream(), expected);
        }
    }

    #[test]
    fn what_a_format_cannot_write_is_refused() {
        for text in ["", "v7", "7.1.0-1", "7.1_0", "1:7.1", "7.1 0", "7.1.0-rcx", "7.1^1", "7/1"] {
            assert!(Version::new(text, "1").is_err(), "{text}");
        }
        for release in ["", "1-2", "1_2", "1:2"] {
            assert!(Version::new("7.1.0", release).is_err(), "{release}");
        }
    }

    #[test]
    fn an_epoch_stands_in_front() {
        let version = Version::new("7.1.0", "1").unwrap();
        assert_eq!(version.clone().with_epoch(Some(2)).full(Format::Rpm), "2:7.1.0-1");
        assert_eq!(version.clone().with_epoch(Some(0)), version.with_epoch(None));
    }

    #[test]
    fn a_tag_ends_the_release_of_its_format() {
        let tagged = version_with_tags("~deb12").unwrap();
        assert_eq!(tagged.full(Format::Deb), "7.1.0-1~deb12");
        assert_eq!(tagged.full(Format::Rpm), "7.1.0-1.el9");
        assert_eq!(tagged.release(), "1");
        assert!(version_with_tags("-deb12").is_err() && version_with_tags("").is_err());
    }

    fn version_with_tags(deb: &str) -> Result<Version> {
        let (deb, rpm) = (Some(deb.to_owned()), Some(".el9".to_owned()));
        Version::new("7.1.0", "1").unwrap().with_tags(&DistributionTag { deb, rpm })
    }

    #[test]
    fn the_next_patch_version_is_above_all_releases_of_this_one() {
        for (text, expected) in [
            ("7.1.0", Some("7.1.1~")),
            ("7.1", Some("7.1.1~")),
            ("7", Some("7.0.1~")),
            ("7.1.9+git5", Some("7.1.10~")),
            ("7.1.0.70100", Some("7.1.1~")),
            ("7.12.0-20251104", Some("7.12.1~")),
            ("7.1.x", None),
            ("7.1.18446744073709551615", None),
        ] {
            let version = Version::new(text, "9").unwrap();
            assert_eq!(version.next_patch().as_deref(), expected, "{text}");
            for (format, next) in
                Format::ALL.into_iter().flat_map(|f| expected.map(|next| (f, next)))
            {
                let full = version.full(format);
                assert!(format.compare_versions(&full, next).is_lt(), "{text}");
                let bare = next.trim_end_matches('~');
                for newer in [format!("{bare}-rc1"), bare.to_owned()] {
                    let newer = Version::new(&newer, "1").unwrap().full(format);
                    assert!(format.compare_versions(&newer, next).is_gt(), "{text}");
                }
            }
        }
        let version = Version::new("7.1.0", "1").unwrap().with_epoch(Some(2));
        assert_eq!(version.next_patch().as_deref(), Some("2:7.1.1~"));
    }

    #[test]
    fn the_series_is_major_and_minor() {
        for (text, expected) in [("7.1.0", Some("7.1")), ("7.1~rc1", Some("7.1")), ("7", None)] {
            let series = Version::new(text, "1").unwrap().series();
            assert_eq!(series.as_deref(), expected, "{text}");
        }
    }
}
