//! The example shards are what their script makes of their sources.

use std::collections::BTreeMap;
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

/// The compiler that made the committed files.
const CLANG: &str = "19.1.7";

/// The libzstd used for them; another one compresses the same bundle to other bytes.
const LIBZSTD: &str = "libzstd.so.1.5.4";

const SHARDS: [&str; 3] = ["gfx110X-build", "gfx1151-build", "gfx120X-build"];

/// A file or link as git stores it.
#[derive(Debug, PartialEq, Eq)]
enum Entry {
    Link(PathBuf),
    File { executable: bool, bytes: Vec<u8> },
}

/// Every file and link of the three shards below `root`, by path.
fn shards(root: &Path) -> BTreeMap<PathBuf, Entry> {
    let mut entries = BTreeMap::new();
    for shard in SHARDS {
        walk(root, Path::new(shard), &mut entries);
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

/// The bundles of a file; none if it is no fat binary.
fn bundles(bytes: &[u8]) -> Vec<&[u8]> {
    let is_fat =
        object::File::parse(bytes).is_ok_and(|file| file.section_by_name(".hip_fatbin").is_some());
    if is_fat { example::bundles(bytes) } else { Vec::new() }
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
    let (built, committed) = (shards(&folder), shards(&tools::repository("examples/shards")));
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
