//! Makes groups if the configuration has none.

use rockpack_core::gfx;

use rockpack_plan::config::Grouping;
use rockpack_plan::recombine::Group;

/// The groups of a wheel: those of the configuration; without any, each arch is a group, along with its
/// qualified variants (`gfx1250` with `gfx1250-strict`).
pub(super) fn groups(found: &[Group], configured: &Grouping) -> Vec<Group> {
    if !configured.groups.is_empty() {
        return found.to_vec();
    }
    let mut groups: Vec<Group> = Vec::new();
    for group in found {
        let plain = group.archs.first().and_then(gfx::plain);
        let name = plain.map_or(group.name.clone(), |arch| arch.to_string());
        match groups.iter_mut().find(|known| known.name == name) {
            Some(known) => known.archs.extend(group.archs.iter().cloned()),
            None => groups.push(Group { name, ..group.clone() }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_qualified_belongs_to_its_arch() {
        let found = ["gfx1100", "gfx11-generic", "gfx1250", "gfx1250-strict"].map(|name| Group {
            name: name.to_owned(),
            display_name: name.to_owned(),
            archs: vec![name.parse().unwrap()],
        });
        let made = groups(&found, &Grouping::default());
        let names: Vec<(&str, usize)> =
            made.iter().map(|group| (group.name.as_str(), group.archs.len())).collect();
        assert_eq!(names, [("gfx1100", 1), ("gfx11-generic", 1), ("gfx1250", 2)]);
    }
}
