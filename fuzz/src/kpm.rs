//! Manifests of kernel archives: an accepted one survives being written and can be rendered.

use rockpack::cli::inspect_text;
use rockpack::inspect::Inspected;
use rockpack_core::content::Content;
use rockpack_elf::kpm::Manifest;

pub fn run(bytes: &[u8]) {
    let Some(manifest) = super::read(Manifest::parse(&Content::of_bytes(bytes))) else {
        return;
    };
    let written = manifest.to_content().unwrap();
    assert_eq!(Manifest::parse(&written).unwrap(), manifest);
    assert!(!inspect_text(&Inspected::Manifest(manifest), true).is_empty());
}
