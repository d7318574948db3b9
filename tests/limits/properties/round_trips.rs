//! Formats with a writer and a reader give the same values when they are read back. The test of kernel
//! archives is with their other tests (`tests/formats/kpack`).

use std::collections::BTreeMap;
use std::io::Write;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use rockpack_archive::apt_index::{IndexFile, Release};
use rockpack_archive::package_file::PackageReader;
use rockpack_archive::payload::PayloadEntryKind;
use rockpack_core::content::Content;
use rockpack_elf::fatbin;
use rockpack_elf::kpm::{Manifest, ManifestArchive};
use rockpack_elf::marker::{AnyMarker, Marker, parse, to_bytes};
use rockpack_elf::offload_bundle;
use rockpack_emit::Compression;
use rockpack_package::Treatment;
use support::ccob::{VERSIONS, ccob};
use support::packages;

use super::bytes;

/// The entries of a bundle: code by target.
fn entries() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
    let target = "gfx(90a|906|942|1030|1100)(:xnack[+-])?";
    btree_map(target.prop_map(|t| format!("hipv4-amdgcn-amd-amdhsa--{t}")), code(), 0..6)
}

fn code() -> impl Strategy<Value = Vec<u8>> {
    vec(0_u8..16, 1..6000)
}

fn bundle(entries: &BTreeMap<String, Vec<u8>>) -> Content {
    let entries: Vec<_> =
        entries.iter().map(|(id, code)| (id.clone(), Content::of_bytes(code.clone()))).collect();
    offload_bundle::write(&entries).unwrap()
}

fn read_entries(bundle: &offload_bundle::Bundle) -> BTreeMap<String, Vec<u8>> {
    let entries = bundle.entries.iter();
    entries.map(|entry| (entry.id.text.clone(), bytes(&entry.content))).collect()
}

/// Compresses `plain` into a bundle of this version and method.
fn compressed(plain: &[u8], version: u16, method: u16) -> Vec<u8> {
    let stream = match method {
        0 => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        _ => zstd::encode_all(plain, 3).unwrap(),
    };
    ccob(version, method, plain, &stream)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bundles_are_read_back(entries in entries()) {
        let written = bundle(&entries);
        let read = offload_bundle::parse(&written).unwrap();
        prop_assert_eq!(read_entries(&read), entries);
        prop_assert_eq!(read.len, written.len());
    }

    /// A section of bundles, uncompressed and compressed in every way.
    #[test]
    fn sections_of_bundles_are_read_back(
        wanted in vec((entries(), 0..=*VERSIONS.end(), 0_u16..2), 1..4),
        padding in 0_usize..5000,
    ) {
        let mut section = Vec::new();
        for (entries, version, method) in &wanted {
            section.resize(section.len().next_multiple_of(4096), 0);
            let plain = bytes(&bundle(entries));
            match version {
                0 => section.extend(plain),
                _ => section.extend(compressed(&plain, *version, *method)),
            }
        }
        section.extend(vec![0; padding]);
        let read: Vec<_> = fatbin::parse(&Content::of_bytes(section)).unwrap().iter().map(|found| read_entries(&found.bundle)).collect();
        let wanted: Vec<_> = wanted.into_iter().map(|(entries, ..)| entries).collect();
        prop_assert_eq!(read, wanted);
    }

    #[test]
    fn compressed_bundles_are_read_back(plain in code(), version in VERSIONS, method in 0_u16..2) {
        let written = compressed(&plain, version, method);
        let opened = rockpack_elf::ccob::open(&Content::of_bytes(written.clone())).unwrap();
        prop_assert_eq!(opened.extent, written.len() as u64);
        prop_assert_eq!(bytes(&opened.content), plain);
    }

    #[test]
    fn references_are_read_back(name in "\\PC{0,300}", paths in vec("\\PC{0,100}", 0..20)) {
        let marker = Marker { kernel_name: name, kpack_search_paths: paths };
        let written = to_bytes(&marker).unwrap();
        prop_assert_eq!(parse(&written).unwrap(), AnyMarker::Map(marker));
    }

    #[test]
    fn manifests_are_read_back(
        component_name in "\\PC{0,40}",
        prefix in "\\PC{0,40}",
        archives in btree_map("gfx[0-9a-f]{3,4}", ("\\PC{0,40}", any::<u64>(), any::<u64>()), 0..20),
    ) {
        let archives = archives.into_iter().map(|(arch, (file, size, kernel_count))| {
            (arch, ManifestArchive { file, size, kernel_count })
        });
        let manifest = Manifest { component_name, prefix, archives: archives.collect() };
        prop_assert_eq!(Manifest::parse(&manifest.to_content().unwrap()).unwrap(), manifest);
    }

    #[test]
    fn releases_are_read_back(
        fields in btree_map("[A-Z][a-z]{1,8}(-[A-Z][a-z]{1,5})?", "[!-~]([ -~]{0,30}[!-~])?", 1..8),
        files in btree_map("[!-~]{1,30}", (any::<u64>(), "[0-9a-f]{64}", prop::option::of("[0-9a-f]{128}")), 0..8),
    ) {
        let files = files.into_iter().map(|(path, (size, sha256, sha512))| {
            IndexFile { path, size, sha256, sha512 }
        });
        let fields: Vec<_> = fields.into_iter().collect();
        let release = Release { files: files.collect(), ..release_of(&fields) };
        prop_assert_eq!(Release::parse(&release.render().unwrap()).unwrap(), release);
    }
}

