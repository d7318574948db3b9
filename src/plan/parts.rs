//! `config/components.toml`: which components make up which package of a family, and which modules
//! of known artifacts which family.

use serde::Deserialize;

use super::naming::Names;
use crate::artifact::ComponentKind;
use crate::config::{Ordered, Selector};
use crate::error::{Error, Result};

/// The shipped rules.
const SHIPPED: &str = include_str!("../../config/components.toml");

/// One package of a family, before any group.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    components: Vec<String>,
    suffix: Suffix,
    /// The component in the names of its kernel archives.
    pub archives: String,
    pub role: PartRole,
    pub section: String,
    pub group: String,
    pub template: String,
    pub needs_host: bool,
    pub programs: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Suffix {
    deb: String,
    rpm: String,
}

/// What a part is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PartRole {
    Host,
    Support,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    parts: Vec<Part>,
    selectors: Ordered<Vec<Selector>>,
}

impl Part {
    /// The names of a family's package.
    pub fn names(&self, family: &str) -> Names {
        Names {
            deb: format!("{family}{}", self.suffix.deb),
            rpm: format!("{family}{}", self.suffix.rpm),
        }
    }
}

/// The shipped parts and selectors; every component is in exactly one part.
#[derive(Debug)]
pub(super) struct Parts {
    parts: Vec<Part>,
    /// Family → what goes into it, as in the packaging configuration.
    pub selectors: Vec<(String, Vec<Selector>)>,
}

impl Parts {
    pub fn shipped() -> Result<Self> {
        let rules: Rules = toml::from_str(SHIPPED)
            .map_err(|e| Error::bug("config/components.toml cannot be read").cause(e))?;
        for kind in ComponentKind::ALL {
            let with = |part: &&Part| part.components.iter().any(|name| name == kind.as_str());
            if rules.parts.iter().filter(with).count() != 1 {
                let message = format!("config/components.toml has {kind} not exactly once");
                return Err(Error::bug(message));
            }
        }
        Ok(Self { parts: rules.parts, selectors: rules.selectors.0 })
    }

    /// The part that `kind` goes into, and its place in the order of packages.
    pub fn of(&self, kind: ComponentKind) -> Result<(usize, &Part)> {
        let with = |part: &Part| part.components.iter().any(|name| name == kind.as_str());
        let index = self.parts.iter().position(with);
        let found = index.and_then(|index| Some((index, self.parts.get(index)?)));
        found.ok_or_else(|| Error::bug(format!("no part has the component {kind}")))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_shipped_rules_are_whole() {
        let parts = Parts::shipped().unwrap();
        let names = |kind| parts.of(kind).unwrap().1.names("rocm-x");
        assert_eq!(names(ComponentKind::Run), Names::both("rocm-x"));
        let dev = names(ComponentKind::Dev);
        assert_eq!((dev.deb.as_str(), dev.rpm.as_str()), ("rocm-x-dev", "rocm-x-devel"));
        let debug = names(ComponentKind::Dbg);
        assert_eq!((debug.deb.as_str(), debug.rpm.as_str()), ("rocm-x-dbgsym", "rocm-x-debuginfo"));
    }

    /// What no shipped selector takes would be an error of the program's own making.
    #[test]
    fn the_shipped_selectors_leave_nothing_of_an_artifact() {
        let selectors = Parts::shipped().unwrap().selectors;
        let all = selectors.iter().flat_map(|(_, selectors)| selectors);
        let artifacts: BTreeSet<&str> = all.clone().map(|s| s.artifact.as_str()).collect();
        for artifact in artifacts {
            let rest = |s: &&Selector| s.artifact == artifact && s.modules.is_none();
            assert_eq!(all.clone().filter(rest).count(), 1, "{artifact}");
        }
    }
}
