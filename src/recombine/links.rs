//! Links that lead to nothing in the whole set, or out of it.

use rockpack_base::error::Result;
use rockpack_base::tree::{DanglingLink, LinkSet};

use super::Component;
use crate::report::{Finding, Findings};

/// Notes every link whose end is in no component: `libx.so` of a development component may well
/// lead to a library component's file, so only the set as a whole can tell. So it is with links that
/// leave the prefix through another component's, which are refused.
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
