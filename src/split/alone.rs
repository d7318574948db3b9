//! Splits one artifact by itself, without the others of its shard.

use rockpack_base::content::Content;
use rockpack_base::error::{Error, Faults, Kind, Result};
use rockpack_base::tree::{Node, Tree, TreePath};

use super::archives::{self, ArchiveFiles};
use super::data_file::code_in_data;
use super::databases::{self, DatabaseCandidate, Settled};
use super::development::{Sniffed, sniff};
use super::flatten::{self, Located};
use super::notes::Notes;
use super::parts::{HostFile, HostKind, SplitArtifact, SplitPolicy};
use super::{fat_binary, machines, static_archive};
use crate::input::artifact::Artifact;
use crate::report::{DevelopmentFile, Finding, Findings};

/// Splits `artifact`. All faults of its files are gathered into one error.
pub fn split(artifact: &Artifact, options: &SplitPolicy<'_>) -> Result<SplitArtifact> {
    let mut notes = Notes::new(artifact);
    let split = split_noting(artifact, options, &mut notes);
    let findings = notes.finish();
    let split = findings.explain(split).map(|split| SplitArtifact { findings, ..split });
    split.map_err(|error| error.context(format!("splitting {}/{}", artifact.shard, artifact.name)))
}

/// The split artifact without its findings, which are in the notes.
fn split_noting(
    artifact: &Artifact,
    options: &SplitPolicy<'_>,
    notes: &mut Notes,
) -> Result<SplitArtifact> {
    let keeps_fat = (options.keeps_fat)(&artifact.name);
    let tree = flatten::flatten(artifact, notes)?;
    let mut host = Tree::new();
    let mut candidates = Vec::new();
    let mut archives = ArchiveFiles::default();
    let mut faults = Faults::default();
    for (path, node) in tree {
        let sorted = match node {
            Node::Directory { mode } => host.insert(path, Node::Directory { mode }),
            Node::Link { target } => host.insert(path, Node::Link { target }),
            Node::File { data, .. } if archives::is_archive(&path) => {
                archives.add(path, data).map_err(advised)
            }
            Node::File { data, mode } => classify(&path, data, options, keeps_fat, notes)
                .map_err(|error| advised(error).context(format!("reading {path}")))
                .and_then(|sorted| match sorted {
                    Sorted::Host(file) => host.insert(path, Node::File { data: file, mode }),
                    Sorted::Database(candidate) => {
                        candidates.push(*candidate);
                        Ok(())
                    }
                }),
        };
        faults.keep(sorted);
    }
    faults.finish()?;
    databases::pair(&mut candidates, notes);
    let Settled { databases, shared } = databases::settle(candidates, &mut host, notes)?;
    let ArchiveFiles { archives, manifests: archive_manifests } = archives;
    // Other archives may still become host files (`shipped.rs`).
    let split_off = archives.iter().filter(|archive| archive.is_in_archive_folder());
    let device = archives::device_paths(split_off, &archive_manifests, &databases);
    archives::drop_folders(&mut host, device);
    Ok(SplitArtifact {
        shard: artifact.shard.clone(),
        name: artifact.name.clone(),
        host,
        databases,
        shared,
        archives,
        archive_manifests,
        findings: Findings::default(),
    })
}

/// Adds a hint for a file with damaged bytes, unless the error has one.
pub(super) fn advised(error: Error) -> Error {
    match error.kind() {
        Kind::Malformed | Kind::Truncated => error.hint(
            "the file is damaged or was copied only in part: build it or copy it again; \
             `rockpack inspect` shows what can be read of it",
        ),
        Kind::Unsupported => error.hint(
            "a newer compiler may have made it than this version of rockpack knows: use a newer \
             rockpack, or build the file with other options",
        ),
        _ => error,
    }
}

/// The destination of a file: host files or database files.
enum Sorted {
    Host(HostFile),
    Database(Box<DatabaseCandidate>),
}

fn classify(
    path: &TreePath,
    file: Located,
    options: &SplitPolicy<'_>,
    keeps_fat: bool,
    notes: &mut Notes,
) -> Result<Sorted> {
    let sniffed = sniff(&file.content)?;
    machines::judge(path, &file.content, sniffed, options, notes)?;
    note_thin_archive(path, &file.content, sniffed, notes)?;
    if let Some(candidate) = databases::claim(path, &file, sniffed, options, notes)? {
        return Ok(Sorted::Database(Box::new(candidate)));
    }
    let Located { content, module, .. } = file;
    match sniffed {
        Sniffed::HostElf => fat_binary::note_embedded(path, &content, notes)?,
        Sniffed::Stripped => {
            fat_binary::refuse_stripped(&content, keeps_fat)?;
            fat_binary::note_embedded(path, &content, notes)?;
        }
        _ => {}
    }
    match sniffed {
        Sniffed::HostElf => {
            let kind = fat_binary::host_kind(path, content, keeps_fat, notes)?;
            return Ok(Sorted::Host(HostFile { module, kind }));
        }
        Sniffed::Stripped => {
            notes.add(Finding::NoSectionTable { file: notes.file(path) });
        }
        Sniffed::Development(Some(kind)) => note_fat_development(path, kind, notes),
        Sniffed::UnlinkedBundle => note_fat_development(path, DevelopmentFile::Bundle, notes),
        Sniffed::CodeObject | Sniffed::Bundle => {
            return Err(Error::bug("device code was claimed by no rule"));
        }
        Sniffed::Other => {
            if let Some(form) = code_in_data(&content)? {
                notes.add(Finding::DeviceCodeInData { file: notes.file(path), form });
            }
        }
        Sniffed::Development(None) | Sniffed::OtherMachine(_) | Sniffed::ThinArchive => {}
    }
    let kind = HostKind::Plain(content);
    Ok(Sorted::Host(HostFile { module, kind }))
}

fn note_fat_development(path: &TreePath, kind: DevelopmentFile, notes: &mut Notes) {
    let file = notes.file(path);
    notes.add(Finding::FatDevelopmentFile { file, kind });
}

/// Notes a thin static archive, alone or as a member of another: its objects stay in the build tree.
fn note_thin_archive(
    path: &TreePath,
    content: &Content,
    sniffed: Sniffed,
    notes: &mut Notes,
) -> Result<()> {
    let is_member = match sniffed {
        Sniffed::ThinArchive => false,
        Sniffed::Development(_)
            if static_archive::is_archive(content)?
                && static_archive::has_thin_member(content)? =>
        {
            true
        }
        _ => return Ok(()),
    };
    notes.add(Finding::ThinArchive { file: notes.file(path), is_member });
    Ok(())
}
