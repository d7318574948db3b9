use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rockpack_archive::deb::compare_versions;
use rockpack_core::content::real_path;
use rockpack_core::error::{Error, Result};

use crate::inventory::{Inventory, SourcePackage};
use crate::symbols::{quoted, shlibs_entries, symbols_entries};
use crate::table::SCHEMA;

/// The dpkg that reads packages compressed by zstd. Ubuntu's could earlier.
const ZSTD: &str = "1.21.18";

/// The dpkg whose dpkg-shlibdeps takes referenced versions for symbols.
const VERSION_REFERENCES: &str = "1.22.22";

/// The text of the table of the source at `path`. `locate` gives the packages whose file the loader finds by a name,
/// the preferred one first. An administrator's file is of none.
pub(crate) fn table(
    inventory: &Inventory,
    path: &Path,
    locate: impl Fn(&str) -> Result<Option<Vec<String>>>,
) -> Result<String> {
    let dpkg = inventory.version("dpkg").ok_or_else(|| {
        let hint = "its version says which packages the distribution reads: add its .deb, or a package list \
                    (`Packages`) that has it";
        Error::malformed("does not have the package dpkg").file(path).hint(hint)
    })?;
    let reads_zstd = dpkg.contains("ubuntu") || !compare_versions(dpkg, ZSTD).is_lt();
    let has_references = !compare_versions(dpkg, VERSION_REFERENCES).is_lt();
    // `.` and `..` have no name of their own.
    let real = if path.file_name().is_none() { real_path(path)? } else { None };
    let file_name = real.as_deref().unwrap_or(path).file_name().unwrap_or_default();
    let name = inventory.name().unwrap_or_else(|| file_name.to_string_lossy().into_owned());
    let shown = inventory.os_release.get("PRETTY_NAME").unwrap_or(&name);
    // A quote may begin what readers take for the header of a library.
    let shown: String = shown.chars().filter(|c| !c.is_control() && *c != '"').collect();
    let libraries = libraries(inventory, locate)?;
    let sources = libraries.values().filter_map(|(package, _)| *package);
    let sources = BTreeMap::from_iter(sources.map(|it| (it.name.as_str(), it.version.as_str())));
    let mut text = format!(
        "# Libraries, programs and packages of ROCm of {shown}.\n# Made by `rockpack distro`.\n\n\
         schema = {SCHEMA}\nformat = \"deb\"\nname = {}\ncompression = \"{}\"\n\
         version_references = {has_references}\n",
        quoted(&name),
        if reads_zstd { "zstd" } else { "xz" },
    );
    section(&mut text, "os_release", &inventory.os_release);
    section(&mut text, "sources", &sources);
    section(&mut text, "programs", &programs(inventory));
    let of_rocm = inventory.packages.iter().filter(|package| package.is_rocm);
    let of_rocm = of_rocm.filter_map(|it| Some((it.name.as_str(), inventory.version(&it.name)?)));
    section(&mut text, "packages", &BTreeMap::from_iter(of_rocm));
    for (_, entry) in libraries.values() {
        text.push('\n');
        text.push_str(entry);
    }
    Ok(text)
}

fn section<K: AsRef<str>, V: AsRef<str>>(text: &mut String, name: &str, rows: &BTreeMap<K, V>) {
    text.push_str(&format!("\n[{name}]\n"));
    for (key, value) in rows {
        text.push_str(&format!("{} = {}\n", quoted(key.as_ref()), quoted(value.as_ref())));
    }
}

/// The entries of all libraries that the loader finds, by soname. Of several packages with one library, the preferred
/// one counts. A symbols file comes before a shlibs file. Each has the package that it is from.
fn libraries(
    inventory: &Inventory,
    locate: impl Fn(&str) -> Result<Option<Vec<String>>>,
) -> Result<BTreeMap<String, (Option<&SourcePackage>, String)>> {
    let mut offered = BTreeMap::<_, Vec<_>>::new();
    for package in &inventory.packages {
        let symbols = package.symbols.iter().map(|text| Vec::from_iter(symbols_entries(text)));
        let shlibs = package.shlibs.iter().map(|text| shlibs_entries(text));
        for (kind, entries) in symbols.chain(shlibs).enumerate() {
            for (soname, text) in entries {
                offered.entry(soname).or_default().push((kind, Some(package), text));
            }
        }
    }
    for (kind, text) in inventory.defaults.iter().enumerate() {
        for (soname, text) in shlibs_entries(text) {
            offered.entry(soname).or_default().push((kind, None, text));
        }
    }
    let mut entries = BTreeMap::new();
    for (soname, offered) in offered {
        let Some(owners) = locate(&soname)? else { continue };
        let ranked = offered.into_iter().filter_map(|(kind, package, text)| {
            let at = match package {
                None => owners.len(),
                Some(package) => owners.iter().position(|owner| *owner == package.name)?,
            };
            Some(((at, kind), package, text))
        });
        let first = ranked.min_by_key(|(rank, ..)| *rank);
        entries.extend(first.map(|(_, package, text)| (soname, (package, text))));
    }
    Ok(entries)
}

