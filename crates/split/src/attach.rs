//! Joins transformed binaries with the kernel archives that have their code.
//!
//! The generic artifact of a component has the binaries, its artifacts per arch have the archives; those in
//! one shard belong together. A row belongs to the binary whose marker has its key: a binary of the same component or,
//! as in an install tree, of a component without rows for it. The module of the archive does not matter (an earlier
//! tool puts the kernels of all modules into one archive).
//!
//! Rows of one key that refer to one stored code object are one code object: the targets with more features exist
//! for the loader, which looks for exactly the target that a device reports. The target of the code object is the
//! one with the fewest features, checked against its ELF header.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_core::content::{Content, Sha256Digest};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::gfx::Target;
use rockpack_core::tree::{Node, Tree, TreePath};
use rockpack_elf::kpack::split_key;
use rockpack_elf::marker::{self, AnyMarker};
use rockpack_report::{Claimant, Code, Finding, InputFile, found};

use super::alone::split;
use super::archives::{self, DistinctRow, distinct_rows};
use super::code_objects::row_target;
use super::parts::{
    CodeObject, HostBinary, HostFile, HostKind, SplitArtifact, SplitPolicy, WrapperCode,
};
use crate::host_binary::Transformed;
use crate::input::artifact::{Artifact, ComponentKind, StagePrefix};

/// Gives transformed binaries the code objects of the archives of their shard, and reports the
/// rows that belong to no binary. Archives that a component ships itself become database files first. `split` has the
/// parts of `artifacts`.
pub(super) fn attach(
    split: Vec<SplitArtifact>,
    artifacts: &[&Artifact],
    options: &SplitPolicy<'_>,
) -> Result<Vec<SplitArtifact>> {
    let known = archives::SplitOffArchives::of(&split);
    let mut components: BTreeMap<(String, String, ComponentKind), Vec<SplitArtifact>> =
        BTreeMap::new();
    for artifact in split {
        let name = &artifact.name;
        let key = (artifact.shard.clone(), name.name.clone(), name.kind);
        components.entry(key).or_default().push(artifact);
    }
    let mut faults = Faults::default();
    let mut shards: BTreeMap<String, Vec<SplitArtifact>> = BTreeMap::new();
    for ((shard, ..), mut split_apart) in components {
        faults.keep(check_partners_again(artifacts, &mut split_apart, options));
        faults.keep(archives::assign_shipped(&mut split_apart, &known, options.rules));
        shards.entry(shard).or_default().extend(split_apart);
    }
    let attached: Vec<_> =
        shards.into_values().filter_map(|parts| faults.keep(join(parts))).flatten().collect();
    faults.finish()?;
    Ok(attached)
}

/// Joins the binaries of a shard with its archives.
fn join(mut artifacts: Vec<SplitArtifact>) -> Result<Vec<SplitArtifact>> {
    let mut rows = rows_of(&artifacts)?;
    let mut claimed = BTreeSet::new();
    for artifact in &mut artifacts {
        let (label, component) = (artifact.label(), artifact.name.component());
        for (path, node) in &mut artifact.host {
            let Node::File { data: file, .. } = node else { continue };
            if file.fat().is_some() {
                let place = label.file(path);
                let noted = bind(file, &component, &rows, &mut claimed, &place);
                let noted = noted.map_err(|error| error.context(place.to_string()))?;
                artifact.findings.extend(noted);
            }
        }
    }
    rows.retain(|key, _| !claimed.contains(key));
    report_unclaimed(&mut artifacts, &rows)?;
    report_missing_archives(&mut artifacts);
    Ok(artifacts)
}

/// A code object under one key of one archive.
struct ArchivedCode {
    target: Target,
    content: Content,
    archive: InputFile,
    /// The target of its row, if that differs from the code's own.
    claimed: Option<Target>,
}

/// The code objects by kernel name and the component of their archive, then by co_index. The index is `None` for keys
/// without one, which only prototypes wrote.
type CodeByKernel = BTreeMap<KernelKey, BTreeMap<Option<u32>, Vec<ArchivedCode>>>;

/// A kernel name, and the component of an archive.
type KernelKey = (String, String);

fn rows_of(artifacts: &[SplitArtifact]) -> Result<CodeByKernel> {
    let mut rows = CodeByKernel::new();
    for artifact in artifacts {
        for archive in &artifact.archives {
            for (key, targets) in &archive.reader.toc().rows {
                let (name, index) = split_key(key)
                    .map_or((key.as_str(), None), |(name, index)| (name, Some(index)));
                let key_of_kernel = (name.to_owned(), artifact.name.component());
                let found = rows.entry(key_of_kernel).or_default().entry(index).or_default();
                for DistinctRow { target, ordinal, .. } in distinct_rows(targets)? {
                    let content = archive.reader.code_object(ordinal)?;
                    let (target, claimed) = row_target(&target, &content)
                        .map_err(|error| error.context(format!("{}, {key}", archive.path)))?;
                    let archive = artifact.label().file(&archive.path);
                    found.push(ArchivedCode { target, content, archive, claimed });
                }
            }
        }
    }
    Ok(rows)
}

