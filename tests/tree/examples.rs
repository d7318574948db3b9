//! The example shards: small, reproducible, and with every code object where its tag says it belongs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::Object;
use support::example;
use support::example::unbundle;
use support::fixtures::what_makes;
use support::program::kept;
use support::tools;

/// The most bytes for the binaries of all shards: everyone who clones the repository gets them.
const SIZE_LIMIT: u64 = 2_000_000;

/// The compiler that made the committed files.
const CLANG: &str = "19.1.7";

/// The libzstd used for them; another one compresses the same bundle to other bytes.
const LIBZSTD: &str = "libzstd.so.1.5.4";

const SHARDS: [(&str, &[&str]); 3] = [
    ("gfx110X", &["gfx1100", "gfx1101", "gfx1102"]),
    ("gfx1151", &["gfx1151"]),
    ("gfx120X", &["gfx1200", "gfx1201"]),
];

/// A file or link as git stores it.
#[derive(Debug, PartialEq, Eq)]
enum Entry {
    Link(PathBuf),
    File { executable: bool, bytes: Vec<u8> },
}

/// Every file and link of the three shards below `root`, by path.
fn shards(root: &Path) -> BTreeMap<PathBuf, Entry> {
    let mut entries = BTreeMap::new();
    for (shard, _) in SHARDS {
        walk(root, Path::new(&format!("{shard}-build")), &mut entries);
    }
    entries
}

fn walk(root: &Path, folder: &Path, entries: &mut BTreeMap<PathBuf, Entry>) {
    for entry in fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            walk(root, &path, entries);
        } else if kind.is_symlink() {
            entries.insert(path, Entry::Link(fs::read_link(entry.path()).unwrap()));
        } else {
            let executable = entry.metadata().unwrap().permissions().mode() & 0o100 != 0;
            let bytes = fs::read(entry.path()).unwrap();
            entries.insert(path, Entry::File { executable, bytes });
        }
    }
}

fn committed() -> BTreeMap<PathBuf, Entry> {
    shards(&tools::repository("examples/shards"))
}

/// The bundles of a file; none if it is no fat binary.
fn bundles(bytes: &[u8]) -> Vec<&[u8]> {
    let is_fat =
        object::File::parse(bytes).is_ok_and(|file| file.section_by_name(".hip_fatbin").is_some());
    if is_fat { example::bundles(bytes) } else { Vec::new() }
}

/// The tag of a code object, as (shard, translation unit, arch).
fn tag(code: &[u8]) -> (String, String, String) {
    let start = b"rockpack-example ";
    let at = code.windows(start.len()).position(|window| window == start);
    let rest = &code[at.expect("a tag")..];
    let end = rest.iter().position(|byte| *byte == 0).unwrap();
    let text = std::str::from_utf8(&rest[..end]).unwrap();
    let field = |name: &str| {
        let field = text.split(' ').find_map(|field| field.strip_prefix(name));
        field.unwrap_or_else(|| panic!("{text}: no {name}")).to_owned()
    };
    (field("shard="), field("tu="), field("arch="))
}

/// The units of a binary's bundles in section order, each with its archs. Fails unless entry IDs match the
/// tags, and all code is of this shard.
fn units(shard: &str, bytes: &[u8]) -> Vec<(String, BTreeSet<String>)> {
    let mut units = Vec::new();
    for bundle in bundles(bytes) {
        let mut names = BTreeSet::new();
        let mut archs = BTreeSet::new();
        for (entry, code) in unbundle(bundle) {
            let (from, unit, arch) = tag(&code);
            assert_eq!(from, shard);
            assert_eq!(entry, arch);
            names.insert(unit);
            archs.insert(arch);
        }
        assert_eq!(names.len(), 1, "one translation unit per bundle");
        units.push((names.pop_first().unwrap(), archs));
    }
    units
}

/// The expected result of [`units`] for a host binary of a shard.
fn expected_units(shard: &str, name: &str, archs: &[&str]) -> Vec<(String, BTreeSet<String>)> {
    let grouped: BTreeSet<String> = archs.iter().map(|arch| (*arch).to_owned()).collect();
    let mut with_stray = grouped.clone();
    with_stray.insert("gfx906".to_owned());
    let axpy = ("axpy".to_owned(), with_stray);
    let gemm = ("gemm".to_owned(), grouped.clone());
    match name {
        "libexblas.so.1.2" if shard == "gfx1151" => vec![gemm, axpy],
        "libexblas.so.1.2" => vec![axpy, gemm],
        "exblas-bench" => vec![("bench".to_owned(), grouped)],
        "exblas-tune" => vec![("tune".to_owned(), grouped)],
        _ => Vec::new(),
    }
}

#[test]
fn the_committed_shards_are_small() {
    let size: u64 = committed()
        .values()
        .map(|entry| match entry {
            Entry::Link(_) => 0,
            Entry::File { bytes, .. } => bytes.len() as u64,
        })
        .sum();
    assert!(size < SIZE_LIMIT, "{size} bytes");
}

#[test]
fn every_bundle_holds_what_it_should() {
    tools::need(&["clang-offload-bundler-19"]);
    let entries = committed();
    for (shard, archs) in SHARDS {
        let mut fat = 0;
        for (path, entry) in &entries {
            let Entry::File { bytes, .. } = entry else {
                continue;
            };
            if !path.starts_with(format!("{shard}-build")) {
                continue;
            }
            let name = path.file_name().unwrap().to_str().unwrap();
            let expected = expected_units(shard, name, archs);
            assert_eq!(units(shard, bytes), expected, "{}", path.display());
            fat += usize::from(!expected.is_empty());
        }
        assert_eq!(fat, 3, "{shard}: a library and two programs");
    }
}

