//! Remarks on packages that are published as they are.

use super::input::GivenPackage;
use crate::package::indexed::Facts;
use crate::report::{Finding, Findings};

/// Findings for each given package that is not checked whole, or that indexes describe with other texts.
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
    findings
}