/// Joins the file with its code objects, if it is a transformed binary.
fn bind(
    file: &mut HostFile,
    component: &str,
    rows: &CodeByKernel,
    claimed: &mut BTreeSet<KernelKey>,
    place: &InputFile,
) -> Result<Vec<Finding>> {
    let HostKind::Fat(fat) = &file.kind else { return Ok(Vec::new()) };
    let HostBinary::Transformed(transformed) = &fat.binary else { return Ok(Vec::new()) };
    let found = match marker::parse(transformed.marker())? {
        AnyMarker::Map(marker) => {
            let name = marker.kernel_name;
            let mut named = rows.range((name.clone(), String::new())..);
            let own = rows.get_key_value(&(name.clone(), component.to_owned()));
            own.or_else(|| named.next().filter(|(key, _)| key.0 == name))
        }
        AnyMarker::PathList(_) => None,
    };
    let Some((key, indexed)) = found else {
        // Its archives are not in this shard, so its marker stays.
        file.kind = HostKind::Plain(transformed.content().clone());
        return Ok(vec![Finding::from(found::AlreadyTransformed { file: place.clone() })]);
    };
    claimed.insert(key.clone());
    let mut noted = Vec::new();
    let wrappers = wrappers(transformed, indexed, place, &mut noted)?;
    if let HostKind::Fat(fat) = &mut file.kind {
        // The binary has no other owner yet.
        let fat =
            Arc::get_mut(fat).ok_or_else(|| Error::bug(format!("{} is shared", place.path)))?;
        fat.wrappers = wrappers;
    }
    Ok(noted)
}

/// The code objects of each wrapper of `transformed`, as the index of the archives lists them.
fn wrappers(
    transformed: &Transformed,
    indexed: &BTreeMap<Option<u32>, Vec<ArchivedCode>>,
    place: &InputFile,
    noted: &mut Vec<Finding>,
) -> Result<Vec<WrapperCode>> {
    let indexes = transformed.co_indexes();
    let mut faults = Faults::default();
    let mut wrappers = Vec::new();
    for (position, index) in (0_u32..).zip(indexes) {
        if *index != position {
            let message = format!("wrapper {position} has the index {index}");
            let error = Error::unsupported(message).at(&transformed.content().place(0));
            faults.add(error.hint("the index of a wrapper is its position in the binary"));
        }
        let found = indexed.get(&Some(*index)).map_or(&[][..], Vec::as_slice);
        let code_objects = faults.keep(joined(found, *index, place, noted)).unwrap_or_default();
        wrappers.push(WrapperCode { symbol: None, code_objects: code_objects.into() });
    }
    for index in indexed.keys().filter(|index| index.is_none_or(|i| !indexes.contains(&i))) {
        let index = index.map_or("no index".to_owned(), |index| format!("index {index}"));
        let message = format!(
            "an archive has code objects for {} under {index}, but no wrapper has it",
            place.path
        );
        faults.add(Error::new(Kind::Conflict, message).at(&transformed.content().place(0)));
    }
    faults.finish()?;
    Ok(wrappers)
}

/// The code objects of one wrapper, each target once; different code for one is an error.
fn joined(
    found: &[ArchivedCode],
    index: u32,
    place: &InputFile,
    noted: &mut Vec<Finding>,
) -> Result<Vec<CodeObject>> {
    let mut joined: BTreeMap<&Target, &ArchivedCode> = BTreeMap::new();
    for row in found {
        noted.extend(row.claimed.clone().map(|claimed| {
            Finding::from(found::TargetMismatch {
                file: place.clone(),
                claimant: Claimant::Row(claimed),
                actual: row.target.clone(),
            })
        }));
        let Some(first) = joined.insert(&row.target, row) else {
            continue;
        };
        if !first.content.same_bytes(&row.content)? {
            let message = format!(
                "{} and {} have different code for wrapper {index} and {}",
                first.archive, row.archive, row.target
            );
            return Err(Error::new(Kind::Conflict, message)
                .hint("artifacts of two runs are mixed: split the component again"));
        }
    }
    let code = joined.into_iter().map(|(target, row)| {
        let (target, content) = (target.clone(), row.content.clone());
        CodeObject { target, content, stored_size: None }
    });
    Ok(code.collect())
}