/// A Release with only these fields; the reader chooses the type of its list.
fn release_of(fields: &[(String, String)]) -> Release {
    let fields = fields.iter().map(|(name, value)| format!("{name}: {value}\n"));
    let text: String = fields.chain(["SHA256:\n".to_owned()]).collect();
    Release::parse(&text).unwrap()
}

/// An item at a path: content, target of a link, or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    File(Vec<u8>, bool),
    Link(String),
    Folder,
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        (vec(any::<u8>(), 0..3000), any::<bool>()).prop_map(|(data, run)| Item::File(data, run)),
        "[ -~]{1,200}".prop_map(Item::Link),
    ]
}

/// The items of a package of either format, by path.
fn payload(path: &std::path::Path) -> BTreeMap<String, Item> {
    let reader = PackageReader::open(support::fixtures::content(path)).unwrap();
    let mut found = BTreeMap::new();
    let visit = &mut |entry: &rockpack_archive::payload::ReadEntry,
                      data: &mut dyn std::io::Read| {
        let item = match &entry.entry.kind {
            PayloadEntryKind::Directory => Item::Folder,
            PayloadEntryKind::Link { target } => Item::Link(target.clone()),
            PayloadEntryKind::Special(special) => panic!("a {}", special.as_str()),
            PayloadEntryKind::File => {
                let mut content = Vec::new();
                data.read_to_end(&mut content).unwrap();
                Item::File(content, entry.entry.mode & 0o111 != 0)
            }
        };
        assert!(found.insert(entry.entry.path.to_string(), item).is_none());
        Ok(())
    };
    reader.visit(visit).unwrap();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Names, links, modes and content, in both formats and both compressions.
    #[test]
    fn packages_of_both_formats_are_read_back(
        items in btree_map("[!-.0-~ä-ö ]{0,120}[!-.0-~]", item(), 1..12),
        xz in any::<bool>(),
    ) {
        let mut tree = packages::Tree::default().deb_directory("opt").directory("opt/x");
        let names: Vec<_> = items.keys().filter(|name| !name.starts_with('.')).cloned().collect();
        for name in &names {
            let path = format!("opt/x/{name}");
            tree = match &items[name] {
                Item::Link(target) => tree.link(&path, target),
                Item::File(data, run) => {
                    let mode = if *run { 0o755 } else { 0o644 };
                    tree.file(&path, Content::of_bytes(data.clone()), mode, Treatment::Plain)
                }
                Item::Folder => unreachable!("is not asked for"),
            };
        }
        let package = packages::package("x", tree.entries());
        let compression = if xz { Compression::XZ } else { Compression::default() };
        let out = tempfile::tempdir().unwrap();
        let set = packages::emit_set(out.path(), &[package], &packages::options(1, compression));
        for emitted in set {
            let mut found = payload(&out.path().join(&emitted.file_name));
            found.retain(|_, item| *item != Item::Folder);
            let expected = names.iter().map(|name| (format!("opt/x/{name}"), items[name].clone()));
            prop_assert_eq!(found, expected.collect::<BTreeMap<_, _>>());
        }
    }
}
