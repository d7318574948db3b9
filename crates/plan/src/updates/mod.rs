//! Updates: sets that replace those of earlier versions, or packages under former names.
//!
//! A package that loses a library or symbol excludes the earlier releases of packages that import it. If another
//! package that the importer needs has it now, the package excludes the earlier releases of that one instead. A
//! finding names importers of this set that still need it.

mod path_type_changes;
pub(super) mod since;
pub(super) mod upgrades;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use crate::libraries::symbols::SetSymbols;
use crate::outcome::PlannedPackage;
use crate::settings::PlanSettings;
use rockpack_package::RelationKind::{Breaks, Conflicts};
use rockpack_package::receipt::listing::Listing;
use rockpack_package::receipt::{CurrentPackages, KeptRecord, PartRecord};
use rockpack_package::{Format, Import};
use rockpack_report::{Findings, found};
use since::add_relations;
use upgrades::relation_before;

/// The packages of earlier sets with the planned version. Of sets in parts, only the given parts.
pub(crate) fn current_packages(
    setting: &PlanSettings,
    earlier: &[Listing],
    findings: &mut Findings,
) -> CurrentPackages {
    let receipts = earlier.iter().filter_map(|listing| listing.receipt.as_deref());
    let mut parts: BTreeMap<String, (BTreeSet<u32>, &PartRecord)> = BTreeMap::new();
    for receipt in receipts {
        if let Some(record) = &receipt.part {
            let (present, _) = parts.entry(receipt.release()).or_insert((BTreeSet::new(), record));
            present.insert(record.part.index);
        }
    }
    for (release, (present, record)) in parts {
        if record.packages.values().any(|part| !present.contains(part)) {
            let (present, of) = (present.len(), record.part.of);
            findings.add(found::EarlierPartsAbsent { release, present, of });
        }
    }
    CurrentPackages::of(earlier, &setting.version, &setting.prefix.absolute(), &setting.formats)
}

/// Records the imports of each package, and adds relations to packages of `earlier` sets. `kept` are the packages
/// that this run does not build.
pub(crate) fn add_imports(
    symbols: &SetSymbols,
    kept: &KeptRecord,
    (earlier, current_packages): (&[Listing], &CurrentPackages),
    packages: &mut [PlannedPackage],
    findings: &mut Findings,
) {
    for package in packages.iter_mut() {
        let own = symbols.imports.get(&package.id).cloned().unwrap_or_default();
        package.identity.imports = own.clone();
        // Imports of its earlier releases count as well.
        let records = current_packages.packages().filter(|record| record.id == package.id);
        for import in records.flat_map(|record| &record.imports) {
            let mut same = own.iter().filter(|it| it.is_of(import));
            if !same.any(|it| it.symbols.is_superset(&import.symbols)) {
                Import { earlier_releases_only: true, ..import.clone() }
                    .merge_into(&mut package.identity.imports);
            }
        }
    }
    let planned: BTreeSet<String> = packages.iter().map(|package| package.id.clone()).collect();
    for record in earlier.iter().flat_map(Listing::records) {
        let importer = Importer { symbols, planned: &planned, imports: &record.imports };
        let mut all_kept = kept.packages.iter();
        let own_kept = all_kept.find(|it| (it.format, &it.id) == (record.format, &record.id));
        let missing = symbols.missing.get(&record.id).filter(|_| planned.contains(&record.id));
        for import in record.imports.iter().filter(|it| planned.contains(&it.package)) {
            let moved = importer.moved(import);
            let owners = packages.iter().filter(|it| moved.contains_key(&Some(&*it.id)));
            let names = owners.filter_map(|owner| owner.name(record.format).map(str::to_owned));
            let own = record.name().filter(|_| moved.contains_key(&None));
            let excluded: Vec<String> = names.chain(own).collect();
            exclude(packages, &import.package, record.format, &excluded);
            let mut lost = moved.get(&None).cloned().unwrap_or_default();
            lost.retain(|item| match own_kept {
                Some(kept) => kept.version == record.version && !import.earlier_releases_only,
                None => missing.is_some_and(|missing| missing.contains(*item)),
            });
            if !lost.is_empty() {
                let symbols = lost.iter().filter(|item| ***item != import.library);
                findings.add(found::ImportLost {
                    package: record.id.as_str().into(),
                    library: import.library.as_str().into(),
                    provider: import.package.as_str().into(),
                    symbols: symbols.map(|symbol| (*symbol).clone()).collect(),
                });
            }
        }
    }
}

/// Makes the package `id` exclude earlier releases of the packages called `names`.
fn exclude(packages: &mut [PlannedPackage], id: &str, format: Format, names: &[String]) {
    let Some(package) = packages.iter_mut().find(|package| package.id == id) else { return };
    let kind = if format == Format::Deb { Breaks } else { Conflicts };
    let before = package.full_version(format);
    let added = names.iter().map(|name| relation_before(kind, name, before.as_deref()));
    add_relations(package, format, added.collect());
}

/// A package of an earlier set, installed with those of this run.
struct Importer<'a> {
    symbols: &'a SetSymbols,
    /// The ids of the packages of this run. Other packages are unchanged.
    planned: &'a BTreeSet<String>,
    imports: &'a [Import],
}

impl<'a> Importer<'a> {
    /// The library and symbols of `import` that moved, by the package that has them now.
    fn moved(&self, import: &'a Import) -> BTreeMap<Option<&'a str>, Vec<&'a String>> {
        let mut moved: BTreeMap<Option<&str>, Vec<&String>> = BTreeMap::new();
        for item in iter::once(&import.library).chain(&import.symbols) {
            let owner = self.owner(import, item);
            if owner.is_none_or(|id| !self.imported_from(id, item)) {
                moved.entry(owner).or_default().push(item);
            }
        }
        moved
    }

    /// The package with `item`, which is the library of `import` or a symbol. A symbol may be in any library
    /// that the importer needs.
    fn owner(&self, import: &'a Import, item: &str) -> Option<&'a str> {
        let others = self.imports.iter().filter(|_| item != import.library);
        let libraries = iter::once(import).chain(others);
        let owners = || libraries.clone().filter_map(|library| self.owner_in(library, item));
        owners().find(|id| self.imported_from(id, item)).or_else(|| owners().next())
    }

    /// The package with `item` in the library of `import`, if the importer depends on it.
    fn owner_in(&self, import: &'a Import, item: &str) -> Option<&'a str> {
        let is_planned = |id: &str| self.planned.contains(id);
        let as_before = Some(&*import.package).filter(|_| !is_planned(&import.package));
        let owner = as_before.or_else(|| self.symbols.owner(import, item))?;
        let mut imports = self.imports.iter().filter(|it| it.package == owner);
        imports.any(|it| is_planned(owner) || it.has(item)).then_some(owner)
    }

    fn imported_from(&self, id: &str, item: &str) -> bool {
        self.imports.iter().any(|it| it.package == id && it.has(item))
    }
}
