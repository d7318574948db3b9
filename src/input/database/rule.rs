//! The rules and what they say of a path.

use std::collections::BTreeMap;

use rockpack_base::error::{Error, Kind, Result};
use rockpack_base::gfx::{self, BaseArch, Target};
use rockpack_base::tree::TreePath;
use schemars::JsonSchema;
use serde::Deserialize;

use super::glob::{matches_name, matches_path};
use super::lazy::{LazyNames, stem};

/// One kernel database: the keys are described in `config/databases.toml`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name, e.g. `rocblas`.
    pub name: String,
    /// Globs of its directories.
    pub directories: Vec<String>,
    /// Globs of the names of files that hold device code.
    #[serde(default)]
    pub code: Vec<String>,
    /// Globs of the names of files that index it.
    #[serde(default)]
    pub index: Vec<String>,
    /// Globs of the names of files that serve all archs of their shard.
    #[serde(default)]
    pub shared: Vec<String>,
    /// Globs of the names of other files of one arch.
    #[serde(default)]
    pub data: Vec<String>,
    /// Globs of the names of host libraries and static archives of one arch.
    #[serde(default)]
    pub whole: Vec<String>,
    /// Globs of the names of files that the library can do without.
    #[serde(default)]
    pub cache: Vec<String>,
    /// Globs of the names of files that no library reads from a package.
    #[serde(default)]
    pub leftovers: Vec<String>,
    /// Globs of the names of files without a partner.
    #[serde(default)]
    pub standalone: Vec<String>,
    /// How the names of files spell archs.
    #[serde(default)]
    pub names: Spelling,
    /// Whether directories that are named like an arch hold its files.
    #[serde(default)]
    pub arch_directories: bool,
    /// Leaves files that no list names to other rules, also in directories of archs.
    #[serde(default)]
    pub only_named: bool,
    /// What may stand before the arch in the name of a directory.
    #[serde(default)]
    pub directory_prefix: String,
    /// Archs of directories by name.
    #[serde(default, deserialize_with = "rockpack_base::once::map")]
    #[schemars(with = "BTreeMap<String, Vec<rockpack_base::gfx::BaseArchSchema>>")]
    pub directory_archs: BTreeMap<String, Vec<BaseArch>>,
    /// Globs of the names of files that are looked for in the directory of an arch first.
    #[serde(default)]
    pub moves: Vec<String>,
    /// The names of indexes that load others lazily, where they have mappings.
    #[serde(default)]
    pub lazy: Option<LazyNames>,
}

/// How names of files spell archs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Spelling {
    /// As words of their own.
    #[default]
    Word,
    /// At the start of the name, whatever follows.
    Start,
    /// Signs other than letters and digits replaced by `_`.
    Sanitized,
}

/// The rules in the order in which they are tried.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseRules {
    #[serde(rename = "database")]
    rules: Vec<Rule>,
}

/// What a file of a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DatabaseRole {
    /// Device code.
    Code,
    /// An index of device code.
    Index,
    /// Code or an index that serves every arch of its shard.
    Shared,
    /// A host library or static archive of one arch.
    Whole,
    /// A file that the library can do without.
    Cache,
    /// A file that no library reads from a package.
    Leftover,
    /// Another file of one arch, or of a family of archs.
    Data,
}

/// What a rule says of a path.
#[derive(Debug, Clone)]
pub struct DatabaseClaim<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// What the file is.
    pub role: DatabaseRole,
    /// The archs that its name names.
    pub named: Vec<BaseArch>,
    /// The archs whose directory holds it, sorted: several for that of a family, none outside of
    /// such directories.
    pub directory: Vec<BaseArch>,
}

impl DatabaseRules {
    /// The shipped rules.
    pub fn builtin() -> Result<Self> {
        Self::parse(include_str!("../../../config/databases.toml"))
            .map_err(|error| error.file("config/databases.toml"))
    }

    /// Reads rules from TOML.
    pub fn parse(text: &str) -> Result<Self> {
        let rules: Self = toml::from_str(text).map_err(|fault| {
            Error::new(Kind::Config, "the database rules are wrong").cause_in_lines(fault)
        })?;
        rules.checked()
    }

