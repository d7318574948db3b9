//! The stages of a build one by one: `cargo bench -p rockpack-benches`; a stage's name behind it runs only
//! that stage.
//!
//! Input is generated or committed, so figures of two revisions can be compared; `e2e.sh` measures whole
//! builds.

#![allow(clippy::unwrap_used, reason = "a failure ends the benchmark")]
#![allow(missing_docs, reason = "the macros of criterion define functions")]

#[path = "../examples/generate/content.rs"]
#[allow(dead_code, reason = "shared with the generator")]
mod content;

use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use md5::{Digest as _, Md5};
use rockpack_archive::tar::{Dialect, TarMembers};
use rockpack_core::compression::{Compression, Effort, Encoder, LongMatches, Workers};
use rockpack_core::content::Content;
use rockpack_core::tree::TreePath;
use rockpack_elf::ccob;
use rockpack_elf::fatbin;

use support::{kpack, packages, tools, transform};

use content::{ARCHS, Numbers, bundle, code_object, instructions};
use rockpack_split::input::database::DatabaseRules;

type Group<'a> = BenchmarkGroup<'a, criterion::measurement::WallTime>;

fn group<'a>(criterion: &'a mut Criterion, name: &str, bytes: usize) -> Group<'a> {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    group.throughput(Throughput::Bytes(bytes as u64));
    group
}

fn bundle_parse(criterion: &mut Criterion) {
    let section: Vec<u8> =
        (0..64).flat_map(|seed| bundle(&ARCHS, seed << 8, 64 << 10, code_object)).collect();
    let mut group = group(criterion, "bundle parse", section.len());
    let section = Content::of_bytes(section);
    group.bench_function("64 bundles of 4", |b| b.iter(|| fatbin::parse(&section).unwrap()));
}

fn ccob_decode(criterion: &mut Criterion) {
    let bytes = bundle(&ARCHS, 1, 1 << 20, code_object);
    let mut stream = b"CCOB\x02\0\x01\0".to_vec();
    let frame = zstd::bulk::compress(&bytes, 3).unwrap();
    for number in [24 + frame.len(), bytes.len()] {
        stream.extend(u32::try_from(number).unwrap().to_le_bytes());
    }
    stream.extend(&Md5::digest(&bytes)[..8]);
    stream.extend(frame);
    let stream = Content::of_bytes(stream);
    let mut group = group(criterion, "CCOB decode", bytes.len());
    group.bench_function("zstd, 4 MiB", |b| b.iter(|| ccob::open(&stream).unwrap()));
}

fn elf_transform(criterion: &mut Criterion) {
    let path = tools::repository("tests/fixtures/binaries/bfd_shared");
    let size = path.metadata().unwrap().len();
    let mut group = group(criterion, "ELF transform", usize::try_from(size).unwrap());
    let marker = transform::marker();
    let run = || transform::analyse(&path).apply(&marker).unwrap();
    group.bench_function("small library", |b| b.iter(run));
}

fn archive_build(criterion: &mut Criterion) {
    let sizes = [("32 of 512 KiB", 32, 512 << 10), ("2048 of 4 KiB", 2048, 4 << 10)];
    for (name, count, len) in sizes {
        let kernel = |index: u32| {
            let arch = ARCHS[index as usize % ARCHS.len()];
            let code = code_object(arch, index.into(), len);
            kpack::kernel("lib/libx.so", index / 4, arch.0, code)
        };
        let mut kernels: Vec<_> = (0..count).map(kernel).collect();
        kernels.sort_by(|a, b| (a.co_index, &a.target).cmp(&(b.co_index, &b.target)));
        let mut group = group(criterion, "archive build", count as usize * len);
        group.bench_function(name, |b| b.iter(|| kpack::pack(&kernels, 64 << 20)));
    }
}

