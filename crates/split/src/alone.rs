//! Splits one artifact by itself, without the others of its shard.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Read;

use rockpack_archive::zip;
use rockpack_core::compression::{Decoder, Method};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::{MemberKind, Node, Tree, TreePath, first_below, folders_around};
use rockpack_core::zstd_stream;
use rockpack_report::{
    DevelopmentFile, EmbeddedForm, Finding, Findings, InputArtifact, InputFile, SameFile, found,
};

use super::archives::{self, ArchiveFiles};
use super::databases::{self, AssignedFiles, DatabaseCandidate};
use super::development::{self, Sniffed, check_machines, sniff};
use super::fat_binary::{self, ArtifactPolicy};
use super::host_binary::{device_code_form, embedded_code};
use super::parts::{HostFile, HostKind, Notes, SplitArtifact, SplitPolicy};
use crate::input::artifact::{Artifact, StagePrefix};
use crate::input::database::DatabaseRules;

/// Splits `artifact`. All faults of its files are gathered into one error.
pub fn split(artifact: &Artifact, options: &SplitPolicy<'_>) -> Result<SplitArtifact> {
    let label = InputArtifact::new(&artifact.shard, &artifact.name);
    let context = format!("splitting {label}");
    let mut notes = Notes::new(label, artifact.findings.clone());
    let split = split_with_notes(artifact, options, &mut notes);
    let findings = notes.finish();
    let split = findings.explain(split).map(|split| SplitArtifact { findings, ..split });
    // The command that splits a wheel has already named it.
    split.map_err(|error| if artifact.name.is_wheel() { error } else { error.context(context) })
}

/// The split artifact without its findings, which are in the notes.
fn split_with_notes(
    artifact: &Artifact,
    options: &SplitPolicy<'_>,
    notes: &mut Notes,
) -> Result<SplitArtifact> {
    let tree = flatten(artifact, notes)?;
    let keeps_fat = (options.keeps_fat)(&artifact.name);
    let old = options.keeps_old.then(|| tree.clone());
    let policy = ArtifactPolicy { of_run: options, keeps_fat, old };
    let mut host = Vec::new();
    let mut candidates = Vec::new();
    let (mut folder, mut rules) = (None::<String>, options.rules.clone());
    let mut archives = ArchiveFiles::default();
    let mut faults = Faults::default();
    for (path, node) in tree {
        let node = match node {
            Node::Directory { mode } => Node::Directory { mode },
            Node::Link { target } => Node::Link { target },
            Node::File { data, .. } if archives::is_archive(&path) => {
                faults.keep(archives.add(path, data).map_err(with_hint));
                continue;
            }
            Node::File { data, mode } => {
                // Most folders have no rule.
                if folder.as_deref() != path.folder() {
                    folder = path.folder().map(str::to_owned);
                    rules = options.rules.for_folder_of(&path);
                }
                let file = host_file(&path, data, &policy, &rules, &mut candidates, notes)
                    .map_err(|error| with_hint(error).context(format!("reading {path}")));
                let Some(Some(data)) = faults.keep(file) else { continue };
                Node::File { data, mode }
            }
        };
        host.push((path, node));
    }
    faults.finish()?;
    let mut host = Tree::from(BTreeMap::from_iter(host));
    databases::pair(&mut candidates, notes);
    let AssignedFiles { databases, shared } =
        databases::assign_files(candidates, &mut host, notes)?;
    let ArchiveFiles { archives, manifests: archive_manifests } = archives;
    // Other archives may still become host files (`archives.rs`).
    let split_off = archives.iter().filter(|archive| archive.is_in_archive_folder());
    archives::drop_folders(&mut host, split_off, &archive_manifests, &databases);
    Ok(SplitArtifact {
        shard: artifact.shard.clone(),
        name: artifact.name.clone(),
        sha256: artifact.sha256,
        host,
        databases,
        shared,
        archives,
        archive_manifests,
        findings: Findings::default(),
    })
}

/// Adds a hint for a file with damaged bytes, unless the error has one.
pub(super) fn with_hint(error: Error) -> Error {
    match error.kind() {
        Kind::Malformed | Kind::Truncated => error.hint(
            "the file is damaged or was copied only in part: build it or copy it again; \
             `rockpack inspect` shows the readable parts",
        ),
        Kind::Unsupported => error.hint(
            "it may be from a newer compiler than this version of rockpack knows: use a newer \
             rockpack, or build the file with other options",
        ),
        _ => error,
    }
}

