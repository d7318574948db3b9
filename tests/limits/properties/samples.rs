//! A small valid file of each format, and the values read from it.

use std::fs;

use rockpack_archive::package_file::PackageReader;
use rockpack_archive::rpm;
use rockpack_archive::rpm_md;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use rockpack_elf::amdgpu_metadata;
use rockpack_elf::ccob;
use rockpack_elf::code_object;
use rockpack_elf::kpack;
use rockpack_elf::kpm;
use rockpack_elf::marker;
use rockpack_elf::offload_bundle;
use rockpack_emit::Compression;
use rockpack_package::receipt::Receipt;
use rockpack_split::host_binary::{Examined, examine};
use rockpack_split::input::artifact;
use support::packages;
use support::tools::repository;

use super::{bytes, file, lists, signatures};

/// Values that a damaged file may still give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// Only the value of the whole file: checksums cover everything that is read. A change is refused for at
    /// least this percentage of the bits; nobody reads the rest.
    Noticed(u32),
    /// After a changed bit, the value that the bytes now state; a cut is always refused.
    Said,
    /// After a cut, the items before it: the format has no end. The value is one line for each item, in the
    /// file's order.
    Items,
    /// Items whose last one may be cut short, such as lines of text.
    Lines,
}

/// A valid file of a format.
pub struct Sample {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    pub damage: Damage,
    /// Reads the whole file, and returns its value as text.
    pub read: fn(&[u8]) -> Result<String>,
}

pub fn samples() -> Vec<Sample> {
    let mut samples = vec![
        of("offload bundle", small_bundle(), Damage::Said, bundle),
        of("kernel archive", small_archive(), Damage::Said, archive),
        of("kernel manifest", file("fuzz/seeds/kpm/blas_lib"), Damage::Said, manifest),
        of("reference", file("fuzz/seeds/marker/map"), Damage::Said, reference),
        of("list of paths", file("fuzz/seeds/marker/list"), Damage::Lines, paths),
        of(
            "artifact manifest",
            file("fuzz/seeds/manifest/blas_lib"),
            Damage::Lines,
            artifact_manifest,
        ),
        of("receipt", file("fuzz/seeds/receipt/two-packages"), Damage::Said, receipt),
        of("code object", file("fuzz/seeds/code_object/gfx1100"), Damage::Said, device_code),
        of(
            "transformed library",
            file("fuzz/seeds/host_binary/transformed"),
            Damage::Said,
            library,
        ),
    ];
    for seed in fs::read_dir(repository("fuzz/seeds/ccob")).unwrap() {
        let bytes = fs::read(seed.unwrap().path()).unwrap();
        samples.push(of("compressed bundle", bytes, Damage::Noticed(99), compressed_bundle));
    }
    let [deb, rpm] = small_packages(Compression::default());
    samples.push(of("deb", deb, Damage::Noticed(97), package));
    // Two thirds of such a small package is space reserved for its signature.
    samples.push(of("rpm", rpm, Damage::Noticed(30), package));
    let [deb, rpm] = small_packages(Compression::XZ);
    samples.push(of("deb (xz)", deb, Damage::Noticed(97), package));
    samples.push(of("rpm (xz)", rpm, Damage::Noticed(30), package));
    samples.extend(signatures::samples());
    samples.extend(lists::samples());
    samples
}

pub fn of(
    name: &'static str,
    bytes: Vec<u8>,
    damage: Damage,
    read: fn(&[u8]) -> Result<String>,
) -> Sample {
    Sample { name, bytes, damage, read }
}

fn small_bundle() -> Vec<u8> {
    file("fuzz/seeds/offload_bundle/two-archs")
}

/// An archive with two code objects, stored as the pack stage does.
fn small_archive() -> Vec<u8> {
    let reader =
        kpack::KpackReader::open(Content::of_bytes(file("fuzz/seeds/kpack/gfx1151"))).unwrap();
    let mut toc = reader.toc().clone();
    let frames = [b"first code".repeat(9), b"second code".repeat(9)].map(|code| {
        let mut encoder = zstd::bulk::Compressor::new(3).unwrap();
        encoder.include_checksum(true).unwrap();
        (code.len() as u64, Content::of_bytes(encoder.compress(&code).unwrap()))
    });
    let row = |ordinal: u32| kpack::TocRow {
        kind: "hsaco".to_owned(),
        ordinal,
        original_size: frames[ordinal as usize].0,
        metadata: None,
    };
    toc.rows.clear();
    for ordinal in [0, 1] {
        let rows = [("gfx1151".to_owned(), row(ordinal))];
        toc.rows.insert(kpack::key("lib/x.so", ordinal), rows.into());
    }
    bytes(&kpack::write(&toc, &frames.map(|(_, frame)| frame)).unwrap())
}

