//! Files that change between the two readings of a build with a cache.

use std::io::{Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rockpack::emit::{Compression, Staging, emit_package};
use rockpack::pack::cache::Cache;
use rockpack::package::Treatment;
use rockpack_base::content::{Content, StreamSource};
use rockpack_base::error::{Kind, Place, Result};
use support::packages::{Tree, options, package};

/// Four bytes that are others each time.
#[derive(Debug, Default)]
struct Unsteady(AtomicU8);

impl StreamSource for Unsteady {
    fn len(&self) -> u64 {
        4
    }

    fn open(&self) -> Result<Box<dyn Read + Send>> {
        let byte = self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Cursor::new([byte; 4])))
    }

    fn place(&self) -> Place {
        Place::default()
    }
}

#[test]
fn a_file_that_differs_at_the_second_reading_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(&folder.path().join("cache"), 1 << 20).unwrap();
    let content = Content::default().decoded(Arc::new(Unsteady::default()));
    let tree = Tree::default().directory("opt").file("opt/x", content, 0o644, Treatment::Plain);
    let mut options = options(1, Compression::default());
    let package = package("rocm-x", tree.entries());
    let staging = Staging::begin(&folder.path().join("plain")).unwrap();
    emit_package(&package, &staging, &options).expect("without a cache it is read once");
    options.cache = Some(&cache);
    let staging = Staging::begin(&folder.path().join("cached")).unwrap();
    let error = emit_package(&package, &staging, &options).unwrap_err();
    assert_eq!(error.kind(), Kind::Changed, "{error:?}");
    assert!(format!("{error:?}").contains("/opt/x"), "{error:?}");
}
