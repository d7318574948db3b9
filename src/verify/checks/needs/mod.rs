//! Whether what programs and libraries link to comes with their packages.
//!
//! Each needed library has to be in the package itself or in one that its dependencies bring, or a
//! dependency has to lead out of the set:
//!
//! | | what leads to a library outside of the set |
//! |---|---|
//! | rpm | the library as a capability, `libc.so.6()(64bit)` or one of its versions |
//! | deb | a package that has it in the table of some distribution, or else any that is in none |
//!
//! A `.deb` does not say which package it wants for which library. So a library that neither a
//! table nor the set knows passes, and so does one whose package depends on something that no table
//! knows.
//!
//! The build judges where loaders look and which symbol versions libraries have, and reports it.
//!
//! Findings of the build are taken into account: libraries that it found nowhere (`R070`) or out of
//! reach (`R095`), those that its configuration names no dependency for (`R094`), files that it did not
//! ask (`R093`).

mod brought;
mod set;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use rockpack_base::error::Result;

use super::excuses::Excuses;
use crate::dependencies::Distribution;
use crate::package::Format;
use crate::verify::own::installed::Installed;
use crate::verify::problem::{Problem, Problems};
use brought::Brought;
use set::{InstalledSet, LinkedFile};

/// Library → the packages that have it, in all distributions with a table.
type LibraryTables = BTreeMap<String, BTreeSet<String>>;

/// Checks the packages of a set, all of one format.
pub(in crate::verify) fn check(
    packages: &[&Installed],
    excuses: &Excuses,
    problems: &mut Problems,
) -> Result<()> {
    let is_deb = packages.iter().any(|package| package.format == Some(Format::Deb));
    let no_tables = LibraryTables::new();
    let tables = if is_deb { tables()? } else { &no_tables };
    let set = InstalledSet::new(packages, tables, excuses);
    let mut by_package: BTreeMap<&str, Vec<&LinkedFile<'_>>> = BTreeMap::new();
    for file in &set.linked {
        by_package.entry(&file.package.file).or_default().push(file);
    }
    for files in by_package.values() {
        let Some(package) = files.first().map(|file| file.package) else { continue };
        let brought = Brought::of(&set, package);
        check_libraries(&brought, files, excuses, problems);
    }
    Ok(())
}

/// Checks that the libraries that these files of a package need come along.
fn check_libraries(
    brought: &Brought<'_>,
    files: &[&LinkedFile<'_>],
    excuses: &Excuses,
    problems: &mut Problems,
) {
    let mut needs: BTreeMap<&str, Vec<&LinkedFile<'_>>> = BTreeMap::new();
    for file in files {
        for name in &file.linked.needed {
            needs.entry(name).or_default().push(file);
        }
    }
    for (name, users) in needs {
        let lack = users.iter().find_map(|user| {
            if excuses.leaves_open(name, user.package.format, user.path) {
                return None;
            }
            Some((user, brought.lack(name)?))
        });
        if let Some((user, lack)) = lack {
            let (package, path) = (user.package.file.clone(), user.path.to_owned());
            let library = name.into();
            problems.add(Problem::LibraryMissing { package, path, library, lack });
        }
    }
}

/// The tables of all distributions, parsed once.
fn tables() -> Result<&'static LibraryTables> {
    static TABLES: OnceLock<LibraryTables> = OnceLock::new();
    match TABLES.get() {
        Some(tables) => Ok(tables),
        None => parsed().map(|tables| TABLES.get_or_init(|| tables)),
    }
}

fn parsed() -> Result<LibraryTables> {
    let mut tables = LibraryTables::new();
    for name in Distribution::names() {
        for library in Distribution::named(name)?.packages() {
            let (soname, packages) = library?;
            tables.entry(soname.to_owned()).or_default().extend(packages);
        }
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_names_packages() {
        let tables = tables().unwrap();
        assert!(tables["libc.so.6"].contains("libc6"));
        let elf: Vec<&str> = tables["libelf.so.1"].iter().map(String::as_str).collect();
        assert_eq!(elf, ["libelf1", "libelf1t64"]);
        for packages in tables.values() {
            let mut all = packages.iter().flat_map(|name| name.chars());
            let is_plain = all.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
            assert!(is_plain, "{packages:?}");
        }
    }
}
