//! Host libraries and static archives that belong to one arch as a whole.

use std::path::Path;

use rockpack_core::tree::{Node, TreePath};
use rockpack_split::HostKind;
use support::device::{compile, run};
use support::tools::need;

use crate::databases::{Files, findings, placed, split_files};

/// A library and an archive with device code for `archs`.
fn made(dir: &Path, archs: &[&str]) -> [Vec<u8>; 2] {
    compile(dir, "unit", archs, &[]);
    run(dir, &["clang++-19", "-shared", "-fuse-ld=lld", "unit.o", "-o", "unit.so"]);
    let _ = std::fs::remove_file(dir.join("unit.a"));
    run(dir, &["llvm-ar-19", "rcs", "unit.a", "unit.o"]);
    ["unit.so", "unit.a"].map(|name| std::fs::read(dir.join(name)).unwrap())
}

const LIBRARY: &str = "lib/libMIOpenCKConv_gfx942.so";
const ARCHIVE: &str = "lib/libdevice_conv_operations_gfx942_xnackp.a";

fn files(dir: &Path, archs: &[&str]) -> Files {
    let [library, archive] = made(dir, archs);
    Files::from([(LIBRARY.to_owned(), library), (ARCHIVE.to_owned(), archive)])
}

#[test]
fn device_code_decides_whose_they_are() {
    need(&["clang++-19", "ld.lld-19", "llvm-ar-19"]);
    let dir = tempfile::tempdir().unwrap();
    let split = split_files("one", &files(dir.path(), &["gfx942"]));
    let names = [LIBRARY, ARCHIVE].map(|path| path.rsplit('/').next().unwrap());
    assert_eq!(placed(&split)[LIBRARY], "gfx942");
    assert_eq!(placed(&split)[ARCHIVE], "gfx942");
    assert_eq!(findings(&split), names.map(|name| ("R028", name)));

    let split = split_files("one", &files(dir.path(), &["gfx90a"]));
    assert_eq!(placed(&split)[LIBRARY], "gfx90a");
    assert_eq!(placed(&split)[ARCHIVE], "gfx90a");
    let mismatches = names.map(|name| ("R020", name));
    assert_eq!(findings(&split), [mismatches, names.map(|name| ("R028", name))].concat());

    // With code of several archs, the library is transformed like any other.
    let split = split_files("one", &files(dir.path(), &["gfx942", "gfx90a"]));
    let path = TreePath::new(LIBRARY).unwrap();
    let Some(Node::File { data, .. }) = split.host.get(&path) else {
        panic!("{LIBRARY} is no host file");
    };
    assert!(matches!(data.kind, HostKind::Fat(_)));
    assert_eq!(placed(&split)[ARCHIVE], "host");
    let kept = vec![("R030", names[1])];
    assert_eq!(findings(&split), [mismatches.to_vec(), kept].concat());
}
