//! Output folders with earlier packages, under other names too, and the sizes of packages.

use std::collections::BTreeMap;
use std::fs;

use support::example::{GROUPS, Set, build_of, contents, kernels, names, shards};
use support::tools;

/// Mirrors hard-link packages, so an earlier set's packages may have links elsewhere.
#[test]
fn links_to_packages_of_an_earlier_set_keep_their_content() {
    let set = Set::with(&["--format", "deb"]);
    let mirror = set.scratch("mirror");
    fs::create_dir(&mirror).unwrap();
    for name in names(&set.out()) {
        fs::hard_link(set.file(&name), mirror.join(&name)).unwrap();
    }
    let before = contents(&mirror);
    let mut again = build_of(&shards(), &set.out());
    tools::run(again.args(["--format", "deb"]).env("SOURCE_DATE_EPOCH", "86400"));
    assert!(contents(&set.out()) != before, "the second set is another one");
    assert!(contents(&mirror) == before);
}

#[test]
fn archives_are_smaller_than_their_code() {
    tools::need(&["dpkg-deb"]);
    let set = Set::build();
    let root = set.scratch("root");
    let packages: Vec<String> = GROUPS.iter().map(kernels).collect();
    set.unpack_debs(&packages.iter().map(String::as_str).collect::<Vec<_>>(), &root);
    let receipt = set.receipt();
    let mut code: BTreeMap<&str, u64> = BTreeMap::new();
    for record in receipt["code_objects"].as_array().unwrap() {
        if let Some(archive) = record["archive"].as_str() {
            *code.entry(archive).or_default() += record["size"].as_u64().unwrap();
        }
    }
    assert!(code.len() > GROUPS.len());
    for (archive, size) in code {
        let packed = fs::metadata(root.join(archive.trim_start_matches('/'))).unwrap().len();
        assert!(packed * 2 < size, "{archive} has {packed} bytes for {size} bytes of code");
    }
}
