//! Helpers for the tests of kernel archives.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use rockpack_core::content::Content;
use rockpack_core::run::{Budget, Limits};
use rockpack_core::tree::TreePath;
use rockpack_elf::kpm::Manifest;
use rockpack_emit::pack::{DEFAULT_LEVEL, PackedArchive, Packer};
use rockpack_plan::config::ArchiveLevel;
use rockpack_plan::recombine::Kernel;
use rockpack_report::Silent;

use crate::python;
pub use crate::python::{PYTHON, need_python, python};

/// Writes containers that have the bytes `code` in them into the folder `with`, and data files in which the search of
/// 64 KiB finds no device code into `without`.
pub fn data_files(code: &[u8], with: &Path, without: &Path) {
    for folder in [with, without] {
        fs::create_dir_all(folder).unwrap();
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), code).unwrap();
    let paths = [file.path(), with, without].map(|path| path.to_str().unwrap());
    python("data_files.py", &paths).unwrap();
}

/// The independent reader's report on an archive.
pub fn judged(archive: &Content) -> serde_json::Value {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes(archive)).unwrap();
    python("kpack_reader.py", &[file.path().to_str().unwrap()]).unwrap()
}

/// Reads all bytes of `content`.
pub fn bytes(content: &Content) -> Vec<u8> {
    let mut bytes = Vec::new();
    content.reader().read_to_end(&mut bytes).unwrap();
    bytes
}

/// The sizes of the archives among installed `files`, by name.
pub fn archive_sizes(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, u64> {
    let archives = files.iter().filter(|(path, _)| path.ends_with(".kpack"));
    let sizes = archives.map(|(path, bytes)| {
        (path.rsplit('/').next().unwrap().to_owned(), u64::try_from(bytes.len()).unwrap())
    });
    sizes.collect()
}

/// The sizes of archives that the only manifest among installed `files` lists, by name.
pub fn listed_sizes(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, u64> {
    let manifests = files.iter().filter(|(path, _)| path.ends_with(".kpm"));
    let [(_, manifest)]: [_; 1] = manifests.collect::<Vec<_>>().try_into().unwrap();
    let manifest = Manifest::parse(&Content::of_bytes(manifest.as_slice())).unwrap();
    manifest.archives.into_values().map(|archive| (archive.file, archive.size)).collect()
}

pub use crate::sha256;

/// The code object of wrapper `co_index` in `binary`.
pub fn kernel(binary: &str, co_index: u32, target: &str, content: impl Into<Vec<u8>>) -> Kernel {
    Kernel {
        binary: TreePath::new(binary).unwrap(),
        co_index,
        target: target.parse().unwrap(),
        content: Content::of_bytes(content),
        stored_size: None,
        shard: "shard".to_owned(),
    }
}

/// Makes `len` bytes that compress, but not to nothing; different for every `seed`.
pub fn code(seed: u32, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    // A loop over what is there: without optimisation, a chain of closures takes several times as long.
    let mut bytes = vec![0; len];
    for byte in &mut bytes {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (state >> 24 & 0x3f) as u8;
    }
    bytes
}

/// A level of each scheme.
pub const LEVELS: [ArchiveLevel; 2] = [ArchiveLevel::Zstd(DEFAULT_LEVEL), ArchiveLevel::Stored];

/// Packs at the default level with `memory` bytes of heap for frames.
pub fn pack(kernels: &[Kernel], memory: u64) -> Vec<PackedArchive> {
    pack_at(LEVELS[0], kernels, memory)
}

/// Packs at `level` with `memory` bytes of heap for frames.
pub fn pack_at(level: ArchiveLevel, kernels: &[Kernel], memory: u64) -> Vec<PackedArchive> {
    let spool = tempfile::tempdir().unwrap();
    let packer = Packer {
        cache: None,
        spool_dir: spool.path(),
        budget: Budget::new(Limits { frames: memory, ..Limits::default() }),
        progress: &Silent,
    };
    let archives = packer.pack("blas_lib", kernels, level).unwrap();
    let left = spool.path().read_dir().unwrap().count();
    assert_eq!(left, 0, "the spool has a name");
    archives
}

/// A row of an archive that a component ships: key, target, code object.
pub type Row<'a> = (&'a str, &'a str, Vec<u8>);

/// An archive that a component ships, from a separate writer, which lists the targets of its rows.
pub fn shipped(rows: &[Row<'_>]) -> Vec<u8> {
    let mut targets: Vec<&str> = rows.iter().map(|(_, target, _)| *target).collect();
    targets.dedup();
    shipped_with(&targets, rows, "zstd-per-kernel")
}

/// An archive that a component ships, with these targets and this scheme.
pub fn shipped_with(targets: &[&str], rows: &[Row<'_>], scheme: &str) -> Vec<u8> {
    let rows = rows.iter().map(|(key, target, code)| {
        let hex: String = code.iter().map(|byte| format!("{byte:02x}")).collect();
        serde_json::json!([key, target, hex])
    });
    let given = serde_json::json!({"arches": targets, "rows": rows.collect::<Vec<_>>()});
    let file = tempfile::NamedTempFile::new().unwrap();
    let arguments = [file.path().to_str().unwrap(), scheme];
    python::run(include_str!("kpack_rows.py"), &arguments, &given.to_string()).unwrap();
    std::fs::read(file.path()).unwrap()
}

/// A code object that holds `text`, for the processor number `mach` in its flags.
pub fn code_object(mach: u8, text: &str) -> Vec<u8> {
    let mut file = vec![0_u8; 64];
    file[..9].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 64, 2]);
    file[16] = 3;
    file[18] = 224;
    file[48] = mach;
    file.extend(text.as_bytes());
    file
}

/// The numbers of processors in `e_flags`.
pub mod mach {
    /// gfx906
    pub const GFX906: u8 = 0x2f;
    /// gfx90a
    pub const GFX90A: u8 = 0x3f;
    /// gfx1100
    pub const GFX1100: u8 = 0x41;
    /// gfx1101
    pub const GFX1101: u8 = 0x46;
    /// gfx1151
    pub const GFX1151: u8 = 0x4a;
    /// gfx942
    pub const GFX942: u8 = 0x4c;
    /// gfx1201
    pub const GFX1201: u8 = 0x4e;
    /// gfx12-generic
    pub const GFX12_GENERIC: u8 = 0x59;
    /// gfx11-generic
    pub const GFX11_GENERIC: u8 = 0x54;
}
