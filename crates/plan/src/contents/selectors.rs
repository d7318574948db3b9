//! Assigns content to portions by the selectors and parts of a configuration.
//!
//! [`Families`] finds the family of a module. Links follow their targets, and folders their content. Paths without a
//! family are an error that lists them.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::{LINK_LIMIT, Node, TreePath};

use super::{ContentOwners, Portion, PortionKey, Portions, assign};
use crate::config::{Config, Selector};
use crate::naming::package_name;
use crate::recombine::{Component, Recombined};
use crate::settings::PlanSettings;
use rockpack_report::words::{are, counted, list};

const NAMED_PATHS: usize = 20;

pub(crate) fn assign_all<'a>(
    recombined: &'a Recombined,
    setting: &'a PlanSettings,
) -> Result<Vec<Portion<'a>>> {
    let mut faults = Faults::default();
    let families = Families { setting };
    families.check_selectors(recombined, &mut faults);
    let mut portions = Portions::new();
    for component in &recombined.components {
        if faults.keep(families.check_name(&component.artifact)).is_none() {
            continue;
        }
        let left = faults.keep(assign(component, &families, &mut portions));
        let Some(left) = left.filter(|left| !left.paths.is_empty()) else { continue };
        let named = list(left.paths.iter().take(NAMED_PATHS));
        let (id, count) = (&component.id, left.paths.len());
        let (paths, are) = (counted(count, "path"), are(count));
        let message = format!("{paths} of {id} {are} not in any package: {named}");
        let hint = "add a selector without `modules` for the artifact; it takes the rest";
        faults.add(Error::new(Kind::Config, message).hint(hint));
    }
    families.refuse_merged(&portions, &mut faults);
    faults.finish()?;
    Ok(portions.into_values().collect())
}

impl<'a> ContentOwners<'a> for Families<'a> {
    type Owner = String;

    fn of(&self, component: &Component, path: &TreePath, module: Option<&str>) -> Option<String> {
        if !self.is_split(&component.artifact) {
            return self.family(component, None);
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
        self.family(component, module)
    }

    fn portion(&self, component: &Component, family: String) -> Result<(PortionKey, Portion<'a>)> {
        let (place, part) = self.setting.parts.of(component.kind)?;
        let stem = part.stem(&family);
        Ok(((family.clone(), place), Portion::new(family, stem, part)))
    }
}

type Selectors = [(String, Vec<Selector>)];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DecidingTable {
    Configured,
    Shipped,
    OwnName,
}

/// The families of a set.
///
/// The first of three tables that names the artifact decides:
///
/// 1. the configuration's `selectors`, in file order;
/// 2. the selectors of `config/components.toml`;
/// 3. the artifact's own name after the vendor: `blas` is `rocm-blas`.
///
/// Refused: selectors of artifacts and modules that do not exist, a module that the configuration names for two
/// packages, a configured selector after one that takes all of its content, and a family that artifacts share without
/// one table saying so.
pub(crate) struct Families<'a> {
    pub setting: &'a PlanSettings,
}

impl Families<'_> {
    /// The family that takes `module` of `component`; `None` if no family does.
    fn family(&self, component: &Component, module: Option<&str>) -> Option<String> {
        let selectors = match self.table(&component.artifact) {
            DecidingTable::Configured => self.setting.config.selectors.as_slice(),
            DecidingTable::Shipped => self.setting.parts.selectors.as_slice(),
            DecidingTable::OwnName => return self.setting.names.family(&component.artifact).ok(),
        };
        let found = selectors.iter().find(|(_, selectors)| {
            selectors.iter().any(|selector| takes(selector, component, module))
        });
        found.map(|(family, _)| family.clone())
    }

    /// Whether the modules of `artifact` may go into several families.
    pub fn is_split(&self, artifact: &str) -> bool {
        self.table(artifact) != DecidingTable::OwnName
    }

    /// Fails if `artifact` is a family of its own and its name is not a valid package name.
    pub fn check_name(&self, artifact: &str) -> Result<()> {
        if self.is_split(artifact) { Ok(()) } else { self.setting.names.family(artifact).map(drop) }
    }

    fn table(&self, artifact: &str) -> DecidingTable {
        let configured = have_artifact(&self.setting.config.selectors, artifact);
        match (configured, have_artifact(&self.setting.parts.selectors, artifact)) {
            (true, _) => DecidingTable::Configured,
            (false, true) => DecidingTable::Shipped,
            (false, false) => DecidingTable::OwnName,
        }
    }

    /// Refuses configured selectors of artifacts and modules that do not exist: they are typos.
    pub fn check_selectors(&self, recombined: &Recombined, faults: &mut Faults) {
        let config = &self.setting.config;
        let mut known: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for component in &recombined.components {
            known.entry(&component.artifact).or_default().extend(modules(component));
        }
        for claim in claims(&config.selectors) {
            let artifact = &claim.selector.artifact;
            let Some(modules) = known.get(artifact.as_str()) else {
                let message = format!("there is no artifact `{artifact}`");
                let hint = format!("the artifacts are {}", list(known.keys()));
                faults.add(config.fault(&claim.keys(&["artifact"]), message).hint(hint));
                continue;
            };
            let named = claim.selector.modules.iter().flatten().enumerate();
            for (place, module) in named.filter(|(_, module)| !modules.contains(module.as_str())) {
                let message = format!("the artifact {artifact} has no module `{module}`");
                let hint = if modules.is_empty() {
                    "none of its stage prefixes names a module".to_owned()
                } else {
                    format!("its modules are {}", list(modules))
                };
                let place = place.to_string();
                faults.add(config.fault(&claim.keys(&["modules", &place]), message).hint(hint));
            }
        }
    }

    /// Refuses two artifacts in the same family unless one table says so: they would become one package by accident.
    pub fn refuse_merged(&self, portions: &Portions<'_>, faults: &mut Faults) {
        let mut families: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for portion in portions.values() {
            let artifacts = portion.artifacts.iter().map(String::as_str);
            families.entry(&portion.family).or_default().extend(artifacts);
        }
        for (family, artifacts) in families {
            let tables: BTreeSet<DecidingTable> =
                artifacts.iter().map(|name| self.table(name)).collect();
            let asked_for = tables.len() == 1 && !tables.contains(&DecidingTable::OwnName);
            if artifacts.len() > 1 && !asked_for {
                let message = format!("the artifacts {} all become {family}", list(artifacts));
                let hint = "name their packages with selectors in the configuration";
                faults.add(Error::new(Kind::Conflict, message).hint(hint));
            }
        }
    }
}

