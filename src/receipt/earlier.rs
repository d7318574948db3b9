//! Receipts of version 2, whose findings are nothing but text.
//!
//! What `verify` has to know of a finding is read out of its text here and nowhere else. Every other
//! finding stays a text, and so does one that says something else than version 2 would have: it
//! accounts for nothing then. Long lists were cut for the text, so an upgraded finding has of these
//! what the text names.

use std::str::FromStr;

use super::{FindingRecord, Receipt, UnreadFinding};
use crate::gfx::BaseArch;
use crate::report::{
    ArchFilterTable, ArchMismatch, Code, ComponentFile, DifferentCode, Finding, InputArtifact,
    InputFile, LeftOutPlace, MergedPart, MismatchOutcome, NoUnion, Unpaired, Unresolved,
};
use crate::tree::TreePath;

/// The version that is upgraded.
pub(super) const SCHEMA: u32 = 2;

/// Brings a receipt of [`SCHEMA`] up to the present one.
pub(super) fn upgrade(receipt: &mut Receipt) {
    receipt.schema = super::SCHEMA;
    for record in &mut receipt.findings {
        if let FindingRecord::Unread(old) = record
            && let Some(finding) = upgraded(old)
        {
            *record = FindingRecord::Known(finding);
        }
    }
}

fn upgraded(old: &UnreadFinding) -> Option<Finding> {
    match Code::of_id(&old.code)? {
        Code::ArchNotGrouped | Code::ArchDropped | Code::ArchExcluded => left_out(old),
        Code::BundleUnreferenced => bundle_unreferenced(old),
        Code::DatabaseArchMismatch => arch_mismatch(old),
        Code::DatabaseShared => shared(old),
        Code::DatabaseUnpaired => unpaired(old),
        Code::DuplicateDropped => duplicate_dropped(old),
        Code::DatabaseMerged => merged(old),
        Code::DatabaseMoved => moved(old),
        Code::DatabaseUnresolved => unresolved(old),
        Code::DatabaseHostCode => host_code(old),
        Code::EmptyCodeObject => empty(old),
        Code::KeptFat => kept_fat(old),
        Code::KeptFatDropped => kept_fat_dropped(old),
        Code::KernelsUnclaimed => unclaimed(old),
        Code::ComponentLeftOut => component_left_out(old),
        Code::LibraryUnresolved => library_unresolved(old),
        Code::RunpathRewritten => runpath_rewritten(old),
        Code::NotListed => not_listed(old),
        Code::LibrariesNotAsked => not_asked(old),
        Code::LibraryWithoutDependency => without_dependency(old),
        _ => None,
    }
}

fn left_out(old: &UnreadFinding) -> Option<Finding> {
    let shape = "{} code objects or database files ({} different) are in no package, because {}";
    let [count, different, why] = read(&old.message, shape)?;
    let (count, different) = (count.parse().ok()?, different.parse().ok()?);
    let code_objects = old.code_objects.clone();
    if old.code == Code::ArchExcluded.id() {
        let [table, name, listed] = read(why, "{}.{} leaves this arch out ({})")?;
        let table = match table {
            "components" => ArchFilterTable::Component(name.to_owned()),
            "packages" => ArchFilterTable::Package(name.to_owned()),
            _ => return None,
        };
        let (_, arch) = old.subject.rsplit_once(' ')?;
        let (arch, places) = (arch.parse().ok()?, places(listed)?);
        return Some(Finding::ArchExcluded { table, arch, count, different, places, code_objects });
    }
    let [listed] = read(why, "no group has this arch ({})")?;
    let (arch, places) = (old.subject.parse().ok()?, places(listed)?);
    Some(if old.code == Code::ArchDropped.id() {
        Finding::ArchDropped { arch, count, different, places, code_objects }
    } else {
        Finding::ArchNotGrouped { arch, count, different, places, code_objects }
    })
}

fn places(text: &str) -> Option<Vec<LeftOutPlace>> {
    let place = |text: &str| {
        let (file, count) = text.rsplit_once(": ")?;
        Some(LeftOutPlace { file: file.to_owned(), count: count.parse().ok()? })
    };
    items(text, place)
}

fn bundle_unreferenced(old: &UnreadFinding) -> Option<Finding> {
    let shape = "no wrapper points to the bundle 0x{} bytes into .hip_fatbin; its {} code objects are \
                 left out";
    let [offset, _] = read(&old.message, shape)?;
    let (file, code_objects) = (input_file(old)?, old.code_objects.clone());
    let offset = u64::from_str_radix(offset, 16).ok()?;
    Some(Finding::BundleUnreferenced { file, offset, code_objects })
}

