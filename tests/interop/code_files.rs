//! Compressed code files (`code_files`), judged by clang-offload-bundler and by the commands that read packages.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use support::device::compile;
use support::example::{PREFIX, contents, rockpack, unbundle};
use support::sha256;
use support::tampered::passes;
use support::tools::{need, run};

/// The targets of code objects, and the names of their files.
const FILES: [(&str, &str); 4] = [
    ("gfx1100", "Kernels.so-000-gfx1100.hsaco"),
    ("gfx90a", "Kernels.so-000-gfx90a.co"),
    ("gfx90a:xnack+", "Kernels.so-001-gfx90a-xnack+.hsaco"),
    ("gfx90a:xnack-", "Kernels.so-001-gfx90a-xnack-.hsaco"),
];

const LIBRARY: &str = "lib/rocblas/library";

const CONFIGURATION: &str = "version = '7.1.0'\ncode_files = 'compressed'\n\
                             [architecture_groups.one]\narchitectures = ['gfx1100', 'gfx90a']\n";

fn json_of(command: &mut Command) -> Value {
    serde_json::from_slice(&run(command.arg("--json")).stdout).unwrap()
}

#[test]
fn compressed_code_files_give_back_what_clang_compiled() {
    need(&["dpkg-deb", "clang++-19", "ld.lld-19", "clang-offload-bundler-19"]);
    let room = tempfile::tempdir().unwrap();
    let [shards, out, root, config] =
        ["shards", "out", "root", "config.toml"].map(|name| room.path().join(name));
    let artifact = shards.join("one/blas_lib_all");
    let library = artifact.join("stage").join(LIBRARY);
    fs::create_dir_all(&library).unwrap();
    fs::write(artifact.join("artifact_manifest.txt"), "stage\n").unwrap();
    for (target, name) in FILES {
        compile(room.path(), "unit", &[target], &["--cuda-device-only", "--no-gpu-bundle-output"]);
        fs::rename(room.path().join("unit.o"), library.join(name)).unwrap();
    }
    fs::write(&config, CONFIGURATION).unwrap();
    let mut build = rockpack();
    build.arg("build").arg("--artifacts").arg(&shards).arg("--config").arg(config);
    run(build.args(["--format", "deb", "--out"]).arg(&out));
    passes(&out, &shards);

    let mut members = BTreeMap::new();
    for package in contents(&out).into_keys().filter(|name| name.ends_with(".deb")) {
        run(Command::new("dpkg-deb").arg("-x").arg(out.join(&package)).arg(&root));
        let shown = json_of(rockpack().arg("inspect").arg(out.join(package)));
        for member in shown[0]["members"].as_array().unwrap() {
            members.insert(member["path"].as_str().unwrap().to_owned(), member["device"].clone());
        }
    }
    let receipt: Value =
        serde_json::from_slice(&fs::read(out.join("packages.json")).unwrap()).unwrap();
    let records = receipt["code_objects"].as_array().unwrap();
    assert_eq!(records.len(), FILES.len());
    for (target, name) in FILES {
        let original = fs::read(library.join(name)).unwrap();
        let path = format!("{PREFIX}/{LIBRARY}/{name}");
        let installed = fs::read(root.join(&path)).unwrap();
        assert!(installed.starts_with(b"CCOB") && 2 * installed.len() < original.len(), "{name}");
        assert!(unbundle(&installed) == BTreeMap::from([(target.to_owned(), original.clone())]));

        let path = format!("/{path}");
        let record = records.iter().find(|record| record["file"] == json!(path)).unwrap();
        let entry = format!("hipv4-amdgcn-amd-amdhsa--{target}");
        let expected = [sha256(&original), target.to_owned(), entry];
        assert_eq!(["sha256", "target", "entry"].map(|field| &record[field]), expected.each_ref());
        let device = json!({
            "what": "offload-bundles",
            "targets": [target],
            "code_objects": 1,
            "uncompressed_size": original.len(),
        });
        assert_eq!(members[&path], device);
        let mut extract = rockpack();
        extract.arg("extract").arg(root.join(&path[1..])).arg("--out").arg(room.path().join(name));
        let extracted = json_of(&mut extract);
        assert_eq!(extracted.as_array().unwrap().len(), 1);
        assert!(fs::read(extracted[0]["file"].as_str().unwrap()).unwrap() == original, "{name}");
    }
}
