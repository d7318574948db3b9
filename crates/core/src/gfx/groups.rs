//! Groups of archs, and those that belong together as products, `config/groups.toml`.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::BaseArch;

/// Archs that share a kernel package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The name, e.g. `gfx110X`.
    pub name: String,
    /// The name for people, e.g. `ROCm gfx110X (RDNA3)`.
    pub display_name: String,
    /// The archs, in order.
    #[serde(rename = "architectures")]
    pub archs: Vec<BaseArch>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupsFile {
    group: Vec<Group>,
}

const SOURCE: &str = include_str!("../../../../config/groups.toml");

// The file is compiled in, and a test parses it, so it is never broken at run time.
static TABLE: LazyLock<GroupsFile> = LazyLock::new(|| toml::from_str(SOURCE).unwrap_or_default());

/// All groups of products, oldest generation first.
pub fn product_groups() -> &'static [Group] {
    &TABLE.group
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::gfx;

    #[test]
    fn every_product_is_in_one_group_and_every_member_is_known() {
        let table: GroupsFile = toml::from_str(SOURCE).unwrap();
        let members: Vec<&BaseArch> = table.group.iter().flat_map(|group| &group.archs).collect();
        let distinct: BTreeSet<_> = members.iter().collect();
        assert_eq!(distinct.len(), members.len());
        assert!(members.iter().all(|arch| gfx::describe(arch).is_some()));
        let released = gfx::processors().iter().filter(|row| !row.products.is_empty());
        for row in released {
            assert!(members.contains(&&row.name), "{} is in no group", row.name);
        }
    }
}
