//! `rockpack inspect` of Python wheels.

use std::fs;
use std::path::Path;

use serde_json::Value;
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

#[test]
fn archives_that_are_no_wheels_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zip");
    let mut wheel = LooseWheel::new(NAME, "");
    wheel.files.retain(|name, _| name.ends_with("METADATA"));
    fs::copy(wheel.write_as_is(folder.path()), &path).unwrap();
    let error = tools::told(rockpack().arg("inspect").arg(&path));
    assert!(error.contains("has no ex_blas-1.0.dist-info/WHEEL, so it is no wheel"), "{error}");
}
