//! Database files that serve several groups, such as AOTriton's images for a whole generation.

use std::collections::BTreeSet;
use std::fs::{create_dir_all, write};

use support::device::aks2;
use support::tools;

use crate::rules::Case;

const FAMILY: &str = "lib/aotriton.images/amd-gfx11xx/flash/attention.aks2";
const GROUP: &str = "lib/aotriton.images/amd-gfx120x/flash/attention.aks2";

/// The example with images of AOTriton, of these bytes for the family.
fn with_images(family: &[u8]) -> Case {
    let case = Case::new();
    let artifact = case.shards().join("gfx110X-build/aotriton_lib_generic");
    let stage = artifact.join("ml-libs/aotriton/stage");
    let files: [(&str, &[u8]); 3] =
        [(FAMILY, family), (GROUP, b"gfx12"), ("lib/libaotriton.txt", b"host")];
    for (path, bytes) in files {
        let file = stage.join(path);
        create_dir_all(file.parent().unwrap()).unwrap();
        write(file, bytes).unwrap();
    }
    write(artifact.join("artifact_manifest.txt"), "ml-libs/aotriton/stage\n").unwrap();
    case
}

#[test]
fn what_serves_several_groups_comes_with_exactly_these() {
    let case = with_images(b"gfx11").built("");
    let common = "rocm-aotriton-kernels-common";
    assert_eq!(case.members(common), BTreeSet::from([FAMILY.to_owned()]));
    assert_eq!(case.members("rocm-aotriton-gfx120x"), BTreeSet::from([GROUP.to_owned()]));
    assert!(case.members("rocm-aotriton-gfx110x").is_empty());
    tools::need(&["dpkg-deb"]);
    let host = "rocm-aotriton (= 7.1.0-1)";
    assert_eq!(case.depends(common), host);
    for group in ["gfx110x", "gfx115x"] {
        let expected = format!("{host}, {common} (= 7.1.0-1)");
        assert_eq!(case.depends(&format!("rocm-aotriton-{group}")), expected);
    }
    assert_eq!(case.depends("rocm-aotriton-gfx120x"), host);
}

#[test]
fn what_serves_one_group_is_in_its_own_package() {
    let rule = "[packages.rocm-aotriton]\nexclude_architectures = ['gfx1151']\n";
    let case = with_images(b"gfx11").built(rule);
    assert_eq!(case.members("rocm-aotriton-gfx110x"), BTreeSet::from([FAMILY.to_owned()]));
    let packages = case.packages();
    assert!(!packages.contains("rocm-aotriton-kernels-common"));
    assert!(!packages.contains("rocm-aotriton-gfx115x"));
}

/// The family has a member of another group, but the file has no code for it.
#[test]
fn what_has_code_for_one_group_is_in_its_own_package() {
    let case = with_images(&aks2(&["gfx1100", "gfx1102"])).built("");
    assert_eq!(case.members("rocm-aotriton-gfx110x"), BTreeSet::from([FAMILY.to_owned()]));
    let packages = case.packages();
    assert!(!packages.contains("rocm-aotriton-kernels-common"));
    assert!(!packages.contains("rocm-aotriton-gfx115x"));
}
