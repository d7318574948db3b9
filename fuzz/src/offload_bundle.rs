//! Offload bundles: one that is read is inside its content, and its entries are inside the bundle.

use rockpack_core::content::Content;
use rockpack_elf::offload_bundle;

pub fn run(data: &[u8]) {
    let Some(bundle) = super::read(offload_bundle::parse(&Content::of_bytes(data))) else {
        return;
    };
    assert!(bundle.len <= data.len() as u64);
    for entry in bundle.entries.iter().filter(|entry| !entry.content.is_empty()) {
        assert!(entry.offset + entry.content.len() <= bundle.len);
    }
}
