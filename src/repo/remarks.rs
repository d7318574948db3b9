//! Remarks on packages that are published as they are.

use std::collections::BTreeSet;

use rockpack_base::formats::deb::parse_fields;

use super::input::GivenPackage;
use super::orders::upstream_version;
use crate::package::indexed::Facts;
use crate::package::{UNNAMED_PACKAGER, UNSET_VERSION};
use crate::report::{Finding, Findings};

/// Findings for each given package that is not checked whole, or that indexes describe with other texts, and
/// those about placeholders.
pub(super) fn of_given(given: &[&GivenPackage]) -> Findings {
    let mut findings = Findings::default();
    for given in given {
        match &given.indexed.facts {
            Facts::Deb(package) => {
                if let Some(reason) = package.unread.clone() {
                    findings.add(Finding::DataUnread { file: given.source.name.clone(), reason });
                }
            }
            Facts::Rpm(package) => {
                if !package.replaced.is_empty() {
                    findings.add(Finding::TextsReplaced {
                        file: given.source.name.clone(),
                        fields: package.replaced.clone(),
                    });
                }
            }
            Facts::Wheel(_) => {}
        }
    }
    note_placeholders(given, &mut findings);
    findings
}

/// Notes packages with the version or the packager of builds that were given none.
fn note_placeholders(given: &[&GivenPackage], findings: &mut Findings) {
    for placeholder in [UNSET_VERSION, UNNAMED_PACKAGER] {
        let facts = given.iter().map(|given| &given.indexed.facts);
        let names = facts.filter(|facts| states(facts, placeholder)).map(Facts::name);
        let names: BTreeSet<&str> = names.collect();
        if !names.is_empty() {
            let packages = names.into_iter().map(str::to_owned).collect();
            let placeholder = placeholder.to_owned();
            findings.add(Finding::PlaceholderPublished { placeholder, packages });
        }
    }
}

/// Whether `text` is the upstream version of a package, or who packaged it.
fn states(facts: &Facts, text: &str) -> bool {
    let packager = match facts {
        Facts::Deb(package) => {
            parse_fields(&package.control).unwrap_or_default().get("Maintainer").cloned()
        }
        Facts::Rpm(package) => Some(package.packager.clone()),
        Facts::Wheel(_) => None,
    };
    let upstream = upstream_version(&facts.version()).rsplit(':').next() == Some(text);
    upstream || packager.as_deref() == Some(text)
}
