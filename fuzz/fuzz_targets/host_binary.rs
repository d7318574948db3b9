//! Host binaries: refused, passed on, or transformed into a file that is read back as such. The
//! transform checks what it writes, so an error that says "bug" is a find like a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rockpack::content::Content;
use rockpack::error::{Error, Kind};
use rockpack::host_binary::{Analysis, Examined, Transformed, examine};

fuzz_target!(|bytes: &[u8]| {
    match examine(&Content::of_bytes(bytes)) {
        Ok(Examined::Fat(analysis)) => transform(&analysis),
        Ok(Examined::Transformed(transformed)) => rewrite(&transformed),
        Ok(Examined::NoDeviceCode | Examined::SeparateDebug) => {}
        Err(error) => refuse_bug(&error),
    }
});

/// With the longest marker; the shortest is tried by [`examine`].
fn transform(analysis: &Analysis) {
    let longest = vec![0x80; usize::try_from(analysis.marker_capacity()).unwrap()];
    let written = analysis.apply(&longest).expect("examined, hence transformable");
    assert_eq!(written.len(), analysis.output_len());
    let Examined::Transformed(transformed) = examine(&written).unwrap() else {
        panic!("is not recognised");
    };
    assert_eq!(transformed.marker(), longest);
    assert_eq!(transformed.co_indexes().len(), analysis.wrappers().len());
    rewrite(&transformed);
    if let Err(error) = analysis.soname().and(analysis.needed()) {
        refuse_bug(&error);
    }
}

/// A marker of any length that is said to fit does.
fn rewrite(transformed: &Transformed) {
    for length in [1, transformed.marker_capacity()] {
        if length == 0 || length > transformed.marker_capacity() {
            continue;
        }
        let marker = vec![0x81; usize::try_from(length).unwrap()];
        match transformed.rewrite(&marker) {
            Ok(written) => assert_eq!(written.len(), transformed.content().len()),
            Err(error) => refuse_bug(&error),
        }
    }
}

fn refuse_bug(error: &Error) {
    assert_ne!(error.kind(), Kind::Bug, "{error}");
    error.others().iter().for_each(refuse_bug);
}
