//! The commands beside `build` and `plan`: they say of a tree what they say of artifacts made by hand.

use std::ffi::OsStr;
use std::fs;

use serde_json::{Value, json};
use support::example::{rockpack, tree};
use support::tools;
use support::trees::{Trees, named};

#[test]
fn commands_take_trees_and_tarballs_like_artifacts() {
    let trees = Trees::default();
    let by_hand = trees.by_hand("by-hand/rocm", 0);
    trees.tree("rocm/opt/rocm", 0);
    trees.tarball("rocm.tar.zst", "rocm", &["opt"]);
    let inputs = [by_hand, trees.path("rocm"), trees.path("rocm.tar.zst")];
    for command in ["split", "recombine"] {
        let [expected, folder, packed] = inputs.each_ref().map(|input| {
            let _ = fs::remove_dir_all(trees.out());
            let mut run = rockpack();
            run.args([command, "--artifacts"]).arg(input).arg("--output-dir").arg(trees.out());
            tools::run(&mut run);
            tree(&trees.out())
        });
        assert!(folder == expected && packed == expected, "{command}");
        assert!(expected.len() > 100, "{command}: {:?}", expected.keys());
    }
    let [expected, folder, packed] =
        inputs.each_ref().map(|input| tools::succeed(rockpack().arg("discover").arg(input)));
    assert!(expected.contains("sparse_lib_generic"), "{expected}");
    assert_eq!(folder, expected);
    assert_eq!(packed, expected);
    let [folder, packed] = [&inputs[1], &inputs[2]].map(inspected);
    assert_eq!(folder, packed);
    assert_eq!(folder["prefixes"], json!(["stage"]));
    assert!(folder["findings"].as_array().unwrap().contains(&json!("R156")), "{folder}");
}

/// The report of `inspect`, without the path, and with codes in place of findings.
fn inspected(input: impl AsRef<OsStr>) -> Value {
    let json = tools::succeed(rockpack().args(["inspect", "--json"]).arg(input));
    let mut found: Value = serde_json::from_str(&json).unwrap();
    found[0]["file"] = "".into();
    if let Some(findings) = found[0]["findings"].as_array_mut() {
        findings.iter_mut().for_each(|finding| *finding = finding["code"].take());
    }
    found[0].take()
}

#[test]
fn a_single_file_is_inspected_as_itself_or_as_an_artifact() {
    let trees = Trees::default();
    let tree = trees.tree("rocm", 0);
    let file = tree.join("lib/librocsparse.so.1");
    assert_eq!(inspected(&file)["type"], "host-binary");
    let artifact = inspected(named("own", &file));
    assert_eq!(
        (&artifact["type"], &artifact["name"]),
        (&json!("artifact"), &json!("own_lib_generic"))
    );
    assert!(artifact["device_bytes"]["gfx1100"].as_u64() > Some(0), "{artifact}");
}

#[test]
fn documents_name_the_artifact_of_each_package() {
    let trees = Trees::default();
    trees.tree("tree", 0);
    let tarball = trees.tarball("rocm.tar.gz", "tree", &["."]);
    trees.packages(&[&tarball], &["--format", "deb", "--sbom"]);
    let document = fs::read(trees.out().join("packages.spdx.json")).unwrap();
    let document: Value = serde_json::from_slice(&document).unwrap();
    let relations = document["relationships"].as_array().unwrap();
    for (package, artifact) in [
        ("rocm-blas", "blas-lib"),
        ("rocm-blas-dev", "blas-dev"),
        ("rocm-blas-tests-gfx110x", "blas-test"),
        ("rocm-core-hip", "core-hip-lib"),
        ("rocm-sparse-gfx110x", "sparse-lib"),
    ] {
        let arch = if package.ends_with("-dev") { "all" } else { "amd64" };
        let made = relations.iter().filter(|relation| {
            relation["spdxElementId"] == format!("SPDXRef-Package-{package}-7.1.0-1-{arch}.deb")
                && relation["relationshipType"] == "GENERATED_FROM"
        });
        let artifacts: Vec<&Value> = made.map(|it| &it["relatedSpdxElement"]).collect();
        assert_eq!(artifacts, [&json!(format!("SPDXRef-Artifact-rocm-{artifact}-generic"))]);
    }
    let digest = support::sha256(&fs::read(&tarball).unwrap());
    assert_eq!(document.to_string().matches(&digest).count(), 10, "one for each artifact");
}
