//! Lists of archs: the groups, the archs that are packed of a component or package, and those of the rules for
//! kernel databases.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::{Faults, Result};
use rockpack_core::gfx::{self, BaseArch, Group, TargetFault};
use rockpack_core::unique_keys::OrderedMap;

use super::check::single_lines;
use super::document::{ConfigDocument, arch_hint};
use super::keys::{ComponentSchema, GroupSchema, PackageSchema};
use rockpack_split::input::database::{DatabaseRules, LazyNames, Rule};

const GROUPS: &str = "architecture_groups";

const ADDITIONAL: &str = "additional_architectures";

const WRITTEN: &str = "write an arch as in `gfx1100`, `gfx90a` or `gfx1250-strict`";

/// The archs that a configuration may name: those that rockpack knows and those that
/// `additional_architectures` declares.
pub(super) struct ArchNames<'a> {
    declared: BTreeSet<BaseArch>,
    document: &'a ConfigDocument,
}

impl<'a> ArchNames<'a> {
    pub fn new(declared: &[String], document: &'a ConfigDocument, faults: &mut Faults) -> Self {
        let mut names = Self { declared: BTreeSet::new(), document };
        for (index, text) in declared.iter().enumerate() {
            let arch = names.declare(text, &[ADDITIONAL, &index.to_string()]);
            names.declared.extend(faults.keep(arch));
        }
        names
    }

    /// Parses a declared arch, which rockpack need not know but whose name must be plausible.
    fn declare(&self, text: &str, keys: &[&str]) -> Result<BaseArch> {
        let arch = self.parse(text, keys)?;
        let stem = text.split('-').next().and_then(|stem| stem.parse().ok());
        if gfx::is_plausible(&arch) || stem.is_some_and(|stem| gfx::is_plausible(&stem)) {
            return Ok(arch);
        }
        let message = format!("`{arch}` does not look like a GPU arch");
        let meant = arch_hint(text).map(|meant| format!("{meant} ")).unwrap_or_default();
        Err(self.document.fault(keys, message).hint(meant + WRITTEN))
    }

    fn read(&self, text: &str, keys: &[&str]) -> Result<BaseArch> {
        let arch = self.parse(text, keys)?;
        self.check(&arch, keys).map(|()| arch)
    }

    pub fn check(&self, arch: &BaseArch, keys: &[&str]) -> Result<()> {
        if gfx::is_known(arch) || self.declared.contains(arch) {
            return Ok(());
        }
        let message = format!("this version of rockpack does not know the GPU arch `{arch}`");
        let meant = arch_hint(arch.as_str()).map(|meant| format!("{meant} ")).unwrap_or_default();
        let hint = format!("{meant}(`{ADDITIONAL}` can declare archs newer than rockpack)");
        Err(self.document.fault(keys, message).hint(hint))
    }

    fn parse(&self, text: &str, keys: &[&str]) -> Result<BaseArch> {
        text.parse().map_err(|fault: TargetFault| {
            let hint = if text.contains(':') {
                "name the base arch; it includes all feature variants"
            } else {
                WRITTEN
            };
            let meant = arch_hint(text).map(|meant| format!("{meant} ")).unwrap_or_default();
            self.document.fault(keys, fault.to_string()).hint(meant + hint)
        })
    }
}

pub(super) fn groups(
    schema: OrderedMap<GroupSchema>,
    names: &ArchNames<'_>,
    faults: &mut Faults,
) -> Vec<Group> {
    let document = names.document;
    let mut owners: BTreeMap<BaseArch, String> = BTreeMap::new();
    let mut lowered: BTreeMap<String, String> = BTreeMap::new();
    let mut groups = Vec::new();
    for (name, group) in schema.0 {
        // It becomes a part of package names in both formats.
        let is_part = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.ends_with(|c: char| c.is_ascii_alphanumeric());
        if !is_part {
            let message = format!("`{name}` cannot be part of a package name");
            let error = document.fault(&[GROUPS, &name], message);
            faults.add(error.hint("use letters, digits, `-` and `.` in group names"));
        }
        if let Some(other) = lowered.insert(name.to_lowercase(), name.clone()) {
            let message = format!("results in the same package names as the group {other}");
            faults.add(document.fault(&[GROUPS, &name], message));
        }
        if group.architectures.is_empty() {
            let error = document.fault(&[GROUPS, &name], "has no architectures");
            faults.add(error.hint("list the archs whose kernels share a package, or remove it"));
        }
        let mut archs = Vec::new();
        for (index, text) in group.architectures.iter().enumerate() {
            let arch = architecture(text, &name, index, &mut owners, names);
            archs.extend(faults.keep(arch));
        }
        let display_name = group.display_name.unwrap_or_else(|| name.clone());
        let lines = [("display_name", Some(display_name.as_str()))];
        single_lines(&[GROUPS, &name], lines, document, faults);
        groups.push(Group { name, display_name, archs });
    }
    groups
}

