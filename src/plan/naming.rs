//! Package names: the `rocm` scheme.
//!
//! | what | name |
//! |---|---|
//! | family of the artifact `blas` | `rocm-blas` |
//! | family of `rocm-core`, `amdrocm-x` | the artifact's own name |
//! | kernels of a package | `<package>-<group>` |
//! | metapackages | `rocm-<group>`, `<family>-all`, `rocm`, `rocm-hosts` |
//!
//! Names are lowered. Both formats allow letters, digits, `-` and `.`; Debian wants two characters
//! and a letter or digit in front. `_`, `+` and `:` never appear: they mean something to tools
//! that take file names or architectures apart.

use super::package::Format;
use crate::error::{Error, Kind, Result};

/// What every family starts with.
const VENDOR: &str = "rocm-";

/// A name in each format.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Names {
    pub deb: String,
    pub rpm: String,
}

impl Names {
    /// The same name in both formats.
    pub fn both(name: impl Into<String>) -> Self {
        let deb = name.into();
        let rpm = deb.clone();
        Self { deb, rpm }
    }

    /// With something appended.
    pub fn with(&self, suffix: &str) -> Self {
        Self { deb: format!("{}{suffix}", self.deb), rpm: format!("{}{suffix}", self.rpm) }
    }

    pub fn of(&self, format: Format) -> &str {
        match format {
            Format::Deb => &self.deb,
            Format::Rpm => &self.rpm,
        }
    }
}

/// Lowers `text` and refuses what cannot be a package name.
pub(super) fn package_name(text: &str) -> Result<String> {
    let name = text.to_lowercase();
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let inner = |c: char| edge(c) || c == '-' || c == '.';
    let good = name.len() >= 2 && name.starts_with(edge) && name.ends_with(edge);
    if good && name.chars().all(inner) {
        return Ok(name);
    }
    let message = format!("`{text}` cannot be a package name");
    Err(Error::new(Kind::Config, message)
        .hint("package names have letters, digits, `-` and `.`, and two characters at least"))
}

/// The family of an artifact that no selector names.
pub(super) fn family_of(artifact: &str) -> Result<String> {
    let name = artifact.to_lowercase();
    let own = name == "rocm" || name.starts_with(VENDOR) || name.starts_with("amdrocm");
    match own {
        true => package_name(&name),
        false => package_name(&format!("{VENDOR}{name}")),
    }
}

/// A family's name without the vendor, as archives carry it: `blas` of `rocm-blas`.
pub(super) fn short_name(family: &str) -> &str {
    family.strip_prefix(VENDOR).unwrap_or(family)
}

/// The metapackage of a group.
pub(super) fn group_meta(group: &str) -> String {
    format!("{VENDOR}{}", group.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vendor_is_not_doubled() {
        for (artifact, family) in [
            ("blas", "rocm-blas"),
            ("host-suite-sparse", "rocm-host-suite-sparse"),
            ("MIOpen", "rocm-miopen"),
            ("rocm-core", "rocm-core"),
            ("amdrocm-llvm", "amdrocm-llvm"),
        ] {
            assert_eq!(family_of(artifact).unwrap(), family);
        }
        assert_eq!(short_name("rocm-blas"), "blas");
    }

    #[test]
    fn characters_with_a_meaning_are_refused() {
        for name in ["a_b", "c++", "a:b", "a/b", "", "x", "-a", "a-", "größe"] {
            assert!(package_name(name).is_err(), "{name}");
        }
    }
}
