//! Libraries and dynamic symbols that host packages take from each other. A symbol is `name` or `name@version`,
//! and counts for each needed library that defines it. Weak ones do not count: the loader does without them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rockpack_base::formats::elf::LinkedSymbol;

use super::library_set::LibrarySet;
use super::linked_file::LocatedFile;
use crate::package::Import;
use crate::plan::settings::PlanSettings;
use crate::receipt::listing::Listing;

/// The libraries of one package, and its symbols that packages of earlier sets import.
#[derive(Debug, Default)]
pub(in crate::plan) struct PackageSymbols {
    /// The names of its libraries, and the symbols that they define.
    pub has: BTreeSet<String>,
    /// The libraries that its files need and the distribution lacks, and the symbols that they take.
    pub needs: BTreeSet<String>,
    /// The libraries of other packages that its files need, by name.
    pub imports: BTreeMap<String, Import>,
}

/// Finds what each package has and needs, by id. `ids` are those of the host packages of portions.
pub(super) fn find(
    setting: &PlanSettings,
    set: &LibrarySet<'_>,
    located: &[LocatedFile<'_>],
    (ids, earlier): (&[String], &[Listing]),
) -> BTreeMap<String, PackageSymbols> {
    let imports = earlier.iter().flat_map(Listing::records).flat_map(|record| &record.imports);
    let known: HashSet<&String> = imports.flat_map(|import| &import.symbols).collect();
    let mut all: Vec<PackageSymbols> = ids.iter().map(|_| PackageSymbols::default()).collect();
    for file in located {
        let Some(linking) = &file.linked.needs.linking else { continue };
        let portion = file.linked.portion;
        let taken = linking.undefined.iter().filter(|symbol| !symbol.is_weak);
        let taken: BTreeSet<String> = taken.map(LinkedSymbol::text).collect();
        for (name, library) in file.in_set() {
            all[library.owner].has.insert(name.to_owned());
            let other = set.linking(&library.file).filter(|_| library.owner != portion);
            let Some(other) = other else { continue };
            let (library, package) = (name.to_owned(), ids[library.owner].clone());
            let import = Import { library, package, symbols: BTreeSet::new() };
            let import = all[portion].imports.entry(name.to_owned()).or_insert(import);
            import.symbols.extend(spelled(&other.defined).filter(|it| taken.contains(it)));
        }
        let own = &mut all[portion];
        own.has.extend(file.linked.soname().map(str::to_owned));
        own.has.extend(spelled(&linking.defined).filter(|symbol| known.contains(symbol)));
        let needed = linking.needed.iter().filter(|name| !setting.knows_library(name)).cloned();
        own.needs.extend(taken.into_iter().filter(|it| known.contains(it)).chain(needed));
    }
    ids.iter().cloned().zip(all).collect()
}

/// The spellings by which files take defined symbols.
fn spelled(defined: &[LinkedSymbol]) -> impl Iterator<Item = String> {
    defined.iter().flat_map(|symbol| [symbol.text(), symbol.name.clone()])
}
