//! Kernel databases: whether indexes and code come together.
//!
//! `X.dat` indexes the kernels of `X.co` or `X.hsaco`, where the arch and its features in the name
//! may differ (`X_fallback.dat`, `X_fallback_gfx1100.hsaco`). Whoever installs one of them has to
//! get the other: it lies in the same package, or in the host's that the package needs. Which
//! files are which, and which have no partner, is said by the rules of the databases.

use std::collections::BTreeMap;

use super::excuses::Excuses;
use super::installed::{Installed, Side};
use super::problem::{Check, Problems};
use crate::database::{Role, Rules};
use crate::error::Result;
use crate::gfx;
use crate::tree::TreePath;

/// Code or index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Code,
    Index,
}

/// A file that has to have a partner.
struct Single<'a> {
    package: &'a Installed,
    path: &'a str,
    kind: Kind,
    folder: &'a str,
    /// Name without ending.
    stem: &'a str,
}

/// By kind, folder and what partners share of their names: who has such files.
type Present<'a> = BTreeMap<(Kind, &'a str, &'a str), Vec<&'a Installed>>;

/// Checks the databases of what is installed together.
pub(super) fn check(
    packages: &[&Installed],
    excuses: &Excuses,
    problems: &mut Problems,
) -> Result<()> {
    let rules = Rules::builtin()?;
    let mut singles = Vec::new();
    let mut present = Present::new();
    for package in packages {
        for (path, _) in package.files() {
            let Some((single, standalone)) = single(package, path, &rules) else {
                continue;
            };
            let key = (single.kind, single.folder, common(single.stem));
            present.entry(key).or_default().push(package);
            if !standalone {
                singles.push(single);
            }
        }
    }
    for single in singles.iter().filter(|single| !excuses.keeps_file(single.path)) {
        if let Some(fault) = fault(single, &present) {
            problems.add(Check::DatabaseUnpaired, single.package.at(single.path), fault);
        }
    }
    Ok(())
}

/// What the file at `path` is, if it is code or an index, and whether it needs no partner.
fn single<'a>(package: &'a Installed, path: &'a str, rules: &Rules) -> Option<(Single<'a>, bool)> {
    let tree_path = TreePath::new(path.trim_start_matches('/')).ok()?;
    let claim = rules.claim(&tree_path)?;
    let (folder, name) = path.rsplit_once('/')?;
    let plain = name.strip_suffix(".zlib").unwrap_or(name);
    let (stem, ending) = plain.rsplit_once('.')?;
    let kind = match (claim.role, ending) {
        (Role::Code | Role::Shared, "co" | "hsaco") => Kind::Code,
        (Role::Index | Role::Shared, "dat") => Kind::Index,
        _ => return None,
    };
    let standalone = claim.rule.is_standalone(name);
    Some((Single { package, path, kind, folder, stem }, standalone))
}

/// What partners share of a stem: what stands before the arch.
fn common(stem: &str) -> &str {
    match stem.find("gfx").filter(|_| !gfx::archs_in(stem).is_empty()) {
        Some(at) => stem[..at].trim_end_matches(['_', '-']),
        None => stem,
    }
}

fn fault(single: &Single<'_>, present: &Present<'_>) -> Option<String> {
    let (wanted, what) = match single.kind {
        Kind::Code => (Kind::Index, "index"),
        Kind::Index => (Kind::Code, "code object"),
    };
    let Some(holders) = present.get(&(wanted, single.folder, common(single.stem))) else {
        return Some(format!("has no {what} of its name beside it"));
    };
    // The host's files serve all kernel packages, so any of them may hold the partner.
    let host = single.package.side() != Side::Kernels;
    let reachable = |holder: &&Installed| {
        host || holder.side() != Side::Kernels || std::ptr::eq(*holder, single.package)
    };
    match holders.iter().any(reachable) {
        true => None,
        false => Some(format!("its {what} is in {}, which it does not need", holders[0].file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_share_what_stands_before_the_arch() {
        for (stem, expected) in [
            ("TensileLibrary_gfx90a-xnack+", "TensileLibrary"),
            ("TensileLibrary_gfx1100", "TensileLibrary"),
            ("T_fallback", "T_fallback"),
            ("T_fallback_gfx1100", "T_fallback"),
            ("no_gfx_at_all", "no_gfx_at_all"),
        ] {
            assert_eq!(common(stem), expected);
        }
    }
}
