//! The rules and their claims on paths.

use std::collections::BTreeMap;

use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::{self, BaseArch, Target};
use rockpack_core::tree::TreePath;
use schemars::JsonSchema;
use serde::Deserialize;

use super::integrity::{LazyNames, stem};
use super::{matches_name, matches_path};

/// One kernel database. `config/databases.toml` describes the keys.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The name, e.g. `rocblas`.
    pub name: String,
    /// The globs of its directories.
    pub directories: Vec<String>,
    /// Globs of the names of files with device code.
    #[serde(default)]
    pub code: Vec<String>,
    /// Globs of the names of index files.
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
    /// Globs of the names of files that the library does not require.
    #[serde(default)]
    pub cache: Vec<String>,
    /// Globs of the names of files that no library reads from a package.
    #[serde(default)]
    pub leftovers: Vec<String>,
    /// Globs of the names of files without a partner.
    #[serde(default)]
    pub standalone: Vec<String>,
    /// The spelling of archs in file names.
    #[serde(default)]
    pub names: Spelling,
    /// Tells whether directories named after an arch contain its files.
    #[serde(default)]
    pub arch_directories: bool,
    /// Leaves unlisted files to other rules, also in directories of archs.
    #[serde(default)]
    pub only_named: bool,
    /// The optional prefix of the arch in the name of a directory.
    #[serde(default)]
    pub directory_prefix: String,
    /// The archs of directories by name.
    #[serde(default, deserialize_with = "rockpack_core::unique_keys::map")]
    #[schemars(with = "BTreeMap<String, Vec<rockpack_core::gfx::BaseArchSchema>>")]
    pub directory_archs: BTreeMap<String, Vec<BaseArch>>,
    /// Globs of the names of files that the library looks for in the directory of an arch first.
    #[serde(default)]
    pub moves: Vec<String>,
    /// The files with device code that may be compressed.
    #[serde(default)]
    pub compressible: Option<Compressible>,
    /// The names of indexes that load others lazily, if these have mappings.
    #[serde(default)]
    pub lazy: Option<LazyNames>,
}

/// Files that the library passes unread to the HIP runtime, which opens compressed offload bundles.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compressible {
    /// Globs of their names.
    pub names: Vec<String>,
    /// The version of ROCm since which the runtime does so.
    pub since: String,
}

impl Compressible {
    /// Whether files of this name may be compressed.
    pub fn has(&self, name: &str) -> bool {
        any_matches(&self.names, name)
    }
}

/// A spelling of archs in file names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Spelling {
    /// The arch is a word of its own.
    #[default]
    Word,
    /// The arch is the start of the name, before any other text.
    Start,
    /// The arch has `_` in place of signs other than letters and digits.
    Sanitized,
}

/// The rules in the order in which they are tried.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseRules {
    #[serde(rename = "database")]
    rules: Vec<Rule>,
}

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
    /// A file that the library does not require.
    Cache,
    /// A file that no library reads from a package.
    Leftover,
    /// Another file of one arch, or of a family of archs.
    Data,
}

/// The claim of a rule on a path.
#[derive(Debug, Clone)]
pub struct DatabaseClaim<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// The role of the file.
    pub role: DatabaseRole,
    /// The archs in its name.
    pub named: Vec<BaseArch>,
    /// The archs of the directory around it, sorted: several for an arch family, none elsewhere.
    pub directory: Vec<BaseArch>,
}

impl DatabaseRules {
    /// The shipped rules.
    pub fn builtin() -> Result<Self> {
        Self::parse(include_str!("../../../../../config/databases.toml"))
            .map_err(|error| error.file("config/databases.toml"))
    }

    /// Reads rules from TOML.
    pub fn parse(text: &str) -> Result<Self> {
        let rules: Self = toml::from_str(text).map_err(|fault| {
            Error::new(Kind::Config, "the database rules are invalid").cause_in_lines(fault)
        })?;
        rules.checked()
    }

    /// Appends these rules to `first`, without rules whose name is already in `first`.
    pub fn appended_to(mut self, first: &[Rule]) -> Result<Self> {
        self.rules.retain(|rule| first.iter().all(|own| own.name != rule.name));
        self.rules.splice(0..0, first.iter().cloned());
        self.checked()
    }

    fn checked(self) -> Result<Self> {
        let mut names: Vec<&str> = self.rules.iter().map(|rule| rule.name.as_str()).collect();
        names.sort_unstable();
        for rule in &self.rules {
            if let Some(fault) = rule.lazy.as_ref().and_then(LazyNames::fault) {
                let message = format!("the database rule `{}` is invalid: {fault}", rule.name);
                return Err(Error::new(Kind::Config, message));
            }
        }
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
        let Some(pair) = twice else { return Ok(self) };
        let message = format!("two database rules are named `{}`", pair[0]);
        Err(Error::new(Kind::Config, message))
    }