fn architecture(
    text: &str,
    group: &str,
    index: usize,
    owners: &mut BTreeMap<BaseArch, String>,
    names: &ArchNames<'_>,
) -> Result<BaseArch> {
    let document = names.document;
    let index = index.to_string();
    let keys = [GROUPS, group, "architectures", &index];
    let arch = names.read(text, &keys)?;
    match owners.insert(arch.clone(), group.to_owned()) {
        Some(other) if other == group => {
            Err(document.fault(&keys, format!("{arch} is listed twice in the group")))
        }
        Some(other) => {
            let message = format!("{arch} is already in the group {other}");
            let hint = "two kernel packages would install the same files";
            Err(document.fault(&keys, message).hint(hint))
        }
        None => Ok(arch),
    }
}

pub(super) fn components(
    schema: OrderedMap<ComponentSchema>,
    names: &ArchNames<'_>,
    faults: &mut Faults,
) -> Vec<(String, ComponentRules)> {
    let mut components = Vec::new();
    for (name, rules) in schema.0 {
        let lists = [&rules.include_architectures, &rules.exclude_architectures];
        let architectures = filter(["components", &name], lists, names, faults);
        components.push((name, ComponentRules { keys: rules, architectures }));
    }
    components
}

/// Reads the arch filters of single packages. Packages without a filter are left out.
pub(super) fn packages(
    schema: &OrderedMap<PackageSchema>,
    names: &ArchNames<'_>,
    faults: &mut Faults,
) -> Vec<(String, ArchFilter)> {
    let mut packages = Vec::new();
    for (name, package) in &schema.0 {
        let lists = [&package.include_architectures, &package.exclude_architectures];
        let filter = filter(["packages", name], lists, names, faults);
        if filter != ArchFilter::default() {
            packages.push((name.clone(), filter));
        }
    }
    packages
}

fn filter(
    [kind, name]: [&str; 2],
    [include, exclude]: [&Option<Vec<String>>; 2],
    names: &ArchNames<'_>,
    faults: &mut Faults,
) -> ArchFilter {
    let include = listed_archs([kind, name, "include_architectures"], include, names, faults);
    let exclude = listed_archs([kind, name, "exclude_architectures"], exclude, names, faults)
        .unwrap_or_default();
    for arch in include.iter().flatten().filter(|arch| exclude.contains(*arch)) {
        let keys = [kind, name, "exclude_architectures"];
        let error = names.document.fault(&keys, format!("{arch} is also included"));
        faults.add(error.hint("list it once"));
    }
    ArchFilter { include, exclude }
}

fn listed_archs(
    keys: [&str; 3],
    list: &Option<Vec<String>>,
    names: &ArchNames<'_>,
    faults: &mut Faults,
) -> Option<BTreeSet<BaseArch>> {
    let list = list.as_ref()?;
    if list.is_empty() {
        let error = names.document.fault(&keys, "lists no architectures");
        faults.add(error.hint("list some, or remove the key"));
    }
    let [kind, name, key] = keys;
    let archs = list
        .iter()
        .enumerate()
        .map(|(index, text)| names.read(text, &[kind, name, key, &index.to_string()]));
    Some(archs.filter_map(|arch| faults.keep(arch)).collect())
}

/// The rules of one component, or of all components of one artifact.
#[derive(Debug, Clone)]
pub struct ComponentRules {
    /// The keys as read. Those that are set override the rules for all components.
    pub keys: ComponentSchema,
    pub architectures: ArchFilter,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchFilter {
    /// The archs to choose from; all if unset.
    pub include: Option<BTreeSet<BaseArch>>,
    pub exclude: BTreeSet<BaseArch>,
}

impl ArchFilter {
    pub fn has(&self, arch: &BaseArch) -> bool {
        let included = self.include.as_ref().is_none_or(|archs| archs.contains(arch));
        included && !self.exclude.contains(arch)
    }
}

/// The rules of `databases` in the configuration, with the keys of `config/databases.toml`, followed by the shipped
/// ones. A rule replaces the shipped rule of the same name. Refuses rules that match nothing, duplicate names, and
/// patterns that pair nothing.
pub(super) fn database_rules(
    own: &[Rule],
    archs: &ArchNames<'_>,
    faults: &mut Faults,
) -> Option<DatabaseRules> {
    let mut of_rules = Faults::default();
    check_rules(own, archs, &mut of_rules);
    let builtin = faults.keep(DatabaseRules::builtin())?;
    match faults.keep(of_rules.finish()) {
        Some(()) => faults.keep(builtin.appended_to(own)),
        None => Some(builtin),
    }
}

fn check_rules(rules: &[Rule], archs: &ArchNames<'_>, faults: &mut Faults) {
    let document = archs.document;
    let mut names = BTreeSet::new();
    for (index, rule) in rules.iter().enumerate() {
        let index = index.to_string();
        if rule.name.is_empty() || !names.insert(&rule.name) {
            let message = format!("`{}` is empty, or the name of another rule", rule.name);
            faults.add(document.fault(&["databases", &index, "name"], message));
        }
        if rule.directories.is_empty() {
            let message = "is empty, so the rule matches nothing";
            faults.add(document.fault(&["databases", &index, "directories"], message));
        }
        if let Some(fault) = rule.lazy.as_ref().and_then(LazyNames::fault) {
            let error = document.fault(&["databases", &index, "lazy"], fault);
            faults.add(error.hint("write the names as in `TensileLibrary_lazy_*`"));
        }
        for (directory, named) in &rule.directory_archs {
            let keys = ["databases", &index, "directory_archs", directory];
            for arch in named {
                faults.keep(archs.check(arch, &keys));
            }
        }
    }
}