    /// These rules behind `first`. A rule of a name that `first` has too gives way to it.
    pub fn behind(mut self, first: &[Rule]) -> Result<Self> {
        self.rules.retain(|rule| first.iter().all(|own| own.name != rule.name));
        self.rules.splice(0..0, first.iter().cloned());
        self.checked()
    }

    fn checked(self) -> Result<Self> {
        let mut names: Vec<&str> = self.rules.iter().map(|rule| rule.name.as_str()).collect();
        names.sort_unstable();
        for rule in &self.rules {
            if let Some(fault) = rule.lazy.as_ref().and_then(LazyNames::fault) {
                let message = format!("the database rule `{}` is wrong: {fault}", rule.name);
                return Err(Error::new(Kind::Config, message));
            }
        }
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                let message = format!("two database rules are named `{}`", pair[0]);
                Err(Error::new(Kind::Config, message))
            }
            None => Ok(self),
        }
    }

    /// What the first rule that claims `path` says of it.
    pub fn claim(&self, path: &TreePath) -> Option<DatabaseClaim<'_>> {
        self.rules.iter().find_map(|rule| rule.claim(path))
    }

    /// Whether some rule has indexes of this name, in some directory.
    pub(super) fn may_be_index(&self, name: &str) -> bool {
        let may_be =
            |rule: &Rule| any_matches(&rule.index, name) || any_matches(&rule.shared, name);
        self.rules.iter().any(may_be)
    }

    /// The directory on the way to `path`, which no rule claims, that by its place and name would
    /// be one of an arch, and is of none that is known.
    pub fn unknown_arch_directory(&self, path: &TreePath) -> Option<TreePath> {
        self.rules.iter().find_map(|rule| rule.unknown_arch_directory(path))
    }
}