/// The file as a host file; `None` if it goes to the candidates for database files.
fn host_file(
    path: &TreePath,
    file: StagedFile,
    policy: &ArtifactPolicy<'_>,
    rules: &DatabaseRules,
    candidates: &mut Vec<DatabaseCandidate>,
    notes: &mut Notes,
) -> Result<Option<HostFile>> {
    let _open = file.content.pin()?;
    let sniffed = sniff(&file.content)?;
    check_machines(path, &file.content, sniffed, policy.of_run, notes)?;
    let is_member = matches!(sniffed, Sniffed::Development(_))
        && file.content.starts_with(development::ARCHIVE_MAGIC)?
        && development::has_thin_member(&file.content)?;
    if is_member || sniffed == Sniffed::ThinArchive {
        notes.add(found::ThinArchive { file: notes.file(path), is_member });
    }
    let of_run = SplitPolicy { rules, ..*policy.of_run };
    if let Some(candidate) = databases::claim(path, &file, sniffed, &of_run, notes)? {
        candidates.push(candidate);
        return Ok(None);
    }
    let StagedFile { content, module, .. } = file;
    match sniffed {
        Sniffed::Stripped => {
            fat_binary::refuse_stripped(&content, policy.keeps_fat)?;
            notes.add(found::NoSectionTable { file: notes.file(path) });
        }
        Sniffed::CodeObject | Sniffed::Bundle => {
            return Err(Error::bug("no rule claimed a file with device code"));
        }
        _ => {}
    }
    if let Some(kept) = kept_code_in(notes.file(path), &content, sniffed)? {
        notes.add(kept);
    }
    let kind = match sniffed {
        Sniffed::HostElf => fat_binary::host_kind(path, content, policy, notes)?,
        _ => HostKind::Plain(content),
    };
    Ok(Some(HostFile { module, kind }))
}

/// The finding about device code that stays in `file`, whose bytes are `content`. Does not search `.hip_fatbin`.
pub fn kept_code(file: InputFile, content: &Content) -> Result<Option<Finding>> {
    kept_code_in(file, content, sniff(content)?)
}

fn kept_code_in(file: InputFile, content: &Content, sniffed: Sniffed) -> Result<Option<Finding>> {
    Ok(match sniffed {
        Sniffed::HostElf | Sniffed::Stripped => {
            let places = embedded_code(content)?;
            (!places.is_empty()).then(|| Finding::from(found::DeviceCodeEmbedded { file, places }))
        }
        Sniffed::Development(Some(kind)) => {
            Some(Finding::from(found::FatDevelopmentFile { file, kind }))
        }
        Sniffed::UnlinkedBundle => {
            Some(Finding::from(found::FatDevelopmentFile { file, kind: DevelopmentFile::Bundle }))
        }
        Sniffed::Other | Sniffed::Development(None) => {
            code_in_data(content)?.map(|form| Finding::from(found::DeviceCodeInData { file, form }))
        }
        _ => None,
    })
}

/// The number of bytes that are searched.
const WINDOW: usize = 64 << 10;

/// The number of bytes that are read: zstd decodes blocks of up to 128 KiB as a whole.
const READ: u64 = 192 << 10;

/// The form of the first device code in a data file that is packed unchanged: an archive, a compressed file, a pickle
/// or another. Searches only the first 64 KiB of the file or of its decoded content, and of the members of a ZIP
/// archive that begin there. Damaged data has none.
fn code_in_data(content: &Content) -> Result<Option<EmbeddedForm>> {
    let bytes = content.read_vec(0..content.len().min(READ), READ, "beginning")?;
    let near = &bytes[..bytes.len().min(WINDOW)];
    if near.is_ascii() && !near.contains(&0) {
        return Ok(None);
    }
    // Pickles of the protocols 1 and 2 have bytes as characters of Latin-1, in UTF-8, for a function of `_codecs`.
    let is_pickle = near.windows(7).any(|bytes| bytes == b"_codecs");
    let pickled = String::from_utf8_lossy(if is_pickle { near } else { b"" });
    let pickled = pickled.chars().map(|character| u8::try_from(character).unwrap_or_default());
    let plain = Decoder::of_streams(&bytes[..], method(&bytes))?;
    let members = zip::deflated(&bytes, near.len()).map(beginning);
    let mut parts = [beginning(plain), pickled.collect()].into_iter().chain(members);
    parts.find_map(|part| device_code_form(part).transpose()).transpose()
}

