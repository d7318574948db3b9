//! `rockpack inspect` of Python wheels.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::device::aks2;
use support::program::{repository, rockpack};
use support::tools;
use support::wheels::LooseWheel;

const NAME: &str = "ex_blas-1.0-py3-none-manylinux_2_28_x86_64.whl";
const LIBRARY: &str = "examples/shards/gfx110X-build/blas_lib_gfx110X-dgpu/math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2";

/// The report of `inspect --json` on a wheel.
fn inspected(path: &Path) -> Value {
    let mut inspect = rockpack();
    let text = tools::succeed(inspect.args(["inspect", "--json"]).arg(path));
    serde_json::from_str::<Value>(&text).unwrap()[0].clone()
}

/// A fat wheel in `folder`.
fn fat(folder: &Path) -> std::path::PathBuf {
    let mut wheel = LooseWheel::new(NAME, "Requires-Dist: numpy>1\n");
    wheel.add("ex/libexblas.so", fs::read(repository(LIBRARY)).unwrap());
    wheel.add("ex/__init__.py", "");
    wheel.write(folder)
}

fn member<'a>(wheel: &'a Value, path: &str) -> &'a Value {
    let members = wheel["members"].as_array().unwrap();
    members.iter().find(|member| member["path"] == path).unwrap()
}

#[test]
fn a_fat_wheel_and_what_is_made_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = fat(folder.path());
    let wheel = inspected(&path);
    assert_eq!((&wheel["type"], &wheel["role"]), (&"wheel".into(), &"fat".into()));
    assert_eq!(wheel["requires"], serde_json::json!(["numpy>1"]));
    assert_eq!(wheel["tags"], serde_json::json!(["py3-none-manylinux_2_28_x86_64"]));
    let library = member(&wheel, "ex/libexblas.so");
    assert_eq!(library["device"]["what"], "fat-binary");
    assert!(library["wrappers"].as_u64().unwrap() > 0, "{library}");
    let out = folder.path().join("out");
    tools::run(rockpack().arg("wheel").arg(&path).arg("--out").arg(&out));
    let host = inspected(&out.join(NAME));
    assert_eq!((&host["role"], &host["archs"]), (&"host".into(), &serde_json::json!([])));
    let extra = &host["extras"]["device-gfx1100"];
    assert_eq!(extra, &serde_json::json!(["ex_blas-device-gfx1100 == 1.0"]));
    assert_eq!(member(&host, "ex/libexblas.so")["device"]["what"], "transformed-binary");
    assert_eq!(member(&host, "ex/libexblas.so")["wrappers"], library["wrappers"]);
    let name = NAME.replace("ex_blas", "ex_blas_device_gfx1100");
    let device = inspected(&out.join(name));
    assert_eq!(device["role"], "device");
    assert_eq!(device["archs"], serde_json::json!(["gfx1100"]));
    assert_eq!(device["requires"], serde_json::json!(["ex_blas == 1.0"]));
}

#[test]
fn a_wheel_is_shown_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let text = tools::succeed(rockpack().arg("inspect").arg(fat(folder.path())));
    for words in ["Wheel: ex_blas 1.0, fat", "Requires: numpy>1", "fat binary for", " wrappers"] {
        assert!(text.contains(words), "{text}");
    }
}

/// Number and targets of the code objects in each file, as the receipt of `rockpack wheel` has them.
fn recorded(receipt: &Value) -> BTreeMap<&str, (u64, BTreeSet<&str>)> {
    let mut files: BTreeMap<&str, (u64, BTreeSet<&str>)> = BTreeMap::new();
    for code in receipt["code_objects"].as_array().unwrap() {
        let file = code["binary"].as_str().or(code["file"].as_str()).unwrap();
        let (count, targets) = files.entry(file).or_default();
        *count += 1;
        targets.insert(code["target"].as_str().unwrap());
    }
    files
}

