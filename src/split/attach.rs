//! Transformed binaries meet the kernel archives that have their code.
//!
//! The generic artifact of a component has the binaries, its artifacts per arch the archives:
//! those of one shard belong together. A row belongs to the binary whose marker has its key,
//! wherever the archive lies; which module it lies in means nothing (an earlier tool puts the
//! kernels of all modules into one archive).
//!
//! Rows of one key that name one stored code object are one code object: the targets with more
//! features are there for the loader, which looks for exactly what a device reports. What the code
//! object is for is the target with the fewest, held against its own ELF header.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::code::row_target;
use super::{CodeObject, FatBinary, HostBinary, HostFile, HostKind, SplitArtifact, WrapperCode};
use crate::artifact::ComponentKind;
use crate::content::Content;
use crate::error::{Error, Faults, Kind, Result};
use crate::formats::kpack::{Row, split_key};
use crate::formats::marker::{self, AnyMarker};
use crate::gfx::{Target, no_target};
use crate::host_binary::Transformed;
use crate::report::{Code, Finding};
use crate::tree::{Tree, TreePath};

/// Gives transformed binaries the code objects of the archives of their shard and component, and
/// accounts for the rows that belong to no binary. `look_again` is called with the artifacts of
/// each component.
pub(super) fn attach(
    split: Vec<SplitArtifact>,
    look_again: &mut dyn FnMut(&mut [SplitArtifact]) -> Result<()>,
) -> Result<Vec<SplitArtifact>> {
    let mut components: BTreeMap<(String, String, ComponentKind), Vec<SplitArtifact>> =
        BTreeMap::new();
    for artifact in split {
        let name = &artifact.name;
        let key = (artifact.shard.clone(), name.name.clone(), name.component);
        components.entry(key).or_default().push(artifact);
    }
    let mut faults = Faults::default();
    let mut attached = Vec::new();
    for mut artifacts in components.into_values() {
        faults.keep(look_again(&mut artifacts));
        attached.extend(faults.keep(component(artifacts)).into_iter().flatten());
    }
    faults.finish()?;
    Ok(attached)
}

fn component(mut artifacts: Vec<SplitArtifact>) -> Result<Vec<SplitArtifact>> {
    let mut rows = rows_of(&artifacts)?;
    let mut claimed = BTreeSet::new();
    for artifact in &mut artifacts {
        let label = label(artifact);
        let mut host = Tree::new();
        for (path, node) in std::mem::take(&mut artifact.host) {
            let subject = format!("{label}/{path}");
            let node = node.try_map(|file| {
                let bound = bind(file, &rows, &mut claimed, &path);
                let (file, findings) = bound.map_err(|error| error.context(subject.clone()))?;
                for (code, message) in findings {
                    artifact.findings.add(Finding::new(code, subject.clone(), message));
                }
                Ok(file)
            })?;
            host.insert(path, node)?;
        }
        artifact.host = host;
    }
    rows.retain(|name, _| !claimed.contains(name));
    note_unclaimed(&mut artifacts, &rows)?;
    note_absent(&mut artifacts);
    Ok(artifacts)
}

fn label(artifact: &SplitArtifact) -> String {
    format!("{}/{}", artifact.shard, artifact.name)
}

/// A code object under one key of one archive.
struct Found {
    target: Target,
    content: Content,
    /// The artifact and archive it lies in.
    artifact: String,
    archive: TreePath,
    /// What was noticed about it.
    disagreement: Option<String>,
}

/// The code objects by kernel name, then by co_index. Keys without an index, which only
/// prototypes wrote, have none.
type Rows = BTreeMap<String, BTreeMap<Option<u32>, Vec<Found>>>;

fn rows_of(artifacts: &[SplitArtifact]) -> Result<Rows> {
    let mut rows = Rows::new();
    for artifact in artifacts {
        for archive in &artifact.archives {
            for (key, targets) in &archive.reader.toc().rows {
                let (name, index) = match split_key(key) {
                    Some((name, index)) => (name, Some(index)),
                    None => (key.as_str(), None),
                };
                let found = rows.entry(name.to_owned()).or_default().entry(index).or_default();
                for (target, ordinal) in distinct(targets)? {
                    let content = archive.reader.code_object(ordinal)?;
                    let (target, disagreement) = row_target(&target, &content)
                        .map_err(|error| error.context(format!("{}, {key}", archive.path)))?;
                    let (artifact, archive) = (label(artifact), archive.path.clone());
                    found.push(Found { target, content, artifact, archive, disagreement });
                }
            }
        }
    }
    Ok(rows)
}

/// The stored code objects of one key, each once, under the targets that no other of its targets
/// covers.
fn distinct(targets: &BTreeMap<String, Row>) -> Result<Vec<(Target, u32)>> {
    let mut all: Vec<(Target, u32)> = Vec::new();
    for (target, row) in targets {
        all.push((Target::parse_spelling(target).map_err(no_target)?, row.ordinal));
    }
    let is_alias = |(target, ordinal): &(Target, u32)| {
        all.iter().any(|(other, same)| same == ordinal && other != target && other.runs_on(target))
    };
    Ok(all.iter().filter(|row| !is_alias(row)).cloned().collect())
}

type Noted = Vec<(Code, String)>;

