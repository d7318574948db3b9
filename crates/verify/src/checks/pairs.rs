//! Checks that the indexes and code files of kernel databases are installed together.
//!
//! `X.dat` indexes the kernels of `X.co` or `X.hsaco`, where the arch and its features in the name may differ
//! (`X_fallback.dat`, `X_fallback_gfx1100.hsaco`). Installing one of them must install the other: it is in the same
//! package, or in the host package that the package needs. Partners have the same name apart from the extension, or an
//! arch in common, or one of them serves all archs. The same applies to the files that an index refers to. The database
//! rules define which files are indexes and code, and which have no partner.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rockpack_core::gfx::{self, BaseArch};

use super::excuses::Excuses;
use crate::partial::base_of;
use crate::problem::{Problem, Problems, SetFault};
use crate::readers::archive::CodeKind;
use crate::readers::facts::{Class, FileFacts};
use crate::readers::index;
use crate::readers::installed::{ContentRole, PackageContents, files_of};
use rockpack_report::words::few;
use rockpack_split::input::database::{DatabaseClaim, DatabaseRole};

/// Code or an index of a database.
struct DatabaseFile<'a> {
    package: &'a PackageContents,
    path: &'a str,
    kind: DatabaseRole,
    folder: &'a str,
    name: &'a str,
    stem: &'a str,
    /// The archs of the file; empty if it serves all.
    archs: BTreeSet<BaseArch>,
    claim: DatabaseClaim<'static>,
    class: &'a Class,
}

/// Files by kind, folder and the shared part of their names.
type Partners<'a> = HashMap<(DatabaseRole, &'a str, &'a str), Vec<&'a DatabaseFile<'a>>>;

/// Files by folder and name.
type FilesByName<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a DatabaseFile<'a>>>;

pub(crate) fn check(packages: &[&PackageContents], excuses: &Excuses, problems: &mut Problems) {
    let files = files_of(packages);
    let database_files: Vec<DatabaseFile<'_>> =
        files.filter_map(|(package, path, facts)| database_file(package, path, facts)).collect();
    let (mut partners, mut by_name) = (Partners::new(), FilesByName::new());
    for database_file in &database_files {
        let key = (database_file.kind, database_file.folder, shared_stem(database_file.stem));
        partners.entry(key).or_default().push(database_file);
        by_name.entry((database_file.folder, database_file.name)).or_default().push(database_file);
    }
    for database_file in &database_files {
        // An index for several archs may be for device wheels that are not installed.
        let is_open = excuses.lacks_wheels && database_file.archs.is_empty();
        let mut faults = Vec::new();
        if !is_open
            && !database_file.claim.rule.is_standalone(database_file.name)
            && !excuses.matches_any_before_move(&excuses.kept_files, database_file.path)
        {
            faults.extend(database_file.partner_fault(&partners));
        }
        if !excuses.matches_any_before_move(&excuses.unresolved, database_file.path) {
            faults.extend(database_file.reference_faults(&by_name));
        }
        for fault in faults {
            let file = database_file.package.at(database_file.path);
            problems.add(Problem::DatabaseUnpaired { file, fault });
        }
    }
}

/// The file at `path` with its kind, if it is code or an index.
fn database_file<'a>(
    package: &'a PackageContents,
    path: &'a str,
    facts: &'a FileFacts,
) -> Option<DatabaseFile<'a>> {
    let ((kind, claim), (folder, name)) = (index::kind(path)?, path.rsplit_once('/')?);
    let plain = name.strip_suffix(".zlib").unwrap_or(name);
    let stem = plain.rsplit_once('.').map_or(plain, |(stem, _)| stem);
    let archs = match claim.role {
        DatabaseRole::Shared => BTreeSet::new(),
        _ => archs(stem, &facts.class),
    };
    let class = &facts.class;
    Some(DatabaseFile { package, path, kind, folder, name, stem, archs, claim, class })
}

/// The archs of a file: for code those of its content, then those in its name; for an index the reverse.
pub(crate) fn archs(stem: &str, class: &Class) -> BTreeSet<BaseArch> {
    let named: BTreeSet<BaseArch> = gfx::archs_in(stem).into_iter().collect();
    let own: BTreeSet<BaseArch> = match class {
        Class::CodeObject(CodeKind::Compiled(target)) => [target.base().clone()].into(),
        Class::Bundle(entries) => entries.iter().filter_map(|it| base_of(&it.target)).collect(),
        Class::Index(_) if !named.is_empty() => BTreeSet::new(),
        Class::Index(index) => index.archs.clone(),
        _ => BTreeSet::new(),
    };
    if own.is_empty() { named } else { own }
}

