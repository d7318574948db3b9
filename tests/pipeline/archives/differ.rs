//! Archives of one name in several shards.

use serde_json::Value;

use super::*;

const ARTIFACT: &str = "host-suite-sparse_lib_generic";
const LIBRARY: &str = "third-party/SuiteSparse/stage/lib/libexsuitesparse.so.7.8";

/// Builds the shards and returns the findings about artifacts that differ.
fn differing(shards: &Path, out: &Path) -> Vec<Value> {
    tools::run(&mut build_of(shards, out));
    let receipt = fs::read(out.join("packages.json")).unwrap();
    let mut receipt: Value = serde_json::from_slice(&receipt).unwrap();
    let Value::Array(findings) = receipt["findings"].take() else { panic!("{receipt}") };
    support::tampered::passes(out, shards);
    findings.into_iter().filter(|it| it["code"] == "R161").collect()
}

/// The library of the second shard has one more byte. The third shard's archive is only compressed in another way.
#[test]
fn what_differs_between_archives_of_one_name_is_named() {
    need(&archives::TOOLS);
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    copy_shards(&shards);
    let artifacts = GROUPS.each_ref().map(|group| group.folder(&shards).join(ARTIFACT));
    let library = artifacts[1].join(LIBRARY);
    let mut bytes = fs::read(&library).unwrap();
    bytes.push(0);
    fs::write(&library, &bytes).unwrap();
    // Folders are not compared.
    assert_eq!(differing(&shards, &folder.path().join("folders")), Vec::<Value>::new());
    let [first, other] = [0, 1].map(|group| pack(&artifacts[group], Packing::Zstd));
    pack(&artifacts[2], Packing::Xz);
    let found = differing(&shards, &folder.path().join("packed"));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let [one, two] = [0, 1].map(|group| format!("{}-build", GROUPS[group].shard));
    let len = bytes.len();
    let message = format!(
        "differs from {one}/{ARTIFACT}, whose files take precedence, in 1 host file \
         (lib/libexsuitesparse.so.7.8 has different content: {} and {len} bytes)",
        len - 1
    );
    assert_eq!(finding["subject"], format!("{two}/{ARTIFACT}"));
    assert_eq!(finding["message"], message);
    // The same archive twice is one artifact.
    fs::copy(&first, &other).unwrap();
    assert_eq!(differing(&shards, &folder.path().join("same")), Vec::<Value>::new());
}