fn classification(criterion: &mut Criterion) {
    let rules = DatabaseRules::builtin().unwrap();
    let path = |index: usize| {
        let arch = ARCHS[index % ARCHS.len()].0;
        TreePath::new(match index % 3 {
            0 => format!("lib/rocblas/library/TensileLibrary_{index}_{arch}.co"),
            1 => format!("share/miopen/db/{arch}{index}.db.txt"),
            _ => format!("include/rocblas/internal/header_{index}.h"),
        })
    };
    let paths: Vec<TreePath> = (0..10_000).map(|index| path(index).unwrap()).collect();
    let mut group = criterion.benchmark_group("classification");
    group.throughput(Throughput::Elements(paths.len() as u64));
    let claimed = || paths.iter().filter(|path| rules.claim(path).is_some()).count();
    group.bench_function("10000 paths", |b| b.iter(|| black_box(claimed())));
}

fn framing(criterion: &mut Criterion) {
    for (name, count, len) in [("10000 of 100 bytes", 10_000, 100), ("8 of 8 MiB", 8, 8 << 20)] {
        let mut group = group(criterion, "tar read", count * len);
        let bytes = tar_of(count, len);
        group.bench_function(name, |b| b.iter(|| read_tar(&bytes)));
    }
    // The least compression: the rest is framing, digests and the disk.
    let compression = Compression::Zstd { level: 1, window_log: 20, long: LongMatches::Off };
    for (name, count, len) in [("2000 of 100 bytes", 2000, 100), ("64 of 1 MiB", 64, 1 << 20)] {
        let mut entries = packages::Tree::default().directory("opt");
        for index in 0..count {
            let data = Content::of_bytes(vec![7; len]);
            entries = entries.file(&format!("opt/file{index}"), data, 0o644, PLAIN);
        }
        let package = packages::package("sample", entries.entries());
        let mut group = group(criterion, "packages", count * len);
        group.bench_function(name, |b| {
            b.iter(|| {
                let out = tempfile::tempdir().unwrap();
                let options = packages::options(1, compression);
                packages::emit_set(out.path(), std::slice::from_ref(&package), &options)
            });
        });
    }
}

const PLAIN: rockpack_package::Treatment = rockpack_package::Treatment::Plain;

fn tar_of(count: usize, len: usize) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let content = vec![7; len];
    for index in 0..count {
        let mut header = tar::Header::new_gnu();
        header.set_size(len as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, format!("file{index}"), &content[..]).unwrap();
    }
    builder.into_inner().unwrap()
}

fn read_tar(bytes: &[u8]) -> u64 {
    let mut members = TarMembers::new(bytes, Dialect::Strict);
    let mut sum = 0;
    while members.next_member().unwrap().is_some() {
        sum += std::io::copy(&mut members, &mut std::io::sink()).unwrap();
    }
    sum
}

fn hashing(criterion: &mut Criterion) {
    let bytes = instructions("gfx1100", 1, 64 << 20);
    let mut group = group(criterion, "hashing", bytes.len());
    let content = Content::of_bytes(bytes.clone());
    group.bench_function("SHA-256", |b| b.iter(|| content.sha256().unwrap()));
    group.bench_function("MD5", |b| b.iter(|| Md5::digest(&bytes)));
}

fn compression(criterion: &mut Criterion) {
    let frames: Vec<u8> = (0..16)
        .flat_map(|seed| zstd::bulk::compress(&instructions("gfx1100", seed, 4 << 20), 9).unwrap())
        .collect();
    let code = instructions("gfx1100", 1, 32 << 20);
    for (name, bytes) in
        [("code", code), ("noise", Numbers::new(1).noise(32 << 20)), ("zstd frames", frames)]
    {
        let mut group = group(criterion, "payload compression", bytes.len());
        let bytes = Arc::new(bytes);
        let workers = Workers::new(1);
        group.bench_function(name, |b| b.iter(|| compressed(&bytes, &workers)));
    }
}

fn compressed(bytes: &[u8], workers: &Workers) -> usize {
    let size = bytes.len() as u64;
    let mut encoder = Encoder::new(Vec::new(), Compression::default(), workers, size).unwrap();
    encoder.set_effort(Effort::of(&bytes[..Effort::START], size)).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap().len()
}

criterion_group!(
    stages,
    bundle_parse,
    ccob_decode,
    elf_transform,
    archive_build,
    classification,
    framing,
    hashing,
    compression
);
criterion_main!(stages);
