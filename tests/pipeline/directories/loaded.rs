//! A generic artifact with an arch's artifact laid over it works without packages.

use std::path::Path;
use std::process::Command;

use support::example::{GROUPS, UNITS};
use support::runtime::{Runtime, TOOLS, found, missing};
use support::tools;

use crate::directories::Work;

/// Copies all stage prefixes of an artifact over `root`.
pub fn flatten(artifact: &Path, root: &Path) {
    let manifest = std::fs::read_to_string(artifact.join("artifact_manifest.txt")).unwrap();
    for prefix in manifest.lines() {
        let stage = artifact.join(prefix);
        tools::run(Command::new("cp").arg("-a").arg(stage.join(".")).arg(root));
    }
}

/// Fails unless all wrappers of the library, the program and the tool find the code of their own unit.
pub fn works(root: &Path, folder: &Path, device: &str) {
    let group = GROUPS.iter().find(|group| group.archs.contains(&device)).unwrap();
    let library = root.join("lib/libexblas.so.1");
    let tool = root.join("libexec/exblas/exblas-tune");
    let runtime = Runtime::build(folder, &[library.clone(), tool.clone()]);
    let mut lines = runtime.load(&[library], device);
    lines.extend(runtime.run(&tool, device));
    assert_eq!(missing(&lines), Vec::<&str>::new());
    let found = found(&lines);
    assert!(found.len() >= 3, "{lines:?}");
    for found in found {
        // Keys of the other tool begin with the stage prefix.
        let unit = UNITS.iter().find(|(key, _)| found.key.ends_with(key));
        assert_eq!(found.tag, Some(group.tag(unit.unwrap().1, device)));
    }
}

#[test]
fn a_split_library_finds_its_kernels() {
    tools::need(TOOLS);
    let work = Work::new();
    let shard = GROUPS[0].folder(&work.split_shards());
    let root = work.path("root");
    std::fs::create_dir(&root).unwrap();
    flatten(&shard.join("blas_lib_generic"), &root);
    flatten(&shard.join("blas_lib_gfx1101"), &root);
    works(&root, &work.path("stub"), "gfx1101");
}
