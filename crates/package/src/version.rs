//! Versions in the syntax of each format.
//!
//! | upstream | deb | rpm |
//! |---|---|---|
//! | `7.1.0`, release `1` | `7.1.0-1` | `7.1.0`, `1` |
//! | `7.1.0-rc1`, `7.1.0rc1`, `7.1.0~rc1` | `7.1.0~rc1-1` | `7.1.0~rc1`, `1` |
//! | `7.1.0-20251104` | `7.1.0~20251104-1` | `7.1.0~20251104`, `1` |
//! | `7.1.0.dev0` | `7.1.0~dev0-1` | `7.1.0~dev0`, `1` |
//!
//! An epoch comes first: `1:7.1.0-1` in relations of both formats and in Debian's version. In rpm it is a tag.
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

#[derive(Debug, Clone, PartialEq, Eq)]
struct FormatVersion {
    upstream: String,
    release: String,
    tag: String,
}

impl FormatVersion {
    fn new(version: &str, release: &str) -> Result<Self> {
        let upstream = with_tilde(version);
        if !is_upstream(&upstream) {
            let message = format!("`{version}` is not a valid version in both deb and rpm");
            return Err(Error::new(Kind::Config, message).hint(version_hint(version)));
        }
        if !is_version_text(release) {
            let message = format!("`{release}` is not a valid release in both deb and rpm");
            return Err(Error::new(Kind::Config, message)
                .hint("a release has letters, digits, `.`, `+` and `~`, as in 1 or 1.el9"));
        }
        Ok(Self { upstream, release: release.to_owned(), tag: String::new() })
    }

    /// The first three parts in front of a pre-release or a build, e.g. `7.15.0`.
    fn head(&self) -> Vec<&str> {
        let head = self.upstream.split(['~', '+']).next().unwrap_or_default();
        head.split('.').take(3).collect()
    }
}

/// The version and release of all packages of a set. The formats may differ after `<major>.<minor>.<patch>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    epoch: Option<u32>,
    deb: FormatVersion,
    rpm: FormatVersion,
}

impl Version {
    /// Makes a version of an upstream version and a release. Refuses characters that a format lacks.
    pub fn new(version: &str, release: &str) -> Result<Self> {
        Self::of_formats([version; 2], [release; 2])
    }

    /// Makes a version of an upstream version and a release for each format: deb, rpm. Refuses versions of
    /// different releases, because packages of both formats have one prefix and the same names.
    pub fn of_formats(versions: [&str; 2], releases: [&str; 2]) -> Result<Self> {
        let ([deb, rpm], [deb_release, rpm_release]) = (versions, releases);
        let deb = FormatVersion::new(deb, deb_release)?;
        let rpm = FormatVersion::new(rpm, rpm_release)?;
        if deb.head() != rpm.head() {
            let (deb, rpm) = (deb.upstream, rpm.upstream);
            let message = format!("the version of deb is {deb}, and that of rpm is {rpm}");
            return Err(Error::new(Kind::Config, message).hint(
                "both must begin with the same <major>.<minor>.<patch>, as in \
                 deb=7.15.0~pre2,rpm=7.15.0~rc2",
            ));
        }
        Ok(Self { epoch: None, deb, rpm })
    }

    /// Appends the suffixes of a release type to the version, as TheRock's native packages have them.
    /// Source: TheRock's `build_tools/compute_rocm_package_version.py`.
    pub fn with_release_type(mut self, release_type: &str) -> Result<Self> {
        let Some([deb, rpm]) = suffixes(release_type) else {
            let message = format!("`{release_type}` is not a valid release type");
            return Err(Error::new(Kind::Config, message).hint(
                "the types are dev:20261120g1a2b3c4d and ci:20261120g1a2b3c4d (date and commit), \
                 nightly:20261120, prerelease:2 and release",
            ));
        };
        if self.is_pre_release() {
            let message = format!("the version {} already is a pre-release", self.deb.upstream);
            return Err(Error::new(Kind::Config, message)
                .hint("give the version without a suffix, as in 7.15.0, or leave the type out"));
        }
        self.deb.upstream.push_str(&deb);
        self.rpm.upstream.push_str(&rpm);
        Ok(self)
    }

    pub fn with_tag(mut self, format: Format, tag: &str) -> Result<Self> {
        if !is_version_text(tag) {
            let message = format!("`{tag}` is not a valid distribution tag");
            let hint = "a tag has letters, digits, `.`, `+` and `~`, as in ~deb12 or .el9";
            return Err(Error::new(Kind::Config, message).hint(hint));
        }
        tag.clone_into(&mut format.select(&mut self.deb, &mut self.rpm).tag);
        Ok(self)
    }