/// Reports each archive with rows that no binary claims.
fn report_unclaimed(artifacts: &mut [SplitArtifact], rows: &CodeByKernel) -> Result<()> {
    let mut by_archive: BTreeMap<&InputFile, (BTreeSet<&str>, BTreeSet<Sha256Digest>)> =
        BTreeMap::new();
    for ((name, _), indexed) in rows {
        for row in indexed.values().flatten() {
            let (names, digests) = by_archive.entry(&row.archive).or_default();
            names.insert(name);
            digests.insert(row.content.digest()?);
        }
    }
    for (archive, (names, digests)) in by_archive {
        let owner = artifacts
            .iter_mut()
            .find(|artifact| artifact.label().file(&archive.path) == *archive)
            .ok_or_else(|| Error::bug("an archive is in no artifact"))?;
        owner.findings.add(found::KernelsUnclaimed {
            archive: archive.clone(),
            kernel_names: names.into_iter().map(str::to_owned).collect(),
            code_objects: digests.into_iter().collect(),
        });
    }
    Ok(())
}

/// Reports manifests that list missing archives: they were written for another set of archives.
fn report_missing_archives(artifacts: &mut [SplitArtifact]) {
    let archives = artifacts.iter().flat_map(|artifact| &artifact.archives);
    let present: BTreeSet<String> =
        archives.map(|archive| archive.path.name().to_owned()).collect();
    for artifact in artifacts {
        let label = artifact.label();
        for listed in &artifact.archive_manifests {
            let files = listed.manifest.archives.values().map(|archive| archive.file.as_str());
            let absent = files.filter(|file| !present.contains(*file)).map(str::to_owned);
            let archives: Vec<String> = absent.collect();
            if !archives.is_empty() {
                let manifest = label.file(&listed.path);
                artifact.findings.add(found::ListedArchiveAbsent { manifest, archives });
            }
        }
    }
}

/// Replaces the findings about partners among kernel database files by those about all artifacts `split_apart` of a
/// shard's component: `X.dat` may be in the generic artifact and `X_gfx1100.co` in that of its arch.
fn check_partners_again(
    artifacts: &[&Artifact],
    split_apart: &mut [SplitArtifact],
    options: &SplitPolicy<'_>,
) -> Result<()> {
    let is_any_lonely = split_apart.iter().any(|part| part.findings.iter().any(is_about_partners));
    if split_apart.len() < 2 || !is_any_lonely {
        return Ok(());
    }
    let Some(merged) = merged(artifacts, split_apart)? else { return Ok(()) };
    // The join of artifacts refuses trees that cannot be merged.
    let together = match split(&merged, options) {
        Ok(together) => together,
        Err(error) if error.flattened().any(Error::is_read_failure) => return Err(error),
        Err(_) => return Ok(()),
    };
    for part in split_apart.iter_mut() {
        part.findings.retain(|finding| !is_about_partners(finding));
    }
    if let Some(first) = split_apart.first_mut() {
        for finding in together.findings.iter().filter(|f| is_about_partners(f)) {
            first.findings.add(finding.clone());
        }
    }
    Ok(())
}

fn is_about_partners(finding: &Finding) -> bool {
    matches!(finding.code(), Some(Code::DatabaseUnpaired | Code::DatabaseUnresolved))
}

/// One artifact with the database files of all; `None` without a generic artifact, which gives the name.
fn merged(artifacts: &[&Artifact], split_apart: &[SplitArtifact]) -> Result<Option<Artifact>> {
    let own: Vec<&&Artifact> = artifacts
        .iter()
        .filter(|a| split_apart.iter().any(|part| part.shard == a.shard && part.name == a.name))
        .collect();
    let Some(generic) = own.iter().find(|artifact| artifact.name.is_generic()) else {
        return Ok(None);
    };
    // The files for one arch, and the files next to them.
    let databases = split_apart.iter().flat_map(|part| &part.databases);
    let mut wanted: BTreeSet<&TreePath> = databases.map(|file| &file.path).collect();
    let folders: BTreeSet<_> = wanted.iter().filter_map(|path| path.parent()).collect();
    for (path, node) in split_apart.iter().flat_map(|part| &part.host) {
        let beside = path.folder().is_some_and(|folder| folders.contains(folder));
        let plain = node.data().is_some_and(|file| file.plain().is_some());
        if beside && plain {
            wanted.insert(path);
        }
    }
    let mut trees: BTreeMap<(&str, Option<&str>), Tree<_>> = BTreeMap::new();
    for prefix in own.iter().flat_map(|artifact| &artifact.prefixes) {
        let tree = trees.entry((&prefix.path, prefix.module.as_deref())).or_default();
        for (path, node) in &prefix.tree {
            let file = matches!(node, Node::File { .. });
            if file && wanted.contains(path) && tree.get(path).is_none() {
                tree.insert(path.clone(), node.clone())?;
            }
        }
    }
    let prefixes = trees.into_iter().map(|((path, module), tree)| StagePrefix {
        path: path.to_owned(),
        module: module.map(str::to_owned),
        tree,
    });
    let Artifact { shard, name, root, sha256, .. } = generic;
    let merged = Artifact::new(shard, name.clone(), root, prefixes.collect());
    Ok(Some(Artifact { sha256: *sha256, ..merged }))
}

#[cfg(test)]
#[path = "attach_tests.rs"]
mod tests;
