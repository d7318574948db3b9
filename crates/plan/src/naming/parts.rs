//! `config/components.toml`: component kinds by package of a family, and modules of known artifacts by family.
//!
//! Parts of the configuration come first: a part with the name of a shipped one replaces it, and its kinds
//! are removed from the others. Refused: kinds in no part or in two, and descriptions that do not exist.

use derive_more::Deref;
use rockpack_core::error::{Error, Faults, Result};
use rockpack_core::unique_keys::OrderedMap;
use serde::Deserialize;

use super::{Naming, PackageNames};
use crate::config::{
    Config, PartRole, PartSchema, Selector, SelectorSchema, Suffix, is_lower_or_digit,
};
use crate::texts;
use rockpack_report::words::list;
use rockpack_split::input::artifact::ComponentKind;

const SHIPPED: &str = include_str!("../../../../config/components.toml");

/// One package of a family, before any group.
#[derive(Debug, Clone, Deref)]
pub(crate) struct PackagePart {
    /// The kinds of `schema`, parsed, without those of other parts.
    kinds: Vec<ComponentKind>,
    /// Whether its host package is named as if there were no device code.
    pub is_whole: bool,
    #[deref]
    schema: PartSchema,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShippedParts {
    parts: Vec<PartSchema>,
    selectors: OrderedMap<Vec<SelectorSchema>>,
}

impl PackagePart {
    fn new(schema: PartSchema, naming: &Naming) -> Result<Self> {
        let suffixes = &naming.scheme.suffixes;
        let suffix = suffixes.get(&schema.name).unwrap_or(&schema.suffix).clone();
        let kinds = schema.kinds.iter().map(|kind| kind.parse()).collect::<Result<_>>()?;
        Ok(Self { kinds, is_whole: false, schema: PartSchema { suffix, ..schema } })
    }

    /// The part for an entry of a package list, without suffix: the list gives the whole name, the kinds, the
    /// needs, the section and the group.
    pub fn of_entry(name: &str, role: PartRole, template: &str, is_whole: bool) -> Self {
        let schema = PartSchema {
            name: name.to_owned(),
            kinds: Vec::new(),
            suffix: Suffix { deb: String::new(), rpm: String::new() },
            role,
            section: "misc".to_owned(),
            group: "Unspecified".to_owned(),
            template: template.to_owned(),
            needs_host: false,
            programs: false,
        };
        Self { kinds: Vec::new(), is_whole, schema }
    }

    /// Whether it is for developers: headers, and links to libraries.
    pub fn is_devel(&self) -> bool {
        self.role == PartRole::Support && self.kinds.contains(&ComponentKind::Dev)
    }

    pub fn stem(&self, family: &str) -> PackageNames {
        PackageNames {
            deb: format!("{family}{}", self.suffix.deb),
            rpm: format!("{family}{}", self.suffix.rpm),
        }
    }
}

/// The parts and shipped selectors of a set; every kind is in exactly one part.
#[derive(Debug)]
pub(crate) struct Parts {
    parts: Vec<PackagePart>,
    /// Family → its selectors, as in the packaging configuration.
    pub selectors: Vec<(String, Vec<Selector>)>,
}

impl Parts {
    /// The parts of `config`, then the shipped ones.
    pub fn new(config: &Config, naming: &Naming) -> Result<Self> {
        let rules: ShippedParts = toml::from_str(SHIPPED)
            .map_err(|e| Error::bug("config/components.toml cannot be read").cause(e))?;
        check(config)?;
        let schemas = config.keys.parts.iter().cloned();
        let own: Vec<PackagePart> =
            schemas.map(|schema| PackagePart::new(schema, naming)).collect::<Result<_>>()?;
        let mut parts = own.clone();
        for schema in rules.parts {
            let mut shipped = PackagePart::new(schema, naming)?;
            shipped.kinds.retain(|kind| !own.iter().any(|part| part.kinds.contains(kind)));
            if shipped.kinds.is_empty() {
                continue;
            }
            if let Some(index) = own.iter().position(|part| part.name == shipped.name) {
                return Err(incomplete_replacement(config, index, &shipped));
            }
            parts.push(shipped);
        }
        let mut faults = Faults::default();
        let selectors = rules.selectors.0.into_iter().map(|(name, schemas)| {
            let read = |schema| Selector::checked(schema, |error| faults.add(error));
            Ok((naming.family(&name)?, schemas.into_iter().map(read).collect()))
        });
        let selectors = selectors.collect::<Result<_>>()?;
        faults.finish().map(|()| Self { parts, selectors })
    }

    /// Whether programs and libraries of `kind` are run, so that their needs become dependencies.
    pub fn runs_programs_of(&self, kind: ComponentKind) -> bool {
        self.parts.iter().any(|part| part.programs && part.kinds.contains(&kind))
    }

