//! Artifact manifests: whatever the bytes, an error or prefixes that lie apart below the artifact.

use rockpack::artifact::Manifest;

pub fn run(bytes: &[u8]) {
    let Ok(manifest) = Manifest::parse(bytes) else {
        return;
    };
    assert!(!manifest.prefixes.is_empty());
    for (index, prefix) in manifest.prefixes.iter().enumerate() {
        let inside = |other: &str| prefix.as_str().starts_with(&format!("{other}/"));
        for other in &manifest.prefixes[..index] {
            assert!(other != prefix && !inside(other.as_str()));
        }
    }
}
