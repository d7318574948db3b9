//! Assigns content to portions by the selectors and parts of a configuration.
//!
//! [`Families`] finds the family that takes a module. Links follow their targets, and folders their content.
//! Paths that no family takes are an error that lists them.

use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::{LINK_LIMIT, Node, TreePath};

use super::assign::{Owners, PortionKey, Portions, assign};
use super::missing::UnassignedContent;
use super::portion::Portion;
use crate::naming::families::Families;
use crate::naming::parts::Parts;
use crate::recombine::{Component, Recombined};
use crate::settings::PlanSettings;
use rockpack_report::words::{are, counted};

/// Most unassigned paths that an error lists.
const NAMED_PATHS: usize = 20;

/// Assigns all content, in the order of families and parts.
pub(crate) fn assign_all<'a>(
    recombined: &'a Recombined,
    setting: &'a PlanSettings,
) -> Result<Vec<Portion<'a>>> {
    let mut faults = Faults::default();
    let PlanSettings { config, parts, names, .. } = setting;
    let families = Families::new(config, parts, names);
    families.check_selectors(recombined, &mut faults);
    let mut portions = Portions::new();
    let owners = FamilyParts { families, parts };
    for component in &recombined.components {
        if faults.keep(owners.families.check_name(&component.artifact)).is_none() {
            continue;
        }
        let left = assign(component, &owners, &mut portions);
        faults.keep(left.and_then(|left| refuse_left(component, &left)));
    }
    let made = portions.values().map(|portion| (portion.family.as_str(), &portion.artifacts));
    owners.families.refuse_merged(made, &mut faults);
    faults.finish()?;
    Ok(portions.into_values().collect())
}

/// The families of a set, and the parts of each.
struct FamilyParts<'a> {
    families: Families<'a>,
    parts: &'a Parts,
}

impl<'a> Owners<'a> for FamilyParts<'a> {
    /// The name of a family.
    type Owner = String;

    fn of(&self, component: &Component, path: &TreePath, module: Option<&str>) -> Option<String> {
        if !self.families.are_cut(&component.artifact) {
            return self.families.of(component, None);
        }
        let host = &component.host;
        let (mut path, mut node, mut links) = (path.clone(), host.get(path), 0);
        while let Some(Node::Link { target }) = node
            && links < LINK_LIMIT
            && let Some(to) = path.resolve_link(target)
            && let Some(found) = host.get(&to)
        {
            (path, node, links) = (to, Some(found), links + 1);
        }
        let module = match node {
            Some(Node::File { data, .. }) => data.module.as_deref(),
            Some(Node::Link { .. }) => None,
            // A folder that is assigned by itself is empty.
            Some(Node::Directory { .. }) if links == 0 => None,
            Some(Node::Directory { .. }) => {
                let mut files = host.iter().filter(|(other, _)| other.is_below(&path));
                files.find_map(|(_, node)| node.data()).and_then(|file| file.module.as_deref())
            }
            // A file of a database.
            None => module,
        };
        self.families.of(component, module)
    }

    fn portion(&self, component: &Component, family: String) -> Result<(PortionKey, Portion<'a>)> {
        let (place, part) = self.parts.of(component.kind)?;
        let stem = part.stem(&family);
        Ok(((family.clone(), place), Portion::new(family, stem, part)))
    }
}

fn refuse_left(component: &Component, left: &UnassignedContent<'_>) -> Result<()> {
    if left.is_empty() {
        return Ok(());
    }
    let paths = left.paths();
    let named: Vec<&str> = paths.iter().take(NAMED_PATHS).map(|path| path.as_str()).collect();
    let (id, count) = (component.id(), paths.len());
    let (paths, are) = (counted(count, "path"), are(count));
    let message = format!("{paths} of {id} {are} in no package: {}", named.join(", "));
    Err(Error::new(Kind::Config, message)
        .hint("add a selector for the artifact without `modules`; it takes what is left"))
}
