//! Checks the relations between the packages of a set.
//!
//! A package that excludes another of its set cannot be installed with it ([`Resolver`] defines which packages a
//! relation matches). A package never excludes itself. If a package has several versions, one that is not excluded is
//! enough: they replace each other.

use std::collections::BTreeSet;

use crate::problem::{Problem, Problems};
use crate::readers::installed::PackageContents;
use rockpack_package::resolver::Resolver;
use rockpack_package::{Comparison, RelationKind, owners};
use rockpack_report::words::few;

/// The relations by which packages exclude each other, with their fields.
const EXCLUSIONS: [(RelationKind, &str); 3] = [
    (RelationKind::Breaks, "Breaks"),
    (RelationKind::Conflicts, "Conflicts"),
    (RelationKind::Obsoletes, "Obsoletes"),
];

/// Checks the packages of one format; `set` has the same packages.
pub(super) fn check(
    packages: &[&PackageContents],
    set: &Resolver<'_, '_>,
    problems: &mut Problems,
) {
    for (at, package) in packages.iter().enumerate() {
        for reason in unmet(package, packages, set) {
            problems.add(Problem::DependencyMissing { package: package.file.clone(), reason });
        }
        let excluded = EXCLUSIONS.into_iter().flat_map(move |(kind, field)| {
            set.related(at, kind).map(move |(relation, others)| (field, relation, others))
        });
        for (field, relation, others) in excluded {
            let names: BTreeSet<&str> = others.iter().map(|at| &*packages[*at].name).collect();
            for name in names {
                let versions = set.offering(name).filter(|at| packages[*at].name == name);
                let versions: BTreeSet<usize> = versions.collect();
                let Some(other) = versions.first().filter(|_| versions.is_subset(&others)) else {
                    continue;
                };
                let (package, other) = (package.file.clone(), packages[*other].file.clone());
                let exclusion = format!("{field}: {relation}");
                problems.add(Problem::SetConflict { package, exclusion, other });
            }
        }
    }
}

/// Reasons: dependencies of which the set has other versions, required paths that clients do not find, and a kernel
/// package that is not tied to its host package.
fn unmet(
    package: &PackageContents,
    packages: &[&PackageContents],
    set: &Resolver<'_, '_>,
) -> Vec<String> {
    let mut unmet = Vec::new();
    for requirement in package.declared.needs() {
        if set.holds(requirement, &|_| true) == Some(false) {
            let offered = few(&set.offering_any(requirement, |_| true), 3);
            unmet.push(format!("depends on {requirement}, but the set has {offered}"));
        }
        for path in owners::unmet_paths(requirement, |name| set.knows(name)) {
            if let Some(owner) = packages.iter().find(|other| other.paths.contains_key(&path)) {
                let owner = &owner.file;
                unmet.push(format!(
                    "requires {path} of {owner}, which no package provides and primary does not list"
                ));
            }
        }
    }
    if package.has_kernels() && !is_tied(package, packages, set) {
        unmet.push("depends on no package of exactly its own version".to_owned());
    }
    unmet
}

/// Whether a kernel package requires another one in exactly its own version, or in a minimum version while that one
/// excludes older kernel packages.
fn is_tied(
    package: &PackageContents,
    packages: &[&PackageContents],
    set: &Resolver<'_, '_>,
) -> bool {
    package.requires().any(|bound| match &bound.version {
        Some((Comparison::Equal, version)) => *version == package.version,
        Some((Comparison::GreaterEqual, _)) => set.met_by(bound).any(|at| {
            bound.name == packages[at].name
                && EXCLUSIONS.iter().any(|(kind, _)| {
                    let mut bounds = packages[at].declared.named(*kind, &package.name);
                    bounds.any(|bound| matches!(bound.version, Some((Comparison::Less, _))))
                })
        }),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use RelationKind::{Conflicts, Depends, Obsoletes, Provides};
    use rockpack_package::Format;
    use rockpack_package::requirement::{Relations, Requirement};

    /// A package of version `version`, with a relation on `c = 1`, for example.
    fn package(
        name: &str,
        version: &str,
        relation: Option<(RelationKind, &str)>,
    ) -> PackageContents {
        let mut package = PackageContents::of_files(name.to_owned(), BTreeMap::new());
        package.version = version.to_owned();
        package.format = Some(Format::Rpm);
        let relation = relation.map(|(kind, text)| {
            let text = format!("({text})");
            (kind, Requirement::of(Format::Rpm, &text, None).into_owned())
        });
        package.declared = Relations::of(relation);
        package
    }

    fn found(packages: &[&PackageContents]) -> Vec<String> {
        let offered: Vec<_> = packages.iter().map(|package| package.offered()).collect();
        let set = Resolver::new(Format::Rpm, offered.iter().collect());
        let mut problems = Problems::default();
        check(packages, &set, &mut problems);
        problems.finish().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rpm_obsoletes_names_and_conflicts_with_capabilities_too() {
        let old = package("b", "7.1.0~rc1-1", Some((Provides, "c = 1")));
        let count = |kind, text, others: &[&PackageContents]| {
            let package = package("a", "1-1", Some((kind, text)));
            found(&[&[&package][..], others].concat()).len()
        };
        for kind in [Conflicts, Obsoletes] {
            assert_eq!(count(kind, "b < 7.1.0-1", &[&old]), 1);
            assert_eq!(count(kind, "b < 7.1.0~rc1-1", &[&old]), 0);
            assert_eq!(count(kind, "a < 2", &[&old]), 0, "itself");
        }
        assert_eq!(count(Conflicts, "b = 7.1.0~rc1", &[&old]), 1, "every release");
        assert_eq!(count(Conflicts, "c <= 1", &[&old]), 1);
        assert_eq!(count(Obsoletes, "c <= 1", &[&old]), 0);
        let newer = package("b", "7.1.0-1", None);
        assert_eq!(count(Conflicts, "b < 7.1.0-1", &[&old, &newer]), 0, "one of two will do");
    }

    #[test]
    fn dependencies_on_names_of_the_set_are_met_by_versions_of_it() {
        let other = package("b", "2-1", Some((Provides, "c = 1")));
        for (text, offered) in [
            ("b = 3", "b 2-1"),
            ("c > 1", "b 2-1"),
            ("b < 2 or c > 1", "b 2-1"),
            ("b < 2 or elsewhere", ""),
            ("elsewhere = 3", ""),
            ("b = 2", ""),
        ] {
            let found = found(&[&package("a", "1-1", Some((Depends, text))), &other]);
            let expected = (!offered.is_empty()).then(|| {
                format!("V050 dependency-missing: a: depends on {text}, but the set has {offered}")
            });
            assert_eq!(found, Vec::from_iter(expected), "{text}");
        }
    }
}
