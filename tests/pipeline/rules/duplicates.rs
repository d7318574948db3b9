//! `error_on_duplicate_device_code`: the same code from two shards is packed once, different code
//! is an error that names both.

use support::example::{plant, tree};

use crate::rules::{Case, GROUPS, accounted, find, patch};

const TUNE: &str = "libexec/exblas/exblas-tune";

/// A case with the shard of gfx110X twice.
fn with_a_shard_twice() -> Case {
    let case = Case::new();
    let again = case.shards().join("gfx110X-again");
    std::fs::create_dir(&again).unwrap();
    plant(&tree(&GROUPS[0].folder(&case.shards())), &again, false);
    case
}

/// Changes a letter in a translation unit's code object for an arch, in the copied shard.
fn change(case: &Case, file: &str, (unit, arch): (&str, &str)) {
    let artifact = case.shards().join("gfx110X-again/blas_lib_gfx110X-dgpu");
    let tag = GROUPS[0].tag(unit, arch);
    patch(&artifact.join("math-libs/BLAS/rocBLAS/stage").join(file), |bytes| {
        let at = find(bytes, tag.as_bytes());
        bytes[at] = b'R';
    });
}

#[test]
fn identical_code_is_packed_once() {
    let case = with_a_shard_twice().built("");
    assert_eq!(case.code_objects(TUNE).len(), 6);
    let repeated = case.findings("R016");
    let told = repeated.iter().any(|finding| {
        let message = finding["message"].as_str().unwrap();
        finding["subject"] == "blas_lib/libexec/exblas/exblas-tune"
            && message.contains("gfx110X-build")
            && message.contains("gfx110X-again")
    });
    assert!(told, "{repeated:?}");
}

#[test]
fn different_code_is_refused_or_dropped() {
    let case = with_a_shard_twice();
    change(&case, TUNE, ("tune", "gfx1101"));
    let expected = [
        "blas_lib/libexec/exblas/exblas-tune: ",
        "1 code object of gfx1101 differs between gfx110X-build/blas_lib_gfx110X-dgpu and \
         gfx110X-again/blas_lib_gfx110X-dgpu (first: wrapper 0, gfx1101)",
    ];
    case.is_refused("", &expected);
    // A component's rule wins over the general one, and so does an artifact's.
    let off = "[components.blas]\nerror_on_duplicate_device_code = false\n";
    case.is_refused(
        &format!("{off}[components.blas_lib]\nerror_on_duplicate_device_code = true\n"),
        &expected,
    );
    let case = case.built(off);
    let dropped = case.findings("R023");
    assert_eq!((dropped.len(), accounted(dropped[0])), (1, 1));
}

/// A compiler's fallback adds gfx906 to every shard. No package has this code, so it may differ.
#[test]
fn code_of_archs_that_are_not_grouped_may_differ() {
    let case = with_a_shard_twice();
    change(&case, "lib/libexblas.so.1.2", ("axpy", "gfx906"));
    assert_eq!(case.built("").findings("R012").len(), 1);
}