/// The file with its code objects, if it is a transformed binary.
fn bind(
    file: HostFile,
    rows: &Rows,
    claimed: &mut BTreeSet<String>,
    path: &TreePath,
) -> Result<(HostFile, Noted)> {
    let HostKind::Fat(fat) = &file.kind else {
        return Ok((file, Vec::new()));
    };
    let HostBinary::Transformed(transformed) = &fat.binary else {
        return Ok((file, Vec::new()));
    };
    let name = match marker::parse(transformed.marker())? {
        AnyMarker::Map(marker) => marker.kernel_name,
        AnyMarker::PathList(_) => return Ok(without_code(&file, transformed)),
    };
    let Some(indexed) = rows.get(&name) else {
        return Ok(without_code(&file, transformed));
    };
    claimed.insert(name);
    let mut noted = Vec::new();
    let wrappers = wrappers(transformed, indexed, path, &mut noted)?;
    // Nobody else has the binary yet, so its parts can be taken.
    let module = file.module.clone();
    let HostKind::Fat(fat) = file.kind else {
        return Err(Error::bug(format!("{path} lost its device code")));
    };
    let fat = Arc::try_unwrap(fat).map_err(|_| Error::bug(format!("{path} is shared")))?;
    let kind = HostKind::Fat(Arc::new(FatBinary { binary: fat.binary, wrappers }));
    Ok((HostFile { module, kind }, noted))
}

/// The file as one without device code: its archives are elsewhere, so its marker stays.
fn without_code(file: &HostFile, transformed: &Transformed) -> (HostFile, Noted) {
    let message = "was transformed already, and no kernel archive of its shard has its code; it \
                   is passed on as it is"
        .to_owned();
    let kind = HostKind::Plain(transformed.content().clone());
    let file = HostFile { module: file.module.clone(), kind };
    (file, vec![(Code::AlreadyTransformed, message)])
}

/// By wrapper, the code objects that its index leads to.
fn wrappers(
    transformed: &Transformed,
    indexed: &BTreeMap<Option<u32>, Vec<Found>>,
    path: &TreePath,
    noted: &mut Noted,
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
        let code_objects = faults.keep(joined(found, *index, noted)).unwrap_or_default();
        wrappers.push(WrapperCode { symbol: None, code_objects: code_objects.into() });
    }
    for index in indexed.keys().filter(|index| index.is_none_or(|i| !indexes.contains(&i))) {
        let index = index.map_or("no index".to_owned(), |index| format!("index {index}"));
        let message =
            format!("an archive has code objects for {path} under {index}, which no wrapper has");
        faults.add(Error::new(Kind::Conflict, message).at(&transformed.content().place(0)));
    }
    faults.finish()?;
    Ok(wrappers)
}

/// The code objects of one wrapper, each target once; different code for one is an error.
fn joined(found: &[Found], index: u32, noted: &mut Noted) -> Result<Vec<CodeObject>> {
    let mut joined: BTreeMap<&Target, &Found> = BTreeMap::new();
    for row in found {
        noted.extend(row.disagreement.clone().map(|message| (Code::TargetMismatch, message)));
        let Some(first) = joined.insert(&row.target, row) else {
            continue;
        };
        if !first.content.same_bytes(&row.content)? {
            let message = format!(
                "{}/{} and {}/{} have different code for wrapper {index} and {}",
                first.artifact, first.archive, row.artifact, row.archive, row.target
            );
            return Err(Error::new(Kind::Conflict, message)
                .hint("artifacts of two runs are mixed: split the component again"));
        }
    }
    let code = joined
        .into_iter()
        .map(|(target, row)| CodeObject { target: target.clone(), content: row.content.clone() });
    Ok(code.collect())
}

/// What of an archive belongs to no binary.
#[derive(Default)]
struct Unclaimed<'a> {
    /// The kernel names of the keys.
    names: BTreeSet<&'a str>,
    /// SHA-256 of the code objects.
    digests: BTreeSet<String>,
}

/// One finding per archive with rows that no binary claims.
fn note_unclaimed(artifacts: &mut [SplitArtifact], rows: &Rows) -> Result<()> {
    let mut by_archive: BTreeMap<(&str, &TreePath), Unclaimed<'_>> = BTreeMap::new();
    for (name, indexed) in rows {
        for row in indexed.values().flatten() {
            let place = (row.artifact.as_str(), &row.archive);
            let unclaimed = by_archive.entry(place).or_default();
            unclaimed.names.insert(name);
            unclaimed.digests.insert(row.content.sha256_hex()?);
        }
    }
    for ((label_there, archive), Unclaimed { names, digests }) in by_archive {
        let names: Vec<&str> = names.into_iter().take(NAMED_BINARIES).collect();
        let message = format!(
            "no binary of the shard asks for {} code objects, so no package has them (they are under \
             {})",
            digests.len(),
            names.join(", ")
        );
        let mut finding =
            Finding::new(Code::KernelsUnclaimed, format!("{label_there}/{archive}"), message);
        finding.code_objects = digests.into_iter().collect();
        let owner = artifacts.iter_mut().find(|artifact| label(artifact) == label_there);
        let owner = owner.ok_or_else(|| Error::bug("an archive lies in no artifact"))?;
        owner.findings.add(finding);
    }
    Ok(())
}

/// How many kernel names a finding gives.
const NAMED_BINARIES: usize = 3;

/// A manifest that lists what is not there was written for another set of archives.
fn note_absent(artifacts: &mut [SplitArtifact]) {
    let archives = artifacts.iter().flat_map(|artifact| &artifact.archives);
    let present: BTreeSet<String> =
        archives.map(|archive| archive.path.name().to_owned()).collect();
    for artifact in artifacts {
        let label = label(artifact);
        for listed in &artifact.archive_manifests {
            let files = listed.manifest.archives.values().map(|archive| archive.file.as_str());
            let absent: Vec<&str> = files.filter(|file| !present.contains(*file)).collect();
            if !absent.is_empty() {
                let message =
                    format!("lists archives that the shard does not have: {}", absent.join(", "));
                let subject = format!("{label}/{}", listed.path);
                artifact.findings.add(Finding::new(Code::ListedArchiveAbsent, subject, message));
            }
        }
    }
}

#[cfg(test)]
#[path = "attach_tests.rs"]
mod tests;
