//! `verify_generic_artifacts_match`: the host files of all shards are the same except for their device code.
//! Each example shard links the library's translation units in another order; the program has a single unit.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use object::{Object, ObjectSection};
use support::example::section;

use crate::rules::{Case, patch};

const RUN: &str = "[components.blas_run]\nverify_generic_artifacts_match = true\n";
const BENCH: &str = "bin/exblas-bench";

#[test]
fn programs_that_differ_in_device_code_only_match() {
    let case = Case::new();
    let [one, other] = [0, 1].map(|group| fs::read(case.file(group, BENCH)).unwrap());
    assert_ne!(one.len(), other.len());
    case.built(RUN);
}

#[test]
fn a_changed_instruction_is_found() {
    let case = Case::new();
    patch(&case.file(1, BENCH), |bytes| {
        let (offset, size) = section(bytes, ".text");
        bytes[offset + size - 1] ^= 1;
    });
    let expected = [
        "blas_run: bin/exblas-bench has different bytes in .text, first at offset 0x",
        "gfx110X-build/blas_run_gfx110X-dgpu comes first, gfx1151-build/blas_run_gfx1151 disagrees",
    ];
    case.is_refused(RUN, &expected);
    // Without the rule there is no check.
    case.built("");
}

/// The symbols are like `printf@V1` and `printf@@V2`; the second build has another one for the first.
#[test]
fn every_version_of_a_symbol_is_compared() {
    const SYMBOL: usize = 24;
    let case = Case::new();
    // The last symbol but one gets the name of the last.
    let renamed = |symbols: &mut [u8]| {
        let last = symbols.len() - SYMBOL;
        symbols.copy_within(last..last + 4, last - SYMBOL);
    };
    for group in 0..3 {
        patch_symbols(&case, group, renamed);
    }
    let resized = |symbols: &mut [u8]| symbols[symbols.len() - 2 * SYMBOL + 16] = 7;
    patch_symbols(&case, 1, resized);
    let expected = "has the symbol __hipUnregisterFatBinary with 0 bytes and with 7 bytes";
    case.is_refused(RUN, &[&format!("{BENCH} {expected}"), "blas_run_gfx1151 disagrees"]);
    patch_symbols(&case, 1, |symbols| symbols[symbols.len() - 2 * SYMBOL + 16] = 0);
    case.built(RUN);
}

fn patch_symbols(case: &Case, group: usize, patched: impl FnOnce(&mut [u8])) {
    patch(&case.file(group, BENCH), |bytes| {
        let (offset, size) = section(bytes, ".dynsym");
        patched(&mut bytes[offset..offset + size]);
    });
}

/// An empty table in front of the real one would hide differences in that.
#[test]
fn a_second_table_of_dynamic_symbols_is_refused() {
    const SYMBOL: usize = 24;
    let case = Case::new();
    for group in 0..3 {
        patch(&case.file(group, BENCH), |bytes| {
            let note = header(bytes, ".note.gnu.build-id");
            bytes[note + 4] = 11;
            bytes[note + 32..note + 40].fill(0);
        });
    }
    patch(&case.file(1, BENCH), |bytes| {
        let (offset, size) = section(bytes, ".dynsym");
        bytes[offset + size - 2 * SYMBOL + 16] = 7;
    });
    case.is_refused(RUN, &["exblas-bench", "has dynamic symbols", "not loaded at DT_SYMTAB"]);
}

/// The offset of a section's header.
fn header(bytes: &[u8], name: &str) -> usize {
    let index = object::File::parse(bytes).unwrap().section_by_name(name).unwrap().index().0;
    usize::from_le_bytes(bytes[40..48].try_into().unwrap()) + index * 64
}

#[test]
fn another_link_order_is_found() {
    let all = "[validation]\nverify_generic_artifacts_match = true\n";
    Case::new().is_refused(all, &["lib/libexblas.so.1.2 has ", "blas_lib_gfx1151 disagrees"]);
    // A component can revoke a general rule.
    let but = format!("{all}[components.blas_lib]\nverify_generic_artifacts_match = false\n");
    Case::new().built(&but);
}

#[test]
fn bytes_modes_and_missing_files_are_told_apart() {
    let rule = "[components.host-suite-sparse]\nverify_generic_artifacts_match = true\n";
    Case::new().built(rule);
    let case = Case::new();
    patch(&sparse_library(&case, "gfx1151-build"), |bytes| *bytes.last_mut().unwrap() ^= 1);
    case.is_refused(rule, &["libexsuitesparse.so.7.8 has different content in its "]);
    patch(&sparse_library(&case, "gfx1151-build"), |bytes| bytes.push(0));
    case.is_refused(rule, &["libexsuitesparse.so.7.8 has different content: ", " bytes"]);
    let case = Case::new();
    let plain = Permissions::from_mode(0o644);
    fs::set_permissions(sparse_library(&case, "gfx120X-build"), plain).unwrap();
    case.is_refused(rule, &["executable on one side only (mode 755 and 644)", "gfx120X-build"]);
    let case = Case::new();
    fs::remove_file(sparse_library(&case, "gfx110X-build")).unwrap();
    let missing = "libexsuitesparse.so.7.8 is in gfx1151-build, gfx120X-build and missing in \
                   gfx110X-build";
    case.is_refused(rule, &[missing]);
}

fn sparse_library(case: &Case, shard: &str) -> PathBuf {
    let folder = "host-suite-sparse_lib_generic/third-party/SuiteSparse/stage/lib";
    case.shards().join(shard).join(folder).join("libexsuitesparse.so.7.8")
}
