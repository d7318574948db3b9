//! Libraries and dynamic symbols that host packages import from each other, and that packages of earlier sets import.
//!
//! A symbol is `name`, `name@version`, or `library(version)` for a version that a file needs. It counts for
//! each needed library that defines it. Weak ones do not count: the loader needs only their version.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::iter;

use rockpack_core::tree::TreePath;
use rockpack_elf::{LinkedSymbol, Linking};

use super::library_set::{LibraryLookup, LibrarySet, LocatedFile, file_name};
use crate::settings::PlanSettings;
use rockpack_package::Import;
use rockpack_package::receipt::listing::Listing;
use rockpack_report::{Findings, found};

/// The libraries and symbols of a set that packages of this set or of earlier ones import.
#[derive(Debug, Default)]
pub(crate) struct SetSymbols {
    /// Package id → imports of its files from other packages.
    pub imports: BTreeMap<String, Vec<Import>>,
    /// Package id → the libraries and symbols of earlier imports that its files need and do not find.
    pub missing: BTreeMap<String, BTreeSet<String>>,
    files: BTreeMap<TreePath, FileSymbols>,
    /// The path of a library in earlier imports → its file in this set.
    libraries: BTreeMap<TreePath, TreePath>,
}

#[derive(Debug)]
struct FileSymbols {
    package: String,
    /// The name and symbols of a library, if earlier packages import them.
    defined: BTreeSet<String>,
    /// The files of the libraries that it needs and finds.
    needed: Vec<TreePath>,
}

impl SetSymbols {
    /// The package with `item`: the library of an earlier `import`, or a symbol of it or of what it needs.
    pub fn owner(&self, import: &Import, item: &str) -> Option<&str> {
        let mut loaded = self.loaded(self.libraries.get(&import.path)?);
        let found = loaded.find(|it| import.library == item || it.defined.contains(item))?;
        Some(&found.package)
    }

    /// The file at `path` and those that the loader loads with it.
    fn loaded<'a>(&'a self, path: &'a TreePath) -> impl Iterator<Item = &'a FileSymbols> {
        let (mut seen, mut open) = (BTreeSet::new(), vec![path]);
        iter::from_fn(move || {
            while let Some(path) = open.pop() {
                if let Some(file) = self.files.get(path).filter(|_| seen.insert(path)) {
                    open.extend(&file.needed);
                    return Some(file);
                }
            }
            None
        })
    }
}

/// Finds the imports of packages from each other. `ids` are those of the host packages of portions.
pub(super) fn find(
    setting: &PlanSettings,
    set: &LibrarySet<'_>,
    located: &[LocatedFile<'_>],
    (ids, earlier): (&[String], &[Listing]),
) -> SetSymbols {
    let records = earlier.iter().flat_map(Listing::records);
    let earlier: Vec<&Import> = records.flat_map(|record| &record.imports).collect();
    let items = earlier.iter().flat_map(|it| iter::once(&it.library).chain(&it.symbols));
    let known: HashSet<&String> = items.collect();
    let again = earlier.iter().filter_map(|it| Some((it.path.clone(), set.find_import(it)?)));
    let mut found = SetSymbols { libraries: again.collect(), ..SetSymbols::default() };
    let linked = located.iter().filter_map(|it| Some((it, it.linked.needs.linking.as_ref()?)));
    for (file, linking) in linked.clone() {
        let (path, package) = (file.linked.path, ids[file.linked.portion].clone());
        let defined = defined(path, linking).filter(|item| known.contains(item)).collect();
        let reached = file.in_set().filter(|(_, library)| library.is_reached);
        let needed = reached.map(|(_, library)| library.file.clone()).collect();
        found.files.insert(path.clone(), FileSymbols { package, defined, needed });
    }
    for (file, linking) in linked {
        let package = &ids[file.linked.portion];
        let symbols = linking.undefined.iter().filter(|symbol| !symbol.is_weak);
        let versions = linking.versions.needed.iter().flat_map(|need| {
            need.versions.iter().map(move |version| format!("{}({})", need.file, version.name))
        });
        let imported: BTreeSet<String> = symbols.map(LinkedSymbol::text).chain(versions).collect();
        let own = found.imports.entry(package.clone()).or_default();
        for (name, library) in file.in_set().filter(|(_, it)| it.owner != file.linked.portion) {
            let Some(other) = set.linking(&library.file) else { continue };
            let symbols = defined(&library.file, other).filter(|symbol| imported.contains(symbol));
            let (path, package) = (library.found_at.clone(), ids[library.owner].clone());
            let (library, symbols) = (file_name(name).to_owned(), symbols.collect());
            let earlier_releases_only = false;
            Import { library, path, package, earlier_releases_only, symbols }.merge_into(own);
        }
        let needed = linking.needed.iter().map(|name| file_name(name).to_owned());
        let needed = needed.filter(|name| !setting.knows_library(name, file.linked.family));
        let needed = needed.chain(imported).filter(|item| known.contains(item));
        let lacks = |item: &String| {
            !found.loaded(file.linked.path).any(|loaded| loaded.defined.contains(item))
        };
        let missing: Vec<String> = needed.filter(lacks).collect();
        found.missing.entry(package.clone()).or_default().extend(missing);
    }
    found
}

/// The name, symbols and versions of the library at `path`, in each spelling by which files need them.
fn defined<'a>(path: &'a TreePath, linking: &'a Linking) -> impl Iterator<Item = String> + 'a {
    let name = linking.soname.as_deref().unwrap_or(path.name());
    let versions = linking.versions.defined.iter().filter_map(|version| version.names.first());
    let versions = versions.map(move |version| format!("{name}({version})"));
    let symbols = linking.defined.iter().flat_map(|symbol| [symbol.text(), symbol.name.clone()]);
    iter::once(name.to_owned()).chain(versions).chain(symbols)
}

/// Adds a finding for each version that a library of the set lacks. `name` returns the name of a portion.
///
/// If a library has versions but lacks a needed one, the loader does not start the program. If it has none, the
/// loader warns and goes on, or aborts without a version table. rpm always requires each version, which nothing
/// provides then. Weak needs count as well: the loader ignores them, but rpm does not.
///
/// Source: `match_symbol` of glibc (`elf/dl-version.c`) and `check_match` (`elf/dl-lookup.c`).
pub(super) fn note_lacking(
    set: &LibrarySet<'_>,
    located: &[LocatedFile<'_>],
    name: impl Fn(usize) -> String,
    findings: &mut Findings,
) {
    let mut lacking: BTreeMap<_, BTreeSet<TreePath>> = BTreeMap::new();
    for file in located {
        let linking = file.linked.needs.linking.iter();
        for need in linking.flat_map(|linking| &linking.versions.needed) {
            let Some(LibraryLookup::InSet(library)) = file.places.get(need.file.as_str()) else {
                continue;
            };
            let Some(linking) = set.linking(&library.file) else { continue };
            let has_others = !linking.versions.defined.is_empty();
            let versions = need.versions.iter().map(|version| &version.name);
            for version in versions.filter(|version| !linking.versions.defines(version)) {
                let provider = (library.owner, &library.file);
                let key = (file.linked.portion, &need.file, version, provider, has_others);
                lacking.entry(key).or_default().insert(file.linked.path.clone());
            }
        }
    }
    for ((portion, library, version, (owner, path), has_others), files) in lacking {
        findings.add(found::VersionNotInSet {
            package: name(portion).into(),
            library: library.into(),
            version: version.clone(),
            provider: name(owner).into(),
            path: path.clone(),
            has_others,
            files: files.into_iter().collect(),
        });
    }
}