    /// The claim on `path` of the first rule that makes one.
    pub fn claim(&self, path: &TreePath) -> Option<DatabaseClaim<'_>> {
        self.rules.iter().find_map(|rule| rule.claim(path))
    }

    /// The rule with this name.
    pub fn named(&self, name: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.name == name)
    }

    /// Whether a rule applies to the files next to `path`.
    pub fn are_for_folder_of(&self, path: &TreePath) -> bool {
        self.rules.iter().any(|rule| rule.is_for_folder_of(path))
    }

    /// The rules that apply to the files next to `path`.
    pub fn for_folder_of(&self, path: &TreePath) -> Self {
        let rules = self.rules.iter().filter(|rule| rule.is_for_folder_of(path));
        Self { rules: rules.cloned().collect() }
    }

    /// The directory above `path`, a path without a claim, that by its place and name belongs to an unknown arch.
    pub fn unknown_arch_directory(&self, path: &TreePath) -> Option<TreePath> {
        self.rules.iter().find_map(|rule| rule.unknown_arch_directory(path))
    }
}

impl Rule {
    fn is_for_folder_of(&self, path: &TreePath) -> bool {
        path.folder().is_some_and(|folder| self.holds(folder))
            || self.arch_directory(path.as_str()).is_some()
            || self.unknown_arch_directory(path).is_some()
    }

    fn claim(&self, path: &TreePath) -> Option<DatabaseClaim<'_>> {
        let directory = self.arch_directory(path.as_str());
        let directory = directory.map(|(_, archs)| archs).unwrap_or_default();
        // Most files are in no directory of a rule, and this check is cheaper than that of the name.
        if directory.is_empty() && !self.holds(path.folder()?) {
            return None;
        }
        let role = match self.role(path.name()) {
            Some(role) => role,
            None if !directory.is_empty() && !self.only_named => DatabaseRole::Data,
            None => return None,
        };
        let named = self.named(path.name());
        // A file for one arch as a whole must name the arch, or be in its directory.
        let unnamed = role == DatabaseRole::Whole && named.len() != 1 && directory.is_empty();
        (!unnamed).then_some(DatabaseClaim { rule: self, role, named, directory })
    }

    fn holds(&self, directory: &str) -> bool {
        self.directories.iter().any(|glob| matches_path(glob, directory))
    }

    /// The directory of the library that the file at `path` belongs to: the parent of its arch directory, or
    /// else the file's own directory.
    pub(super) fn library_of(&self, path: &TreePath) -> Option<TreePath> {
        match self.arch_directory(path.as_str()) {
            Some((parent, _)) => TreePath::new(parent).ok(),
            None => path.parent(),
        }
    }

    /// The parent of the outermost directory of archs above `path` and below one of the rule's directories, with
    /// its archs.
    fn arch_directory<'p>(&self, path: &'p str) -> Option<(&'p str, Vec<BaseArch>)> {
        if !self.arch_directories && self.directory_archs.is_empty() {
            return None;
        }
        let named = folders_above(path).filter_map(|directory| directory.rsplit_once('/'));
        // Few names are those of archs, and this check is cheaper than that of the place.
        let of_archs = named.filter_map(|(parent, name)| {
            let archs = self.archs_of_directory(name);
            (!archs.is_empty() && self.holds(parent)).then_some((parent, archs))
        });
        of_archs.last()
    }

    fn unknown_arch_directory(&self, path: &TreePath) -> Option<TreePath> {
        if !self.arch_directories || !self.directory_archs.is_empty() {
            return None;
        }
        let mut named = folders_above(path.as_str())
            .filter_map(|directory| Some((directory, directory.rsplit_once('/')?)));
        let found = named.find(|(_, (parent, name))| {
            let name = name.strip_prefix(&self.directory_prefix).unwrap_or(name);
            gfx::is_processor(name) && self.holds(parent)
        });
        found.and_then(|(directory, _)| TreePath::new(directory).ok())
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

    /// Whether a file of this name has device code, for one arch or for all.
    pub fn is_code(&self, name: &str) -> bool {
        any_matches(&self.code, name)
    }

    /// Whether a file of this name has no partner.
    pub fn is_standalone(&self, name: &str) -> bool {
        any_matches(&self.standalone, name)
    }

    /// Whether the library looks for a file of this name in the directory of an arch first.
    pub fn is_moved(&self, name: &str) -> bool {
        any_matches(&self.moves, name)
    }

    /// Whether a file of this name in an arch's directory makes the library look there. Every file
    /// does, unless the rule names master indexes: then only these do.
    pub fn opens_dir(&self, name: &str) -> bool {
        self.lazy.as_ref().is_none_or(|lazy| lazy.is_master(stem(name)))
    }
}

fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').filter_map(|(end, _)| path.get(..end))
}

fn any_matches(globs: &[String], name: &str) -> bool {
    globs.iter().any(|glob| matches_name(glob, name))
}

/// The arch from the last `gfx` of a name up to the next dot.
fn sanitized_arch(name: &str) -> Option<BaseArch> {
    let text = &name[name.rfind("gfx")?..];
    gfx::arch_of_sanitized(text.split('.').next().unwrap_or(text))
}

/// The arch that the whole name of a directory spells, with or without features.
///
/// hipBLASLt keeps kernels for early silicon in a directory like `gfx1250v0`. That is not a target: the files
/// are for gfx1250 and have its name.
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
