//! Manifests of kernel archives: what is accepted survives being written and can be rendered.

use rockpack::content::Content;
use rockpack::formats::kpm::Manifest;
use rockpack::cli::render;

pub fn run(bytes: &[u8]) {
    let Some(manifest) = super::read(Manifest::parse(&Content::of_bytes(bytes))) else {
        return;
    };
    let written = manifest.to_content().unwrap();
    assert_eq!(Manifest::parse(&written).unwrap(), manifest);
    assert!(!render::kpm::manifest(&manifest).is_empty());
}
