//! The pack stage's output for a component's code objects.
//!
//! Needs python3-msgpack and python3-zstandard for the judges.

use std::collections::HashSet;
use std::io::{Cursor, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use proptest::sample::select;
use rockpack_core::content::{Content, StreamSource, hex};
use rockpack_core::error::{Kind, Place, Result};
use rockpack_core::run::{Budget, Limits};
use rockpack_elf::kpack::KpackReader;
use rockpack_elf::kpm::Manifest;
use rockpack_emit::pack::{PackedArchive, Packer};
use rockpack_files::cache::Cache;
use rockpack_plan::config::ArchiveLevel;
use rockpack_plan::recombine::Kernel;
use rockpack_report::{Progress, Silent, Stage};
use support::kpack::{LEVELS, bytes, code, judged, kernel, need_python, pack, pack_at, sha256};

const MIB: usize = 1 << 20;

/// Small and large code objects for several archs; some occur twice, including a large one.
fn assorted() -> Vec<Kernel> {
    static LARGE: LazyLock<Vec<u8>> = LazyLock::new(|| code(99, 8 * MIB + 12_345));
    let mut kernels = Vec::new();
    for co_index in 0..12 {
        for (n, target) in ["gfx1100", "gfx1101", "gfx90a"].into_iter().enumerate() {
            let seed = if co_index % 4 == 0 { 7 } else { co_index * 10 + n as u32 };
            let len = 1000 + seed as usize * 301;
            kernels.push(kernel("lib/libblas.so.5", co_index, target, code(seed, len)));
        }
    }
    for co_index in [0, 1] {
        kernels.push(kernel("lib/libbulk.so", co_index, "gfx1100", LARGE.as_slice()));
    }
    kernels
}

fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(work)
}

fn digests(archives: &[PackedArchive]) -> Vec<(String, String)> {
    let digest =
        |archive: &PackedArchive| (archive.file_name.clone(), sha256(&bytes(&archive.content)));
    archives.iter().map(digest).collect()
}

#[test]
fn the_independent_reader_finds_every_code_object() {
    need_python();
    let kernels = assorted();
    let packed = |level| pack_at(level, &kernels, u64::MAX).into_iter().map(move |it| (level, it));
    for (level, archive) in LEVELS.into_iter().flat_map(packed) {
        let json = judged(&archive.content);
        assert_eq!(json["compression_scheme"], level.scheme().as_str());
        assert_eq!(json["group_name"], "blas_lib");
        assert_eq!(json["gfx_arch_family"], archive.arch.as_str());
        assert_eq!(json["objects"], archive.code_objects);
        let mut count = 0;
        for kernel in kernels.iter().filter(|k| k.target.base() == &archive.arch) {
            let key = format!("{}#{}", kernel.binary, kernel.co_index);
            let row = &json["rows"][key][kernel.target.to_string()];
            assert_eq!(row["sha256"], sha256(&bytes(&kernel.content)));
            count += 1;
        }
        assert_eq!(archive.rows.len(), count);
        for row in &archive.rows {
            let judged = &json["rows"][&row.key][row.target.to_string()];
            assert_eq!(judged["sha256"], hex(&row.sha256));
            assert_eq!(judged["ordinal"], row.ordinal);
            assert_eq!(judged["size"], row.original_size);
        }
    }
}

#[test]
fn each_base_arch_has_one_archive_with_ordinals_in_row_order() {
    let archives = pack(&assorted(), u64::MAX);
    let names: Vec<_> = archives.iter().map(|a| a.file_name.as_str()).collect();
    let expected = ["gfx1100", "gfx1101", "gfx90a"].map(|arch| format!("blas_lib_{arch}.kpack"));
    assert_eq!(names, expected);
    for archive in archives {
        let mut next = 0;
        for row in &archive.rows {
            assert!(row.ordinal <= next, "{}: {}", row.key, row.ordinal);
            next = next.max(row.ordinal + 1);
        }
        let order: Vec<_> = archive.rows.iter().map(|row| row.key.as_str()).collect();
        assert_eq!(order[2..4], ["lib/libblas.so.5#2", "lib/libblas.so.5#3"]);
        assert_eq!(order[10], "lib/libblas.so.5#10");
    }
}

#[test]
fn identical_code_objects_are_stored_once() {
    let kernels = assorted();
    for archive in pack(&kernels, u64::MAX) {
        let of_arch = kernels.iter().filter(|k| k.target.base() == &archive.arch);
        let distinct: HashSet<_> = of_arch.map(|k| bytes(&k.content)).collect();
        assert_eq!(archive.code_objects, distinct.len() as u64);
        assert_eq!(KpackReader::open(archive.content).unwrap().len(), distinct.len());
    }
}

