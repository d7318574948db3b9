//! Looks into one file: kernel archives, kernel manifests, host binaries, lone code objects,
//! offload bundles and packages.
//!
//! What a file is shows in its content; its name does not matter. One module for each kind.
//! Refused: ELF files for other machines and unlinked object files, of which nothing would be
//! said that is true of them.

mod archive;
mod bundle;
mod code_object;
mod host_binary;
mod package;

use object::elf;
use serde::Serialize;

use crate::content::Content;
use crate::error::{Error, Result};
use crate::formats::elf::FileHeader;
use crate::formats::kpm::Manifest;
use crate::formats::{ar, fatbin, kpack, rpm};

pub use archive::{Archive, ArchiveRow};
pub use bundle::{Bundle, Compression, Entry};
pub use code_object::CodeObject;
pub use host_binary::{HostBinary, Marker, State, Wrapper};
pub use package::{Device, Member, Package};

/// What a file turned out to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Inspected {
    /// A `.kpack` archive.
    Archive(Archive),
    /// A `.kpm` manifest.
    Manifest(Manifest),
    /// A linked x86-64 ELF file, or the separate debug file of one.
    HostBinary(HostBinary),
    /// An AMDGPU ELF file.
    CodeObject(CodeObject),
    /// A file that consists of offload bundles.
    OffloadBundles {
        /// By offset.
        bundles: Vec<Bundle>,
    },
    /// A `.deb` or `.rpm`.
    Package(Package),
}

/// Looks into `content`.
pub fn inspect(content: &Content) -> Result<Inspected> {
    let _open = content.pin()?;
    let mut head = [0; 8];
    let head_len = usize::try_from(content.len()).map_or(8, |len| len.min(8));
    content.read_at(0, &mut head[..head_len])?;
    if head.starts_with(&kpack::MAGIC) {
        return archive::archive(content).map(Inspected::Archive);
    }
    if head == *ar::MAGIC && is_deb(content)? || head.starts_with(&rpm::LEAD_MAGIC) {
        return package::package(content).map(Inspected::Package);
    }
    if let Some(header) = FileHeader::read(content)? {
        return elf_file(content, &header);
    }
    if fatbin::starts_bundle(content)? {
        return Ok(Inspected::OffloadBundles { bundles: bundle::bundles(content)? });
    }
    // A manifest has no magic: it is a MessagePack map with few entries.
    if head[0] & 0xf0 == 0x80 && head_len > 1 {
        return Manifest::parse(content).map(Inspected::Manifest);
    }
    let message = "is none of the files that are known";
    Err(Error::unsupported(message).at(&content.place(0)).hint(
        "known are .kpack archives, .kpm manifests, x86-64 and AMDGPU ELF files, offload bundles, \
         and .deb and .rpm packages",
    ))
}

/// What the name of the first member of a `.deb` begins with; other `ar` archives are libraries.
const DEB_MEMBER: &[u8; 13] = b"debian-binary";

fn is_deb(content: &Content) -> Result<bool> {
    let start = ar::MAGIC.len() as u64;
    let long = content.len() >= start + DEB_MEMBER.len() as u64;
    Ok(long && content.read_array(start)? == *DEB_MEMBER)
}

fn elf_file(content: &Content, header: &FileHeader) -> Result<Inspected> {
    let refused = |message: String| Err(Error::unsupported(message).at(&content.place(16)));
    match (header.e_machine(), header.e_type()) {
        (elf::EM_AMDGPU, _) => code_object::code_object(content).map(Inspected::CodeObject),
        (elf::EM_X86_64, elf::ET_EXEC | elf::ET_DYN) => {
            host_binary::host_binary(content).map(Inspected::HostBinary)
        }
        (elf::EM_X86_64, kind) => {
            refused(format!("is an ELF file of type {}, not a linked binary", kind.0))
        }
        (machine, _) => refused(format!("is an ELF file for machine {}", machine.0)),
    }
}
