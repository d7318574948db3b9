//! Remarks on packages that are published as they are.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_archive::deb::parse_fields;

use super::input::GivenPackage;
use super::orders::upstream_version;
use rockpack_package::indexed::Facts;
use rockpack_package::{UNNAMED_PACKAGER, UNSET_VERSION};
use rockpack_report::{Finding, Findings};

/// Findings for each given package that is not checked whole, or that indexes describe with other texts.
pub(super) fn of_given(given: &[&GivenPackage]) -> Findings {
    let mut findings = Findings::default();
    for given in given {
        let (file, facts) = (given.source.name.clone(), &given.indexed.facts);
        if let Facts::Deb(package) = facts
            && let Some(reason) = package.unread.clone()
        {
            findings.add(Finding::DataUnread { file, reason });
        } else if let Facts::Rpm(package) = facts
            && !package.replaced.is_empty()
        {
            findings.add(Finding::TextsReplaced { file, fields: package.replaced.clone() });
        }
    }
    findings
}

/// Findings about packages with the version or the packager of builds that were given none.
pub(super) fn of_placeholders(given: &[GivenPackage]) -> Findings {
    // Packages by the placeholder and its remedy.
    let mut found: BTreeMap<[&str; 2], BTreeSet<String>> = BTreeMap::new();
    for facts in given.iter().map(|given| &given.indexed.facts) {
        let packager = match facts {
            Facts::Deb(package) => {
                parse_fields(&package.control).unwrap_or_default().get("Maintainer").cloned()
            }
            Facts::Rpm(package) => Some(package.packager.clone()),
            Facts::Wheel(_) => None,
        };
        if upstream_version(&facts.version()).rsplit(':').next() == Some(UNSET_VERSION) {
            let key = [UNSET_VERSION, "build again with `--version`"];
            found.entry(key).or_default().insert(facts.name().to_owned());
        }
        if packager.as_deref() == Some(UNNAMED_PACKAGER) {
            let remedy = "set the key `maintainer` and build again, or give `--maintainer` for the key \
                          package";
            found.entry([UNNAMED_PACKAGER, remedy]).or_default().insert(facts.name().to_owned());
        }
    }
    let mut findings = Findings::default();
    for ([placeholder, remedy], packages) in found {
        let (placeholder, remedy) = (placeholder.to_owned(), remedy.to_owned());
        let packages = packages.into_iter().collect();
        findings.add(Finding::PlaceholderPublished { placeholder, packages, remedy });
    }
    findings
}