fn arch_mismatch(old: &UnreadFinding) -> Option<Finding> {
    let (file, text) = (input_file(old)?, old.message.as_str());
    let named = "names {} and lies in the directory of {}";
    let mismatch = if let Some([named, directory]) = read(text, named) {
        ArchMismatch::Name { named: named.parse().ok()?, directory: archs(directory)? }
    } else {
        let [placed, holds, outcome] = read(text, "is placed for {}, and holds {}; {}")?;
        let outcome = match outcome {
            "it is treated like any other file of its kind" => MismatchOutcome::NoDatabase,
            "it stays with the host files" => MismatchOutcome::StaysWithHost,
            "the content decides" => MismatchOutcome::ContentDecides,
            _ => return None,
        };
        ArchMismatch::Content { placed: archs(placed)?, holds: archs(holds)?, outcome }
    };
    Some(Finding::DatabaseArchMismatch { file, mismatch })
}

fn shared(old: &UnreadFinding) -> Option<Finding> {
    let cache = read(&old.message, "is a cache for all archs ({}) and stays with the host files");
    let several = || read(&old.message, "serves several archs ({}) and stays with the host files");
    let is_cache = cache.is_some();
    let [rule] = cache.or_else(several)?;
    let (file, code_objects) = (input_file(old)?, old.code_objects.clone());
    Some(Finding::DatabaseShared { file, rule: rule.to_owned(), is_cache, code_objects })
}

fn unpaired(old: &UnreadFinding) -> Option<Finding> {
    let unpaired = match old.message.as_str() {
        "has no index of its name beside it" => Unpaired::NoIndex,
        "has no code object of its name beside it" => Unpaired::NoCode,
        text => {
            let shape =
                "is an index for {}, and the code of its name is for {}; it goes with the code";
            let [index, code] = read(text, shape)?;
            Unpaired::Archs { index: archs(index)?, code: archs(code)? }
        }
    };
    Some(Finding::DatabaseUnpaired { file: input_file(old)?, unpaired })
}

fn duplicate_dropped(old: &UnreadFinding) -> Option<Finding> {
    let shape = "{} code objects of {} differ between {} and {} (wrapper {}, {} is the first); those \
                 of {} are packed";
    let [count, arch, first, other, wrapper, target, _] = read(&old.message, shape)?;
    let different = DifferentCode {
        arch: arch.parse().ok()?,
        count: count.parse().ok()?,
        first: artifact(first)?,
        other: artifact(other)?,
        wrapper: wrapper.parse().ok()?,
        target: target.parse().ok()?,
    };
    let (file, code_objects) = (component_file(old)?, old.code_objects.clone());
    Some(Finding::DuplicateDropped { file, different, code_objects })
}

fn merged(old: &UnreadFinding) -> Option<Finding> {
    let part = |text: &str| {
        let [name, sha256] = read(text, "{} ({})")?;
        Some(MergedPart { artifact: artifact(name)?, sha256: sha256.to_owned() })
    };
    let [parts] = read(&old.message, "is the union of the files of {}")?;
    let parts = parts.split(" and ").map(part).collect::<Option<_>>()?;
    Some(Finding::DatabaseMerged { file: component_file(old)?, parts })
}

fn moved(old: &UnreadFinding) -> Option<Finding> {
    let shape = "{} files are moved to directories of their archs: {} differs: {}";
    let [files, differs, reason] = read(&old.message, shape)?;
    let (folder, files) = (component_file(old)?, files.parse().ok()?);
    let (differs, reason) = (differs.to_owned(), NoUnion::Earlier(reason.to_owned()));
    Some(Finding::DatabaseMoved { folder, files, differs, reason })
}

fn unresolved(old: &UnreadFinding) -> Option<Finding> {
    let absent = read(&old.message, "refers to {}, which is not beside it");
    let (refers_to, unresolved) = if let Some([name]) = absent {
        (name, Unresolved::Absent)
    } else {
        let shape = "is for {}, and refers to {}, which is for {}";
        let [index, name, referred] = read(&old.message, shape)?;
        (name, Unresolved::Archs { index: archs(index)?, referred: archs(referred)? })
    };
    let (file, refers_to) = (input_file(old)?, refers_to.to_owned());
    Some(Finding::DatabaseUnresolved { file, refers_to, unresolved })
}

fn host_code(old: &UnreadFinding) -> Option<Finding> {
    let [listed] = read(&old.message, "is for {} as a whole, and stays as it is")?;
    let (file, archs) = (input_file(old)?, archs(listed)?);
    Some(Finding::DatabaseHostCode { file, archs, code_objects: old.code_objects.clone() })
}

fn empty(old: &UnreadFinding) -> Option<Finding> {
    let [entry] = read(&old.message, "entry {} is empty and is left out")?;
    let (file, entry) = (input_file(old)?, entry.to_owned());
    Some(Finding::EmptyCodeObject { file, entry, code_objects: old.code_objects.clone() })
}

fn kept_fat(old: &UnreadFinding) -> Option<Finding> {
    let shape = "cannot be transformed and keeps its {} code objects ({}): {}";
    let [_, targets, reason] = read(&old.message, shape)?;
    Some(Finding::KeptFat {
        file: input_file(old)?,
        targets: items(targets, parsed)?,
        reason: reason.to_owned(),
        code_objects: old.code_objects.clone(),
    })
}

