//! `untransformable`: fat binaries that cannot be transformed, such as rocSHMEM's, which have no wrappers.

use support::example::entries;

use crate::rules::{Case, accounted, find, patch};

const TUNE: &str = "libexec/exblas/exblas-tune";
const KEEP: &str = "[validation]\nuntransformable = 'keep-fat'\n";

/// Renames the section of wrappers in a shard's program.
fn hide_wrappers(case: &Case, group: usize) {
    patch(&case.file(group, TUNE), |bytes| {
        let at = find(bytes, b".hipFatBinSegment\0");
        bytes[at + 1] = b'x';
    });
}

#[test]
fn they_are_refused_or_kept_with_a_finding() {
    let case = Case::new();
    (0..3).for_each(|group| hide_wrappers(&case, group));
    let expected = ["reading libexec/exblas/exblas-tune: ", "but no section .hipFatBinSegment"];
    case.is_refused("", &expected);
    let case = case.built(KEEP);
    let kept = case.findings("R037");
    assert_eq!(kept.len(), 1);
    assert_eq!(
        kept[0]["subject"],
        "gfx110X-build/blas_lib_gfx110X-dgpu/libexec/exblas/exblas-tune"
    );
    assert_eq!(accounted(kept[0]), 3);
    assert!(case.code_objects(TUNE).is_empty());
    let original = std::fs::read(case.file(0, TUNE)).unwrap();
    let packages = &case.receipt["packages"];
    let each = packages.as_array().unwrap().iter();
    let mut entries = each.flat_map(|package| entries(packages, package));
    let (_, entry) = entries.find(|(path, _)| path.ends_with(TUNE)).unwrap();
    assert_eq!(entry["sha256"], support::sha256(&original));
    // One shard's file serves only its archs: a finding reports the code of the others, which is in no
    // package.
    let dropped = case.findings("R038");
    let counts: Vec<usize> = dropped.iter().map(|finding| accounted(finding)).collect();
    assert_eq!(counts, [1, 2]);
}

#[test]
fn one_component_may_keep_them() {
    let case = Case::new();
    (0..3).for_each(|group| hide_wrappers(&case, group));
    case.is_refused("[components.blas_run]\nuntransformable = 'keep-fat'\n", &["exblas-tune"]);
    case.built("[components.blas_lib]\nuntransformable = 'keep-fat'\n");
}

#[test]
fn one_that_others_could_load_from_archives_is_refused() {
    let case = Case::new();
    hide_wrappers(&case, 0);
    case.is_refused(KEEP, &["libexec/exblas/exblas-tune has no device code in one shard"]);
}

/// A damaged binary is not kept: its code objects cannot be listed.
#[test]
fn a_damaged_one_is_refused_all_the_same() {
    let case = Case::new();
    hide_wrappers(&case, 0);
    patch(&case.file(0, TUNE), |bytes| {
        let (bundle, _) = support::example::section(bytes, ".hip_fatbin");
        bytes[bundle + 24..bundle + 32].copy_from_slice(&u64::MAX.to_le_bytes());
    });
    case.is_refused(KEEP, &["reading libexec/exblas/exblas-tune: ", "offload bundle"]);
}
