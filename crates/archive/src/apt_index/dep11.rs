//! DEP-11, the form of AppStream's catalog in an apt repository.
//!
//! ```text
//! ---                                  a document with File, Version and Origin
//! ---                                  one document for each package for hardware
//! Type: driver
//! ID: org.example.rocm_blas_gfx110x    the host of the repository in reverse order, and the package
//! Package: rocm-blas-gfx110x
//! Name, Summary                        texts by language; `C` is for all
//! Provides                             the patterns of the package's field `Modaliases`
//! ```
//!
//! apt fetches the file where the package `appstream` is installed. Then isenkram and AppStream find packages by the
//! modaliases of the devices of a machine.
//!
//! Source: AppStream's specification, chapter "DEP-11"; isenkram 0.51; `/etc/apt/apt.conf.d/50appstream` of Debian 12.

use std::collections::BTreeMap;

use super::{DebPackage, url_host};
use crate::deb::{compare_versions, parse_fields};

/// The field of a package with the modaliases of its hardware: `name(pattern, pattern)`. ubuntu-drivers reads it.
pub const MODALIASES: &str = "Modaliases";

/// The catalog of those `packages` whose newest version has [`MODALIASES`]; empty if there are none. `url` is that of
/// the repository, of whose suite and component `origin` is the name.
pub fn drivers<'a>(
    origin: &str,
    url: Option<&str>,
    packages: impl Iterator<Item = &'a DebPackage>,
) -> String {
    let mut newest: BTreeMap<&str, &DebPackage> = BTreeMap::new();
    for package in packages {
        let known = newest.entry(&package.name).or_insert(package);
        if compare_versions(&known.version, &package.version).is_lt() {
            *known = package;
        }
    }
    let host = url.map(url_host).filter(|host| !host.is_empty()).unwrap_or("local");
    let drivers: String = newest.into_values().filter_map(|it| driver(host, it)).collect();
    if drivers.is_empty() {
        return drivers;
    }
    let origin = scalar(origin);
    format!("---\nFile: DEP-11\nVersion: \"1.0\"\nOrigin: {origin}\n{drivers}")
}

/// The document of a package; `None` if it is for no hardware.
fn driver(host: &str, package: &DebPackage) -> Option<String> {
    let fields = parse_fields(&package.control).ok()?;
    let lists = fields.get(MODALIASES)?.split(')').filter_map(|list| list.split_once('('));
    let patterns = lists.flat_map(|(_, list)| list.split(',')).map(str::trim);
    let patterns: Vec<String> = patterns.filter(|it| !it.is_empty()).map(scalar).collect();
    if patterns.is_empty() {
        return None;
    }
    let name = scalar(&package.name);
    let summary = fields.get("Description").and_then(|text| text.lines().next());
    let summary = summary.map_or_else(|| name.clone(), scalar);
    let parts = host.rsplit('.').chain([&*package.name]).filter(|part| !part.is_empty());
    let id = parts.map(id_part).collect::<Vec<_>>().join(".");
    let patterns = patterns.join(", ");
    Some(format!(
        "---\nType: driver\nID: {id}\nPackage: {name}\nName: {{C: {name}}}\n\
         Summary: {{C: {summary}}}\nProvides: {{modaliases: [{patterns}]}}\n"
    ))
}

/// A part of an id: letters, digits and `_`, of which a digit is not the first.
fn id_part(text: &str) -> String {
    let part = text.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    if part.starts_with(|c: char| c.is_ascii_digit()) { format!("_{part}") } else { part }
}

/// A YAML scalar in double quotes. Readers refuse some characters unless they are escaped.
fn scalar(text: &str) -> String {
    let characters = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        ' '..='~' => c.to_string(),
        _ => format!("\\U{:08X}", u32::from(c)),
    });
    format!("\"{}\"", characters.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, rest: &str) -> DebPackage {
        let control = format!("Package: {name}\nVersion: {version}\nArchitecture: amd64\n{rest}\n");
        DebPackage::of_control(&control).unwrap()
    }

    #[test]
    fn the_newest_version_of_each_package_for_hardware_is_listed() {
        let packages = [
            package("a7.1", "2", "Modaliases: x(pci:one*,\n pci:two*), y(pci:three*)"),
            package("a7.1", "10", "Modaliases: x(pci:four*)\nDescription: \u{fc} \"b\"\n long"),
            package("b", "1", "Modaliases: x(pci:five*)"),
            package("b", "2", "Description: no more"),
        ];
        let text = drivers("o", Some("https://7.example.org/x"), packages.iter());
        let expected = "---\nFile: DEP-11\nVersion: \"1.0\"\nOrigin: \"o\"\n\
            ---\nType: driver\nID: org.example._7.a7_1\nPackage: \"a7.1\"\nName: {C: \"a7.1\"}\n\
            Summary: {C: \"\\U000000FC \\\"b\\\"\"}\nProvides: {modaliases: [\"pci:four*\"]}\n";
        assert_eq!(text, expected);
        let first = drivers("o", None, packages.iter().take(1));
        assert!(first.contains("ID: local.a7_1\n"), "{first}");
        assert!(first.contains("[\"pci:one*\", \"pci:two*\", \"pci:three*\"]"), "{first}");
        assert_eq!(drivers("o", None, packages.iter().skip(2)), "");
    }
}
