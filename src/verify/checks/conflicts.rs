//! Packages that cannot be installed together although they are of one set.
//!
//! | | packages of that name | what provides the name |
//! |---|---|---|
//! | deb: Breaks, Conflicts | yes | yes; with a bound only if provided in a version (Debian policy 7.5) |
//! | rpm: Conflicts | yes | yes |
//! | rpm: Obsoletes | yes | no |
//!
//! A package never conflicts with itself. Of a package that is there in several versions, one that
//! does not conflict is enough: they replace each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::package::Format;
use crate::package::requirement::Bound;
use crate::package::resolver::Resolver;
use crate::verify::own::installed::{EXCLUSIONS, Installed};
use crate::verify::problem::{Exclusion, ExclusionBound, Problem, Problems};

/// Compares what packages exclude with the packages of the same set.
pub(in crate::verify) fn check(packages: &[&Installed], problems: &mut Problems) {
    let Some(format) = packages.iter().find_map(|package| package.format) else { return };
    let offered: Vec<_> = packages.iter().map(|package| package.offered()).collect();
    let resolver = Resolver::new(format, offered.iter().collect());
    let mut versions: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (at, package) in packages.iter().enumerate() {
        versions.entry(&package.name).or_default().insert(at);
    }
    for (at, package) in packages.iter().enumerate() {
        for (kind, field) in EXCLUSIONS {
            for (relation, others) in resolver.related(at, kind) {
                let Some(bound) = relation.bound() else { continue };
                for present in versions.values().filter(|present| present.is_subset(&others)) {
                    problems.add(Problem::SetConflict {
                        package: package.file.clone(),
                        exclusion: exclusion(format, field, bound),
                        other: present
                            .first()
                            .map(|at| packages[*at].file.clone())
                            .unwrap_or_default(),
                    });
                }
            }
        }
    }
}

fn exclusion(format: Format, field: &str, bound: &Bound<'_>) -> Exclusion {
    let Bound { name, version } = bound;
    let bound = version.as_ref().map(|(sign, version)| ExclusionBound {
        sign: sign.sign(format).to_owned(),
        version: version.to_string(),
    });
    Exclusion { field: field.to_owned(), excluded: name.to_string(), bound }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::RelationKind::{self, Conflicts, Obsoletes, Provides};
    use crate::package::requirement::{Relations, Requirement};
    use crate::verify::own::installed::Side;

    /// A package of version `version`, with a relation on `c = 1`, for example.
    fn package(name: &str, version: &str, relation: Option<(RelationKind, &str)>) -> Installed {
        let mut package = Installed::of_files(name.to_owned(), Side::Host, BTreeMap::new());
        package.version = version.to_owned();
        package.format = Some(Format::Rpm);
        let relation = relation.map(|(kind, text)| {
            let text = format!("({text})");
            (kind, Requirement::of(Format::Rpm, &text, None).into_owned())
        });
        package.declared = Relations::of(relation);
        package
    }

    fn found(packages: &[&Installed]) -> usize {
        let mut problems = Problems::default();
        check(packages, &mut problems);
        problems.finish().len()
    }

    #[test]
    fn rpm_obsoletes_names_and_conflicts_with_capabilities_too() {
        let old = package("b", "7.1.0~rc1-1", Some((Provides, "c = 1")));
        let excluding = |kind, text| package("a", "1-1", Some((kind, text)));
        for kind in [Conflicts, Obsoletes] {
            assert_eq!(found(&[&excluding(kind, "b < 7.1.0-1"), &old]), 1);
            assert_eq!(found(&[&excluding(kind, "b < 7.1.0~rc1-1"), &old]), 0);
            assert_eq!(found(&[&excluding(kind, "a < 2"), &old]), 0, "itself");
        }
        assert_eq!(found(&[&excluding(Conflicts, "b = 7.1.0~rc1"), &old]), 1, "every release");
        assert_eq!(found(&[&excluding(Conflicts, "c <= 1"), &old]), 1);
        assert_eq!(found(&[&excluding(Obsoletes, "c <= 1"), &old]), 0);
        let newer = package("b", "7.1.0-1", None);
        let breaks = excluding(Conflicts, "b < 7.1.0-1");
        assert_eq!(found(&[&breaks, &old, &newer]), 0, "one of two versions will do");
    }
}
