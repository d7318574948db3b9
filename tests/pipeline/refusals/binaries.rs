//! Fat binaries with damaged or unknown device code. Every case changes a few bytes of a committed example,
//! at offsets from the example's own tables.

use std::fs;
use std::path::Path;
use std::process::Command;

use object::{Object, ObjectSection};
use support::example::{GROUPS, section};
use support::tools;

use crate::refusals::{Bad, FAILED, at, find, patch};

const LIBRARY: &str = "lib/libexblas.so.1.2";
/// A position-dependent program: its wrapper's pointer is a plain value.
const PROGRAM: &str = "libexec/exblas/exblas-tune";
/// The start of every error about a binary: the step that failed, and the file.
const READING: &str =
    "splitting gfx110X-build/blas_lib_gfx110X-dgpu: reading lib/libexblas.so.1.2: ";

fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    bytes[offset..offset + value.len()].copy_from_slice(value);
}

fn word(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

/// Refuses `file` after `change`, which returns the offset that the error has to name.
fn refuses(file: &str, change: impl FnOnce(&mut Vec<u8>) -> usize, expected: &[&str]) {
    let bad = Bad::new();
    let mut offset = 0;
    patch(&bad.file(file), |bytes| offset = change(bytes));
    let (place, name) = (at(offset), format!("/stage/{file}: "));
    let reading = format!("reading {file}: ");
    let all: Vec<&str> = [&place, &name, &reading]
        .into_iter()
        .map(String::as_str)
        .chain(expected.iter().copied())
        .collect();
    bad.is_refused(FAILED, &all);
}

/// The file offset of a field of a section header.
fn header_field(bytes: &[u8], name: &str, field: usize) -> usize {
    let table = usize::try_from(u64::from_le_bytes(bytes[40..48].try_into().unwrap())).unwrap();
    let file = object::File::parse(bytes).unwrap();
    table + 64 * file.section_by_name(name).unwrap().index().0 + field
}

#[test]
fn a_bundle_whose_entry_reaches_beyond_its_end() {
    let change = |bytes: &mut Vec<u8>| {
        let (bundle, _) = section(bytes, ".hip_fatbin");
        // The first entry: offset, size, id length, id.
        put(bytes, bundle + 32 + 8, &(1_u64 << 40).to_le_bytes());
        bundle + 32
    };
    let expected = ["offload bundle: ", "claims 1099511627776 bytes", "the file is damaged"];
    refuses(LIBRARY, change, &expected);
}

#[test]
fn a_truncated_bundle_is_refused() {
    let change = |bytes: &mut Vec<u8>| {
        let (bundle, size) = section(bytes, ".hip_fatbin");
        let field = header_field(bytes, ".hip_fatbin", 32);
        put(bytes, field, &(size as u64 - 0x100).to_le_bytes());
        // The last entry, after those of the host and of two archs.
        let entries = usize::try_from(word(bytes, bundle + 24)).unwrap();
        (1..entries).fold(bundle + 32, |entry, _| {
            entry + 24 + usize::try_from(word(bytes, entry + 16)).unwrap()
        })
    };
    refuses(PROGRAM, change, &["offload bundle: ", "beyond its end at"]);
}

#[test]
fn a_truncated_file_is_refused() {
    let bad = Bad::new();
    patch(&bad.file(LIBRARY), |bytes| bytes.truncate(bytes.len() / 2));
    bad.is_refused(FAILED, &[READING, "section header: at offset 0x", "copied only in part"]);
}

#[test]
fn a_compressed_bundle_with_a_wrong_size_is_refused() {
    let header = |bytes: &[u8]| find(bytes, b"CCOB");
    let total = |bytes: &mut Vec<u8>| {
        let header = header(bytes);
        put(bytes, header + 8, &(1_u32 << 30).to_le_bytes());
        header
    };
    refuses(LIBRARY, total, &["CCOB stream: ", "the total size is 1073741824 bytes"]);
    for (change, message) in [(1, "16209 are declared"), (-1, "more than the 16207 bytes declared")]
    {
        let uncompressed = |bytes: &mut Vec<u8>| {
            let header = header(bytes);
            let size = word(bytes, header + 12).checked_add_signed(change).unwrap();
            put(bytes, header + 12, &size.to_le_bytes());
            header
        };
        refuses(LIBRARY, uncompressed, &["CCOB stream: ", message]);
    }
}

#[test]
fn a_compressed_bundle_of_an_unknown_method_or_version_is_refused() {
    for (field, value, message) in
        [(6, 7_u16, "compression method 7 is unknown"), (4, 9, "version 9 is unknown")]
    {
        let change = |bytes: &mut Vec<u8>| {
            let place = find(bytes, b"CCOB") + field;
            put(bytes, place, &value.to_le_bytes());
            place
        };
        refuses(LIBRARY, change, &["CCOB header: ", message, "newer"]);
    }
}

#[test]
fn a_compressed_bundle_with_a_damaged_stream_is_refused() {
    let change = |bytes: &mut Vec<u8>| {
        let header = find(bytes, b"CCOB");
        bytes[header + 40] ^= 0xff;
        header
    };
    refuses(LIBRARY, change, &["CCOB stream: ", "cannot decode the compressed stream"]);
}

/// The offset of the relocation that fills the first wrapper's pointer.
fn wrapper_relocation(bytes: &[u8]) -> usize {
    let file = object::File::parse(bytes).unwrap();
    let wrapper = file.section_by_name(".hipFatBinSegment").unwrap().address();
    let (table, size) = section(bytes, ".rela.dyn");
    let fills = |at: &usize| bytes[*at..*at + 8] == (wrapper + 8).to_le_bytes();
    (table..table + size).step_by(24).find(fills).unwrap()
}

#[test]
fn a_wrapper_that_points_outside_of_the_section_is_refused() {
    let relocated = |bytes: &mut Vec<u8>| {
        let relocation = wrapper_relocation(bytes);
        put(bytes, relocation + 16, &0x10_u64.to_le_bytes());
        section(bytes, ".hipFatBinSegment").0
    };
    let expected = [".hipFatBinSegment: ", "points to 0x10, outside of 0x"];
    refuses(LIBRARY, relocated, &expected);
    let plain = |bytes: &mut Vec<u8>| {
        let (wrapper, _) = section(bytes, ".hipFatBinSegment");
        put(bytes, wrapper + 8, &0x10_u64.to_le_bytes());
        wrapper
    };
    refuses(PROGRAM, plain, &expected);
}

#[test]
fn a_wrapper_that_points_into_a_bundle_is_refused() {
    let change = |bytes: &mut Vec<u8>| {
        let relocation = wrapper_relocation(bytes);
        bytes[relocation + 16] += 8;
        section(bytes, ".hip_fatbin").0 + 8
    };
    let expected = [".hip_fatbin: ", "wrapper 0 points 0x8 bytes into the section"];
    refuses(LIBRARY, change, &expected);
}

#[test]
fn a_wrapper_without_its_magic_is_refused() {
    let change = |bytes: &mut Vec<u8>| {
        let (wrapper, _) = section(bytes, ".hipFatBinSegment");
        put(bytes, wrapper, &0x1234_5678_u32.to_le_bytes());
        wrapper
    };
    refuses(LIBRARY, change, &["neither a wrapper nor zero: the magic is 0x12345678"]);
}

/// A program without a dynamic section, with one wrapper and an empty bundle.
const STATIC: &str = r#"
    .globl _start
_start:
    movl $60, %eax
    xorl %edi, %edi
    syscall
    .section .hip_fatbin, "a", @progbits
    .p2align 12
bundle:
    .ascii "__CLANG_OFFLOAD_BUNDLE__"
    .quad 1, 4096, 0, 30
    .ascii "host-x86_64-unknown-linux-gnu-"
    .p2align 12
    .section .hipFatBinSegment, "aw", @progbits
    .p2align 3
    .long 0x48495046, 1
    .quad bundle, 0
    .section .note.GNU-stack, "", @progbits
"#;

fn link_static(source: &Path, program: &Path, options: &[&str]) {
    let mut command = Command::new("gcc");
    tools::run(command.args(["-nostdlib"]).args(options).arg("-o").arg(program).arg(source));
}

#[test]
fn a_static_program_with_device_code_is_refused() {
    tools::need(&["gcc"]);
    let bad = Bad::new();
    let source = bad.folder.path().join("static.S");
    fs::write(&source, STATIC).unwrap();
    let name = "libexec/exblas/static";
    link_static(&source, &bad.file(name), &["-static", "-no-pie"]);
    let expected = [
        "reading libexec/exblas/static: ",
        "/stage/libexec/exblas/static: ",
        "is a static executable with device code",
        "link it dynamically",
    ];
    bad.is_refused(FAILED, &expected);
}

/// The kernels of one shard's library are renamed so that none has a counterpart.
#[test]
fn wrappers_that_match_no_other_shards() {
    let bad = Bad::new();
    patch(&GROUPS[1].original(&bad.shards(), LIBRARY), |bytes| {
        for name in [&b"exblas_axpy_kernel"[..], b"exblas_scal_kernel"] {
            let places: Vec<usize> = (0..bytes.len() - name.len())
                .filter(|&place| bytes[place..].starts_with(name))
                .collect();
            assert!(!places.is_empty());
            places.into_iter().for_each(|place| bytes[place] = b'X');
        }
    });
    let expected = [
        "lib/libexblas.so.1.2: the wrappers of gfx110X-build/blas_lib_gfx110X-dgpu and \
         gfx1151-build/blas_lib_gfx1151 cannot be matched: ",
        // The unit `axpy` is wrapper 0 in one shard and 1 in the other.
        "wrappers 0 (kernel _Z18exblas_axpy_kernel",
        "wrappers 1 (kernel _Z18Xxblas_axpy_kernel",
    ];
    bad.is_refused(FAILED, &expected);
}