#[test]
fn every_database_file_is_of_the_arch_that_its_name_says() {
    for (shard, archs) in SHARDS {
        let library = format!("{shard}-build/");
        let mut found = BTreeSet::new();
        for (path, entry) in &committed() {
            let (Entry::File { bytes, .. }, text) = (entry, path.to_str().unwrap()) else {
                continue;
            };
            let Some((stem, "co" | "hsaco")) = text.rsplit_once('.') else {
                continue;
            };
            if !text.starts_with(&library) {
                continue;
            }
            let (from, unit, arch) = tag(bytes);
            assert_eq!(from, shard, "{text}");
            assert!(stem.ends_with(&arch), "{text}: {arch}");
            found.insert((unit, arch));
        }
        let expected: BTreeSet<_> = archs
            .iter()
            .flat_map(|arch| {
                ["fallback", "kernels", "tensile"].map(|unit| (unit.to_owned(), (*arch).to_owned()))
            })
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn database_indexes_name_their_arch_and_what_exists() {
    let entries = committed();
    let mut named = BTreeMap::<&str, usize>::new();
    for (path, entry) in &entries {
        let (Entry::File { bytes, .. }, Some("dat")) = (entry, extension(path)) else {
            continue;
        };
        let index: BTreeMap<String, String> = rmp_serde::from_slice(bytes).unwrap();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        assert!(stem.ends_with(&format!("_{}", index["architecture"])), "{stem}");
        if let Some(other) = index.get("placeholder") {
            assert!(entries.contains_key(&path.with_file_name(format!("{other}.dat"))));
            *named.entry("index").or_default() += 1;
        }
        if let Some(file) = index.get("codeObjectFile") {
            let Some(Entry::File { bytes, .. }) = entries.get(&path.with_file_name(file)) else {
                panic!("{stem}: no {file}");
            };
            assert!(has_kernel(bytes, &index["kernel"]), "{file}");
            *named.entry("code").or_default() += 1;
        }
    }
    assert_eq!(named, BTreeMap::from([("code", 6), ("index", 6)]), "one for each grouped arch");
}

fn extension(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

fn has_kernel(code: &[u8], kernel: &str) -> bool {
    let symbol = format!("\0{kernel}.kd\0");
    code.windows(symbol.len()).any(|window| window == symbol.as_bytes())
}

/// The script's output is kept between runs, as long as the script, its sources, and the compiler with its
/// libzstd stay the same.
#[test]
fn the_build_script_reproduces_the_committed_shards() {
    const COMPILER: [&str; 3] = ["clang-19", "ld.lld-19", "clang-offload-bundler-19"];
    tools::need(&COMPILER);
    let version = tools::run(Command::new("clang-19").arg("--version")).stdout;
    if !String::from_utf8(version).unwrap().contains(CLANG) {
        tools::skip(&format!("needs clang-19 {CLANG}, which made the committed files"));
    }
    let made_of = ["examples/shards/build.sh", "examples/shards/source"];
    let name = format!("shards-{}-{}", what_makes(&COMPILER, &made_of), libzstd().display());
    let folder = kept(&name, |folder| {
        tools::run(Command::new(tools::repository("examples/shards/build.sh")).arg(folder));
    });
    let (built, committed) = (shards(&folder), committed());
    assert_eq!(built.keys().collect::<Vec<_>>(), committed.keys().collect::<Vec<_>>());
    for (path, entry) in &built {
        let same = *entry == committed[path]
            || (libzstd() != Path::new(LIBZSTD) && same_code(entry, &committed[path]));
        assert!(same, "{} differs from the committed one", path.display());
    }
}

/// The file name of the compiler's libzstd, which includes its version.
fn libzstd() -> PathBuf {
    let library = fs::canonicalize("/usr/lib/x86_64-linux-gnu/libzstd.so.1").unwrap_or_default();
    library.file_name().unwrap_or_default().into()
}

/// Tells whether two host binaries with compressed bundles have the same code objects.
fn same_code(one: &Entry, other: &Entry) -> bool {
    let (Entry::File { bytes: one, .. }, Entry::File { bytes: other, .. }) = (one, other) else {
        return false;
    };
    let compressed = bundles(one).iter().any(|bundle| bundle.starts_with(b"CCOB"));
    compressed && code_objects(one) == code_objects(other)
}

/// The code objects of each bundle.
fn code_objects(binary: &[u8]) -> Vec<BTreeMap<String, Vec<u8>>> {
    bundles(binary).iter().map(|bundle| unbundle(bundle)).collect()
}

#[test]
fn the_debian_groups_cover_each_arch_once() {
    let text =
        fs::read_to_string(tools::repository("examples/debian-rocm/packaging.toml")).unwrap();
    let config: toml::Table = text.parse().unwrap();
    let groups = config["architecture_groups"].as_table().unwrap();
    let mut archs: Vec<&str> = groups
        .values()
        .flat_map(|group| group["architectures"].as_array().unwrap())
        .map(|arch| arch.as_str().unwrap())
        .collect();
    archs.sort_unstable();
    let built_by_debian = [
        "gfx1010", "gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx803", "gfx900", "gfx906",
        "gfx908", "gfx90a",
    ];
    assert_eq!(archs, built_by_debian);
}