/// The programs of each package to depend on. Those that every system has are of a package without a name.
fn programs(inventory: &Inventory) -> BTreeMap<String, String> {
    let mut owned: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut offered = owned.clone();
    for package in &inventory.packages {
        for path in &package.programs {
            owned.entry(path).or_default().insert(inventory.full_language_package(&package.name));
        }
        for path in &package.alternatives {
            offered.entry(path).or_default().insert(&package.name);
        }
    }
    offered.retain(|path, _| !owned.contains_key(path));
    let base = inventory.base();
    let mut programs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let owned = owned.into_iter().map(|owned| (owned, 1));
    for ((path, names), most) in owned.chain(offered.into_iter().map(|it| (it, usize::MAX))) {
        let mut names = Vec::from_iter(names);
        // Of lua5.3 and lua5.4 the later one comes first.
        names.sort_by_key(|name| (name.len(), Reverse(*name)));
        let program = path.rsplit('/').next().unwrap_or_default();
        let is_base = names.iter().any(|name| base.contains(name)) || base.contains(program);
        names.truncate(if is_base { 0 } else { most });
        programs.entry(names.join(" | ")).or_default().push(format!("/{path}"));
    }
    programs.values_mut().for_each(|paths| paths.sort());
    programs.into_iter().map(|(names, paths)| (names, paths.join(" "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Distribution, Library, PayloadCompression, Table};

    const SYMBOLS: &str = "libx.so.1 libx1 #MINVER#\n| libx1 (>> 2), libx1 (<< 3)\n\
        \u{20}a@X_1 1.5\n b@X_1 1.5\n c@X_1 1.7\n d@X_2 1.6 1\n old@Base 1.2\n new@Base 1.9\n\
        #MISSING: 1.8# gone@X_1 1.1\n";

    fn package(name: &str, version: &str) -> SourcePackage {
        let (name, version) = (name.to_owned(), version.to_owned());
        SourcePackage { name, version, ..SourcePackage::default() }
    }

    fn with_files(name: &str, symbols: &str, shlibs: &str) -> SourcePackage {
        let [symbols, shlibs] = [symbols, shlibs].map(|text| vec![text.to_owned()]);
        SourcePackage { symbols, shlibs, ..package(name, "1") }
    }

    /// An inventory with dpkg of this version and further packages.
    fn inventory(dpkg: &str, packages: Vec<SourcePackage>) -> Inventory {
        let mut inventory = Inventory { packages, ..Inventory::default() };
        inventory.packages.push(package("dpkg", dpkg));
        inventory
    }

    /// The table of an inventory, read again. Each of `owners` is a library with the packages that own its file.
    fn made(inventory: &Inventory, owners: &[(&str, &[&str])]) -> Box<Distribution> {
        let locate = |soname: &str| -> Result<Option<Vec<String>>> {
            let own = owners.iter().find(|(name, _)| *name == soname);
            Ok(own.map(|(_, names)| names.iter().map(|name| (*name).to_owned()).collect()))
        };
        let text = table(inventory, Path::new("/roots/own"), locate).unwrap();
        match Table::read(text, Path::new("FILE")).unwrap() {
            Table::Deb(distribution) => distribution,
            Table::Rpm(_) => panic!("is for rpm"),
        }
    }

    fn library<'a>(distribution: &'a Distribution, soname: &str) -> &'a Library {
        distribution.library(soname).unwrap().unwrap()
    }

    fn template<'a>(distribution: &'a Distribution, soname: &str) -> &'a str {
        library(distribution, soname).minimum_need().template
    }

    #[test]
    fn a_table_answers_for_each_symbol_as_its_symbols_file() {
        let inventory = inventory("1.22", vec![with_files("libx1", SYMBOLS, "libx 1 libx1\n")]);
        let distribution = made(&inventory, &[("libx.so.1", &["libx1"])]);
        let library = library(&distribution, "libx.so.1");
        let templates = ["libx1 #MINVER#", "libx1 (>> 2), libx1 (<< 3)"];
        for line in SYMBOLS.lines().filter_map(|line| line.strip_prefix(' ')) {
            let words: Vec<&str> = line.split(' ').collect();
            let (symbol, node) = words[0].split_once('@').unwrap();
            let node = Some(node).filter(|node| *node != "Base");
            let need = library.symbol(symbol, node).unwrap_or(library.minimum_need());
            let number: usize = words.get(2).map_or(0, |word| word.parse().unwrap());
            assert_eq!(
                (need.template, need.version),
                (templates[number], Some(words[1])),
                "{line}"
            );
        }
        assert_eq!(library.minimum_need().version, Some("1.1"));
        assert_eq!(library.symbol("gone", Some("X_1")).unwrap().version, Some("1.1"));
    }

    #[test]
    fn a_text_like_the_header_of_a_library_begins_none() {
        let symbols = "libx.so.1 libx1 [libraries.\n a@[libraries. 1.5\n b@Base 1.0\n";
        let inventory = inventory("1.22", vec![with_files("libx1", symbols, "")]);
        let distribution = made(&inventory, &[("libx.so.1", &["libx1"])]);
        let need = library(&distribution, "libx.so.1").symbol("a", Some("[libraries.")).unwrap();
        assert_eq!((need.template, need.version), ("libx1 [libraries.", Some("1.5")));
        assert_eq!(distribution.packages().count(), 1);
    }

    #[test]
    fn dpkg_decides_what_packages_may_be() {
        let (zstd, xz) = (PayloadCompression::Zstd, PayloadCompression::Xz);
        for (version, compression, has_references) in [
            ("1.21.17", xz, false),
            ("1.21.18", zstd, false),
            ("1.21.1ubuntu2.3", zstd, false),
            ("1.22.21", zstd, false),
            ("1.22.22", zstd, true),
        ] {
            let distribution = made(&inventory(version, vec![package("dpkg", "1.0")]), &[]);
            assert_eq!(distribution.compression, compression, "{version}");
            assert_eq!(distribution.version_references, has_references, "{version}");
            assert_eq!(distribution.name, "own");
        }
        let error =
            table(&Inventory::default(), Path::new("/roots/own"), |_| Ok(None)).unwrap_err();
        assert_eq!(error.to_string(), "/roots/own: does not have the package dpkg");
    }

    #[test]
    fn the_first_owner_and_its_first_file_with_a_library_counts() {
        let mut inventory = inventory(
            "1.22",
            vec![
                with_files("late", "libx.so.1 late\n", "liby 1 late-y\n"),
                with_files("early", "", "libx 1 early-x\nliby 1 early-y\n"),
                with_files("both", "libz.so.1 symbols\n", "libz 1 shlibs\nlibabsent 1 absent\n"),
            ],
        );
        inventory.defaults =
            ["libz 1 first-z\nlibown 1 own\n", "libown 1 second\n"].map(str::to_owned).into();
        let distribution = made(
            &inventory,
            &[
                ("libx.so.1", &["early", "late"]),
                ("liby.so.1", &["unknown", "late", "early"]),
                ("libz.so.1", &["both"]),
                ("libown.so.1", &[]),
            ],
        );
        for (soname, expected) in [
            ("libx.so.1", "early-x"),
            ("liby.so.1", "late-y"),
            ("libz.so.1", "symbols"),
            ("libown.so.1", "own"),
        ] {
            assert_eq!(template(&distribution, soname), expected, "{soname}");
        }
        assert!(!distribution.has("libabsent.so.1"));
    }

    #[test]
    fn programs_are_of_the_package_with_the_plainest_name() {
        let with = |name: &str, programs: &[&str], alternatives: &[&str]| SourcePackage {
            programs: programs.iter().map(|path| (*path).to_owned()).collect(),
            alternatives: alternatives.iter().map(|path| (*path).to_owned()).collect(),
            ..package(name, "1")
        };
        let packages = vec![
            with("editor-gtk", &["usr/bin/editor"], &["usr/bin/vi"]),
            with("editor", &["usr/bin/editor"], &["usr/bin/vi", "usr/bin/own"]),
            with("own", &["usr/bin/own"], &[]),
            with("python3-minimal", &["usr/bin/python3"], &[]),
            package("python3", "1"),
        ];
        let distribution = made(&inventory("1.22", packages), &[]);
        for (path, expected) in [
            ("/usr/bin/editor", "editor"),
            ("/bin/vi", "editor | editor-gtk"),
            ("/usr/bin/own", "own"),
            ("/usr/bin/python3", "python3"),
        ] {
            assert_eq!(distribution.names.program(path), Some(Some(expected)), "{path}");
        }
    }

    #[test]
    fn packages_of_rocm_have_their_highest_version() {
        let rocm = |version| SourcePackage { is_rocm: true, ..package("rocm-smi", version) };
        let packages = vec![rocm("5.2.3-2"), rocm("5.10.0-1"), package("zlib1g", "9")];
        let distribution = made(&inventory("1.22", packages), &[]);
        assert_eq!(distribution.names.package("rocm-smi"), Some("5.10.0-1"));
        assert_eq!(distribution.names.package("zlib1g"), None);
    }
}
