//! Artifact manifests: any bytes give an error, or separate prefixes below the artifact.

use std::collections::BTreeSet;

use rockpack_split::input::artifact::ArtifactManifest;
use rockpack_core::tree::TreePath;

pub fn run(bytes: &[u8]) {
    let Some(manifest) = super::read(ArtifactManifest::parse(bytes)) else {
        return;
    };
    assert!(!manifest.prefixes.is_empty());
    assert!(manifest.prefixes.is_sorted());
    let prefixes: BTreeSet<&TreePath> = manifest.prefixes.iter().collect();
    assert_eq!(prefixes.len(), manifest.prefixes.len(), "one is listed twice");
    for prefix in manifest.prefixes.iter().filter(|prefix| prefix.as_str().len() < 200) {
        let above = |path: &TreePath| path.parent();
        let mut above = std::iter::successors(prefix.parent(), above);
        assert!(above.all(|outer| !prefixes.contains(&outer)), "{prefix} lies in another");
    }
}
