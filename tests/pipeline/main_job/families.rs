//! One folder with the artifacts of all families, as a run for several archs leaves it: several fat artifacts
//! of one component in one shard.

use std::fs;

use support::example::{
    GROUPS, Set, VERSION, configuration, contents, copy_shards, names, rockpack,
};
use support::tampered::passes;
use support::tools;

#[test]
fn families_in_one_shard_are_joined_like_shards() {
    let set = Set::build();
    let root = set.scratch("root");
    let all = root.join("all-build");
    fs::create_dir_all(&all).unwrap();
    copy_shards(&set.scratch("shards"));
    for group in &GROUPS {
        let shard = group.folder(&set.scratch("shards"));
        for artifact in names(&shard) {
            let there = all.join(&artifact);
            // The host-only artifact is the same in every shard.
            if !there.exists() {
                fs::rename(shard.join(&artifact), there).unwrap();
            }
        }
    }
    let text = fs::read_to_string(configuration()).unwrap();
    let config = set.scratch("configuration.json");
    fs::write(&config, text.replace("gfx110X-build", "all-build")).unwrap();
    let out = set.scratch("joined");
    let mut build = rockpack();
    build.args(["build", "--version", VERSION, "--artifacts"]).arg(&root);
    let said = tools::said(build.arg("--config").arg(&config).arg("-v").arg("--out").arg(&out));

    let (expected, got) = (contents(&set.out()), contents(&out));
    assert!(expected.keys().eq(got.keys()), "{:?}", got.keys());
    for (name, bytes) in expected.iter().filter(|(name, _)| *name != "packages.json") {
        assert!(got[name] == *bytes, "{name}");
    }
    passes(&out, &root);
    // A file joined from several artifacts must not be reported as identical in all of them.
    assert!(is_identical_in_all(&said, "lib/libexcblas.so.1.0:"), "{said}");
    assert!(!is_identical_in_all(&said, "lib/libexblas.so.1.2:"), "{said}");
    assert!(!is_identical_in_all(&said, "bin/exblas-bench:"), "{said}");
}

fn is_identical_in_all(said: &str, path: &str) -> bool {
    said.lines().any(|line| line.contains("R002") && line.contains(path))
}