    /// The part that takes `kind`, and its index in the order of packages.
    pub fn of(&self, kind: ComponentKind) -> Result<(usize, &PackagePart)> {
        let index = self.parts.iter().position(|part| part.kinds.contains(&kind));
        let found = index.and_then(|index| Some((index, self.parts.get(index)?)));
        found.ok_or_else(|| Error::bug(format!("no part has the component {kind}")))
    }
}

/// The error for a shipped part that the configured one at `index` replaces without taking all of its kinds.
fn incomplete_replacement(config: &Config, index: usize, shipped: &PackagePart) -> Error {
    let rest = list(&shipped.kinds);
    let message = format!("replaces the shipped part {} without its kinds {rest}", shipped.name);
    let hint = "add them to a part: components of kinds in no part are in no package";
    config.fault(&["parts", &index.to_string(), "kinds"], message).hint(hint)
}

fn check(config: &Config) -> Result<()> {
    let mut faults = Faults::default();
    for (index, part) in config.keys.parts.iter().enumerate() {
        let place = index.to_string();
        let earlier = config.keys.parts.get(..index).unwrap_or_default();
        if earlier.iter().any(|other| other.name == part.name) {
            let why = format!("there are two parts `{}`", part.name);
            faults.add(config.fault(&["parts", &place, "name"], why));
        }
        let is_plain = part.name.chars().all(|c| is_lower_or_digit(c) || c == '-');
        if part.name.is_empty() || !is_plain {
            let why = format!("`{}` is not a name of lowercase letters, digits and `-`", part.name);
            faults.add(config.fault(&["parts", &place, "name"], why));
        }
        for (at, kind) in part.kinds.iter().enumerate() {
            let keys = ["parts", &place, "kinds", &at.to_string()];
            faults.keep(kind.parse::<ComponentKind>().map_err(|e| config.located(&keys, &e)));
            let again = part.kinds.iter().take(at).any(|other| other == kind);
            if again || earlier.iter().any(|other| other.kinds.contains(kind)) {
                faults.add(config.fault(&keys, format!("`{kind}` is already in a part")));
            }
        }
        if !texts::DESCRIPTIONS.iter().any(|(name, _)| *name == part.template) {
            let why = format!("there is no description `{}`", part.template);
            faults.add(config.fault(&["parts", &place, "template"], why));
        }
    }
    faults.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::{Scheme, Syntax};
    use rockpack_package::Version;

    fn parts(toml: &str) -> Result<Parts> {
        let version = Version::new("7.1.0", "1").unwrap();
        let naming = Naming::new(Scheme::shipped("rocm").unwrap(), &version, None).unwrap();
        Parts::new(&Config::parse(toml, Syntax::Toml)?, &naming)
    }

    fn stem(parts: &Parts, kind: ComponentKind) -> PackageNames {
        parts.of(kind).unwrap().1.stem("rocm-x")
    }

    #[test]
    fn the_shipped_rules_are_whole() {
        let parts = parts("").unwrap();
        for kind in ComponentKind::ALL {
            let with_kind = parts.parts.iter().filter(|part| part.kinds.contains(&kind));
            assert_eq!(with_kind.count(), 1, "{kind}");
        }
        assert_eq!(stem(&parts, ComponentKind::Run), PackageNames::both("rocm-x"));
        let dev = stem(&parts, ComponentKind::Dev);
        assert_eq!((dev.deb.as_str(), dev.rpm.as_str()), ("rocm-x-dev", "rocm-x-devel"));
        let debug = stem(&parts, ComponentKind::Dbg);
        assert_eq!((debug.deb.as_str(), debug.rpm.as_str()), ("rocm-x-dbgsym", "rocm-x-debuginfo"));
    }

    /// Content that no shipped selector takes would be the program's own error.
    #[test]
    fn the_shipped_selectors_leave_nothing_of_an_artifact() {
        let selectors = parts("").unwrap().selectors;
        let all = selectors.iter().flat_map(|(_, selectors)| selectors);
        let artifacts: BTreeSet<&str> = all.clone().map(|s| s.artifact.as_str()).collect();
        for artifact in artifacts {
            let rest = all.clone().filter(|s| s.artifact == artifact && s.modules.is_none());
            assert_eq!(rest.count(), 1, "{artifact}");
        }
    }

    #[test]
    fn a_configured_part_takes_its_components_from_the_shipped_ones() {
        let tools = "[[parts]]\nname = 'tools'\nkinds = ['run']\nrole = 'host'\n\
                     suffix = { deb = '-utils', rpm = '-tools' }\n";
        let changed = parts(tools).unwrap();
        let run = stem(&changed, ComponentKind::Run);
        assert_eq!((run.deb.as_str(), run.rpm.as_str()), ("rocm-x-utils", "rocm-x-tools"));
        assert_eq!(stem(&changed, ComponentKind::Lib), PackageNames::both("rocm-x"));
        for (what, with, why) in [
            ("run", "bin", "bin"),
            ("'tools'", "'lib'", "without its kinds lib"),
            ("name = 'tools'", "name = 'a b'", "not a name"),
            ("role = 'host'", "role = 'host'\ntemplate = 'x'", "no description"),
            ("['run']", "['run', 'run']", "already"),
        ] {
            let error = parts(&tools.replace(what, with)).unwrap_err();
            let shown = format!("{error} {:?}", error.others());
            assert!(shown.contains(why), "{shown}");
        }
    }
}
