//! The pack stage: packs code objects into kernel archives, and makes the markers of their binaries.
//!
//! ```text
//! kernels ─ frames: hash and compress once, in parallel ─ archive: rows, aliases, ordinals ─► .kpack
//! ```
//!
//! Owns the content and names of archives. Refuses empty code objects, two for the same key and target, and
//! archives that loaders would refuse. Pure apart from the spool, an anonymous temporary file for the frames
//! that do not fit into memory.
//!
//! The bytes of an archive depend only on its code objects and the level: one thread compresses each frame in
//! the same steps, for any number of cores. Code objects of a stored archive are also kept as frames until it is
//! written, to save memory and disk space.

mod archive;
mod frames;
pub mod kept;
pub mod partition;
pub mod planned;
mod set;
mod sources;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub use archive::{PackedArchive, PackedRow};
pub use set::{PackedCode, PackedPackage, SetPacker};
pub use sources::Sources;

use rockpack_core::compression::WINDOW_LOG_MAX;
use rockpack_core::content::{Content, hex};
use rockpack_core::error::Result;
use rockpack_core::gfx::{self, BaseArch, Target};
use rockpack_core::run::Budget;
use rockpack_core::tree::TreePath;
use rockpack_elf::kpack::{self, Scheme};
use rockpack_elf::kpm::{Manifest, ManifestArchive};
use rockpack_elf::marker::{self, Marker};

use archive::Member;
use frames::{Frame, FrameStore};
use rockpack_files::cache::Cache;
use rockpack_package::Format;
use rockpack_package::dependencies::runpath;
use rockpack_package::receipt::listing::code_digest;
use rockpack_plan::config::ArchiveLevel;
use rockpack_plan::recombine::{Kernel, Recombined, serves_all_devices};
use rockpack_plan::{FileSource, Plan};
use rockpack_report::{Progress, found};

/// The default zstd level.
///
/// Measured on the 650 code objects of Debian 13's librocblas (434.8 MB), one core: level 3 gives 148.9 MB at
/// 629 MB/s, 9 gives 143.3 at 139, 12 gives 143.2 at 57, 15 gives 142.7 at 16, 19 gives 138.1 at 5.
/// Long-distance matching gains nothing within a code object.
pub const DEFAULT_LEVEL: i32 = 9;

/// An upper bound for the memory, in bytes, of a thread that compresses code objects: one code object, its frame, and
/// the tables of zstd.
pub fn thread_memory(level: ArchiveLevel) -> u64 {
    match level {
        ArchiveLevel::Stored | ArchiveLevel::Zstd(..=12) => 64 << 20,
        ArchiveLevel::Zstd(13..=19) => 160 << 20,
        ArchiveLevel::Zstd(_) => 1 << 30,
    }
}

pub struct Packer<'a> {
    /// An existing directory for the spool, on the file system of the output.
    pub spool_dir: &'a Path,
    /// The budget for frames in memory; other frames go to the spool.
    pub budget: Budget,
    /// The cache of frames, for lookups and new frames.
    pub cache: Option<&'a Cache>,
    /// The progress, which counts every byte of code objects read and every frame. The caller announces the
    /// number of bytes, and begins and ends the stage.
    pub progress: &'a dyn Progress,
}

impl Packer<'_> {
    /// Packs `kernels` into the archives called `name`, one per base arch, sorted by arch.
    ///
    /// `kernels` are sorted by (binary, co_index, target), so that those of one bundle are neighbours and a
    /// compressed bundle is decoded once. The threads of the current rayon pool take them in that order.
    pub fn pack(
        &self,
        name: &str,
        kernels: &[Kernel],
        level: ArchiveLevel,
    ) -> Result<Vec<PackedArchive>> {
        let frames = self.frames(name, kernels, level)?;
        assemble(name, kernels, &frames, level.scheme())
    }

    /// Packs `kernels` under the name that `name` derives from the digest of all their code.
    pub fn pack_by_code(
        &self,
        label: &str,
        kernels: &[Kernel],
        level: i32,
        name: impl FnOnce(&str) -> String,
    ) -> Result<(String, Vec<PackedArchive>)> {
        let level = ArchiveLevel::Zstd(level);
        let frames = self.frames(label, kernels, level)?;
        let rows = kernels.iter().zip(&frames).map(|(kernel, frame)| {
            let key = kpack::key(kernel.binary.as_str(), kernel.co_index);
            (key, kernel.target.to_string(), hex(&frame.sha256))
        });
        let name = name(&code_digest(&rows.collect()));
        let archives = assemble(&name, kernels, &frames, level.scheme())?;
        Ok((name, archives))
    }

    fn frames(&self, label: &str, kernels: &[Kernel], level: ArchiveLevel) -> Result<Vec<Frame>> {
        // Each set of archives has its own store, whose spool is deleted when the packages with the archives are
        // written, so that the disk never holds the frames of all sets.
        let store = FrameStore::new(self.spool_dir, &self.budget);
        frames::compress(kernels, level, &store, self)
            .map_err(|error| error.context(format!("packing the kernels of {label}")))
    }
}

/// The finding that kernel archives are uncompressed in `formats`, if the run makes any. Lists archives that share a
/// package with others and exceed the window of its payload's compression, so that duplicates are not found.
pub fn archives_stored(
    recombined: &Recombined,
    plan: &Plan,
    formats: Vec<Format>,
) -> Result<Option<found::ArchivesStored>> {
    let sources = Sources::new(recombined, plan);
    let (mut has_archives, mut beyond_window) = (false, Vec::new());
    for package in &plan.packages {
        let files = package.entries.iter().filter_map(|entry| entry.node.data());
        let archives: Vec<_> = files.filter_map(FileSource::archive).collect();
        has_archives |= !archives.is_empty();
        for (name, arch) in archives.iter().filter(|_| archives.len() > 1) {
            let kernels = sources.kernels_for(name, arch)?;
            let len: u64 = kernels.iter().map(|kernel| kernel.content.len()).sum();
            if len > 1 << WINDOW_LOG_MAX {
                beyond_window.push(archive::file_name(name, arch.as_str()));
            }
        }
    }
    Ok(has_archives.then_some(found::ArchivesStored { formats, beyond_window }))
}

