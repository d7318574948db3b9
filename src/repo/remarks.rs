//! Remarks on packages that are published as they are.

use super::input::GivenPackage;
use crate::package::indexed::Facts;
use crate::report::{Finding, Findings};

/// Findings for each given package that is not checked whole, or that indexes describe with other texts.
pub(super) fn of_given(given: &[&GivenPackage]) -> Findings {
    let mut findings = Findings::default();
    for given in given {
        let file = || given.source.name.clone();
        match &given.indexed.facts {
            Facts::Deb(package) => {
                if let Some(reason) = package.unread.clone() {
                    findings.add(Finding::DataUnread { file: file(), reason });
                }
            }
            Facts::Rpm(package) => {
                if !package.replaced.is_empty() {
                    let fields = package.replaced.clone();
                    findings.add(Finding::TextsReplaced { file: file(), fields });
                }
            }
            Facts::Wheel(_) => {}
        }
    }
    findings
}
