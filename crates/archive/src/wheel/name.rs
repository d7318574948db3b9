//! Wheel file names: `{distribution}-{version}(-{build})?-{python}-{abi}-{platform}.whl`.
//!
//! The last three parts are sets of tags with dots between them. There are no other hyphens: writers replace
//! those of the distribution and the version by `_`.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

pub use pep440_rs::Version;

use super::tag::Tag;
use rockpack_core::error::{Error, Result};

/// The extension of wheels.
const ENDING: &str = ".whl";

/// The name of a wheel, in fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WheelName {
    /// The distribution as spelt in the name: `cupy_rocm_7_0`.
    pub distribution: String,
    /// The version as spelt in the name.
    pub version: String,
    /// The build number: digits with an optional suffix.
    pub build: Option<String>,
    /// The Python tags: `cp311`, or `py2` and `py3`.
    pub pythons: Vec<String>,
    /// The ABI tags.
    pub abis: Vec<String>,
    /// The platform tags.
    pub platforms: Vec<String>,
}

/// The facts that tell wheels apart, in one spelling each.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WheelIdentity {
    /// The normalized name of the distribution.
    pub distribution: String,
    /// The version; `1.0` and `1.0.0` are one.
    pub version: Version,
    /// The build number.
    pub build: Option<String>,
    /// The combinations of tags.
    pub tags: BTreeSet<Tag>,
}

impl WheelName {
    /// The identity of the wheel; `None` if its version is none of PEP 440.
    pub fn identity(&self) -> Option<WheelIdentity> {
        Some(WheelIdentity {
            distribution: normalized(&self.distribution),
            version: self.parsed_version()?,
            build: self.build.clone(),
            tags: self.tags().into_iter().collect(),
        })
    }

    /// Whether the file name of `path` has the extension of wheels.
    pub fn is_one(path: &Path) -> bool {
        path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("whl"))
    }

    /// The version by PEP 440; `None` if it is invalid.
    pub fn parsed_version(&self) -> Option<Version> {
        // Old writers replace `-` by `_` in local versions, which means the same.
        self.version.replace('_', "-").parse().ok()
    }

    /// All combinations of the tags, in the order of the name.
    pub fn tags(&self) -> Vec<Tag> {
        let mut tags = Vec::new();
        for python in &self.pythons {
            for abi in &self.abis {
                tags.extend(self.platforms.iter().map(|platform| Tag {
                    python: python.clone(),
                    abi: abi.clone(),
                    platform: platform.clone(),
                }));
            }
        }
        tags
    }

    /// The name of the wheel's `dist-info` folder.
    pub fn dist_info(&self) -> String {
        format!("{}-{}.dist-info", self.distribution, self.version)
    }
}

impl fmt::Display for WheelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.distribution, self.version)?;
        if let Some(build) = &self.build {
            write!(f, "-{build}")?;
        }
        let [pythons, abis, platforms] =
            [&self.pythons, &self.abis, &self.platforms].map(|tags| tags.join("."));
        write!(f, "-{pythons}-{abis}-{platforms}{ENDING}")
    }
}

impl FromStr for WheelName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let stem = text.strip_suffix(ENDING).ok_or_else(|| no_wheel_name(text))?;
        let fields: Vec<&str> = stem.split('-').collect();
        let (distribution, version, build, tags) = match fields.as_slice() {
            [distribution, version, tags @ ..] if tags.len() == 3 => {
                (distribution, version, None, tags)
            }
            [distribution, version, build, tags @ ..] if tags.len() == 3 => {
                (distribution, version, Some(*build), tags)
            }
            _ => return Err(no_wheel_name(text)),
        };
        let is_build = build.is_none_or(|build| build.starts_with(|c: char| c.is_ascii_digit()));
        let mut words = [*distribution, *version].into_iter().chain(build);
        if !words.all(is_word) || !is_build || normalized(distribution).is_empty() {
            return Err(no_wheel_name(text));
        }
        let sets: Option<Vec<_>> = tags.iter().map(|tags| tag_set(tags)).collect();
        let [pythons, abis, platforms] =
            sets.and_then(|sets| sets.try_into().ok()).ok_or_else(|| no_wheel_name(text))?;
        Ok(Self {
            distribution: (*distribution).to_owned(),
            version: (*version).to_owned(),
            build: build.map(str::to_owned),
            pythons,
            abis,
            platforms,
        })
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._+!".contains(c))
}

