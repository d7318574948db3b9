//! Looks into one file or artifact: kernel archives, kernel manifests, host binaries, lone code objects,
//! offload bundles, kernel indexes, packages, receipts and Python wheels. `needed` finds in a set or a repository what GPUs need.
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
pub(crate) use package::of_bundles;
pub use package::{Device, DeviceFound, PackageMember, PackageReport};
pub use wheel::{WheelMember, WheelReport, WheelRole};

/// A file or artifact, by kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Inspected {
    /// A `.kpack` archive.
    Archive(ArchiveReport),
    /// A `.kpm` manifest.
    Manifest(Manifest),
    /// A linked x86-64 ELF file, or the separate debug file of one.
    HostBinary(HostBinaryReport),
    /// An AMDGPU ELF file.
    CodeObject(CodeObjectReport),
    /// A file that consists of offload bundles.
    OffloadBundles {
        /// The bundles by offset.
        bundles: Vec<BundleReport>,
    },
    /// An artifact, as a folder or packed.
    Artifact(ArtifactFolder),
    /// The index of a kernel database.
    Index(KernelIndex),
    /// A `.deb` or `.rpm`.
    Package(PackageReport),
    /// A Python wheel.
    Wheel(WheelReport),
    /// The receipt of a package set.
    Receipt {
        /// The receipt, raised to the current schema.
        receipt: Box<Receipt>,
    },
}

/// Reads a receipt, which is JSON and has no magic. Files in packages are never taken for one.
pub fn inspect_receipt(content: &Content) -> Result<Inspected> {
    let bytes = content.read_vec(0..content.len(), receipt::LIMIT, "receipt")?;
    Ok(Inspected::Receipt { receipt: Box::new(Receipt::parse(&bytes)?) })
}

/// Looks into `content`.
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
        if Manifest::is_one(content)? {
            return Manifest::parse(content).map(Inspected::Manifest);
        }
        let description = database::describe_index(content)?;
        return Ok(Inspected::Index(KernelIndex { size: content.len(), description }));
    }
    let message = "is none of the files that are known";
    Err(Error::unsupported(message).of_other_kind().at(&content.place(0)).hint(
        "known are .kpack archives, .kpm manifests, x86-64 and AMDGPU ELF files, offload bundles \
         and binaries, indexes of kernel databases, .deb and .rpm packages, Python wheels, and \
         packages.json",
    ))
}

/// The endings of names of known kinds.
const ENDINGS: [&str; 5] = ["deb", "rpm", "whl", "kpack", "kpm"];

/// Turns an error about a file into one about a usage mistake, if the user named a file of no known kind.
/// A file whose name ends like that of a known kind is damaged instead.
pub fn of_named(error: Error, file: &Path) -> Error {
    let ending = file.extension().map(|ending| ending.to_ascii_lowercase());
    let is_known = ending.is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
    if is_known { error } else { error.of_named() }
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
    /// Size of the file in bytes.
    pub size: u64,
    /// The library, archs and entries of the index.
    #[serde(flatten)]
    pub description: IndexDescription,
}
