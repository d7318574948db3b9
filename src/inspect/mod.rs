//! Looks into one file: kernel archives, kernel manifests, host binaries, lone code objects and
//! offload bundles.
//!
//! What a file is shows in its content; its name does not matter. Refused: ELF files for other
//! machines and unlinked object files, of which nothing would be said that is true of them.

use std::collections::{BTreeMap, BTreeSet};

use object::elf;
use serde::Serialize;

use crate::content::Content;
use crate::error::{Error, Result};
use crate::formats::code_object;
use crate::formats::elf::FileHeader;
use crate::formats::fatbin::{self, FatbinBundle};
use crate::formats::kpack;
use crate::formats::kpm::Manifest;
use crate::formats::marker::{self, AnyMarker};
use crate::host_binary::{self, Analysis, Examined, Transformed};

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
}

/// A code object in a file of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodeObject {
    /// The target ID that its header states; none of a processor that is not known.
    pub target: Option<String>,
    /// The flags of its ELF header.
    pub flags: u32,
    /// Size of the file in bytes.
    pub size: u64,
    /// The kernels that it defines.
    pub kernels: BTreeSet<String>,
}

/// A kernel archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Archive {
    /// The component, e.g. `blas_lib`.
    pub group_name: String,
    /// The base arch.
    pub gfx_arch_family: String,
    /// Targets it answers for, in the order loaders try them.
    pub gfx_arches: Vec<String>,
    /// `zstd-per-kernel` or `none`.
    pub compression_scheme: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// Number of distinct code objects.
    pub code_objects: usize,
    /// Bytes of all distinct code objects, uncompressed.
    pub uncompressed_size: u64,
    /// Key → target → what stands there.
    pub rows: BTreeMap<String, BTreeMap<String, ArchiveRow>>,
}

/// One row of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchiveRow {
    /// Which of the stored code objects.
    pub ordinal: u32,
    /// Its size in bytes, uncompressed.
    pub original_size: u64,
}

/// A host binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostBinary {
    /// Whether and how it holds device code.
    pub state: State,
    /// Its wrappers, by index.
    pub wrappers: Vec<Wrapper>,
    /// The marker of a transformed binary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marker: Option<Marker>,
    /// The bundles of a fat binary, by offset.
    pub bundles: Vec<Bundle>,
}

/// The reference of a transformed binary to its archives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Marker {
    /// Its key in the archives; the early prototype's form has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_name: Option<String>,
    /// Paths relative to the binary's directory.
    pub kpack_search_paths: Vec<String>,
}

/// Whether a host binary holds device code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No device code and no reference to any.
    HostOnly,
    /// Holds device code.
    Fat,
    /// Refers to kernel archives.
    Transformed,
    /// A separate debug file.
    SeparateDebug,
}

/// A wrapper of a host binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wrapper {
    /// Its position in `.hipFatBinSegment`; the co_index of a transformed binary.
    pub index: u32,
    /// Offset of its bundle from the start of `.hip_fatbin`; `None` once transformed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle_offset: Option<u64>,
}

/// A bundle of a fat binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bundle {
    /// Offset from the start of `.hip_fatbin`.
    pub offset: u64,
    /// Bytes that it takes up there.
    pub size: u64,
    /// Version of the compressed bundle format, if it is compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compressed_version: Option<u16>,
    /// Its entries in the order of their table.
    pub entries: Vec<Entry>,
}

/// An entry of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Entry id, e.g. `hipv4-amdgcn-amd-amdhsa--gfx1100`.
    pub id: String,
    /// Bytes.
    pub size: u64,
}

/// Looks into `content`.
pub fn inspect(content: &Content) -> Result<Inspected> {
    let _open = content.pin()?;
    let head_len = usize::try_from(content.len()).map_or(4, |len| len.min(4));
    let mut head = [0; 4];
    content.read_at(0, &mut head[..head_len])?;
    if head == kpack::MAGIC {
        return archive(content).map(Inspected::Archive);
    }
    if let Some(header) = FileHeader::read(content)? {
        return elf_file(content, &header);
    }
    if fatbin::starts_bundle(content)? {
        let bundles = fatbin::parse(content)?.iter().map(bundle).collect();
        return Ok(Inspected::OffloadBundles { bundles });
    }
    // A manifest has no magic: it is a MessagePack map with few entries.
    if head[0] & 0xf0 == 0x80 && head_len > 1 {
        return Manifest::parse(content).map(Inspected::Manifest);
    }
    let message = "is none of the files that are known";
    Err(Error::unsupported(message).at(&content.place(0)).hint(
        "known are .kpack archives, .kpm manifests, x86-64 and AMDGPU ELF files, and offload bundles",
    ))
}

