//! The bundles of a section do not overlap and are in order.

use rockpack_core::content::Content;
use rockpack_elf::fatbin;

pub fn run(data: &[u8]) {
    let Some(bundles) = super::read(fatbin::parse(&Content::of_bytes(data))) else {
        return;
    };
    let mut end = 0;
    for bundle in &bundles {
        assert!(bundle.offset >= end);
        end = bundle.offset + bundle.extent;
    }
    assert!(end <= data.len() as u64);
}