fn kept_fat_dropped(old: &UnreadFinding) -> Option<Finding> {
    let shape = "keeps its device code, but {} provides the file: {} of its code objects are in no \
                 package";
    let [winner, _] = read(&old.message, shape)?;
    let (file, provided_by) = (input_file(old)?, artifact(winner)?);
    Some(Finding::KeptFatDropped { file, provided_by, code_objects: old.code_objects.clone() })
}

fn unclaimed(old: &UnreadFinding) -> Option<Finding> {
    let shape = "no binary of the shard asks for {} code objects, so no package has them (they are \
                 under {})";
    let [_, names] = read(&old.message, shape)?;
    let (archive, kernel_names) = (input_file(old)?, items(names, parsed)?);
    Some(Finding::KernelsUnclaimed {
        archive,
        kernel_names,
        code_objects: old.code_objects.clone(),
    })
}

fn component_left_out(old: &UnreadFinding) -> Option<Finding> {
    let shape = "{} files and {} different code objects are in no package, because --only leaves them \
                 out";
    let [files, _] = read(&old.message, shape)?;
    let (component, files) = (old.subject.clone(), files.parse().ok()?);
    Some(Finding::ComponentLeftOut { component, files, code_objects: old.code_objects.clone() })
}

fn library_unresolved(old: &UnreadFinding) -> Option<Finding> {
    let shape = "needs {}, which neither the set nor {} has ({})";
    let [library, distribution, files] = read(&old.message, shape)?;
    let (package, library) = (old.subject.clone(), library.to_owned());
    let (distribution, files) = (distribution.to_owned(), items(files, path)?);
    Some(Finding::LibraryUnresolved { package, library, distribution, files })
}

fn runpath_rewritten(old: &UnreadFinding) -> Option<Finding> {
    let [before, after] = read(&old.message, "its search path {} becomes `{}`")?;
    let (before, after) = (before.to_owned(), after.to_owned());
    Some(Finding::RunpathRewritten { file: component_file(old)?, before, after })
}

fn not_listed(old: &UnreadFinding) -> Option<Finding> {
    let shape = "no listed package takes {} paths of it ({}), with {} different code objects";
    let [_, paths, _] = read(&old.message, shape)?;
    let (component, paths) = (old.subject.clone(), items(paths, path)?);
    Some(Finding::NotListed { component, paths, code_objects: old.code_objects.clone() })
}

fn not_asked(old: &UnreadFinding) -> Option<Finding> {
    let shape = "the libraries that it needs are no dependencies: the part that `{}` goes into does \
                 not say `programs = true`";
    let [kind] = read(&old.message, shape)?;
    Some(Finding::LibrariesNotAsked { file: component_file(old)?, kind: kind.parse().ok()? })
}

fn without_dependency(old: &UnreadFinding) -> Option<Finding> {
    let shape = "needs {}, for which the configuration names no dependency ({})";
    let [library, files] = read(&old.message, shape)?;
    let (package, library) = (old.subject.clone(), library.to_owned());
    Some(Finding::LibraryWithoutDependency { package, library, files: items(files, path)? })
}

/// What stands for each `{}` of `shape` in a text that has this shape.
fn read<'a, const N: usize>(text: &'a str, shape: &str) -> Option<[&'a str; N]> {
    let (start, behind) = shape.split_once("{}")?;
    let mut rest = text.strip_prefix(start)?;
    let mut found = Vec::new();
    let mut literals = behind.split("{}").peekable();
    while let Some(literal) = literals.next() {
        let (value, after) = match literals.peek() {
            Some(_) => rest.split_once(literal)?,
            None => (rest.strip_suffix(literal)?, ""),
        };
        found.push(value);
        rest = after;
    }
    found.try_into().ok()
}

/// The items of a list, of a cut one those that are named.
fn items<T>(text: &str, item: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let is_more = |more: &str| more.strip_suffix(" more").is_some_and(|n| n.parse::<u64>().is_ok());
    let cut = text.rsplit_once(" and ").filter(|(_, more)| is_more(more)).map(|(list, _)| list);
    let listed = cut.or(text.strip_suffix(", …")).unwrap_or(text);
    listed.split(", ").map(item).collect()
}

fn parsed<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn path(text: &str) -> Option<TreePath> {
    TreePath::new(text).ok()
}

fn archs(text: &str) -> Option<Vec<BaseArch>> {
    if text == "all archs" { Some(Vec::new()) } else { items(text, parsed) }
}

fn artifact(text: &str) -> Option<InputArtifact> {
    let (shard, artifact) = text.split_once('/')?;
    Some(InputArtifact::new(shard, artifact))
}

/// What the subject `<shard>/<artifact>/<path>` names.
fn input_file(old: &UnreadFinding) -> Option<InputFile> {
    let (shard, rest) = old.subject.split_once('/')?;
    let (artifact, below) = rest.split_once('/')?;
    Some(InputArtifact::new(shard, artifact).file(&path(below)?))
}

/// What the subject `<component>/<path>` names.
fn component_file(old: &UnreadFinding) -> Option<ComponentFile> {
    let (component, below) = old.subject.split_once('/')?;
    Some(ComponentFile::new(component, &path(below)?))
}

#[cfg(test)]
#[path = "earlier_tests.rs"]
mod tests;
