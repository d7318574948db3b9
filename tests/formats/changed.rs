//! Files that change between the two readings of a build with a cache.

use std::io::{Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rockpack_core::content::{Content, StreamSource};
use rockpack_core::error::{Kind, Place, Result};
use rockpack_emit::{Compression, Staging, emit_package};
use rockpack_files::cache::Cache;
use rockpack_package::Treatment;
use support::packages::{Tree, options, package};

/// A number of bytes that are others each time.
#[derive(Debug)]
struct Unsteady {
    len: usize,
    next: AtomicU8,
}

impl StreamSource for Unsteady {
    fn len(&self) -> u64 {
        self.len as u64
    }

    fn open(&self) -> Result<Box<dyn Read + Send>> {
        let byte = self.next.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Cursor::new(vec![byte; self.len])))
    }

    fn place(&self) -> Place {
        Place::default()
    }
}

#[test]
fn a_file_that_differs_at_the_second_reading_is_refused() {
    // The long file is written by threads, the short one is not.
    for len in [4, 3 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("cache"), 1 << 30).unwrap();
        let stream = Unsteady { len, next: AtomicU8::default() };
        let content = Content::default().decoded(Arc::new(stream));
        let tree = Tree::default().directory("opt").file("opt/x", content, 0o644, Treatment::Plain);
        let mut options = options(1, Compression::default());
        let package = package("rocm-x", tree.entries());
        let staging = Staging::begin(&folder.path().join("plain")).unwrap();
        emit_package(&package, &staging, &options).expect("without a cache nothing is compared");
        options.cache = Some(&cache);
        let staging = Staging::begin(&folder.path().join("cached")).unwrap();
        let error = emit_package(&package, &staging, &options).unwrap_err();
        assert_eq!(error.kind(), Kind::Changed, "{error:?}");
        assert!(format!("{error:?}").contains("/opt/x"), "{error:?}");
    }
}