impl DatabaseFile<'_> {
    /// Whether both are for a common arch.
    fn serves_with(&self, other: &Self) -> bool {
        let all = self.archs.is_empty() || other.archs.is_empty();
        all || self.archs.intersection(&other.archs).next().is_some()
    }

    /// Whether installing its package installs that of `other`. Files of the host package serve all kernel packages,
    /// any of which may have their partners; files of several groups are in a package that the groups depend on.
    fn reaches(&self, other: &Self) -> bool {
        let (package, other) = (self.package, other.package);
        [package, other].iter().any(|one| one.role() != ContentRole::Kernels)
            || std::ptr::eq(package, other)
            || package.depends_on(other)
    }

    fn partner_fault(&self, partners: &Partners<'_>) -> Option<SetFault> {
        let (kind, wanted) = match self.kind {
            DatabaseRole::Index => (DatabaseRole::Code, "code object"),
            _ => (DatabaseRole::Index, "index"),
        };
        let all = partners.get(&(kind, self.folder, shared_stem(self.stem)));
        let holders = all.into_iter().flatten();
        let holders = holders.filter(|it| it.stem == self.stem || self.serves_with(it));
        let holders: Vec<_> = holders.collect();
        let archs: Vec<&BaseArch> = self.archs.iter().filter(|_| all.is_some()).collect();
        let archs = match archs.as_slice() {
            [] => String::new(),
            archs => format!(" for {}", few(archs, 5)),
        };
        let absent = format!("has no {wanted} of the same name{archs} next to it");
        self.reach_fault(&holders, absent, &format!("its {wanted} is"))
    }

    /// The fault if none of the files `found`, one of which it needs, exists or is installed with its package.
    fn reach_fault(&self, found: &[&&Self], absent: String, others: &str) -> Option<SetFault> {
        let Some(first) = found.first() else { return Some(SetFault::absent(absent)) };
        let is_reached = found.iter().any(|other| self.reaches(other));
        let reason = format!("{others} in {}, which its package does not need", first.package.file);
        (!is_reached).then(|| SetFault::wrong(reason))
    }

    /// Reports files that an index refers to and that are not next to it. An index for all archs may name files for
    /// archs that are absent; one in the directory of an arch may name files for other archs.
    fn reference_faults(&self, by_name: &FilesByName<'_>) -> Vec<SetFault> {
        let Class::Index(index) = self.class else { return Vec::new() };
        let expected = index::referred(index).filter(|names| {
            let archs: Vec<BaseArch> = names.iter().flat_map(|name| gfx::archs_in(name)).collect();
            let is_here = archs.iter().any(|arch| self.claim.directory.contains(arch));
            archs.is_empty() || !self.archs.is_empty() || is_here
        });
        let faults = expected.filter_map(|names| {
            let found = names.iter().filter_map(|name| by_name.get(&(self.folder, name.as_str())));
            let found: Vec<_> = found.flatten().collect();
            let reference = names.first().cloned().unwrap_or_default();
            let absent = format!("refers to {reference}, which is not next to it");
            self.reach_fault(&found, absent, &format!("refers to {reference}, which is"))
        });
        faults.collect()
    }
}

/// The part of a stem that partners share: the text before the arch.
fn shared_stem(stem: &str) -> &str {
    match stem.find("gfx").filter(|_| !gfx::archs_in(stem).is_empty()) {
        Some(at) => stem[..at].trim_end_matches(['_', '-']),
        None => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_share_the_text_before_the_arch() {
        for (stem, expected) in [
            ("TensileLibrary_gfx90a-xnack+", "TensileLibrary"),
            ("TensileLibrary_gfx1100", "TensileLibrary"),
            ("T_fallback", "T_fallback"),
            ("T_fallback_gfx1100", "T_fallback"),
            ("no_gfx_at_all", "no_gfx_at_all"),
        ] {
            assert_eq!(shared_stem(stem), expected);
        }
    }
}
