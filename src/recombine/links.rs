//! Links that lead to nothing in the whole set.

use super::Component;
use crate::report::{Code, Finding, Findings};
use crate::tree::LinkSet;

/// Notes every link whose end is in no component: `libx.so` of a development component may well
/// lead to a library component's file, so only the set as a whole can tell.
pub(super) fn find_dangling(components: &[Component], findings: &mut Findings) {
    let mut set = LinkSet::default();
    for component in components {
        set.add_tree(&component.host, &component.id());
        for file in &component.databases {
            set.add(&file.path);
        }
    }
    for (subject, target) in set.dangling() {
        let message = format!("leads to {target}, which no component has");
        findings.add(Finding::new(Code::LinkDangling, subject, message));
    }
}
