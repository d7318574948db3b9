//! Links without a target in the whole set, and links that leave it.

use rockpack_core::error::Result;
use rockpack_core::tree::{DanglingLink, LinkSet};

use super::Component;
use rockpack_report::{Finding, Findings};

/// Notes every link without a target in any component: `libx.so` of a development component may lead to a
/// library component's file, so only the whole set decides. Refuses links that leave the prefix through
/// another component's link.
pub(super) fn check(components: &[Component], findings: &mut Findings) -> Result<()> {
    let mut set = LinkSet::default();
    for component in components {
        set.add_tree(&component.host, &component.id());
        for file in &component.databases {
            set.add(&file.path);
        }
    }
    set.refuse_leaving()?;
    for DanglingLink { owner, path, target } in set.dangling() {
        findings.add(Finding::LinkDangling { owner, path, target });
    }
    Ok(())
}
