//! Keeps earlier packages from staying beside a package that no longer has a library or symbol that they import.
//! A package that still needs it in this set is named instead: its next version is no better.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use super::since::add_relations;
use super::upgrades::relation_before;
use crate::package::RelationKind::{Breaks, Conflicts};
use crate::package::{Format, Import, Package};
use crate::plan::libraries::symbols::PackageSymbols;
use crate::plan::source::FileSource;
use crate::receipt::KeptRecord;
use crate::receipt::listing::Listing;
use crate::report::{Finding, Findings};

/// Notes what each package imports, and adds relations to packages of `earlier` sets. `symbols` are those of
/// packages by id, and `kept` are the packages that this run leaves as they are.
pub(in crate::plan) fn add(
    symbols: &BTreeMap<String, PackageSymbols>,
    kept: &KeptRecord,
    earlier: &[Listing],
    packages: &mut [Package<FileSource>],
    findings: &mut Findings,
) {
    for package in packages.iter_mut() {
        let own = symbols.get(&package.id).into_iter();
        package.identity.imports = own.flat_map(|own| own.imports.values().cloned()).collect();
    }
    let has = |id: &String, item: &String| symbols.get(id).is_some_and(|it| it.has.contains(item));
    for record in earlier.iter().flat_map(Listing::records) {
        let (format, name) = (record.format, record.name().unwrap_or_default());
        let mut all_kept = kept.packages.iter();
        let own_kept = all_kept.find(|it| (it.format, &it.id) == (format, &record.id));
        let lacks = |item: &&String| match (own_kept, symbols.get(&record.id)) {
            (Some(kept), _) => kept.version == record.version,
            (None, Some(own)) if own.needs.contains(*item) => {
                !symbols.values().any(|other| other.has.contains(*item))
            }
            _ => false,
        };
        for Import { library, package, symbols: taken } in &record.imports {
            let lost = iter::once(library).chain(taken).filter(|item| !has(package, item));
            let lost: Vec<&String> = lost.collect();
            let is_whole = lost.first() == Some(&library);
            // The earlier version of another package that has the library now does not have it.
            let heirs = packages.iter().filter(|it| is_whole && has(&it.id, library));
            let heirs = heirs.filter_map(|heir| heir.name(format).map(str::to_owned));
            let others: BTreeSet<String> = heirs.chain([name.clone()]).collect();
            let Some(provider) = packages.iter_mut().find(|it| it.id == *package) else { continue };
            let judged = if is_whole { &lost[..1] } else { &lost[..] };
            if judged.iter().any(lacks) {
                findings.add(Finding::ImportLost {
                    package: record.id.as_str().into(),
                    library: library.as_str().into(),
                    provider: provider.id.as_str().into(),
                    symbols: lost.into_iter().filter(|it| *it != library).cloned().collect(),
                });
            } else if !lost.is_empty() {
                let kind = if format == Format::Deb { Breaks } else { Conflicts };
                let before = provider.full_version(format);
                let added = others.iter().map(|it| relation_before(kind, it, before.as_deref()));
                add_relations(provider, format, added.collect());
            }
        }
    }
}
