//! What one installed file is, by its content.

use std::collections::BTreeMap;
use std::io::Read;

use sha2::{Digest, Sha256};

use super::host_elf::{self, HostElf};
use crate::content::{Content, WINDOW};
use crate::error::{Error, Result};
use crate::formats::marker::{self, AnyMarker, Marker};
use crate::formats::{code_object, kpack, kpm};
use crate::gfx::BaseArch;

/// Bytes of a file that decide what it is.
const HEAD: usize = 64;

/// An installed file.
#[derive(Debug)]
pub(super) struct FileFacts {
    pub(super) size: u64,
    pub(super) sha256: [u8; 32],
    pub(super) class: Class,
}

/// What a file is.
#[derive(Debug)]
pub(super) enum Class {
    /// Nothing that concerns device code.
    Other,
    /// An x86-64 ELF file.
    Host {
        elf: HostElf,
        marker: Option<Marker>,
        /// Whether the section for device code holds anything but zeros.
        fat: bool,
    },
    /// An AMDGPU ELF file, with its arch where the header names a known one.
    CodeObject(Option<BaseArch>),
    /// An offload bundle or compressed bundle.
    Bundle,
    /// A kernel archive.
    Archive(ArchiveFacts),
    /// A kernel manifest.
    Manifest,
    /// Claims to be one of the above but cannot be read as such.
    Broken(Error),
}

/// A kernel archive, every code object decoded.
#[derive(Debug, Default)]
pub(super) struct ArchiveFacts {
    pub(super) archs: Vec<String>,
    /// Key → target → SHA-256 of the code object.
    pub(super) rows: BTreeMap<String, BTreeMap<String, [u8; 32]>>,
    /// By ordinal: what each distinct code object is.
    pub(super) code_objects: Vec<CodeObjectFacts>,
}

/// One distinct code object of an archive.
#[derive(Debug)]
pub(super) struct CodeObjectFacts {
    pub(super) sha256: [u8; 32],
    /// The arch of its ELF header; `None` for arch-neutral code.
    pub(super) arch: Option<BaseArch>,
}

/// Reads a file of `size` bytes to its end.
pub(super) fn examine(reader: &mut dyn Read, size: u64) -> Result<FileFacts> {
    let mut head = vec![0; HEAD.min(usize::try_from(size).unwrap_or(HEAD))];
    reader.read_exact(&mut head).map_err(super::hold::fault)?;
    let mut whole = head.as_slice().chain(reader);
    if !wants_whole(&head) {
        let sha256 = hash(&mut whole)?;
        return Ok(FileFacts { size, sha256, class: classify_head(&head) });
    }
    let content = super::hold::hold(&mut whole, size)?;
    let class = classify(&content, &head).unwrap_or_else(Class::Broken);
    Ok(FileFacts { size, sha256: content.sha256()?, class })
}

fn is_elf(head: &[u8], machine: u16) -> bool {
    head.starts_with(b"\x7fELF") && head.get(18..20) == Some(machine.to_le_bytes().as_slice())
}

fn wants_whole(head: &[u8]) -> bool {
    is_elf(head, object::elf::EM_X86_64.0) || head.starts_with(b"KPAK") || looks_like_map(head)
}

/// A MessagePack map of five entries that begins with `format_version`, as a manifest does.
fn looks_like_map(head: &[u8]) -> bool {
    head.first() == Some(&0x85) && head.get(2..16) == Some(b"format_version")
}

fn classify_head(head: &[u8]) -> Class {
    if is_elf(head, object::elf::EM_AMDGPU.0) {
        let header = code_object::read_header(&Content::of_bytes(head));
        return match header {
            Ok(header) => Class::CodeObject(header.processor),
            Err(error) => Class::Broken(error),
        };
    }
    match head.starts_with(b"__CLANG_OFFLOAD_BUNDLE__") || head.starts_with(b"CCOB") {
        true => Class::Bundle,
        false => Class::Other,
    }
}

fn classify(content: &Content, head: &[u8]) -> Result<Class> {
    if head.starts_with(b"KPAK") {
        return archive(content).map(Class::Archive);
    }
    if looks_like_map(head) {
        return kpm::Manifest::parse(content).map(|_| Class::Manifest);
    }
    let Some(elf) = host_elf::read(content)? else {
        return Ok(Class::Other);
    };
    let marker = match elf.marker {
        Some(section) => {
            let offset =
                section.offset.ok_or_else(|| Error::malformed("marker without content"))?;
            let bytes =
                content.read_vec(offset..offset + section.size, marker::LIMIT as u64, "marker")?;
            Some(current_marker(&bytes)?)
        }
        None => None,
    };
    let fat = match elf.fatbin.and_then(|section| Some((section.offset?, section.size))) {
        Some((offset, size)) => !content.slice(offset..offset.saturating_add(size))?.is_zero()?,
        None => false,
    };
    Ok(Class::Host { elf, marker, fat })
}

/// A marker of the form that loaders read today.
fn current_marker(bytes: &[u8]) -> Result<Marker> {
    match marker::parse(bytes)? {
        AnyMarker::Map(marker) => Ok(marker),
        AnyMarker::PathList(_) => Err(Error::unsupported("has a marker of the early prototype")),
    }
}

fn archive(content: &Content) -> Result<ArchiveFacts> {
    let reader = kpack::Reader::open(content.clone())?;
    let toc = reader.toc();
    let mut facts = ArchiveFacts { archs: toc.gfx_arches.clone(), ..ArchiveFacts::default() };
    for ordinal in 0..u32::try_from(reader.len()).map_err(|_| Error::bug("frame limit"))? {
        let code_object = reader.code_object(ordinal)?;
        let _decoded_once = code_object.pin()?;
        let arch = match code_object.len() >= 4 && code_object.read_array::<4>(0)? == *b"\x7fELF" {
            true => code_object::read_header(&code_object)?.processor,
            false => None,
        };
        facts.code_objects.push(CodeObjectFacts { sha256: code_object.sha256()?, arch });
    }
    for (key, targets) in &toc.rows {
        let row = facts.rows.entry(key.clone()).or_default();
        for (target, entry) in targets {
            let code_object = facts.code_objects.get(entry.ordinal as usize);
            let sha256 = code_object.ok_or_else(|| Error::malformed("row without a frame"))?.sha256;
            row.insert(target.clone(), sha256);
        }
    }
    Ok(facts)
}

fn hash(reader: &mut dyn Read) -> Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut window = vec![0; WINDOW];
    loop {
        match reader.read(&mut window).map_err(super::hold::fault)? {
            0 => return Ok(hash.finalize().into()),
            len => hash.update(&window[..len]),
        }
    }
}