fn elf_file(content: &Content, header: &FileHeader) -> Result<Inspected> {
    let refused = |message: String| Err(Error::unsupported(message).at(&content.place(16)));
    match (header.e_machine(), header.e_type()) {
        (elf::EM_AMDGPU, _) => code_object(content).map(Inspected::CodeObject),
        (elf::EM_X86_64, elf::ET_EXEC | elf::ET_DYN) => {
            host_binary(content).map(Inspected::HostBinary)
        }
        (elf::EM_X86_64, kind) => {
            refused(format!("is an ELF file of type {}, not a linked binary", kind.0))
        }
        (machine, _) => refused(format!("is an ELF file for machine {}", machine.0)),
    }
}

fn code_object(content: &Content) -> Result<CodeObject> {
    let header = code_object::read_header(content)?;
    Ok(CodeObject {
        target: header.target.map(|target| target.to_string()),
        flags: header.flags,
        size: content.len(),
        kernels: code_object::kernel_names(content)?,
    })
}

fn archive(content: &Content) -> Result<Archive> {
    let reader = kpack::Reader::open(content.clone())?;
    let toc = reader.toc();
    let mut sizes = BTreeMap::new();
    let mut rows: BTreeMap<String, BTreeMap<String, ArchiveRow>> = BTreeMap::new();
    for (key, targets) in &toc.rows {
        for (target, row) in targets {
            sizes.insert(row.ordinal, row.original_size);
            let row = ArchiveRow { ordinal: row.ordinal, original_size: row.original_size };
            rows.entry(key.clone()).or_default().insert(target.clone(), row);
        }
    }
    Ok(Archive {
        group_name: toc.group_name.clone(),
        gfx_arch_family: toc.gfx_arch_family.clone(),
        gfx_arches: toc.gfx_arches.clone(),
        compression_scheme: toc.scheme.as_str().to_owned(),
        size: content.len(),
        code_objects: reader.len(),
        uncompressed_size: sizes.values().sum(),
        rows,
    })
}

fn host_binary(content: &Content) -> Result<HostBinary> {
    Ok(match host_binary::examine(content)? {
        Examined::NoDeviceCode => plain(State::HostOnly),
        Examined::SeparateDebug => plain(State::SeparateDebug),
        Examined::Fat(analysis) => fat(&analysis)?,
        Examined::Transformed(transformed) => transformed_binary(&transformed)?,
    })
}

fn plain(state: State) -> HostBinary {
    HostBinary { state, wrappers: Vec::new(), marker: None, bundles: Vec::new() }
}

fn fat(analysis: &Analysis) -> Result<HostBinary> {
    let wrapper = |w: &host_binary::WrapperRef| Wrapper {
        index: w.index,
        bundle_offset: Some(w.bundle_offset),
    };
    Ok(HostBinary {
        wrappers: analysis.wrappers().iter().map(wrapper).collect(),
        bundles: fatbin::parse(&analysis.fatbin())?.iter().map(bundle).collect(),
        ..plain(State::Fat)
    })
}

fn bundle(found: &FatbinBundle) -> Bundle {
    let entries = found.bundle.entries.iter();
    Bundle {
        offset: found.offset,
        size: found.extent,
        compressed_version: found.compression.as_ref().map(|header| header.version),
        entries: entries.map(|e| Entry { id: e.id.to_string(), size: e.content.len() }).collect(),
    }
}

fn transformed_binary(transformed: &Transformed) -> Result<HostBinary> {
    let indices = transformed.co_indexes().iter();
    Ok(HostBinary {
        wrappers: indices.map(|&index| Wrapper { index, bundle_offset: None }).collect(),
        marker: Some(marker(transformed.marker())?),
        ..plain(State::Transformed)
    })
}

fn marker(bytes: &[u8]) -> Result<Marker> {
    Ok(match marker::parse(bytes)? {
        AnyMarker::Map(map) => Marker {
            kernel_name: Some(map.kernel_name),
            kpack_search_paths: map.kpack_search_paths,
        },
        AnyMarker::PathList(paths) => Marker { kernel_name: None, kpack_search_paths: paths },
    })
}
