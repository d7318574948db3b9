//! Texts about packages that do not fit the newest versions of others.

use derive_more::Display;
use serde::{Deserialize, Serialize};

use crate::PackageName;
use crate::words::{counted, few, list};

/// Misfits that a text shows. The fields have all of them.
const SHOWN: usize = 3;

/// Names of held-back packages that a text shows.
const NAMES_SHOWN: usize = 6;

/// The way in which a package does not fit the newest versions of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "lowercase")]
pub enum Discord {
    /// The package needs other versions of them.
    #[display("needs")]
    Needs,
    /// The package excludes them.
    #[display("excludes")]
    Excludes,
}

/// A package that cannot be installed together with the newest versions of others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Misfit {
    /// The name.
    pub package: PackageName,
    /// The full version.
    pub version: String,
    /// The architecture.
    pub architecture: String,
    /// Whether clients may already have the package in this version.
    pub installed: bool,
    /// The way in which it does not fit.
    pub discord: Discord,
    /// The relation in words: `rocm-common = 7.1.0-1`.
    pub relation: String,
    /// The newest packages that the relation is about: `rocm-common 7.1.0-2`. Empty if nothing
    /// offers its name any more, or if a suitable one does not fit others itself.
    pub offered: Vec<String>,
}

impl Misfit {
    /// The misfit in words.
    fn told(&self) -> String {
        let Self { package, version, discord, relation, offered, .. } = self;
        let newest = match offered.as_slice() {
            [] => ", which no package that fits provides".to_owned(),
            offered => format!(", and the newest is {}", list(offered)),
        };
        format!("{package} {version} {discord} {relation}{newest}")
    }
}

/// Writes a text about packages that no longer fit, and about updates that are held back for them.
pub(super) fn told(misfits: &[Misfit], held_back: &[String]) -> String {
    // Those that do not fit because others do not come last.
    let mut misfits: Vec<&Misfit> = misfits.iter().collect();
    misfits.sort_by_key(|misfit| misfit.installed && misfit.offered.is_empty());
    let texts: Vec<String> = misfits.iter().map(|misfit| misfit.told()).collect();
    let more = match texts.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let shown = texts.get(..SHOWN).unwrap_or(&texts).join("; ");
    let (verb, it) = if texts.len() == 1 { ("does", "it") } else { ("do", "them") };
    let held = match held_back.len() {
        0 => format!("nobody can install {it}"),
        count => {
            format!(
                "clients hold back {} ({})",
                counted(count, "update"),
                few(held_back, NAMES_SHOWN)
            )
        }
    };
    let is_had = misfits.iter().any(|misfit| misfit.installed) && !held_back.is_empty();
    let removed = if is_had { ", or remove what does not fit" } else { "" };
    format!(
        "{} {verb} not go with the newest versions of others ({shown}{more}), so {held}{removed}: \
         publish {it} anew along with those, or with relations that take both versions",
        counted(texts.len(), "package"),
    )
}
