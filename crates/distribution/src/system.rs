use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::{Error, Result};

use crate::table::Table;

const SYSTEM: &str = include_str!("../../../config/system-packages.toml");

/// The names of distributions' packages, which no set may have, and which it may not replace.
///
/// ```toml
/// deb = "apt base-files"                  # config/system-packages.toml
/// rpm = "filesystem glibc"
/// ```
///
/// In addition, they include the packages of the libraries and programs in the shipped tables. Distributions share
/// names with each other, so their tables are merged.
#[derive(Debug)]
pub struct SystemPackages(BTreeSet<String>);

impl SystemPackages {
    /// Reads the names of all distributions that have a shipped table.
    pub fn known() -> Result<Self> {
        let table: BTreeMap<String, String> = toml::from_str(SYSTEM).map_err(|error| {
            Error::bug("config/system-packages.toml cannot be read").cause_in_lines(error)
        })?;
        let listed = table.values().flat_map(|names| names.split_whitespace());
        let mut names: BTreeSet<String> = listed.map(str::to_owned).collect();
        names.extend(shipped_libraries()?.into_values().flatten());
        for name in Table::names() {
            let known = match Table::shipped(name)? {
                Table::Deb(distribution) => distribution.names,
                Table::Rpm(profile) => profile.names()?,
            };
            names.extend(known.packages_of_programs().map(str::to_owned));
        }
        Ok(Self(names))
    }

    /// Whether a distribution has a package of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// Library → the packages that have it, in all distributions with a shipped table.
pub fn shipped_libraries() -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut libraries: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for name in Table::names() {
        let Table::Deb(distribution) = Table::shipped(name)? else { continue };
        for library in distribution.packages() {
            let (soname, packages) = library?;
            libraries.entry(soname.to_owned()).or_default().extend(packages);
        }
    }
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_systems_are_known_and_those_of_rocm_are_not() {
        let system = SystemPackages::known().unwrap();
        let known = "libc6 bash dpkg apt coreutils libstdc++6 libssl3 python3 perl glibc filesystem rpm \
                     zypper systemd libelf1 zlib1g sed util-linux";
        for name in known.split_whitespace() {
            assert!(system.has(name), "{name}");
        }
        // Debian has some of them, too: a set may update its packages.
        let unknown = "rocm-blas rocminfo rocm-smi hipcc rocm-core hsa-rocr rocblas comgr amd-smi-lib rccl \
                       miopen-hip aa-tools";
        for name in unknown.split_whitespace().chain([""]) {
            assert!(!system.has(name), "{name}");
        }
    }
}