fn tag_set(text: &str) -> Option<Vec<String>> {
    let tags = text.split('.').map(|tag| {
        let is_tag = !tag.is_empty() && tag.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_tag.then(|| tag.to_owned())
    });
    tags.collect()
}

fn no_wheel_name(text: &str) -> Error {
    Error::malformed(format!("`{text}` is no name of a wheel")).hint(
        "wheels are named {distribution}-{version}-{python}-{abi}-{platform}.whl, with a build \
         number that begins with a digit behind the version or none",
    )
}

/// The normalized name of a project: lower case, with one `-` for each run of `-`, `_` and `.`.
pub fn normalized(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

/// The normalized name with `_` in place of `-`, as in file names.
pub fn escaped(name: &str) -> String {
    normalized(name).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_were() {
        for text in [
            "cupy_rocm_7_0-14.2.0-cp311-cp311-manylinux2014_x86_64.whl",
            "two_pkg-1.0-1-py2.py3-none-any.whl",
            "torch-2.9.0+rocm7.1-cp312-cp312-manylinux_2_28_x86_64.manylinux_2_34_x86_64.whl",
            "Two.Pkg-1!2.0.post1-2abc-py3-none-linux_x86_64.whl",
        ] {
            let name: WheelName = text.parse().unwrap();
            assert_eq!(name.to_string(), text);
        }
        let name: WheelName = "two_pkg-1.0-1-py2.py3-none-any.whl".parse().unwrap();
        let tags: Vec<String> = name.tags().iter().map(Tag::to_string).collect();
        assert_eq!(tags, ["py2-none-any", "py3-none-any"]);
        assert_eq!(name.build.as_deref(), Some("1"));
        assert_eq!(name.dist_info(), "two_pkg-1.0.dist-info");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in [
            "torch-2.9.0.whl",
            "a-1-cp311-cp311-linux_x86_64.zip",
            "a-1-x1-cp311-cp311-linux_x86_64.whl",
            "a-1-1-1-cp311-cp311-linux_x86_64.whl",
            "a--cp311-cp311-linux_x86_64.whl",
            "-1-cp311-cp311-linux_x86_64.whl",
            "a-1-cp311..cp312-cp311-linux_x86_64.whl",
            "a/b-1-cp311-cp311-linux_x86_64.whl",
            "_-1-cp311-cp311-linux_x86_64.whl",
        ] {
            assert!(text.parse::<WheelName>().is_err(), "{text}");
        }
    }

    #[test]
    fn versions_are_compared_by_what_they_mean() {
        assert_eq!(parsed_version("1.0"), parsed_version("1.0.0"));
        assert!(parsed_version("1.0.post1") > parsed_version("1.0"));
        assert!(parsed_version("2.0rc1") < parsed_version("2.0"));
        assert_eq!(parsed_version("1.0+rocm7_1"), parsed_version("1.0+rocm7.1"));
        assert_eq!(parsed_version("main"), None);
    }

    fn parsed_version(text: &str) -> Option<Version> {
        let name = format!("a-{text}-py3-none-any.whl");
        name.parse::<WheelName>().unwrap().parsed_version()
    }

    #[test]
    fn projects_have_one_name_for_all_spellings() {
        for name in ["Two.Pkg", "two-pkg", "TWO__pkg", "two.-_pkg"] {
            assert_eq!((normalized(name).as_str(), escaped(name).as_str()), ("two-pkg", "two_pkg"));
        }
    }
}
