//! The wheel of rockpack itself, made by `.ci/wheel`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::example::{build_of, configuration, files, names, shards};
use support::installers::{CLIENTS, Environment};
use support::program::repository;
use support::tools::{need, run, said, told};

use crate::install::own::{made_by, wheel};

/// What makes the wheel.
const MAKERS: [&str; 3] = ["wheel", "strip", "git"];

/// An index shows what METADATA says. The wheel has no Python module (W007).
#[test]
fn python_tools_take_rockpacks_own_wheel() {
    need(&[&MAKERS[..], &["twine", "check-wheel-contents"]].concat());
    let text = said(Command::new("twine").args(["check", "--strict"]).arg(wheel()));
    assert!(text.contains("PASSED") && !text.contains("WARN"), "{text}");
    let text = told(Command::new("check-wheel-contents").arg("--no-config").arg(wheel()));
    let codes: Vec<&str> = text.lines().filter(|line| line.contains(": W")).collect();
    assert!(matches!(codes[..], [line] if line.contains("W007")), "{text}");

    // Compares every digest in RECORD.
    let folder = tempfile::tempdir().unwrap();
    run(Command::new("wheel").arg("unpack").arg(wheel()).arg("-d").arg(folder.path()));
    let unpacked = folder.path().join(names(folder.path()).first().unwrap());
    let name = unpacked.file_name().unwrap().to_str().unwrap();
    let metadata = fs::read_to_string(unpacked.join(format!("{name}.dist-info/METADATA"))).unwrap();
    let (fields, description) = metadata.split_once("\n\n").unwrap();
    let cargo = fs::read_to_string(repository("Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&cargo).unwrap();
    let summary = manifest["package"]["description"].as_str().unwrap();
    for field in [&*format!("Summary: {summary}"), "License-Expression: MIT AND BSD-3-Clause"] {
        assert!(fields.lines().any(|line| line == field), "{field}\n{fields}");
    }
    assert!(description.starts_with("# rockpack\n"), "{description}");
    // Links to files lead nowhere on an index.
    assert!(!description.contains("](docs/"), "{description}");
}

#[test]
#[ignore = "makes the wheel twice more, in ten seconds"]
fn two_wheels_of_one_program_have_the_same_bytes() {
    need(&MAKERS);
    let other = made_by(".ci/wheel");
    let name = wheel().file_name().unwrap();
    assert!(fs::read(other.path().join(name)).unwrap() == fs::read(wheel()).unwrap());
}

/// The library for every HIP runtime is where the installed program looks for it.
#[test]
fn rockpack_is_installed_by_pip_and_uv() {
    need(&[&MAKERS[..], &CLIENTS].concat());
    for client in CLIENTS {
        let room = tempfile::tempdir().unwrap();
        let environment = Environment::new(room.path());
        said(environment.client(client, "install").arg("--no-index").arg(wheel()));
        let program = environment.folder.join("bin/rockpack");
        said(Command::new(&program).arg("--version"));
        builds_the_example(&program, room.path());
        assert!(environment.folder.join("share/man/man1/rockpack-build.1").is_file(), "{client}");
        environment.uninstall(client, &["rockpack"]);
        // uv leaves an empty folder.
        let shim = environment.folder.join("lib/rockpack/librocm_kpack_shim.so.0");
        assert!(!program.exists() && !shim.exists(), "{client}");
        assert!(files(&environment.site()).is_empty(), "{client}");
    }
}

/// uv and pipx make a link to the program, in a folder of the user.
#[test]
fn rockpack_is_a_tool_of_uv() {
    need(&[&MAKERS[..], &["uv"]].concat());
    let room = tempfile::tempdir().unwrap();
    let links = room.path().join("bin");
    let mut install = Command::new("uv");
    install.args(["tool", "install", "--no-cache", "--no-config", "--offline", "--no-index"]);
    install.env("UV_TOOL_DIR", room.path().join("tools")).env("UV_TOOL_BIN_DIR", &links);
    said(install.env("UV_PYTHON_DOWNLOADS", "never").arg(wheel()));
    let program = links.join("rockpack");
    assert!(program.is_symlink());
    builds_the_example(&program, room.path());
}

/// Builds the example as it is, with the same bytes as the program under test, and for every HIP runtime.
fn builds_the_example(program: &Path, room: &Path) {
    let [out, any, ours] = ["packages", "any", "ours"].map(|name| room.join(name));
    let mut config: Value = serde_json::from_slice(&fs::read(configuration()).unwrap()).unwrap();
    config["hip_runtime"] = "any".into();
    // One program of the example is linked for a fixed address.
    config["validation"]["untransformable"] = "keep-fat".into();
    let changed = room.join("any.json");
    fs::write(&changed, config.to_string()).unwrap();
    for (config, out) in [(&configuration(), &out), (&changed, &any)] {
        let mut build = Command::new(program);
        build
            .env_remove("SOURCE_DATE_EPOCH")
            .arg("build")
            .arg("--artifacts")
            .arg(shards())
            .arg("--config")
            .arg(config);
        said(build.args(["--version", "7.1.0", "--out"]).arg(out));
    }
    said(&mut build_of(&shards(), &ours));
    assert!(files(&out) == files(&ours));
    assert!(names(&any).contains("rocm-kpack-shim_7.1.0-1_amd64.deb"));
}