fn assemble(
    name: &str,
    kernels: &[Kernel],
    frames: &[Frame],
    scheme: Scheme,
) -> Result<Vec<PackedArchive>> {
    let mut by_arch: BTreeMap<&BaseArch, Vec<Member<'_>>> = BTreeMap::new();
    for (kernel, frame) in kernels.iter().zip(frames) {
        let members = by_arch.entry(kernel.target.base()).or_default();
        members.push(Member { kernel, frame, target: Cow::Borrowed(&kernel.target) });
    }
    let archives = by_arch.iter().map(|(arch, own)| {
        let copies = generic_members(arch, &by_arch);
        let members: Vec<Member<'_>> = own.iter().cloned().chain(copies).collect();
        archive::assemble(name, arch, &members, scheme)
    });
    archives.collect()
}

/// The code objects of the generic target that the archive of `arch` repeats: those of wrappers whose own code does not
/// serve all devices of `arch`, see `archive`.
fn generic_members<'a>(
    arch: &BaseArch,
    by_arch: &BTreeMap<&BaseArch, Vec<Member<'a>>>,
) -> Vec<Member<'a>> {
    let mut own: BTreeMap<(&str, u32), BTreeSet<&Target>> = BTreeMap::new();
    for member in by_arch.get(arch).into_iter().flatten() {
        own.entry(member.wrapper()).or_default().insert(&member.kernel.target);
    }
    let none = BTreeSet::new();
    let generic = gfx::generic_of(arch).and_then(|generic| by_arch.get(generic));
    let copies = generic.into_iter().flatten().filter_map(|member| {
        let own = own.get(&member.wrapper()).unwrap_or(&none);
        let target = Target::new(arch.clone(), member.target.features().iter().cloned());
        let copy = Member { target: Cow::Owned(target), ..*member };
        let is_needed = !serves_all_devices(arch, own) && !own.contains(&*copy.target);
        is_needed.then_some(copy)
    });
    copies.collect()
}

/// The marker of `binary`. Loaders search `kpack_dirs` (`lib/.kpack`), in this order, for the archives called `name`.
/// All paths are relative to the install prefix.
pub fn marker<'a>(
    binary: &TreePath,
    kpack_dirs: impl IntoIterator<Item = &'a TreePath>,
    name: &str,
) -> Result<Vec<u8>> {
    let archive = archive::file_name(name, "@GFXARCH@");
    let paths = kpack_dirs.into_iter().map(|folder| {
        let path = runpath::from_origin(Some(&folder.join(&archive)?), binary);
        Ok(path.trim_start_matches("$ORIGIN/").to_owned())
    });
    let marker = Marker {
        kernel_name: binary.to_string(),
        kpack_search_paths: paths.collect::<Result<_>>()?,
    };
    marker::to_bytes(&marker)
}

/// The manifest of the archives called `name`, including those in packages of earlier builds that are `kept`.
/// `prefix` is the directory above that of the archives, which is `.kpack` by default.
pub fn kpm(
    name: &str,
    archives: &[PackedArchive],
    kept: &BTreeMap<BaseArch, ManifestArchive>,
    prefix: &str,
) -> Result<Content> {
    let listed = archives.iter().map(|archive| {
        let rows = archive.rows.iter().filter(|row| !row.alias);
        let entry = ManifestArchive {
            file: archive.file_name.clone(),
            size: archive.content.len(),
            kernel_count: rows.count() as u64,
        };
        (archive.arch.to_string(), entry)
    });
    let kept = kept.iter().map(|(arch, entry)| (arch.to_string(), entry.clone()));
    let manifest = Manifest {
        component_name: name.to_owned(),
        prefix: prefix.to_owned(),
        archives: listed.chain(kept).collect(),
    };
    manifest.to_content()
}

#[cfg(test)]
mod tests {
    use rockpack_elf::marker::AnyMarker;

    use super::*;

    #[test]
    fn markers_lead_from_the_binary_to_the_archives() {
        let archive = "blas_lib_@GFXARCH@.kpack";
        for (binary, kpack_dir, expected) in [
            ("lib/librocblas.so.5.2", "lib/.kpack", ".kpack/"),
            ("bin/rocblas-bench", "lib/.kpack", "../lib/.kpack/"),
            ("libexec/x/test", "lib/.kpack", "../../lib/.kpack/"),
            ("lib/a/b/plugin.so", "lib/.kpack", "../../.kpack/"),
            ("tool", "lib/.kpack", "lib/.kpack/"),
            ("lib64/librocblas.so.5", "lib64/rocm/kpack", "rocm/kpack/"),
        ] {
            assert_eq!(search_paths(binary, kpack_dir), [format!("{expected}{archive}")]);
        }
    }

    fn search_paths(binary: &str, kpack_dir: &str) -> Vec<String> {
        let [path, kpack_dir] = [binary, kpack_dir].map(|text| TreePath::new(text).unwrap());
        let bytes = super::marker(&path, [&kpack_dir], "blas_lib").unwrap();
        let AnyMarker::Map(marker) = marker::parse(&bytes).unwrap() else { panic!("no map") };
        assert_eq!(marker.kernel_name, binary);
        marker.kpack_search_paths
    }
}
