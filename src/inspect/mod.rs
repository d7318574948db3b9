//! Inspects one file or artifact: kernel archives, kernel manifests, host binaries, lone code objects, offload bundles,
//! kernel indexes, packages, receipts and Python wheels. `needed` finds in a set or a repository what GPUs need.
//!
//! The content decides the kind of a file; its name does not matter. ELF files for other machines and unlinked
//! object files are refused: a report on them would be wrong.

mod artifact;
mod binary;
pub mod discover;
pub mod extract;
pub mod needed;
mod package;
mod wheel;

use std::path::Path;

use object::elf;
use rockpack_archive::{rpm, zip};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use rockpack_elf::kpm::Manifest;
use rockpack_elf::{FileHeader, fatbin, kpack};
use rockpack_package::receipt::{self, Receipt};
use rockpack_split::input::database::{self, IndexDescription, is_zlib};
use serde::Serialize;

pub use artifact::{ArtifactFile, ArtifactFolder, inspect_artifact};
pub use binary::{
    ArchiveReport, ArchiveRow, BundleCompression, BundleEntryReport, BundleReport,
    CodeObjectReport, DeviceCodeState, HostBinaryReport, MarkerReport, WrapperReport,
};
pub(crate) use package::device_of_bundles;
pub use package::{Device, MemberInspection, PackageMember, PackageReport};
pub use wheel::{WheelMember, WheelReport, WheelRole};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Inspected {
    Archive(ArchiveReport),
    Manifest(Manifest),
    /// A linked x86-64 ELF file, or the separate debug file of one.
    HostBinary(HostBinaryReport),
    CodeObject(CodeObjectReport),
    OffloadBundles {
        bundles: Vec<BundleReport>,
    },
    /// An artifact, as a folder or packed.
    Artifact(ArtifactFolder),
    Index(KernelIndex),
    Package(PackageReport),
    Wheel(WheelReport),
    Receipt {
        /// The receipt, raised to the current schema.
        receipt: Box<Receipt>,
    },
}

/// Reads a receipt, which is JSON and has no magic. Only for files on the command line: JSON files in packages are not
/// treated as receipts.
pub fn inspect_receipt(content: &Content) -> Result<Inspected> {
    let bytes = content.read_vec(0..content.len(), receipt::LIMIT, "receipt")?;
    Ok(Inspected::Receipt { receipt: Box::new(Receipt::parse(&bytes)?) })
}

pub fn inspect(content: &Content) -> Result<Inspected> {
    let _open = content.pin()?;
    if content.starts_with(&kpack::MAGIC)? {
        return binary::archive(content).map(Inspected::Archive);
    }
    if content.starts_with(DEB_START)? || content.starts_with(&rpm::LEAD_MAGIC)? {
        return package::package(content).map(Inspected::Package);
    }
    if content.starts_with(&zip::MAGIC)? {
        return wheel::wheel(content).map(Inspected::Wheel);
    }
    if let Some(header) = FileHeader::read(content)? {
        return elf_file(content, &header);
    }
    if fatbin::starts_bundle(content)? {
        return Ok(Inspected::OffloadBundles { bundles: binary::bundles(content)? });
    }
    // Manifests and indexes have no magic: they are MessagePack maps or lists, or zlib streams.
    let is_message_pack =
        content.len() > 1 && matches!(content.read_array::<1>(0)?, [0x80..=0x9f | 0xdc..=0xdf]);
    if is_message_pack || is_zlib(content)? {
        if Manifest::is_manifest(content)? {
            return Manifest::parse(content).map(Inspected::Manifest);
        }
        let description = database::describe_index(content)?;
        return Ok(Inspected::Index(KernelIndex { size: content.len(), description }));
    }
    let message = "is not a file of a known kind";
    Err(Error::unsupported(message).wrong_file_kind().at(&content.place(0)).hint(
        "known are .kpack archives, .kpm manifests, x86-64 and AMDGPU ELF files, offload bundles \
         and binaries, indexes of kernel databases, .deb and .rpm packages, Python wheels, and \
         packages.json",
    ))
}

/// The endings of names of known kinds.
const KNOWN_EXTENSIONS: [&str; 5] = ["deb", "rpm", "whl", "kpack", "kpm"];

/// Makes an error about a file of unknown kind a usage error. If the name ends like that of a known kind, the file is
/// damaged instead.
pub fn named_by_user(error: Error, file: &Path) -> Error {
    let ending = file.extension().map(|ending| ending.to_ascii_lowercase());
    let is_known =
        ending.is_some_and(|ending| KNOWN_EXTENSIONS.iter().any(|known| ending == *known));
    if is_known { error } else { error.named_by_user() }
}

/// The beginning of a `.deb`, with the name of its first member; other `ar` archives are libraries.
const DEB_START: &[u8; 21] = b"!<arch>\ndebian-binary";

fn elf_file(content: &Content, header: &FileHeader) -> Result<Inspected> {
    let message = match (header.e_machine, header.e_type) {
        (elf::EM_AMDGPU, _) => return binary::code_object(content).map(Inspected::CodeObject),
        (elf::EM_X86_64, elf::ET_EXEC | elf::ET_DYN) => {
            return binary::host_binary(content).map(Inspected::HostBinary);
        }
        (elf::EM_X86_64, kind) => {
            format!("is an ELF file of type {}, not a linked binary", kind.0)
        }
        (machine, _) => format!("is an ELF file for machine {}", machine.0),
    };
    Err(Error::unsupported(message).at(&content.place(16)))
}

/// The index of a kernel database (`.dat`, `.dat.zlib`), and its description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelIndex {
    pub size: u64,
    #[serde(flatten)]
    pub description: IndexDescription,
}