/// A package of each format with one file of each type.
fn small_packages(compression: Compression) -> [Vec<u8>; 2] {
    let tree = packages::Tree::default()
        .deb_directory("opt")
        .directory("opt/x")
        .text("opt/x/text", &"some text\n".repeat(30))
        .link("opt/x/link", "text");
    let out = tempfile::tempdir().unwrap();
    let package = packages::package("x", tree.entries());
    let options = packages::options(2, compression);
    let [deb, rpm] = packages::emit_both(out.path(), &package, &options);
    [deb, rpm].map(|path| std::fs::read(path).unwrap())
}

fn content(bytes: &[u8]) -> Content {
    Content::of_bytes(bytes)
}

fn bundle(bytes: &[u8]) -> Result<String> {
    let bundle = offload_bundle::parse(&content(bytes))?;
    let entries = bundle
        .entries
        .iter()
        .map(|entry| Ok(format!("{:?} {} {}\n", entry.id, entry.offset, entry.content.digest()?)));
    entries.collect()
}

fn compressed_bundle(bytes: &[u8]) -> Result<String> {
    ccob::open(&content(bytes))?.content.digest().map(String::from)
}

fn archive(bytes: &[u8]) -> Result<String> {
    let reader = kpack::KpackReader::open(content(bytes))?;
    let mut text = format!("{:?}", reader.toc());
    for ordinal in 0..u32::try_from(reader.len()).unwrap() {
        text.push_str(&reader.code_object(ordinal)?.digest()?.to_string());
    }
    Ok(text)
}

fn manifest(bytes: &[u8]) -> Result<String> {
    Ok(format!("{:?}", kpm::Manifest::parse(&content(bytes))?))
}

fn reference(bytes: &[u8]) -> Result<String> {
    Ok(format!("{:?}", marker::parse(bytes)?))
}

fn paths(bytes: &[u8]) -> Result<String> {
    match marker::parse(bytes)? {
        marker::AnyMarker::PathList(paths) => Ok(paths.join("\n")),
        marker::AnyMarker::Map(map) => Err(Error::malformed(format!("{map:?} is no list"))),
    }
}

/// The prefixes in the file's order; the reader sorts them by path.
fn artifact_manifest(bytes: &[u8]) -> Result<String> {
    let manifest = artifact::ArtifactManifest::parse(bytes)?;
    let mut prefixes: Vec<_> = manifest.prefixes.iter().map(ToString::to_string).collect();
    let lines: Vec<_> = std::str::from_utf8(bytes).unwrap().lines().collect();
    let is = |line: &str, prefix: &str| line.trim_end_matches(['/', '\r']) == prefix;
    prefixes.sort_by_key(|prefix| lines.iter().position(|line| is(line, prefix)));
    Ok(prefixes.join("\n"))
}

fn receipt(bytes: &[u8]) -> Result<String> {
    Ok(format!("{:?}", Receipt::parse(bytes)?))
}

fn device_code(bytes: &[u8]) -> Result<String> {
    let content = content(bytes);
    let header = code_object::read_whole(&content)?;
    let names = code_object::kernel_names(&content)?;
    Ok(format!("{header:?} {names:?} {:?}", amdgpu_metadata::read(&content)?))
}

fn library(bytes: &[u8]) -> Result<String> {
    match examine(&content(bytes))? {
        Examined::Transformed(read) => Ok(format!("{:?} {:?}", read.marker(), read.co_indexes())),
        // A file without its name or ELF header is passed on unchanged, like any other file.
        other => Err(Error::unsupported(format!("{other:?}"))),
    }
}

/// All facts about a package's files, and their content.
fn package(bytes: &[u8]) -> Result<String> {
    let reader = PackageReader::open(content(bytes))?;
    let mut text = match &reader {
        PackageReader::Deb(deb) => format!("{:?}", deb.fields),
        PackageReader::Rpm(_) => {
            let front = rpm::RpmFront::read(&content(bytes))?;
            // These values are those of the signature header, which no checksum covers.
            let (mut package, mut listed) = rpm_md::RpmPackage::of_front(&front)?;
            listed.archive_size = 0;
            (package.signed, package.signed_for_rpm6, package.missing_digest) =
                (false, false, None);
            format!("{package:?} {listed:?}")
        }
    };
    reader.visit(&mut |entry, data| {
        let mut read = Vec::new();
        data.read_to_end(&mut read).map_err(rockpack_core::hold::fault)?;
        text.push_str(&format!("{entry:?} {read:?}\n"));
        Ok(())
    })?;
    Ok(text)
}
