//! Wheel file names: `{distribution}-{version}(-{build})?-{python}-{abi}-{platform}.whl`.
//!
//! The last three parts are sets of tags with dots between them: which Pythons, ABIs and platforms the wheel is for.
//! There are no other hyphens: writers replace those of the distribution and the version by `_`.
//!
//! Source of the tags: the platform compatibility tags of the Python Packaging User Guide (PEP 425, 600, 656).

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;

use derive_more::Display;

pub use pep440_rs::Version;

use rockpack_core::error::{Error, Result};

const ENDING: &str = ".whl";

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Display)]
#[display(
    "{distribution}-{version}{}-{}-{}-{}.whl",
    build.as_ref().map_or(String::new(), |build| format!("-{build}")),
    pythons.join("."),
    abis.join("."),
    platforms.join(".")
)]
pub struct WheelName {
    /// The distribution as spelt in the name: `cupy_rocm_7_0`.
    pub distribution: String,
    /// The version as spelt in the name.
    pub version: String,
    /// The build number: digits with an optional suffix.
    pub build: Option<String>,
    /// The Python tags: `cp311`, or `py2` and `py3`.
    pub pythons: Vec<String>,
    pub abis: Vec<String>,
    pub platforms: Vec<String>,
}

/// The facts that tell wheels apart, in one spelling each.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WheelIdentity {
    /// The normalized name of the distribution.
    pub distribution: String,
    /// The version; `1.0` and `1.0.0` are one.
    pub version: Version,
    pub build: Option<String>,
    pub tags: BTreeSet<Tag>,
}

impl WheelName {
    /// The identity of the wheel; `None` if its version is not a PEP 440 version.
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

    /// The oldest glibc that its platforms are for; `None` if none of them names one.
    pub fn glibc(&self) -> Option<(u32, u32)> {
        let platforms = self.platforms.iter().filter_map(|platform| libc(platform));
        platforms.filter(|it| it.family == "manylinux").map(|it| it.version).min()
    }

    pub fn dist_info(&self) -> String {
        format!("{}-{}.dist-info", self.distribution, self.version)
    }
}

impl FromStr for WheelName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let stem = text.strip_suffix(ENDING).ok_or_else(|| no_wheel_name(text))?;
        let fields: Vec<&str> = stem.split('-').collect();
        let [distribution, version, builds @ .., pythons, abis, platforms] = fields.as_slice()
        else {
            return Err(no_wheel_name(text));
        };
        let is_build = |build: &&str| build.starts_with(|c: char| c.is_ascii_digit());
        let has_build = builds.len() < 2 && builds.iter().all(is_build);
        let mut words = [distribution, version].into_iter().chain(builds);
        if !words.all(|word| is_word(word)) || !has_build || normalized(distribution).is_empty() {
            return Err(no_wheel_name(text));
        }
        let sets = [pythons, abis, platforms].map(|tags| tag_set(tags));
        let [Some(pythons), Some(abis), Some(platforms)] = sets else {
            return Err(no_wheel_name(text));
        };
        Ok(Self {
            distribution: (*distribution).to_owned(),
            version: (*version).to_owned(),
            build: builds.first().map(|build| (*build).to_owned()),
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
    if let Some((plain, label)) = variant(text) {
        let message = format!(
            "is a variant wheel (PEP 825, label `{label}`), which rockpack neither splits nor \
             publishes"
        );
        return Error::unsupported(message).hint(format!(
            "give the wheel without a label, {plain}, which every installer takes; a variant wheel \
             needs an index that lists its variants"
        ));
    }
    Error::malformed(format!("`{text}` is not a valid wheel file name")).hint(
        "wheels are named {distribution}-{version}-{python}-{abi}-{platform}.whl, with a build \
         number that begins with a digit after the version, if any",
    )
}

/// The name of a variant wheel without its label, which is one more part at the end, and the label.
fn variant(text: &str) -> Option<(String, &str)> {
    let (name, label) = text.strip_suffix(ENDING)?.rsplit_once('-')?;
    let is_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._".contains(c);
    // Parsing shorter and shorter names ends here.
    if !(4..=5).contains(&name.matches('-').count()) || !label.chars().all(is_label) {
        return None;
    }
    let plain = format!("{name}{ENDING}");
    let WheelName { platforms, .. } = plain.parse().ok()?;
    let is_platform = |it: &String| ["any", "win32"].contains(&it.as_str()) || it.contains('_');
    let is_one = !label.is_empty() && platforms.iter().all(is_platform);
    is_one.then_some((plain, label))
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

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Display)]
#[display("{python}-{abi}-{platform}")]
pub struct Tag {
    /// E.g. `cp311`.
    pub python: String,
    /// E.g. `abi3`.
    pub abi: String,
    /// E.g. `manylinux_2_28_x86_64`.
    pub platform: String,
}

const ALIASES: [(&str, &str); 3] = [
    ("manylinux1_", "manylinux_2_5_"),
    ("manylinux2010_", "manylinux_2_12_"),
    ("manylinux2014_", "manylinux_2_17_"),
];

impl Tag {
    /// Whether every installer that accepts a wheel with the tag `other` accepts one with this tag.
    pub fn covers(&self, other: &Self) -> bool {
        self.covers_python(other) && covers_platform(&self.platform, &other.platform)
    }

