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

use std::collections::BTreeMap;

use crate::package::bounds::Bound;
use crate::verify::own::installed::{Against, Installed};
use crate::verify::problem::{Exclusion, ExclusionBound, Problem, Problems};

/// Holds what packages exclude against the packages of the same set.
pub(in crate::verify) fn check(packages: &[&Installed], problems: &mut Problems) {
    let mut versions: BTreeMap<&str, Vec<&Installed>> = BTreeMap::new();
    let mut offering: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(package);
        let provided = package.provides.iter().map(|capability| &*capability.name);
        for name in provided.chain([package.name.as_str()]) {
            offering.entry(name).or_default().push(&package.name);
        }
    }
    for package in packages {
        for against in &package.excludes {
            let mut others = offering.get(&*against.what.name).cloned().unwrap_or_default();
            others.sort_unstable();
            others.dedup();
            for other in others.into_iter().filter(|other| *other != package.name) {
                let there = versions.get(other).map_or(&[][..], Vec::as_slice);
                if let Some(first) = there.first()
                    && there.iter().all(|other| meets(other, against))
                {
                    problems.add(Problem::SetConflict {
                        package: package.file.clone(),
                        exclusion: exclusion(package, against),
                        other: first.file.clone(),
                    });
                }
            }
        }
    }
}

fn exclusion(package: &Installed, against: &Against) -> Exclusion {
    let Bound { name, version } = &against.what;
    let bound = package.format.zip(version.as_ref()).map(|(format, (sign, version))| {
        ExclusionBound { sign: sign.sign(format).to_owned(), version: version.to_string() }
    });
    Exclusion { field: against.field.to_owned(), excluded: name.to_string(), bound }
}

/// Whether `other` is among what is excluded.
fn meets(other: &Installed, against: &Against) -> bool {
    let Against { field, what } = against;
    let is_met = |version| other.format.is_some_and(|format| what.is_met(format, version));
    let own = other.name == what.name && is_met(Some(&*other.version));
    let mut offers = other.provides.iter().filter(|offer| offer.name == what.name);
    let provided = offers.any(|offer| is_met(offer.version.as_ref().map(|(_, it)| &**it)));
    own || (provided && *field != "Obsoletes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::{Comparison, Format};
    use crate::verify::own::installed::Side;

    fn package(name: &str, version: &str) -> Installed {
        let mut package = Installed::of_files(name.to_owned(), Side::Host, BTreeMap::new());
        package.version = version.to_owned();
        package.format = Some(Format::Rpm);
        package
    }

    fn against(field: &'static str, name: &'static str, bound: &'static str) -> Against {
        Against { field, what: bounded(name, bound) }
    }

    fn bounded(name: &'static str, bound: &'static str) -> Bound<'static> {
        let (sign, version) = Comparison::split(bound, Format::Rpm).unwrap();
        Bound { name: name.into(), version: Some((sign, version.trim().into())) }
    }

    fn found(packages: &[&Installed]) -> usize {
        let mut problems = Problems::default();
        check(packages, &mut problems);
        problems.finish().len()
    }

    #[test]
    fn rpm_obsoletes_names_and_conflicts_with_capabilities_too() {
        let mut old = package("b", "7.1.0~rc1-1");
        old.provides.push(bounded("c", "= 1"));
        for field in ["Conflicts", "Obsoletes"] {
            assert_eq!(found(&[&excluding(against(field, "b", "< 7.1.0-1")), &old]), 1);
            assert_eq!(found(&[&excluding(against(field, "b", "< 7.1.0~rc1-1")), &old]), 0);
            assert_eq!(found(&[&excluding(against(field, "a", "< 2")), &old]), 0, "itself");
        }
        let whole = excluding(against("Conflicts", "b", "= 7.1.0~rc1"));
        assert_eq!(found(&[&whole, &old]), 1, "every release");
        assert_eq!(found(&[&excluding(against("Conflicts", "c", "<= 1")), &old]), 1);
        assert_eq!(found(&[&excluding(against("Obsoletes", "c", "<= 1")), &old]), 0);
        let newer = package("b", "7.1.0-1");
        let breaks = excluding(against("Conflicts", "b", "< 7.1.0-1"));
        assert_eq!(found(&[&breaks, &old, &newer]), 0, "one of two versions will do");
    }

    fn excluding(against: Against) -> Installed {
        let mut package = package("a", "1-1");
        package.excludes.push(against);
        package
    }
}
