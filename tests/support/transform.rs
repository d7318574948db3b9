//! Common input for tests of the host binary transform.

use std::path::Path;

use rockpack_elf::marker::{self, Marker};
use rockpack_split::host_binary::{Analysis, Examined, examine_for};

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
    analyse_for(path, false)
}

/// The analysis of a binary that must be fat, and whether it is made for any HIP runtime.
pub fn analyse_for(path: &Path, any_runtime: bool) -> Box<Analysis> {
    match examine_for(&crate::fixtures::content(path), any_runtime) {
        Ok(Examined::Fat(analysis)) => analysis,
        other => panic!("{}: {other:?}", path.display()),
    }
}
