//! Database files that move to directories of their archs when shards are joined.

use std::fs;
use std::process::Command;

use support::example::{GROUPS, copy_shards, tree};
use support::tools;

use crate::directories::{Work, assert_same_packages};

#[test]
fn moved_database_files_leave_no_folders_among_the_host_files() {
    tools::need(&["dpkg-deb"]);
    let work = Work::new();
    let shards = work.path("shards");
    copy_shards(&shards);
    // The other shard's fallback has different kernels, so each arch gets its own copy.
    let other = GROUPS[1].stage(&shards, "lib");
    let fallback = other.join("lib/rocblas/library/TensileLibrary_fallback.dat");
    let text = fs::read(&fallback).unwrap();
    let at = text.windows(8).position(|bytes| bytes == b"fallback").unwrap();
    let kernel = text.windows(11).position(|bytes| bytes == b"SB_fallback").unwrap();
    assert!(at < kernel);
    let mut changed = text.clone();
    changed[kernel..kernel + 11].copy_from_slice(b"SB_FALLBACK");
    fs::write(&fallback, changed).unwrap();

    let direct = work.build(&shards, "direct");
    let split = work.split(&shards, "split");
    assert_same_packages(&direct, &work.build(&split, "from-split"), |_| true);
    let recombined = work.recombine(&split, "recombined");
    let built = work.build(&recombined, "from-recombined");
    assert_same_packages(&direct, &built, |_| true);

    let root = work.path("root");
    let deb = built.join(support::example::deb_name("rocm-blas"));
    tools::run(Command::new("dpkg-deb").arg("-x").arg(deb).arg(&root));
    let host = tree(&root);
    let library = |path: &&String| path.contains("lib/rocblas/library/");
    assert_eq!(host.keys().filter(library).count(), 0, "{:?}", host.keys());
    let group = recombined.join("blas_lib_gfx115X/math-libs/BLAS/rocBLAS/stage");
    assert!(group.join("lib/rocblas/library/gfx1151/TensileLibrary_fallback.dat").is_file());
}
