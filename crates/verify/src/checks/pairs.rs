//! Kernel databases: whether indexes and code come together.
//!
//! `X.dat` indexes the kernels of `X.co` or `X.hsaco`, where the arch and its features in the name may differ
//! (`X_fallback.dat`, `X_fallback_gfx1100.hsaco`). Installing one of them must bring the other: it is in the
//! same package, or in the host's that the package needs. Partners have the same name apart from the ending,
//! or an arch in common, or one of them serves all. The same holds for the files that an index refers to. The
//! rules of the databases say which files are indexes and code, and which of them have no partner.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rockpack_core::gfx::{self, BaseArch};

use super::excuses::Excuses;
use crate::own::archive::Nature;
use crate::own::facts::{Class, FileFacts};
use crate::own::index;
use crate::own::installed::{Installed, Side, files_of};
use crate::partial::base_of;
use crate::problem::{Problem, Problems, SetFault};
use rockpack_report::words::few;
use rockpack_split::input::database::{DatabaseClaim, DatabaseRole};

/// Code or an index of a database.
struct Single<'a> {
    package: &'a Installed,
    path: &'a str,
    kind: DatabaseRole,
    folder: &'a str,
    name: &'a str,
    stem: &'a str,
    /// The archs it is for; none if it serves all.
    archs: BTreeSet<BaseArch>,
    claim: DatabaseClaim<'static>,
    class: &'a Class,
}

/// Files by kind, folder and the shared part of their names.
type Partners<'a> = HashMap<(DatabaseRole, &'a str, &'a str), Vec<&'a Single<'a>>>;

/// Files by folder and name.
type Beside<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a Single<'a>>>;

pub(crate) fn check(packages: &[&Installed], excuses: &Excuses, problems: &mut Problems) {
    let files = files_of(packages);
    let singles: Vec<Single<'_>> =
        files.filter_map(|(package, path, facts)| single(package, path, facts)).collect();
    let (mut partners, mut beside) = (Partners::new(), Beside::new());
    for single in &singles {
        let key = (single.kind, single.folder, common(single.stem));
        partners.entry(key).or_default().push(single);
        beside.entry((single.folder, single.name)).or_default().push(single);
    }
    for single in &singles {
        // An index for several archs serves device wheels that are not installed.
        let is_open = excuses.some_wheels && single.archs.is_empty();
        let mut faults = Vec::new();
        if !is_open
            && !single.claim.rule.is_standalone(single.name)
            && !excuses.is_or_was_one_of(&excuses.kept_files, single.path)
        {
            faults.extend(single.partner_fault(&partners));
        }
        if !excuses.is_or_was_one_of(&excuses.unresolved, single.path) {
            faults.extend(single.reference_faults(&beside));
        }
        for fault in faults {
            let file = single.package.at(single.path);
            problems.add(Problem::DatabaseUnpaired { file, fault });
        }
    }
}

/// The file at `path` with its kind, if it is code or an index.
fn single<'a>(package: &'a Installed, path: &'a str, facts: &'a FileFacts) -> Option<Single<'a>> {
    let ((kind, claim), (folder, name)) = (index::kind(path)?, path.rsplit_once('/')?);
    let plain = name.strip_suffix(".zlib").unwrap_or(name);
    let stem = plain.rsplit_once('.').map_or(plain, |(stem, _)| stem);
    let archs = match claim.role {
        DatabaseRole::Shared => BTreeSet::new(),
        _ => archs(stem, &facts.class),
    };
    let class = &facts.class;
    Some(Single { package, path, kind, folder, name, stem, archs, claim, class })
}

/// The archs of a file: of code its own, of an index those in its name. What neither says is said
/// by the other.
pub(crate) fn archs(stem: &str, class: &Class) -> BTreeSet<BaseArch> {
    let named: BTreeSet<BaseArch> = gfx::archs_in(stem).into_iter().collect();
    let own: BTreeSet<BaseArch> = match class {
        Class::CodeObject(Nature::Compiled(target)) => [target.base().clone()].into(),
        Class::Bundle(entries) => entries.iter().filter_map(|it| base_of(&it.target)).collect(),
        Class::Index(_) if !named.is_empty() => BTreeSet::new(),
        Class::Index(index) => index.archs.clone(),
        _ => BTreeSet::new(),
    };
    if own.is_empty() { named } else { own }
}

impl Single<'_> {
    /// Whether there is an arch that both serve.
    fn serves_with(&self, other: &Self) -> bool {
        let all = self.archs.is_empty() || other.archs.is_empty();
        all || self.archs.intersection(&other.archs).next().is_some()
    }

    /// Tells whether installing its package brings that of `other`. The host's files serve all kernel packages, so any
    /// of them may have partners of theirs; files of several groups are in a package that they depend on.
    fn reaches(&self, other: &Self) -> bool {
        let (package, other) = (self.package, other.package);
        [package, other].iter().any(|one| one.side() != Side::Kernels)
            || std::ptr::eq(package, other)
            || package.depends_on(other)
    }

    fn partner_fault(&self, partners: &Partners<'_>) -> Option<SetFault> {
        let (kind, wanted) = match self.kind {
            DatabaseRole::Index => (DatabaseRole::Code, "code object"),
            _ => (DatabaseRole::Index, "index"),
        };
        let all = partners.get(&(kind, self.folder, common(self.stem)));
        let holders = all.into_iter().flatten();
        let holders = holders.filter(|it| it.stem == self.stem || self.serves_with(it));
        let holders: Vec<_> = holders.collect();
        let archs: Vec<&BaseArch> = self.archs.iter().filter(|_| all.is_some()).collect();
        let archs = match archs.as_slice() {
            [] => String::new(),
            archs => format!(" for {}", few(archs, 5)),
        };
        let absent = format!("has no {wanted} of its name{archs} beside it");
        self.reach_fault(&holders, absent, &format!("its {wanted} is"))
    }

    /// The fault of files one of which it needs: none of them is there, or none comes with its package.
    fn reach_fault(&self, found: &[&&Self], absent: String, others: &str) -> Option<SetFault> {
        let Some(first) = found.first() else { return Some(SetFault::absent(absent)) };
        let is_reached = found.iter().any(|other| self.reaches(other));
        let reason = format!("{others} in {}, which it does not need", first.package.file);
        (!is_reached).then(|| SetFault::wrong(reason))
    }

    /// Files that an index refers to and that are not beside it. One that serves all archs also names what is for
    /// archs that are not there; in the directory of an arch, what is for others.
    fn reference_faults(&self, beside: &Beside<'_>) -> Vec<SetFault> {
        let Class::Index(index) = self.class else { return Vec::new() };
        let expected = index::referred(index).filter(|names| {
            let archs: Vec<BaseArch> = names.iter().flat_map(|name| gfx::archs_in(name)).collect();
            let is_here = archs.iter().any(|arch| self.claim.directory.contains(arch));
            archs.is_empty() || !self.archs.is_empty() || is_here
        });
        let faults = expected.filter_map(|names| {
            let found = names.iter().filter_map(|name| beside.get(&(self.folder, name.as_str())));
            let found: Vec<_> = found.flatten().collect();
            let reference = names.first().cloned().unwrap_or_default();
            let absent = format!("refers to {reference}, which is not beside it");
            self.reach_fault(&found, absent, &format!("refers to {reference}, which is"))
        });
        faults.collect()
    }
}

/// The part of a stem that partners share: the text before the arch.
fn common(stem: &str) -> &str {
    match stem.find("gfx").filter(|_| !gfx::archs_in(stem).is_empty()) {
        Some(at) => stem[..at].trim_end_matches(['_', '-']),
        None => stem,
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
