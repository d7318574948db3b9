//! Common input for tests of the host binary transform.

use std::path::Path;

use rockpack_elf::marker::{self, Marker};
use rockpack_split::host_binary::{Analysis, Examined, examine};

/// The bytes of an ordinary marker.
pub fn marker() -> Vec<u8> {
    let marker = Marker {
        kernel_name: "lib/libx.so".into(),
        kpack_search_paths: vec![".kpack/x_@GFXARCH@.kpack".into()],
    };
    marker::to_bytes(&marker).unwrap()
}

/// The analysis of a binary that must be fat.
pub fn analyse(path: &Path) -> Box<Analysis> {
    match examine(&crate::fixtures::content(path)) {
        Ok(Examined::Fat(analysis)) => analysis,
        other => panic!("{}: {other:?}", path.display()),
    }
}
