//! Packages of the set whose names the distribution has for packages of its own.

use std::cmp::Ordering;

use rockpack_base::formats::deb::compare_versions;

use crate::package::Format;
use crate::plan::drafts::Draft;
use crate::plan::setting::Setting;
use crate::report::{Finding, Findings, NameWinner};

/// Notes each, and which of the two apt takes.
pub(in crate::plan) fn note(setting: &Setting, drafts: &[Draft], findings: &mut Findings) {
    if !setting.formats.contains(&Format::Deb) {
        return;
    }
    let version = setting.version.full(Format::Deb);
    for draft in drafts {
        let package = &draft.names.deb;
        let Some(other_version) = setting.known.package(package) else { continue };
        let winner = match compare_versions(&version, other_version) {
            Ordering::Greater => NameWinner::Set,
            Ordering::Less => NameWinner::Distribution,
            Ordering::Equal => NameWinner::Either,
        };
        findings.add(Finding::NameOfDistribution {
            package: package.clone(),
            version: version.clone(),
            distribution: setting.known.distribution.clone(),
            other_version: other_version.to_owned(),
            winner,
        });
    }
}