#[test]
fn bytes_do_not_depend_on_threads_or_memory() {
    let kernels = assorted();
    for level in LEVELS {
        let expected = digests(&on_threads(1, || pack_at(level, &kernels, u64::MAX)));
        for threads in [1, 2, 8] {
            // With 0 every frame is spooled. With 40,000 some are; which ones depends on timing.
            for memory in [0, 40_000, u64::MAX] {
                let archives = on_threads(threads, || pack_at(level, &kernels, memory));
                let way = format!("level {level}, {threads} threads, {memory} bytes");
                assert_eq!(digests(&archives), expected, "{way}");
            }
        }
    }
}

/// Rows do not depend on the scheme: those of devices with features, and of copies of generic code.
#[test]
fn a_stored_archive_has_the_rows_of_a_compressed_one() {
    let mut kernels = assorted();
    let more = [(0, "gfx11-generic"), (1, "gfx90a:xnack+"), (1, "gfx90a:xnack-"), (2, "gfx90a")];
    for (seed, (co_index, target)) in (0..).zip(more) {
        kernels.push(kernel("lib/libz.so", co_index, target, code(seed, 3000)));
    }
    let [framed, stored] = LEVELS.map(|level| pack_at(level, &kernels, u64::MAX));
    assert_eq!((framed.len(), stored.len()), (4, 4));
    for (framed, stored) in framed.into_iter().zip(stored) {
        assert_eq!(framed.rows, stored.rows);
        assert_eq!(framed.code_objects, stored.code_objects);
        let is_repeated = ["gfx1100", "gfx1101", "gfx90a"].contains(&framed.arch.as_str());
        assert_eq!(framed.rows.iter().any(|row| row.alias), is_repeated, "{}", framed.arch);
        let [framed, stored] = [framed, stored].map(|it| KpackReader::open(it.content).unwrap());
        let mut toc = stored.toc().clone();
        assert_eq!(toc.scheme, ArchiveLevel::Stored.scheme());
        toc.scheme = framed.toc().scheme;
        assert_eq!(toc, *framed.toc());
        for ordinal in 0..u32::try_from(framed.len()).unwrap() {
            let [one, other] = [&framed, &stored].map(|it| it.code_object(ordinal).unwrap());
            assert!(bytes(&one) == bytes(&other), "code object {ordinal}");
        }
    }
}

/// Content in pieces of any size gives the same frame: the borders of compression windows depend only on the
/// position.
#[test]
fn bytes_do_not_depend_on_how_content_is_cut() {
    for len in [3 * MIB + 17, 9 * MIB] {
        let whole = code(5, len);
        let parts: Vec<_> = whole.chunks(777_777).map(Content::of_bytes).collect();
        let in_one = kernel("lib/x.so", 0, "gfx1100", whole);
        let mut in_parts = in_one.clone();
        in_parts.content = Content::concat(&parts);
        assert_eq!(digests(&pack(&[in_one], 0)), digests(&pack(&[in_parts], 0)));
    }
}

#[derive(Debug)]
struct CountedBundle {
    bytes: Vec<u8>,
    opened: Arc<AtomicU64>,
}

impl StreamSource for CountedBundle {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn open(&self) -> Result<Box<dyn Read + Send>> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Cursor::new(self.bytes.clone())))
    }
    fn place(&self) -> Place {
        Place::default()
    }
}

#[test]
fn a_compressed_bundle_is_decoded_once() {
    for level in LEVELS {
        let opened = Arc::new(AtomicU64::new(0));
        let mut kernels = Vec::new();
        for co_index in 0..40 {
            let bundle = Content::default().decoded(Arc::new(CountedBundle {
                bytes: code(co_index, 8000),
                opened: Arc::clone(&opened),
            }));
            for (n, target) in (0..).zip(["gfx1030", "gfx1100", "gfx1101", "gfx90a"]) {
                let mut kernel = kernel("lib/x.so", co_index, target, "");
                kernel.content = bundle.slice(n * 2000..(n + 1) * 2000).unwrap();
                kernels.push(kernel);
            }
        }
        digests(&on_threads(4, || pack_at(level, &kernels, u64::MAX)));
        assert_eq!(opened.load(Ordering::Relaxed), 40, "level {level}");
    }
}

struct Counter(AtomicU64);