fn method(bytes: &[u8]) -> Method {
    match bytes {
        [0x1f, 0x8b, 8, ..] => Method::Gzip,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Method::Xz,
        _ if bytes.get(..4).is_some_and(zstd_stream::begins_frame) => Method::Zstd,
        _ => Method::Stored,
    }
}

/// The bytes that a decoder gives before its limit, its end or a fault.
fn beginning(decoder: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = decoder.take(WINDOW as u64).read_to_end(&mut bytes);
    bytes
}

#[derive(Debug, Clone)]
pub(super) struct StagedFile {
    pub content: Content,
    pub module: Option<String>,
    pub mode: u32,
}

struct OwnedNode<'a> {
    prefix: &'a StagePrefix,
    node: Node<StagedFile>,
}

/// Merges all prefixes into one tree. A node that is the same in several prefixes belongs to the first of them;
/// different nodes at one path are an error that names both prefixes.
fn flatten(artifact: &Artifact, notes: &mut Notes) -> Result<Tree<StagedFile>> {
    let mut owned = BTreeMap::new();
    let mut faults = Faults::default();
    for prefix in &artifact.prefixes {
        for (path, node) in &prefix.tree {
            faults.keep(insert_node(&mut owned, prefix, path, node, notes));
        }
    }
    let folders = folders_around(owned.keys());
    for (path, own) in owned.iter().filter(|(path, _)| folders.contains(path.as_str())) {
        let below = first_below(&owned, path.as_str());
        let Some((below, other)) = below.filter(|_| own.node.kind() != MemberKind::Directory)
        else {
            continue;
        };
        let (kind, place, other) = (own.node.kind(), &own.prefix.path, &other.prefix.path);
        let message = format!(
            "{path} is a {kind} in the prefix {place}, but the prefix {other} has {below} below it"
        );
        faults.add(Error::new(Kind::Conflict, message));
    }
    faults.finish()?;
    let nodes: BTreeMap<_, _> = owned.into_iter().map(|(path, own)| (path, own.node)).collect();
    Ok(nodes.into())
}

fn insert_node<'a>(
    owned: &mut BTreeMap<TreePath, OwnedNode<'a>>,
    prefix: &'a StagePrefix,
    path: &TreePath,
    node: &Node<Content>,
    notes: &mut Notes,
) -> Result<()> {
    let file_mode = if let Node::File { mode, .. } = node { *mode } else { 0 };
    let node = node.clone().try_map(|content| {
        Ok(StagedFile { content, module: prefix.module.clone(), mode: file_mode })
    })?;
    let there = match owned.entry(path.clone()) {
        Entry::Vacant(slot) => {
            slot.insert(OwnedNode { prefix, node });
            return Ok(());
        }
        Entry::Occupied(slot) => slot.into_mut(),
    };
    let alike = match (&mut there.node, &node) {
        (Node::Directory { mode }, Node::Directory { mode: other }) => {
            *mode |= other;
            return Ok(());
        }
        (Node::Link { target }, Node::Link { target: other }) => target == other,
        (Node::File { data, mode }, Node::File { data: other, mode: other_mode }) => {
            mode == other_mode && data.content.same_bytes(&other.content)?
        }
        _ => false,
    };
    let (first, second) = (&there.prefix.path, &prefix.path);
    if alike {
        let same = SameFile::Prefixes(first.clone(), second.clone());
        notes.add(found::FileMerged { file: notes.file(path), same });
        return Ok(());
    }
    if let (Node::File { mode, .. }, Node::File { mode: other, .. }) = (&there.node, &node)
        && mode != other
    {
        let message =
            format!("{path} has mode {mode:o} in the prefix {first}, {other:o} in {second}");
        return Err(Error::new(Kind::Conflict, message));
    }
    let (one, other) = (there.node.kind(), node.kind());
    let message = if one == other {
        format!("{path} differs between the prefixes {first} and {second}")
    } else {
        format!("{path} is a {one} in the prefix {first} and a {other} in {second}")
    };
    Err(Error::new(Kind::Conflict, message)
        .hint("all prefixes of an artifact are installed into one; a path can have one content"))
}
