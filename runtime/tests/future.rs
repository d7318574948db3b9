//! Archives from the future: a reader of version 1 handles additions of later writers.
//! `crates/kpack/src/archive/mod.rs` has the rules.

use rmpv::Value;

use crate::archives::{Draft, code, digest};
use crate::program::run;

fn got(draft: &Draft) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = draft.write(folder.path().join("x.kpack"));
    run(&["get", file.to_str().unwrap(), "lib/x.so#0", "gfx1100"])
}

#[test]
fn an_archive_of_an_unknown_version_is_refused_as_such_and_additions_are_read() {
    let content = code(9, 5000);
    let folder = tempfile::tempdir().unwrap();
    let mut draft = Draft::zstd(&["gfx1100"], std::slice::from_ref(&content));
    draft.version = u32::MAX;
    let file = draft.write(folder.path().join("x.kpack"));
    let told = run(&["open", file.to_str().unwrap()]);
    let unknown = "version 4294967295 is not known";
    assert!(told.starts_with("4 untouched ") && told.contains(unknown), "{told}");

    // Unknown keys, of any type and depth, before the known ones.
    draft.version = 1;
    let deep = (0..200).fold(Value::Nil, |inner, _| Value::Array(vec![inner]));
    draft.extra = vec![
        (Value::from("checksums"), deep),
        (Value::from(7), Value::Map(vec![(Value::Nil, Value::F64(1.0))])),
        (Value::from("index"), Value::Binary(vec![0xc1; 70_000])),
    ];
    let wanted = format!("0 5000 {}\n", digest(&content));
    assert_eq!(got(&draft), wanted);
}

/// An unknown scheme is read as "none": its rows must then fail, and not give wrong bytes.
#[test]
fn a_new_compression_scheme_gives_an_error_and_no_compressed_bytes() {
    let mut draft = Draft::zstd(&["gfx1100"], &[code(9, 5000)]);
    draft.scheme = "zstd-with-dictionary";
    assert!(got(&draft).starts_with("5 untouched "));
}
