//! Packages as an index describes them.

use super::{Offered, Wish};
use crate::package::indexed::Facts;
use crate::package::{Comparison, Format, RelationKind};

use RelationKind::{Breaks, Conflicts, Depends, Obsoletes, PreDepends, Provides, Replaces};
use rockpack_base::formats::apt_index::DebPackage;
use rockpack_base::formats::deb::parse_fields;
use rockpack_base::formats::rpm_md::RpmPackage;

/// The fields of a control file that are judged.
const DEB_FIELDS: [(RelationKind, &str); 6] = [
    (PreDepends, "Pre-Depends"),
    (Depends, "Depends"),
    (Breaks, "Breaks"),
    (Conflicts, "Conflicts"),
    (Replaces, "Replaces"),
    (Provides, "Provides"),
];

/// The lists of `primary` that say what packages need, exclude and provide.
pub const RPM_LISTS: [(RelationKind, &str); 4] = [
    (Depends, "requires"),
    (Conflicts, "conflicts"),
    (Obsoletes, "obsoletes"),
    (Provides, "provides"),
];

impl<'a> From<&'a Facts> for Offered<'a> {
    fn from(facts: &'a Facts) -> Self {
        let relations = match facts {
            Facts::Deb(package) => of_deb(package),
            Facts::Rpm(package) => of_rpm(package),
            // No system package manager relates wheels to packages.
            Facts::Wheel(_) => Vec::new(),
        };
        let version = facts.version().into();
        Self { name: facts.name(), version, arch: facts.arch(), relations, paths: Vec::new() }
    }
}

fn of_deb(package: &DebPackage) -> Vec<(RelationKind, Wish<'static>)> {
    // The control files of an index have been parsed before.
    let Ok(fields) = parse_fields(&package.control) else { return Vec::new() };
    let mut relations = Vec::new();
    for (kind, field) in DEB_FIELDS {
        let list = fields.get(field).map_or("", String::as_str);
        relations.extend(Wish::of_field(list).map(|wish| (kind, wish.into_owned())));
    }
    relations
}

fn of_rpm(package: &RpmPackage) -> Vec<(RelationKind, Wish<'_>)> {
    let mut relations = Vec::new();
    for (kind, list) in RPM_LISTS {
        for line in package.list(list) {
            let wish = match &line.bound {
                None => Wish::of(Format::Rpm, &line.name, None),
                Some((sign, evr)) => Comparison::of_index(sign).map_or(Wish::Unknown, |sign| {
                    let version = evr.text();
                    Wish::of(Format::Rpm, &line.name, Some((sign, &version))).into_owned()
                }),
            };
            relations.push((kind, wish));
        }
    }
    relations
}