    /// Sets the epoch; 0 is the same as no epoch in both formats.
    pub fn with_epoch(self, epoch: Option<u32>) -> Self {
        Self { epoch: epoch.filter(|epoch| *epoch > 0), ..self }
    }

    /// The epoch, which outweighs the rest of the version.
    pub fn epoch(&self) -> Option<u32> {
        self.epoch
    }

    fn of(&self, format: Format) -> &FormatVersion {
        format.select(&self.deb, &self.rpm)
    }

    /// The upstream version in a format, e.g. `7.1.0~rc1`.
    pub fn upstream(&self, format: Format) -> &str {
        &self.of(format).upstream
    }

    /// The upstream version of the set: that of `.deb` if the formats differ.
    pub fn set_upstream(&self) -> &str {
        &self.deb.upstream
    }

    /// The release of the set, without any tag: that of `.deb` if the formats differ.
    pub fn set_release(&self) -> &str {
        &self.deb.release
    }

    /// Whether both formats have the same upstream version.
    pub fn is_same_in_formats(&self) -> bool {
        self.deb.upstream == self.rpm.upstream
    }

    /// The release with the distribution's tag, e.g. `1.el9`.
    pub fn tagged_release(&self, format: Format) -> String {
        let FormatVersion { release, tag, .. } = self.of(format);
        format!("{release}{tag}")
    }

    /// Version and release as relations write them: `7.1.0-1` in both formats.
    pub fn full(&self, format: Format) -> String {
        let epoch = self.epoch.map(|epoch| format!("{epoch}:")).unwrap_or_default();
        format!("{epoch}{}-{}", self.upstream(format), self.tagged_release(format))
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
    /// of 7.1, and before it 99929989 for 7.10. A part counts as 0 if it is no number, and as 9999 at most.
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
        let FormatVersion { upstream, tag, .. } = self.of(format);
        let epoch = self.epoch.map(|epoch| format!("{epoch}:")).unwrap_or_default();
        let rest = full.strip_prefix(&epoch).and_then(|rest| rest.strip_prefix(upstream.as_str()));
        rest.is_some_and(|rest| rest.starts_with('-') && rest.ends_with(tag.as_str()))
    }

    /// Whether the version precedes a release, such as a release candidate or a nightly build.
    pub fn is_pre_release(&self) -> bool {
        [&self.deb, &self.rpm].iter().any(|version| version.upstream.contains('~'))
    }

    /// The upper bound of all releases of this patch version, which excludes pre-releases of the next one:
    /// `7.1.1~` for 7.1.0, after the epoch if there is one. `None` if one of the three parts is no number.
    pub fn next_patch(&self) -> Option<String> {
        let parts = self.parts().map(|part| part.parse::<u64>().ok().filter(|_| is_number(part)));
        let mut numbers = parts.chain(std::iter::repeat(Some(0)));
        let (major, minor) = (numbers.next()??, numbers.next()??);
        let patch = numbers.next()??.checked_add(1)?;
        let epoch = self.epoch.map(|epoch| format!("{epoch}:")).unwrap_or_default();
        Some(format!("{epoch}{major}.{minor}.{patch}~"))
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        self.deb.upstream.split(['.', '~', '+'])
    }
}

fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit())
}

/// The number in `part`, at most `most`; 0 if `part` is not a number.
fn number(part: &str, most: u32) -> u32 {
    if is_number(part) { part.parse().unwrap_or(most).min(most) } else { 0 }
}

fn is_upstream(text: &str) -> bool {
    is_version_text(text) && text.starts_with(|c: char| c.is_ascii_digit())
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
        "the version contains a release or an epoch: give --version {upstream}{option}{key} \
         (in a configuration, `version` and `release`)"
    )
}

/// The suffixes of a release type for deb and rpm; `None` if the type or its id is not valid.
fn suffixes(release_type: &str) -> Option<[String; 2]> {
    let is_date = |text: &str| text.len() == DATE_DIGITS && is_number(text);
    // Git abbreviates commits, or writes all of their 40 digits.
    let is_commit = |text: &str| {
        (7..=40).contains(&text.len())
            && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
    };
    let (word, id) = release_type.split_once(':').unwrap_or((release_type, ""));
    match (word, id.split_once('g')) {
        ("dev" | "ci", Some((date, commit))) if is_date(date) && is_commit(commit) => {
            Some([format!("~dev{date}"), format!("~{id}")])
        }
        ("nightly", None) if is_date(id) => Some([format!("~{id}"), format!("~{id}")]),
        ("prerelease", None) if is_number(id) => Some([format!("~pre{id}"), format!("~rc{id}")]),
        _ => (release_type == "release").then(Default::default),
    }
}

fn is_version_text(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || ".+~".contains(c))
}

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
#[path = "version_tests.rs"]
mod tests;