    fn covers_python(&self, other: &Self) -> bool {
        if self.python == other.python && self.abi == other.abi {
            return true;
        }
        let (own, theirs) = (minor(&self.python), minor(&other.python));
        match (self.abi.as_str(), own, theirs) {
            // `py3` and `py38` are for every implementation, and for later versions.
            ("none", Some(("py", major, own)), Some((_, other, theirs))) => {
                major == other && own.is_none_or(|own| theirs.is_some_and(|theirs| theirs >= own))
            }
            // An extension that no ABI matters to.
            ("none", ..) if self.python == other.python => true,
            // The stable ABI is for later versions of CPython, without those of other ABIs (`cp313t`).
            ("abi3", Some(("cp", major, Some(own))), Some(("cp", other_major, Some(theirs)))) => {
                let is_plain = other.abi == "abi3" || other.abi == other.python;
                major == other_major && theirs >= own && is_plain
            }
            _ => false,
        }
    }

    /// Whether it is for one version of CPython on one platform: `cp312-cp312-manylinux_2_28_x86_64`.
    pub fn is_of_one_python(&self) -> bool {
        self.platform != "any" && self.python.starts_with("cp") && self.abi == self.python
    }
}

/// A Python tag as implementation, major and minor version: `cp311` is `cp`, 3 and 11.
fn minor(python: &str) -> Option<(&str, u32, Option<u32>)> {
    let (implementation, version) = python.split_at_checked(2)?;
    let (major, minor) = version.split_at_checked(1)?;
    let minor = if minor.is_empty() { None } else { Some(minor.parse().ok()?) };
    Some((implementation, major.parse().ok()?, minor))
}

/// Whether every system of the platform `other` is one of `own`.
fn covers_platform(own: &str, other: &str) -> bool {
    if own == other || own == "any" {
        return true;
    }
    if let Some(machine) = own.strip_prefix("linux_") {
        return libc(other).is_some_and(|other| other.machine == machine);
    }
    let (Some(own), Some(other)) = (libc(own), libc(other)) else { return false };
    own.family == other.family && own.machine == other.machine && own.version <= other.version
}

/// A platform by the least version of its C library.
struct Libc {
    family: String,
    version: (u32, u32),
    machine: String,
}

/// Reads `manylinux_2_28_x86_64`, `musllinux_1_2_x86_64`, and older names.
fn libc(platform: &str) -> Option<Libc> {
    let alias =
        ALIASES.iter().find_map(|(old, new)| Some(format!("{new}{}", platform.strip_prefix(old)?)));
    let platform = alias.as_deref().unwrap_or(platform);
    let mut parts = platform.splitn(4, '_');
    let family = parts.next().filter(|it| ["manylinux", "musllinux"].contains(it))?.to_owned();
    let version = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(Libc { family, version, machine: parts.next()?.to_owned() })
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
    fn variant_wheels_are_called_that() {
        for (text, plain) in [
            ("x-1.0-cp312-cp312-linux_x86_64-null.whl", "x-1.0-cp312-cp312-linux_x86_64.whl"),
            ("x-1.0-2a-py3-none-any-gfx11.0_b.whl", "x-1.0-2a-py3-none-any.whl"),
        ] {
            let error = text.parse::<WheelName>().unwrap_err();
            assert!(error.message().contains("variant wheel"), "{error}");
            assert!(error.hint_text().unwrap().contains(plain), "{error}");
        }
        for text in ["my-pkg-x-1.0-cp312-cp312-any.whl", "x-1.0-cp312-cp312-any-a-b.whl"] {
            let error = text.parse::<WheelName>().unwrap_err();
            assert!(error.message().contains("not a valid wheel file name"), "{error}");
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

    fn tag(text: &str) -> Tag {
        let parts: Vec<&str> = text.split('-').collect();
        let [python, abi, platform] = parts.try_into().unwrap();
        Tag { python: python.into(), abi: abi.into(), platform: platform.into() }
    }

    #[test]
    fn a_tag_covers_those_whose_installers_take_it() {
        const HOST: &str = "cp312-cp312-manylinux_2_28_x86_64";
        for (own, other, expected) in [
            (HOST, HOST, true),
            ("cp312-cp312-manylinux_2_17_x86_64", HOST, true),
            ("cp312-cp312-manylinux2014_x86_64", HOST, true),
            ("cp312-cp312-manylinux_2_34_x86_64", HOST, false),
            ("cp312-cp312-musllinux_1_2_x86_64", HOST, false),
            ("py3-none-manylinux_2_28_x86_64", HOST, true),
            ("py3-none-manylinux_2_28_aarch64", HOST, false),
            ("py3-none-any", HOST, true),
            ("py38-none-any", HOST, true),
            ("py313-none-any", HOST, false),
            ("py2-none-any", HOST, false),
            ("cp311-cp311-manylinux_2_28_x86_64", HOST, false),
            ("cp39-abi3-manylinux_2_28_x86_64", HOST, true),
            ("cp313-abi3-manylinux_2_28_x86_64", HOST, false),
            ("cp312-cp312-any", "cp312-abi3-any", false),
            ("cp312-abi3-any", "py3-none-any", false),
            ("py3-none-any", "py2-none-any", false),
            ("py3-none-any", "py38-none-any", true),
            ("py38-none-any", "py3-none-any", false),
            ("cp312-none-manylinux_2_28_x86_64", HOST, true),
            ("cp312-cp312-linux_x86_64", HOST, true),
            ("cp312-cp312-linux_aarch64", HOST, false),
            ("cp313-abi3-any", "cp313-cp313t-any", false),
        ] {
            assert_eq!(tag(own).covers(&tag(other)), expected, "{own} {other}");
        }
    }
}
