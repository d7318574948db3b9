//! References to kernel archives: an accepted one survives being written, and a loader reads it the same way.

use rockpack_kpack::marker::load;
use rockpack_elf::marker::{self, AnyMarker};

pub fn run(bytes: &[u8]) {
    let loaded = load(bytes);
    match marker::parse(bytes) {
        Ok(AnyMarker::Map(map)) => {
            if !map.kpack_search_paths.is_empty() {
                let loaded = loaded.expect("a loader is more lenient");
                assert_eq!(loaded.kernel_name, map.kernel_name.as_bytes());
                assert_eq!(loaded.search_paths.len(), map.kpack_search_paths.len());
            }
            let written = marker::to_bytes(&map).expect("what was read fits");
            assert_eq!(marker::parse(&written).unwrap(), AnyMarker::Map(map));
        }
        Ok(AnyMarker::PathList(paths)) => {
            let written = paths.join(":");
            assert!(bytes.starts_with(written.as_bytes()));
        }
        Err(error) => super::refuse_bug(&error),
    }
}