#[test]
fn what_wheel_finds_is_shown_and_taken_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut wheel = LooseWheel::new(NAME, "");
    let library = repository(LIBRARY);
    wheel.add("ex/libexblas.so", fs::read(&library).unwrap());
    for ending in ["co", "dat"] {
        let name = format!("rocblas/library/TensileLibrary_gfx1100.{ending}");
        let bytes = fs::read(library.with_file_name(&name)).unwrap();
        wheel.add(&format!("ex/lib/{name}"), bytes);
    }
    let images = "ex/lib/aotriton.images/amd-gfx11xx/a.aks2";
    wheel.add(images, aks2(&["gfx1100", "gfx1101"]));
    let headers = wheel.info("WHEEL");
    wheel.replace(&headers, "manylinux_2_28", "linux");
    let path = wheel.write(folder.path());
    let shown = inspected(&path);
    let out = folder.path().join("out");
    tools::run(rockpack().arg("wheel").arg(&path).arg("--out").arg(&out));
    let receipt: Value =
        serde_json::from_slice(&fs::read(out.join("wheels.json")).unwrap()).unwrap();
    let recorded = recorded(&receipt);
    assert_eq!(recorded.len(), 2, "{recorded:?}");
    for (file, (count, targets)) in recorded {
        let device = &member(&shown, file)["device"];
        assert_eq!((&device["code_objects"], &device["targets"]), (&json!(count), &json!(targets)));
    }
    let device = &member(&shown, images)["device"];
    assert_eq!(device["what"], "kernel-database");
    assert_eq!(device["targets"], json!(["gfx1100", "gfx1101"]));
    assert_eq!(shown["tags"], json!(["py3-none-manylinux_2_28_x86_64"]));
    assert!(shown["findings"].as_array().unwrap().iter().any(|one| one["code"] == "R121"));
    assert!(shown.get("refused").is_none(), "{shown}");

    let code = folder.path().join("code");
    let taken =
        tools::succeed(rockpack().args(["extract", "--json"]).arg(&path).arg("--out").arg(&code));
    let taken: Vec<Value> = serde_json::from_str(&taken).unwrap();
    let digests = |all: &[&Value]| -> BTreeSet<String> {
        all.iter().map(|one| one["sha256"].as_str().unwrap().to_owned()).collect()
    };
    let all: Vec<&Value> = receipt["code_objects"].as_array().unwrap().iter().collect();
    assert_eq!(digests(&taken.iter().collect::<Vec<_>>()), digests(&all));
}

#[test]
fn files_of_a_database_alone_make_a_wheel_fat() {
    let folder = tempfile::tempdir().unwrap();
    let mut wheel = LooseWheel::new(NAME, "");
    wheel.add("ex/__init__.py", "");
    let plain = inspected(&wheel.write(folder.path()));
    assert_eq!((&plain["role"], &plain["findings"]), (&json!("plain"), &json!([])));
    wheel.add("ex/lib/aotriton.images/amd-gfx11xx/a.aks2", aks2(&["gfx1100"]));
    let fat = inspected(&wheel.write(folder.path()));
    assert_eq!((&fat["role"], &fat["archs"]), (&json!("fat"), &json!(["gfx1100"])));
}

#[test]
fn refused_wheels_are_shown_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut wheel = LooseWheel::new(NAME, "");
    wheel.add("ex/libexblas.so", fs::read(repository(LIBRARY)).unwrap());
    wheel.record();
    wheel.add("ex/data", "not in RECORD as it is");
    let row = "ex/data,sha256=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA,22\n";
    let record = wheel.info("RECORD");
    wheel.add(&record, row.to_owned() + &wheel.text(&record));
    let path = wheel.write_as_is(folder.path());
    let shown = inspected(&path);
    let reason = shown["refused"].as_str().unwrap();
    assert!(reason.contains("than RECORD says"), "{reason}");
    assert_eq!(member(&shown, "ex/libexblas.so")["device"]["what"], "fat-binary");
    let mut extract = rockpack();
    let said = tools::told(extract.arg("extract").arg(&path).arg("--out").arg(folder.path()));
    assert!(said.contains("than RECORD"), "{said}");
}

#[test]
fn archives_that_are_no_wheels_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zip");
    let mut wheel = LooseWheel::new(NAME, "");
    wheel.files.retain(|name, _| name.ends_with("METADATA"));
    fs::copy(wheel.write_as_is(folder.path()), &path).unwrap();
    let error = tools::told(rockpack().arg("inspect").arg(&path));
    assert!(error.contains("has no ex_blas-1.0.dist-info/WHEEL, so it is not a wheel"), "{error}");
}
