//! References to kernel archives: what is accepted survives being written.

use rockpack::formats::marker::{self, AnyMarker};

pub fn run(bytes: &[u8]) {
    match marker::parse(bytes) {
        Ok(AnyMarker::Map(map)) => {
            let written = map.to_bytes().expect("what was read fits");
            assert_eq!(marker::parse(&written).unwrap(), AnyMarker::Map(map));
        }
        Ok(AnyMarker::PathList(paths)) => {
            let written = paths.join(":");
            assert!(bytes.starts_with(written.as_bytes()));
        }
        Err(error) => super::refuse_bug(&error),
    }
}
