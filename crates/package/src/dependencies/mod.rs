//! The dependencies and capabilities of a package's files, in the words of a format.
//!
//! ```text
//! file ─ rockpack_elf::Linking ─ search: the folders that the loader searches
//!                              ─ distribution: packages, by the tables of a distribution
//!                              ─ rpm: capabilities, as rpm's own generators name them
//!                              ─ runpath: search paths in terms of the file itself
//! file ─ script: the interpreter in its first line ─ here: the programs of a distribution
//! ```
//!
//! In addition, [`SystemPackages`] are those that no set may replace.
//!
//! Pure functions of the files' facts. The plan decides which library of the set a name leads to. This module
//! looks up names, and derives the dependencies for those outside of the set.

pub mod distribution;
pub mod rpm;
pub mod runpath;
pub mod script;
pub mod search;

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::{Error, Result};
use serde::Deserialize;

pub use distribution::Distribution;

/// The shipped tables by name.
const SHIPPED: [(&str, &str); 3] = [
    ("debian-12", include_str!("../../../../config/distros/debian-12.names.toml")),
    ("debian-13", include_str!("../../../../config/distros/debian-13.names.toml")),
    (RPM, include_str!("../../../../config/distros/rpm.names.toml")),
];

/// The table of all distributions with rpm, which hardly differ in this.
pub const RPM: &str = "rpm";

/// Folders of the root that are links to those of the same name in `/usr`.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// The folders in which `env` looks for programs.
const SEARCHED: [&str; 2] = ["usr/bin", "usr/sbin"];

/// The reserved names of a distribution: its programs, and its packages of ROCm. A script beside the tables in
/// `config/distros` makes them from the distribution's indexes.
///
/// ```toml
/// [base]                                  # programs that every system has, by folder
/// "/usr/bin" = "bash env sh"
/// [interpreters]                          # further ones that scripts are written for → their package
/// "/usr/bin/python3" = "python3"
/// [packages]                              # packages of ROCm → their versions
/// "rocm-smi" = "5.2.3-2"
/// ```
///
/// In all of these distributions `/bin` is a link to `/usr/bin`, and the like: paths are written with `/usr`.
#[derive(Debug)]
pub struct KnownNames {
    /// The name of the distribution: `debian-12`.
    pub distribution: String,
    /// The package for each program, by path without leading slash; `None` if every system has the program.
    programs: BTreeMap<String, Option<String>>,
    /// The version of each package.
    packages: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamesTable {
    base: BTreeMap<String, String>,
    #[serde(default)]
    interpreters: BTreeMap<String, String>,
    #[serde(default)]
    packages: BTreeMap<String, String>,
}

impl KnownNames {
    /// Reads the names of the distribution called `name`, or of [`RPM`].
    pub fn named(name: &str) -> Result<Self> {
        let shipped = SHIPPED.iter().find(|(known, _)| *known == name);
        let (_, text) = shipped.ok_or_else(|| unreadable_table(name))?;
        let table: NamesTable =
            toml::from_str(text).map_err(|error| unreadable_table(name).cause_in_lines(error))?;
        let mut programs = BTreeMap::new();
        for (folder, names) in &table.base {
            let paths = names.split_whitespace().map(|name| merged(&format!("{folder}/{name}")));
            programs.extend(paths.map(|path| (path, None)));
        }
        let further = table.interpreters.into_iter();
        programs.extend(further.map(|(path, package)| (merged(&path), Some(package))));
        let distribution = if name == RPM { "a distribution with rpm" } else { name };
        Ok(Self { distribution: distribution.to_owned(), programs, packages: table.packages })
    }

    /// Reads the names of all distributions that have a table.
    pub fn all() -> Result<Vec<Self>> {
        SHIPPED.iter().map(|(name, _)| Self::named(name)).collect()
    }

