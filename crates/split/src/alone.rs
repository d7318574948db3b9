//! Splits one artifact by itself, without the others of its shard.

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::{Node, Tree, TreePath};

use super::archives::{self, ArchiveFiles};
use super::data_file::code_in_data;
use super::databases::{self, DatabaseCandidate, Settled};
use super::development::{Sniffed, sniff};
use super::flatten::{self, Located};
use super::host_binary::embedded_code;
use super::notes::Notes;
use super::parts::{HostFile, HostKind, SplitArtifact, SplitPolicy};
use super::{fat_binary, machines, static_archive};
use crate::input::artifact::Artifact;
use rockpack_report::{DevelopmentFile, Finding, Findings, InputFile};

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
    let tree = flatten::flatten(artifact, notes)?;
    let untransformable = (options.keeps_fat)(&artifact.name);
    let old = options.keeps_old.then(|| tree.clone());
    let keep_policy = fat_binary::KeepPolicy { untransformable, old };
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
            Node::File { data, mode } => classify(&path, data, options, &keep_policy, notes)
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
    keep_policy: &fat_binary::KeepPolicy,
    notes: &mut Notes,
) -> Result<Sorted> {
    let sniffed = sniff(&file.content)?;
    machines::judge(path, &file.content, sniffed, options, notes)?;
    let is_member = matches!(sniffed, Sniffed::Development(_))
        && file.content.starts_with(static_archive::MAGIC)?
        && static_archive::has_thin_member(&file.content)?;
    if is_member || sniffed == Sniffed::ThinArchive {
        notes.add(Finding::ThinArchive { file: notes.file(path), is_member });
    }
    if let Some(candidate) = databases::claim(path, &file, sniffed, options, notes)? {
        return Ok(Sorted::Database(Box::new(candidate)));
    }
    let Located { content, module, .. } = file;
    match sniffed {
        Sniffed::Stripped => {
            fat_binary::refuse_stripped(&content, keep_policy.untransformable)?;
            notes.add(Finding::NoSectionTable { file: notes.file(path) });
        }
        Sniffed::CodeObject | Sniffed::Bundle => {
            return Err(Error::bug("device code was claimed by no rule"));
        }
        _ => {}
    }
    if let Some(kept) = kept_in(notes.file(path), &content, sniffed)? {
        notes.add(kept);
    }
    let kind = match sniffed {
        Sniffed::HostElf => fat_binary::host_kind(path, content, keep_policy, notes)?,
        _ => HostKind::Plain(content),
    };
    Ok(Sorted::Host(HostFile { module, kind }))
}

/// The finding about device code that stays in `file`, whose bytes are `content`. `.hip_fatbin` is not searched.
pub fn kept_code(file: InputFile, content: &Content) -> Result<Option<Finding>> {
    kept_in(file, content, sniff(content)?)
}

fn kept_in(file: InputFile, content: &Content, sniffed: Sniffed) -> Result<Option<Finding>> {
    Ok(match sniffed {
        Sniffed::HostElf | Sniffed::Stripped => {
            let places = embedded_code(content)?;
            (!places.is_empty()).then_some(Finding::DeviceCodeEmbedded { file, places })
        }
        Sniffed::Development(Some(kind)) => Some(Finding::FatDevelopmentFile { file, kind }),
        Sniffed::UnlinkedBundle => {
            Some(Finding::FatDevelopmentFile { file, kind: DevelopmentFile::Bundle })
        }
        Sniffed::Other | Sniffed::Development(None) => {
            code_in_data(content)?.map(|form| Finding::DeviceCodeInData { file, form })
        }
        _ => None,
    })
}
