//! lintian and rpmlint find no error outside of the committed lists, and need every line of these.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::example::{GROUPS, configuration, copy_shards, names, rockpack, rpm_name};
use support::{sweep, tools};

const TOOLS: [&str; 6] = ["lintian", "rpmlint", "python3", "gcc", "strip", "objcopy"];

fn lint() -> Command {
    let mut command = Command::new("python3");
    command.arg(tools::repository(".ci/lint"));
    command
}

/// Writes the example shards, and at least one file for each component that they lack.
fn add_components(artifacts: &Path) {
    copy_shards(artifacts);
    put(artifacts, "dev", "include/exblas.h", "#define EXBLAS 1\n");
    let license = "Copyright (c) 2025 Example Makers\n\nAll.\n";
    put(artifacts, "doc", "share/doc/exblas/LICENSE.md", license);
    let source = put(artifacts, "test", "bin/exblas-test", "int main(void) { return 0; }\n");
    let whole = artifacts.with_file_name("whole");
    let mut compile = Command::new("gcc");
    compile.args(["-g", "-Wl,--build-id=sha1", "-x", "c"]).arg(&source).arg("-o").arg(&whole);
    tools::run(&mut compile);
    fs::remove_file(&source).unwrap();
    tools::run(Command::new("strip").arg(&whole).arg("-o").arg(&source));
    let debug = put(artifacts, "dbg", ".build-id/exblas-test.debug", "");
    tools::run(Command::new("objcopy").arg("--only-keep-debug").arg(&whole).arg(&debug));
}

/// Writes a file into the first group's artifact of this component.
fn put(artifacts: &Path, component: &str, file: &str, text: &str) -> PathBuf {
    let stage = GROUPS[0].stage(artifacts, component);
    let place = stage.join(file);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(&place, text).unwrap();
    let artifact = stage.ancestors().nth(4).unwrap();
    let manifest = artifact.join("artifact_manifest.txt");
    fs::write(manifest, "math-libs/BLAS/rocBLAS/stage\n").unwrap();
    place
}

/// The example set with all components, by a scheme, from a configuration that names the packager.
fn build(folder: &Path, scheme: &str) -> PathBuf {
    let mut config: Value = serde_json::from_slice(&fs::read(configuration()).unwrap()).unwrap();
    config["license"] = "MIT".into();
    config["homepage"] = "https://example.org/".into();
    config["maintainer"] = "Packager <packager@example.org>".into();
    let (file, out, artifacts) =
        (folder.join("config.json"), folder.join("out"), folder.join("shards"));
    fs::write(&file, config.to_string()).unwrap();
    add_components(&artifacts);
    let mut build = rockpack();
    build.arg("build").arg("--artifacts").arg(&artifacts).arg("--config").arg(&file);
    build.args(["--version", "7.1.0", "--scheme", scheme]).arg("--out").arg(&out);
    tools::run(&mut build);
    out
}

#[test]
fn the_example_sets_are_free_of_errors() {
    tools::need(&TOOLS);
    let folder = tempfile::tempdir().unwrap();
    let out = build(folder.path(), "rocm");
    // The same under AMD's names.
    let other = tempfile::tempdir().unwrap();
    let amdrocm = build(other.path(), "amdrocm");
    for name in names(&amdrocm).into_iter().filter(|name| name.starts_with("amdrocm")) {
        fs::copy(amdrocm.join(&name), out.join(&name)).unwrap();
    }
    // Kernel packages of other groups only differ in names and code.
    let others = ["gfx115x", "gfx120x", "gfx1101", "gfx1102", "gfx1151", "gfx1200", "gfx1201"];
    let is_other = |name: &String| others.iter().any(|other| name.contains(other));
    for name in names(&out).iter().filter(|name| !sweep::all() && is_other(name)) {
        fs::remove_file(out.join(name)).unwrap();
    }
    let told = tools::told(lint().arg("--unused").arg(&out));
    assert_eq!(told, "exit status: 0\n");
    let list = fs::read_to_string(tools::repository("tests/lint/lintian")).unwrap();
    assert!(list.contains("dir-or-file-in-opt"), "{list}");

    // Every line of lintian's list was needed, so lintian does look. Without a list there must be errors:
    // tested with one package and the quicker judge, as the other takes seconds to start.
    let [empty, alone] = ["lists", "alone"].map(|name| folder.path().join(name));
    fs::create_dir(&empty).unwrap();
    fs::create_dir(&alone).unwrap();
    let name = rpm_name("rocm-blas");
    fs::copy(out.join(&name), alone.join(&name)).unwrap();
    for tool in ["lintian", "rpmlint"] {
        fs::write(empty.join(tool), "").unwrap();
    }
    let told = tools::told(lint().arg(&alone).arg(&empty));
    assert!(told.contains("rpmlint: rocm-blas: dir-or-file-in-opt"), "{told}");
    assert!(told.ends_with("exit status: 1\n"), "{told}");
}