impl Progress for Counter {
    fn advance(&self, stage: Stage, bytes: u64) {
        assert_eq!(stage, Stage::Pack);
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Packs with frames only in memory, and fails unless every byte is counted once.
fn counted(
    level: ArchiveLevel,
    kernels: &[Kernel],
    cache: Option<&Cache>,
) -> Vec<(String, String)> {
    let counter = Counter(AtomicU64::new(0));
    let packer = Packer {
        cache,
        spool_dir: "/nonexistent".as_ref(),
        budget: Budget::unlimited(),
        progress: &counter,
    };
    let archives = packer.pack("blas_lib", kernels, level).unwrap();
    let total: u64 = kernels.iter().map(|kernel| kernel.content.len()).sum();
    assert_eq!(counter.0.into_inner(), total);
    digests(&archives)
}

#[test]
fn progress_counts_every_byte_once() {
    for level in LEVELS {
        counted(level, &assorted(), None);
    }
}

#[test]
fn frames_of_a_cache_are_those_that_are_made() {
    let kernels = assorted();
    let folder = tempfile::tempdir().unwrap();
    let levels = [ArchiveLevel::Zstd(1), ArchiveLevel::Stored];
    let expected = levels.map(|level| counted(level, &kernels, None));
    // The last size is too small for the large ones, and for all others together.
    for size in [1 << 30, 1 << 30, 10_000] {
        let cache = Cache::open(folder.path(), size).unwrap();
        for (level, expected) in levels.into_iter().zip(&expected) {
            assert!(on_threads(4, || counted(level, &kernels, Some(&cache))) == *expected);
        }
        assert_eq!(cache.findings(), []);
    }
}

fn refused(kernels: &[Kernel], memory: u64) -> rockpack_core::error::Error {
    let packer = Packer {
        cache: None,
        spool_dir: "/nonexistent".as_ref(),
        budget: Budget::new(Limits { frames: memory, ..Limits::default() }),
        progress: &Silent,
    };
    packer.pack("blas_lib", kernels, LEVELS[0]).unwrap_err()
}

#[test]
fn faults_name_their_place() {
    let one = kernel("lib/x.so", 3, "gfx1100", "code");
    let empty = kernel("lib/x.so", 4, "gfx1101", "");
    let error = refused(&[one.clone(), empty.clone(), empty], 100_000);
    assert_eq!(error.kind(), Kind::Malformed);
    assert_eq!(error.to_string(), "lib/x.so: the code object of wrapper 4 for gfx1101 is empty");
    assert_eq!(error.others().len(), 1, "all faults are gathered");
    assert_eq!(error.frames(), ["packing the kernels of blas_lib"]);

    let twice = refused(&[one.clone(), one.clone()], 100_000);
    assert_eq!(twice.kind(), Kind::Bug);
    let no_spool = refused(&[one], 0);
    assert_eq!(no_spool.kind(), Kind::Io);
    assert_eq!(no_spool.place().file.as_deref(), Some("/nonexistent".as_ref()));
}

#[test]
fn nothing_gives_no_archives() {
    assert!(pack(&[], 0).is_empty());
}

#[test]
fn the_manifest_counts_code_objects_not_aliases() {
    let kernels = [
        kernel("lib/a.so", 0, "gfx90a:xnack-", "off"),
        kernel("lib/a.so", 1, "gfx90a", "any"),
        kernel("lib/a.so", 2, "amdgcnspirv", "neutral"),
    ];
    let archives = pack(&kernels, u64::MAX);
    let manifest =
        rockpack_emit::pack::kpm("blas_lib", &archives, &std::collections::BTreeMap::new(), "lib")
            .unwrap();
    let manifest = Manifest::parse(&manifest).unwrap();
    assert_eq!(manifest.prefix, "lib");
    for (arch, file, kernel_count) in
        [("gfx90a", "blas_lib_gfx90a.kpack", 2), ("amdgcnspirv", "blas_lib_amdgcnspirv.kpack", 1)]
    {
        let archive = &manifest.archives[arch];
        assert_eq!((archive.file.as_str(), archive.kernel_count), (file, kernel_count));
    }
    for archive in &archives {
        let listed = manifest.archives[archive.arch.as_str()].size;
        assert_eq!(listed, archive.content.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Seeds repeat, so copies occur within and across wrappers and archs.
    #[test]
    fn what_is_packed_is_read_back(
        wanted in proptest::collection::btree_map(
            (0_usize..3, 0_u32..12, 0_usize..4),
            (0_u32..6, 1_usize..3000),
            1..40,
        ),
        memory in 0_u64..20_000,
        level in select(LEVELS.to_vec()),
    ) {
        let targets = ["gfx1030", "gfx1100", "gfx90a:xnack+", "gfx90a:xnack-"];
        let binaries = ["bin/tool", "lib/liba.so.1", "lib/libb.so"];
        let kernels: Vec<_> = wanted
            .into_iter()
            .map(|((binary, co_index, target), (seed, len))| {
                kernel(binaries[binary], co_index, targets[target], code(seed, len))
            })
            .collect();
        let archives = pack_at(level, &kernels, memory);
        let mut found = 0;
        for archive in &archives {
            let reader = KpackReader::open(archive.content.clone()).unwrap();
            for row in archive.rows.iter().filter(|row| !row.alias) {
                let kernel = kernels.iter().find(|kernel| {
                    row.key == format!("{}#{}", kernel.binary, kernel.co_index)
                        && kernel.target == row.target
                });
                let object = bytes(&reader.code_object(row.ordinal).unwrap());
                prop_assert_eq!(&object, &bytes(&kernel.unwrap().content));
                found += 1;
            }
        }
        prop_assert_eq!(found, kernels.len());
    }
}
