//! The reserved names of a distribution: its programs, and its packages of ROCm.
//!
//! The tables in `config/distros` are made by a script beside them from the distribution's indexes.
//!
//! ```toml
//! [base]                                  # programs that every system has, by folder
//! "/usr/bin" = "bash env sh"
//! [interpreters]                          # further ones that scripts are written for → their package
//! "/usr/bin/python3" = "python3"
//! [packages]                              # packages of ROCm → their versions
//! "rocm-smi" = "5.2.3-2"
//! ```
//!
//! In all of these distributions `/bin` is a link to `/usr/bin`, and the like: paths are written with `/usr`.

use std::collections::BTreeMap;

use rockpack_core::error::{Error, Result};
use serde::Deserialize;

use super::search::normal;

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

/// The known names of a distribution.
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
struct Table {
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
        let table: Table =
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
    let parts = normal(path);
    let is_merged = parts.first().is_some_and(|first| MERGED.contains(first));
    let path = parts.join("/");
    if is_merged { format!("usr/{path}") } else { path }
}

fn unreadable_table(name: &str) -> Error {
    Error::bug(format!("config/distros/{name}.names.toml cannot be read"))
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
}
