//! Packages of distributions, whose names no set may have, and which it may not replace.
//!
//! ```toml
//! deb = "apt base-files"                  # config/distros/system.toml
//! rpm = "filesystem glibc"
//! ```
//!
//! In addition, they include the packages of the libraries and programs in the other tables. Distributions
//! share names with each other, so their tables are merged.

use std::collections::BTreeSet;

use rockpack_core::error::{Error, Result};
use serde::Deserialize;

use super::{Distribution, KnownNames};

const TABLE: &str = include_str!("../../../../config/distros/system.toml");

/// The names of distributions' packages.
#[derive(Debug)]
pub struct SystemPackages(BTreeSet<String>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    deb: String,
    rpm: String,
}

impl SystemPackages {
    /// Reads the names of all distributions that have a table.
    pub fn known() -> Result<Self> {
        let table: Table = toml::from_str(TABLE).map_err(|error| {
            Error::bug("config/distros/system.toml cannot be read").cause_in_lines(error)
        })?;
        let texts = [table.deb, table.rpm];
        let listed = texts.iter().flat_map(|names| names.split_whitespace());
        let mut names: BTreeSet<String> = listed.map(str::to_owned).collect();
        for known in KnownNames::all()? {
            names.extend(known.packages_of_programs().map(str::to_owned));
        }
        for name in Distribution::names() {
            for library in Distribution::named(name)?.packages() {
                names.extend(library?.1);
            }
        }
        Ok(Self(names))
    }

    /// Tells whether a distribution has a package of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_systems_are_known_and_those_of_rocm_are_none() {
        let system = SystemPackages::known().unwrap();
        for name in [
            "libc6",
            "bash",
            "dpkg",
            "apt",
            "coreutils",
            "libstdc++6",
            "libssl3",
            "python3",
            "perl",
            "glibc",
            "filesystem",
            "rpm",
            "zypper",
            "systemd",
            "libelf1",
            "zlib1g",
            "sed",
            "util-linux",
        ] {
            assert!(system.has(name), "{name}");
        }
        // Debian has some of them, too: a set may update its packages.
        for name in [
            "rocm-blas",
            "rocminfo",
            "rocm-smi",
            "hipcc",
            "rocm-core",
            "hsa-rocr",
            "rocblas",
            "comgr",
            "amd-smi-lib",
            "rccl",
            "miopen-hip",
            "aa-tools",
            "",
        ] {
            assert!(!system.has(name), "{name}");
        }
    }
}
