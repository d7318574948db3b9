//! Files of kernel databases that were damaged on their way.

use std::fs;

use crate::refusals::{Bad, FAILED, at};

const CODE: &str = "lib/rocblas/library/TensileLibrary_gfx1101.co";

#[test]
fn a_database_file_without_device_code_is_refused() {
    let bad = Bad::new();
    let artifact = "gfx110X-build/blas_lib_gfx110X-dgpu";
    fs::write(bad.file(CODE), "").unwrap();
    let empty = "kernel database: at offset 0x0: is empty";
    let message = format!("{artifact}: reading {CODE}: ");
    bad.is_refused(FAILED, &[&message, empty, "copied only in part"]);
    fs::write(bad.file(CODE), "hello").unwrap();
    let place = format!("{artifact}/math-libs/BLAS/rocBLAS/stage/{CODE}: ");
    bad.is_refused(FAILED, &[&place, &at(0), "is neither a code object nor a bundle"]);
}

#[test]
fn a_database_file_that_is_cut() {
    let bad = Bad::new();
    let bytes = fs::read(bad.file(CODE)).unwrap();
    fs::write(bad.file(CODE), &bytes[..bytes.len() / 2]).unwrap();
    bad.is_refused(FAILED, &[CODE]);
}

/// One damaged byte turns the code object's header into another machine, class or byte order.
#[test]
fn a_database_file_with_a_damaged_header_is_refused() {
    for path in [CODE, "share/kernels/one.hsaco"] {
        let bad = Bad::new();
        let good = fs::read(bad.file(CODE)).unwrap();
        let file = bad.file(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        for (at, byte) in [(18, 0x3e), (18, 0x3f), (4, 1), (4, 0), (5, 2), (5, 9)] {
            let mut bytes = good.clone();
            bytes[at] = byte;
            support::note!("{path}: {byte:#x} at {at}");
            // EM_X86_64 is 62 in the first byte; the second byte is 0, as in AMDGPU's number.
            fs::write(&file, bytes).unwrap();
            bad.is_refused(FAILED, &[path]);
        }
    }
}

#[test]
fn a_shared_database_file_without_device_code_is_refused() {
    let bad = Bad::new();
    let path = "lib/hipblaslt/library/hipblasltTransform.hsaco";
    fs::create_dir_all(bad.file(path).parent().unwrap()).unwrap();
    fs::write(bad.file(path), "").unwrap();
    bad.is_refused(FAILED, &[path, "kernel database: at offset 0x0: is empty"]);
}