    /// The package to depend on for the program at the absolute `path`, if the distribution is known to have
    /// it; the inner `None` means that every system has the program.
    pub fn program(&self, path: &str) -> Option<Option<&str>> {
        self.programs.get(&merged(path)).map(Option::as_deref)
    }

    /// The package to depend on for the program that `env` finds by `name`; see [`program`](Self::program).
    pub fn in_search_path(&self, name: &str) -> Option<Option<&str>> {
        let mut paths = SEARCHED.iter().map(|folder| format!("{folder}/{name}"));
        paths.find_map(|path| self.programs.get(&path)).map(Option::as_deref)
    }

    /// The packages of these programs. For programs that every system has, their own names, which many of
    /// their packages share.
    pub fn packages_of_programs(&self) -> impl Iterator<Item = &str> {
        self.programs.iter().map(|(path, package)| {
            package.as_deref().unwrap_or_else(|| path.rsplit('/').next().unwrap_or_default())
        })
    }

    /// The version of the distribution's ROCm package `name`, if it has one.
    pub fn package(&self, name: &str) -> Option<&str> {
        self.packages.get(name).map(String::as_str)
    }
}

/// An absolute path in the form with `/usr`, without its leading slash.
fn merged(path: &str) -> String {
    let parts = search::normal(path);
    let is_merged = parts.first().is_some_and(|first| MERGED.contains(first));
    let path = parts.join("/");
    if is_merged { format!("usr/{path}") } else { path }
}

fn unreadable_table(name: &str) -> Error {
    Error::bug(format!("config/distros/{name}.names.toml cannot be read"))
}

/// The table of further packages.
const SYSTEM: &str = include_str!("../../../../config/distros/system.toml");

/// The names of distributions' packages, which no set may have, and which it may not replace.
///
/// ```toml
/// deb = "apt base-files"                  # config/distros/system.toml
/// rpm = "filesystem glibc"
/// ```
///
/// In addition, they include the packages of the libraries and programs in the other tables. Distributions share
/// names with each other, so their tables are merged.
#[derive(Debug)]
pub struct SystemPackages(BTreeSet<String>);

impl SystemPackages {
    /// Reads the names of all distributions that have a table.
    pub fn known() -> Result<Self> {
        let table: BTreeMap<String, String> = toml::from_str(SYSTEM).map_err(|error| {
            Error::bug("config/distros/system.toml cannot be read").cause_in_lines(error)
        })?;
        let listed = table.values().flat_map(|names| names.split_whitespace());
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
    fn the_tables_know_the_programs_that_scripts_are_written_for() {
        for (name, _) in SHIPPED {
            let names = KnownNames::named(name).unwrap();
            for path in
                ["/bin/sh", "/usr/bin/sh", "//bin/../bin/bash", "/lib64/ld-linux-x86-64.so.2"]
            {
                assert_eq!(names.program(path), Some(None), "{name}: {path}");
            }
            assert!(names.program("/usr/bin/python3").is_some(), "{name}");
            assert!(names.in_search_path("perl").is_some(), "{name}");
            for path in ["/opt/bin/sh", "/usr/local/bin/python3", "sh", "/usr/bin/python2.7"] {
                assert_eq!(names.program(path), None, "{name}: {path}");
            }
        }
    }

    #[test]
    fn packages_are_those_of_the_distribution() {
        let [bookworm, trixie, rpm] =
            ["debian-12", "debian-13", RPM].map(|name| KnownNames::named(name).unwrap());
        assert_eq!(bookworm.program("/usr/bin/python3.11"), Some(Some("python3.11")));
        assert_eq!(trixie.program("/usr/bin/python3.11"), None);
        assert_eq!(trixie.in_search_path("tclsh"), Some(Some("tcl")));
        assert!(bookworm.package("rocm-smi").is_some_and(|version| version.starts_with("5.2.3-")));
        assert!(trixie.package("rocminfo").is_some() && trixie.package("rocm-blas").is_none());
        assert_eq!(rpm.package("rocm-smi"), None);
    }

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
