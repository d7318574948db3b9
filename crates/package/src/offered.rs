//! Packages as a set or a repository offers them to clients.

use std::borrow::Cow;

use rockpack_archive::apt_index::DebPackage;
use rockpack_archive::deb::parse_fields;
use rockpack_archive::rpm_md::IndexedDependency;

use super::indexed::IndexMetadata;
use super::requirement::{Relations, Requirement};
use super::resolver::names_packages;
use super::{Comparison, Format, RelationKind};

/// The lists of `primary` with requirements, exclusions and capabilities.
pub const RPM_LISTS: [(RelationKind, &str); 4] = [
    (RelationKind::Depends, "requires"),
    (RelationKind::Conflicts, "conflicts"),
    (RelationKind::Obsoletes, "obsoletes"),
    (RelationKind::Provides, "provides"),
];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfferedPackage<'a> {
    pub name: &'a str,
    pub version: Cow<'a, str>,
    pub arch: &'a str,
    /// The relations. The package's own name need not be among its provisions.
    pub relations: Relations<'a>,
    /// The paths in the package. If they are given, a requirement for one of them that it does not provide is unmet.
    pub paths: Vec<&'a str>,
}

impl OfferedPackage<'_> {
    /// The name and the version, as messages name a package.
    pub fn name_and_version(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// Whether a relation of one of these kinds is about `other`, by its name or what it provides.
    pub fn relates_to(
        &self,
        format: Format,
        kinds: &[RelationKind],
        other: &OfferedPackage<'_>,
    ) -> bool {
        kinds.iter().any(|kind| {
            let mut named = self.relations.named(*kind, other.name);
            let is_named = named.any(|bound| bound.admits(format, &other.version));
            let mut provided = other.relations.bounds(RelationKind::Provides);
            is_named
                || !names_packages(*kind)
                    && provided.any(|offer| {
                        let version = offer.version.as_ref().map(|(_, version)| &**version);
                        let mut named = self.relations.named(*kind, &offer.name);
                        named.any(|bound| bound.is_met(format, version))
                    })
        })
    }
}

impl<'a> From<&'a IndexMetadata> for OfferedPackage<'a> {
    fn from(facts: &'a IndexMetadata) -> Self {
        let relations = match facts {
            IndexMetadata::Deb(package) => of_deb(package),
            IndexMetadata::Rpm(package) => {
                let lists = RPM_LISTS.map(|(kind, list)| (kind, package.list(list)));
                Relations::of(lists.into_iter().flat_map(|(kind, list)| {
                    list.iter().map(move |dependency| (kind, of_rpm(dependency)))
                }))
            }
            // No system package manager relates wheels to packages.
            IndexMetadata::Wheel(_) => Relations::default(),
        };
        let version = facts.version().into();
        Self { name: facts.name(), version, arch: facts.arch(), relations, paths: Vec::new() }
    }
}

fn of_deb(package: &DebPackage) -> Relations<'static> {
    // The control files of an index have been parsed before.
    let Ok(fields) = parse_fields(&package.control) else { return Relations::default() };
    Relations::of_control(|name| fields.get(name).map_or("", String::as_str)).into_owned()
}

fn of_rpm(dependency: &IndexedDependency) -> Requirement<'_> {
    let bound = dependency.bound.as_ref();
    let version =
        bound.and_then(|(sign, evr)| Some((Comparison::of_index(sign)?, evr.text().into())));
    Requirement::of(Format::Rpm, &dependency.name, version)
}