/// Refuses faults of the configured selectors that do not depend on the artifacts: invalid names, a module that two
/// packages name (the first would silently win), and a selector after one that takes all of its content.
pub(crate) fn check(config: &Config) -> Result<()> {
    let mut faults = Faults::default();
    for (package, _) in &config.selectors {
        if package_name(package).as_ref().ok() != Some(package) {
            let message = format!("`{package}` cannot be a package name");
            faults.add(config.fault(&["selectors", package], message));
        }
    }
    // Selectors with invalid kinds have been reported already.
    let claims: Vec<_> = claims(&config.selectors)
        .filter(|it| it.selector.kinds.as_ref().is_none_or(|kinds| !kinds.is_empty()))
        .collect();
    for (place, claim) in claims.iter().enumerate() {
        let earlier = claims.iter().take(place);
        let twice = earlier.clone().find_map(|other| Some((other, claim.shared(other)?)));
        if let Some((other, (index, module))) = twice {
            let artifact = &claim.selector.artifact;
            let message = format!(
                "the module `{module}` of the artifact {artifact} is already in {}",
                other.package
            );
            let hint = "a module of one component goes into one package: remove it from one of \
                        them, or limit both with `kinds`";
            let index = index.to_string();
            faults.add(config.fault(&claim.keys(&["modules", &index]), message).hint(hint));
        } else if let Some(other) = earlier.clone().find(|other| other.covers(claim)) {
            let other = other.package;
            let message = format!("matches nothing: an earlier selector of {other} takes it all");
            let hint = "the first matching selector wins: put the narrower one first";
            faults.add(config.fault(&claim.keys(&[]), message).hint(hint));
        }
    }
    faults.finish()
}

struct NumberedSelector<'a> {
    package: &'a str,
    index: String,
    selector: &'a Selector,
}

fn have_artifact(selectors: &Selectors, artifact: &str) -> bool {
    let mut all = selectors.iter().flat_map(|(_, selectors)| selectors);
    all.any(|selector| selector.artifact == artifact)
}

/// All selectors in the order in which they apply.
fn claims(selectors: &Selectors) -> impl Iterator<Item = NumberedSelector<'_>> {
    selectors.iter().flat_map(|(package, selectors)| {
        let numbered = selectors.iter().enumerate();
        numbered.map(move |(index, selector)| NumberedSelector {
            package,
            index: index.to_string(),
            selector,
        })
    })
}

impl NumberedSelector<'_> {
    fn keys<'b>(&'b self, rest: &[&'b str]) -> Vec<&'b str> {
        [&["selectors", self.package, &self.index], rest].concat()
    }

    /// The first module, with its index, that the selector and `other` of another package both name.
    fn shared(&self, other: &NumberedSelector<'_>) -> Option<(usize, &str)> {
        let (mine, theirs) = (self.selector, other.selector);
        let apart = match (&mine.kinds, &theirs.kinds) {
            (Some(mine), Some(theirs)) => !mine.iter().any(|kind| theirs.contains(kind)),
            _ => false,
        };
        if self.package == other.package || mine.artifact != theirs.artifact || apart {
            return None;
        }
        let their_modules = theirs.modules.as_ref()?;
        let mut my_modules = mine.modules.iter().flatten().enumerate();
        let found = my_modules.find(|(_, module)| their_modules.contains(module));
        found.map(|(index, module)| (index, module.as_str()))
    }

    fn covers(&self, later: &NumberedSelector<'_>) -> bool {
        let (all, some) = (self.selector, later.selector);
        all.artifact == some.artifact
            && includes(all.kinds.as_deref(), some.kinds.as_deref())
            && includes(all.modules.as_deref(), some.modules.as_deref())
    }
}

/// Whether `all` includes `some`; an unset list means everything.
fn includes<T: PartialEq>(all: Option<&[T]>, some: Option<&[T]>) -> bool {
    match (all, some) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(all), Some(some)) => some.iter().all(|one| all.contains(one)),
    }
}

fn modules(component: &Component) -> impl Iterator<Item = &str> {
    let files = component.host.values().filter_map(|node| node.data()?.module.as_deref());
    files.chain(component.databases.iter().filter_map(|file| file.module.as_deref()))
}

fn takes(selector: &Selector, component: &Component, module: Option<&str>) -> bool {
    let kinds = selector.kinds.as_ref();
    let modules = selector.modules.as_ref();
    selector.artifact == component.artifact
        && kinds.is_none_or(|kinds| kinds.contains(&component.kind))
        && modules.is_none_or(|known| module.is_some_and(|m| known.iter().any(|k| k == m)))
}