impl Rule {
    fn claim(&self, path: &TreePath) -> Option<DatabaseClaim<'_>> {
        let directory = self.directory_of(path);
        let role = match (self.role(path.name()), directory.is_empty()) {
            (Some(role), false) => role,
            (None, false) if !self.only_named => DatabaseRole::Data,
            (role, true) if self.holds(path.parent()?.as_str()) => role?,
            _ => return None,
        };
        let named = self.named(path.name());
        // What is for one arch as a whole has to say for which.
        let unnamed = role == DatabaseRole::Whole && named.len() != 1 && directory.is_empty();
        (!unnamed).then_some(DatabaseClaim { rule: self, role, named, directory })
    }

    fn holds(&self, directory: &str) -> bool {
        self.directories.iter().any(|glob| matches_path(glob, directory))
    }

    /// The archs of [`Rule::arch_directory`]; none where there is none.
    fn directory_of(&self, path: &TreePath) -> Vec<BaseArch> {
        self.arch_directory(path).map(|(_, archs)| archs).unwrap_or_default()
    }

    /// The directory of the library that the file at `path` belongs to: around its directory of an
    /// arch, or else the file's own.
    pub(super) fn library_of(&self, path: &TreePath) -> Option<TreePath> {
        match self.arch_directory(path) {
            Some((directory, _)) => directory.parent(),
            None => path.parent(),
        }
    }

    /// The outermost directory of archs, below one of the rule's directories, on the way to `path`,
    /// with its archs.
    fn arch_directory(&self, path: &TreePath) -> Option<(TreePath, Vec<BaseArch>)> {
        let mut found = None;
        let mut child = path.parent();
        while let Some(directory) = child {
            child = directory.parent();
            // Few names are those of archs, and that is sooner known than where the directory lies.
            let archs = self.archs_of_directory(directory.name());
            let is_held = || child.as_ref().is_some_and(|parent| self.holds(parent.as_str()));
            if !archs.is_empty() && is_held() {
                found = Some((directory, archs));
            }
        }
        found
    }

    fn unknown_arch_directory(&self, path: &TreePath) -> Option<TreePath> {
        if !self.arch_directories || !self.directory_archs.is_empty() {
            return None;
        }
        let mut above = std::iter::successors(path.parent(), TreePath::parent);
        above.find(|directory| {
            let is_held = || directory.parent().is_some_and(|parent| self.holds(parent.as_str()));
            self.is_like_arch(directory.name()) && is_held()
        })
    }

    fn is_like_arch(&self, name: &str) -> bool {
        let name = name.strip_prefix(&self.directory_prefix).unwrap_or(name);
        let number = name.strip_prefix("gfx").unwrap_or_default();
        number.starts_with(|c: char| c.is_ascii_digit())
    }

    fn archs_of_directory(&self, name: &str) -> Vec<BaseArch> {
        if !self.directory_archs.is_empty() {
            return sorted(self.directory_archs.get(name).cloned().unwrap_or_default());
        }
        if !self.arch_directories {
            return Vec::new();
        }
        let name = name.strip_prefix(&self.directory_prefix).unwrap_or(name);
        match directory_arch(name) {
            Some(arch) => vec![arch],
            None => sorted(gfx::members_of_arch_family(name)),
        }
    }

    fn named(&self, name: &str) -> Vec<BaseArch> {
        let named = match self.names {
            Spelling::Word => gfx::archs_in(name),
            Spelling::Start => gfx::arch_at_start(name).into_iter().collect(),
            Spelling::Sanitized => sanitized_arch(name).into_iter().collect(),
        };
        sorted(named)
    }

    fn role(&self, name: &str) -> Option<DatabaseRole> {
        let by_name = [
            (&self.shared, DatabaseRole::Shared),
            (&self.code, DatabaseRole::Code),
            (&self.index, DatabaseRole::Index),
            (&self.whole, DatabaseRole::Whole),
            (&self.cache, DatabaseRole::Cache),
            (&self.leftovers, DatabaseRole::Leftover),
            (&self.data, DatabaseRole::Data),
        ];
        let mut found = by_name.into_iter().filter(|(globs, _)| any_matches(globs, name));
        found.next().map(|(_, role)| role)
    }

    /// Whether a file of this name holds device code, whether or not all archs share it.
    pub fn is_code(&self, name: &str) -> bool {
        any_matches(&self.code, name)
    }

    /// Whether a file of this name has no partner.
    pub fn is_standalone(&self, name: &str) -> bool {
        any_matches(&self.standalone, name)
    }

    /// Whether a file of this name is looked for in the directory of an arch first.
    pub fn is_moved(&self, name: &str) -> bool {
        any_matches(&self.moves, name)
    }

    /// Tells a file that, in the directory of an arch, makes the library look there: any, or
    /// only a master index where the rule says how these are called.
    pub fn leads(&self, name: &str) -> bool {
        self.lazy.as_ref().is_none_or(|lazy| lazy.is_master(stem(name)))
    }
}

fn any_matches(globs: &[String], name: &str) -> bool {
    globs.iter().any(|glob| matches_name(glob, name))
}

/// The arch between the last `gfx` of a name and the first dot behind it.
fn sanitized_arch(name: &str) -> Option<BaseArch> {
    let text = &name[name.rfind("gfx")?..];
    gfx::arch_of_sanitized(text.split('.').next().unwrap_or(text))
}

/// The arch that the whole name of a directory spells, with or without features.
///
/// hipBLASLt keeps kernels for early silicon in a directory like `gfx1250v0`, for which there is
/// no target of its own: the files are for, and named for, gfx1250.
fn directory_arch(name: &str) -> Option<BaseArch> {
    let released = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let name = match released.strip_suffix('v') {
        Some(released) if name.len() > released.len() + 1 => released,
        _ => name,
    };
    let target = Target::parse_spelling(name).ok()?;
    let known = gfx::mach_of(target.base()).is_some();
    (known || sorted(gfx::archs_in(name)).len() == 1).then(|| target.base().clone())
}

fn sorted(mut archs: Vec<BaseArch>) -> Vec<BaseArch> {
    archs.sort();
    archs.dedup();
    archs
}

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;
