//! The rules and what they say of a path.

use serde::Deserialize;

use super::glob::{matches_name, matches_path};
use crate::error::{Error, Kind, Result};
use crate::gfx::{self, BaseArch, Target};
use crate::tree::TreePath;

/// One kernel database.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name, e.g. `rocblas`.
    pub name: String,
    /// Globs of its directories.
    pub directories: Vec<String>,
    /// Globs of the names of files that hold device code.
    pub code: Vec<String>,
    /// Globs of the names of files that index it.
    #[serde(default)]
    pub index: Vec<String>,
    /// Index files that serve all archs of their shard.
    #[serde(default)]
    pub shared: Vec<String>,
    /// Files without a partner.
    #[serde(default)]
    pub standalone: Vec<String>,
}

/// The rules in the order in which they are tried.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    #[serde(rename = "database")]
    rules: Vec<Rule>,
}

/// What a file of a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Device code.
    Code,
    /// An index of device code.
    Index,
    /// An index that serves every arch of its shard.
    SharedIndex,
    /// Something else below the directory of an arch.
    Other,
}

/// What a rule says of a path.
#[derive(Debug, Clone)]
pub struct Claim<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// What the file is.
    pub role: Role,
    /// The archs that its name names.
    pub named: Vec<BaseArch>,
    /// The arch whose directory holds it.
    pub directory: Option<BaseArch>,
}

impl Rules {
    /// The shipped rules.
    pub fn builtin() -> Result<Self> {
        Self::parse(include_str!("../../config/databases.toml"))
            .map_err(|error| error.file("config/databases.toml"))
    }

    /// Reads rules from TOML.
    pub fn parse(text: &str) -> Result<Self> {
        let rules: Self = toml::from_str(text).map_err(|fault| {
            Error::new(Kind::Config, "the database rules are wrong").cause(fault)
        })?;
        let mut names: Vec<&str> = rules.rules.iter().map(|rule| rule.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                let message = format!("two database rules are named `{}`", pair[0]);
                Err(Error::new(Kind::Config, message))
            }
            None => Ok(rules),
        }
    }

    /// What the first rule that claims `path` says of it.
    pub fn claim(&self, path: &TreePath) -> Option<Claim<'_>> {
        self.rules.iter().find_map(|rule| rule.claim(path))
    }
}

impl Rule {
    fn claim(&self, path: &TreePath) -> Option<Claim<'_>> {
        let directory = self.arch_directory(path);
        let role = match (self.role(path.name()), directory.is_some()) {
            (Some(role), true) => role,
            (None, true) => Role::Other,
            (role, false) if self.holds(path.parent()?.as_str()) => role?,
            (_, false) => return None,
        };
        Some(Claim { rule: self, role, named: distinct_archs(path.name()), directory })
    }

    fn holds(&self, directory: &str) -> bool {
        self.directories.iter().any(|glob| matches_path(glob, directory))
    }

    /// The arch that names the directory below one of the rule's directories on the way to `path`.
    fn arch_directory(&self, path: &TreePath) -> Option<BaseArch> {
        let mut child = path.parent();
        while let Some(directory) = child {
            child = directory.parent();
            let below = child.as_ref().is_some_and(|parent| self.holds(parent.as_str()));
            if let Some(arch) = below.then(|| directory_arch(directory.name())).flatten() {
                return Some(arch);
            }
        }
        None
    }

    fn role(&self, name: &str) -> Option<Role> {
        let any = |globs: &[String]| globs.iter().any(|glob| matches_name(glob, name));
        if any(&self.code) {
            Some(Role::Code)
        } else if any(&self.shared) {
            Some(Role::SharedIndex)
        } else if any(&self.index) {
            Some(Role::Index)
        } else {
            None
        }
    }

    /// Whether a file of this name has no partner.
    pub fn is_standalone(&self, name: &str) -> bool {
        self.standalone.iter().any(|glob| matches_name(glob, name))
    }
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
    (known || distinct_archs(name).len() == 1).then(|| target.base().clone())
}

fn distinct_archs(text: &str) -> Vec<BaseArch> {
    let mut archs = gfx::archs_in(text);
    archs.sort();
    archs.dedup();
    archs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(path: &str) -> Option<(String, Role, Vec<String>, Option<String>)> {
        let rules = Rules::builtin().unwrap();
        let claim = rules.claim(&TreePath::new(path).unwrap())?;
        let named = claim.named.iter().map(ToString::to_string).collect();
        let directory = claim.directory.map(|arch| arch.to_string());
        Some((claim.rule.name.clone(), claim.role, named, directory))
    }

    #[test]
    fn rules_claim_by_directory_and_name() {
        let found = |path| claim(path).unwrap();
        let (rule, role, named, _) =
            found("lib/rocblas/library/Kernels.so-000-gfx90a-xnack+.hsaco");
        assert_eq!((rule.as_str(), role, named), ("rocblas", Role::Code, vec!["gfx90a".into()]));
        let (rule, role, named, _) = found("lib/hipblaslt/library/hipblasltExtOpLibrary.dat");
        assert_eq!((rule.as_str(), role, named), ("hipblaslt", Role::SharedIndex, vec![]));
        let (_, role, _, directory) = found("lib/rocblas/5.1/library/gfx90a-xnack+/deep/notes.txt");
        assert_eq!((role, directory.as_deref()), (Role::Other, Some("gfx90a")));
        let (_, _, _, directory) = found("lib/hipblaslt/library/gfx1250v0/x_gfx1250.dat.zlib");
        assert_eq!(directory.as_deref(), Some("gfx1250"));
        for path in [
            "lib/rocblas/library/gfxv0/x.co",
            "lib/rocblas/library/readme.txt",
            "lib/rocblas/TensileLibrary.dat",
            "lib/other/library/x.co",
            "lib/rocblas/library/other/x.co",
        ] {
            assert!(claim(path).is_none(), "{path}");
        }
    }

    #[test]
    fn a_rule_with_an_unknown_key_is_refused() {
        let rule = "[[database]]\nname = 'a'\ndirectories = []\ncode = []\n";
        assert!(Rules::parse(rule).is_ok());
        assert!(Rules::parse(&format!("{rule}codes = []")).is_err());
        assert!(Rules::parse(&format!("{rule}{rule}")).is_err());
    }
}
