//! Host binaries: one is refused, passed on, or transformed into a file that is read as transformed, keeps
//! everything else in its place, and is not changed by a second run. The transform checks its output, so an
//! error that says "bug" counts like a panic.

use rockpack_split::host_binary::{Analysis, Examined, Transformed, examine};
use rockpack_split::needed;
use rockpack_core::content::Content;

use super::preserved;

pub fn run(bytes: &[u8]) {
    match examine(&Content::of_bytes(bytes)) {
        Ok(Examined::Fat(analysis)) => transform(&analysis),
        Ok(Examined::Transformed(transformed)) => rewrite(&transformed),
        Ok(Examined::NoDeviceCode | Examined::SeparateDebug) => {}
        Err(error) => super::refuse_bug(&error),
    }
}

/// Transforms with the longest marker; [`examine`] tries the shortest.
fn transform(analysis: &Analysis) {
    let longest = vec![0x80; usize::try_from(analysis.marker_capacity()).unwrap()];
    let written = analysis.apply(&longest).expect("examined, hence transformable");
    assert_eq!(written.len(), analysis.output_len());
    preserved::check(analysis.original(), &written);
    let Examined::Transformed(transformed) = examine(&written).unwrap() else {
        panic!("is not recognised");
    };
    assert_eq!(transformed.marker(), longest);
    assert_eq!(transformed.co_indexes().len(), analysis.wrappers().len());
    rewrite(&transformed);
    if let Err(error) = needed(analysis.original()) {
        super::refuse_bug(&error);
    }
}

/// A marker of every length that should fit does fit; the existing one changes nothing.
fn rewrite(transformed: &Transformed) {
    if let Some(again) = super::read(transformed.rewrite(transformed.marker())) {
        assert!(again.same_bytes(transformed.content()).unwrap(), "the same marker changes bytes");
    }
    for length in [1, transformed.marker_capacity()] {
        if length == 0 || length > transformed.marker_capacity() {
            continue;
        }
        let marker = vec![0x81; usize::try_from(length).unwrap()];
        match transformed.rewrite(&marker) {
            Ok(written) => assert_eq!(written.len(), transformed.content().len()),
            Err(error) => super::refuse_bug(&error),
        }
    }
}
