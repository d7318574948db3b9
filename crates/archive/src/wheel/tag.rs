//! The tags of wheels: which Pythons, ABIs and platforms they are for.
//!
//! Source: the platform compatibility tags of the Python Packaging User Guide (PEP 425, 600, 656).

use derive_more::Display;

/// One combination of tags.
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

/// Older names of platforms, and what they mean.
const ALIASES: [(&str, &str); 3] = [
    ("manylinux1_", "manylinux_2_5_"),
    ("manylinux2010_", "manylinux_2_12_"),
    ("manylinux2014_", "manylinux_2_17_"),
];

impl Tag {
    /// Tells whether every installer that takes a wheel with the tag `other` takes one with this tag.
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

    /// Tells whether it is for one version of CPython on one platform: `cp312-cp312-manylinux_2_28_x86_64`.
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

/// Tells whether every system of the platform `other` is one of `own`.
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
