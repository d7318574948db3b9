//! Pairs indexes with the code that they index, and checks the files that indexes refer to.
//!
//! Tensile's libraries are of two kinds. One big index `TensileLibrary[_<arch>].dat` has its code in
//! `TensileLibrary_<arch>.co`. Loaded lazily, `TensileLibrary_lazy_<arch>.dat` names further libraries `S`
//! instead (see [`crate::input::database::IndexDescription`]); each is an index `S.dat` with its code in
//! `S.co`, in `S.hsaco`, or, for a fallback that all archs share, in `S_<arch>.hsaco`. Source: Tensile's
//! `PlaceholderLibrary.hpp`, TensileLite's `MasterSolutionLibrary.hpp`.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::gfx::{self, BaseArch};
use rockpack_core::tree::TreePath;

use super::DatabaseCandidate;
use crate::input::database::{DatabaseRole, stem};
use crate::parts::Notes;
use rockpack_report::{Unpaired, Unresolved, found};

/// Joins the partners `X.dat` and `X.co`. Reports files without partner, and indexes with missing files.
pub(crate) fn pair(candidates: &mut [DatabaseCandidate], notes: &mut Notes) {
    inherit_archs_of_code(candidates, notes);
    note_unpaired(candidates, notes);
    note_unresolved(candidates, notes);
}

type PartnerKey = (Option<TreePath>, String);

fn exact_key(candidate: &DatabaseCandidate) -> PartnerKey {
    (candidate.file.path.parent(), stem(candidate.file.path.name()).to_owned())
}

/// The key without arch and features.
fn common_key(candidate: &DatabaseCandidate) -> PartnerKey {
    let stem = stem(candidate.file.path.name());
    let end = if gfx::archs_in(stem).is_empty() { None } else { stem.find("gfx") };
    let common = end.map_or(stem, |end| stem[..end].trim_end_matches(['_', '-']));
    (candidate.file.path.parent(), common.to_owned())
}

/// Assigns an index to the archs of the code with its name: neither works without the other. If that code is
/// for several archs, in one file or in several, the index is for all of them.
fn inherit_archs_of_code(candidates: &mut [DatabaseCandidate], notes: &mut Notes) {
    let mut code: BTreeMap<PartnerKey, BTreeSet<BaseArch>> = BTreeMap::new();
    for candidate in candidates.iter().filter(|c| c.role == DatabaseRole::Code) {
        let archs = code.entry(exact_key(candidate)).or_default();
        archs.extend(candidate.file.archs.iter().cloned());
    }
    for candidate in candidates.iter_mut().filter(|c| c.role == DatabaseRole::Index) {
        let Some(partner) = code.get(&exact_key(candidate)) else {
            continue;
        };
        let partner = Vec::from_iter(partner.iter().cloned());
        if !candidate.file.archs.is_empty() && candidate.file.archs != partner {
            let (index, code) = (candidate.file.archs.clone(), partner.clone());
            let (file, unpaired) =
                (notes.file(&candidate.file.path), Unpaired::Archs { index, code });
            notes.add(found::DatabaseUnpaired { file, unpaired });
        }
        candidate.file.archs = partner;
    }
}

fn note_unpaired(candidates: &[DatabaseCandidate], notes: &mut Notes) {
    // Code and indexes, in this order.
    let both = || candidates.iter().filter(|it| is_code(it) || is_index(it));
    let mut known: BTreeMap<(bool, PartnerKey), Vec<&DatabaseCandidate>> = BTreeMap::new();
    for candidate in both() {
        known.entry((is_code(candidate), common_key(candidate))).or_default().push(candidate);
    }
    for candidate in both().filter(|candidate| !candidate.standalone) {
        let is_code = is_code(candidate);
        let partners = known.get(&(!is_code, common_key(candidate)));
        let paired = partners.is_some_and(|found| found.iter().any(|p| share_arch(p, candidate)));
        if !paired {
            let file = notes.file(&candidate.file.path);
            let unpaired = if is_code { Unpaired::NoIndex } else { Unpaired::NoCode };
            notes.add(found::DatabaseUnpaired { file, unpaired });
        }
    }
}

fn is_index(candidate: &DatabaseCandidate) -> bool {
    matches!(candidate.role, DatabaseRole::Index | DatabaseRole::Shared) && !is_code(candidate)
}

fn is_code(candidate: &DatabaseCandidate) -> bool {
    match candidate.role {
        DatabaseRole::Code => true,
        DatabaseRole::Shared => {
            candidate.description.is_none() && !candidate.code_objects.is_empty()
        }
        _ => false,
    }
}

/// Whether both serve a common arch.
fn share_arch(one: &DatabaseCandidate, other: &DatabaseCandidate) -> bool {
    let all = one.file.archs.is_empty() || other.file.archs.is_empty();
    all || one.file.archs.iter().any(|arch| other.file.archs.contains(arch))
}

/// Reports references of an index to files that are neither in its own package nor among the host files.
fn note_unresolved(candidates: &[DatabaseCandidate], notes: &mut Notes) {
    let by_path: BTreeMap<&str, &DatabaseCandidate> =
        candidates.iter().map(|candidate| (candidate.file.path.as_str(), candidate)).collect();
    for index in candidates {
        let Some(description) = &index.description else {
            continue;
        };
        let libraries = description
            .libraries
            .iter()
            .map(|name| vec![format!("{name}.dat"), format!("{name}.dat.zlib")]);
        let files = description.code_object_files.iter().map(|name| vec![name.clone()]);
        for names in libraries.chain(files) {
            if let Some(unresolved) = unresolved(index, &names, &by_path) {
                let file = notes.file(&index.file.path);
                let refers_to = names.into_iter().next().unwrap_or_default();
                notes.add(found::DatabaseUnresolved { file, refers_to, unresolved });
            }
        }
    }
}

/// The reason why no file with one of these `names`, which the index refers to, is next to it; `None` if one is.
fn unresolved(
    index: &DatabaseCandidate,
    names: &[String],
    by_path: &BTreeMap<&str, &DatabaseCandidate>,
) -> Option<Unresolved> {
    let mut paths = names.iter().filter_map(|name| index.file.path.sibling(name).ok());
    let beside = paths.find_map(|path| by_path.get(path.as_str()).copied());
    match beside {
        None => Some(Unresolved::Absent),
        Some(found) if share_arch(index, found) => None,
        Some(found) => {
            let (index, referred) = (index.file.archs.clone(), found.file.archs.clone());
            Some(Unresolved::Archs { index, referred })
        }
    }
}
