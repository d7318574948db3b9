//! The clients of Debian sid, which are newer than those of this machine: apt 3, dnf5 and zypper on rpm 6.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use support::example::rockpack;
use support::tools::{run, told};
use tempfile::TempDir;

use crate::install::system::System;
use crate::install::updates::imports::users_of_a_lost_function_come_along;
use crate::install::{debian, rpm};

/// Early by its name: where the root of sid has to be made, that happens beside those of the releases.
#[test]
fn a_lost_function_brings_its_users_along_by_apt() {
    debian::with_root("sid", users_of_a_lost_function_come_along);
}

#[test]
fn dnf5_brings_users_of_a_lost_function_along() {
    rpm::with_sid(false, users_of_a_lost_function_come_along);
}

#[test]
fn zypper_brings_users_of_a_lost_function_along() {
    rpm::with_sid(true, users_of_a_lost_function_come_along);
}

#[test]
fn dnf5_finds_interpreters_outside_of_bin() {
    rpm::with_sid(false, interpreters_outside_of_bin_are_found);
}

#[test]
fn zypper_finds_interpreters_outside_of_bin() {
    rpm::with_sid(true, interpreters_outside_of_bin_are_found);
}

#[test]
fn zypper_keeps_packages_whose_vendor_changes() {
    rpm::with_sid(true, a_changed_vendor_holds_an_update_back);
}

/// A shard of executable scripts: artifact, path, interpreter.
fn shard(scripts: &[[&str; 3]]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for [artifact, path, interpreter] in scripts {
        let artifact = folder.path().join(format!("shard/{artifact}_lib_generic"));
        let file = artifact.join("math/part/stage").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(artifact.join("artifact_manifest.txt"), "math/part/stage\n").unwrap();
        fs::write(&file, format!("#!{interpreter}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

/// Builds a release for the clients of `system`; returns its folder and what the run says.
fn build(system: &dyn System, shard: &Path, release: &str, options: &[&str]) -> (PathBuf, String) {
    let out = shard.join(release);
    let mut build = rockpack();
    build.args(["build", "--version", "7.1.0", "--format", system.format(), "--artifacts"]);
    build.arg(shard.join("shard")).arg("--out").arg(&out).args(["--release", release]);
    let said = told(build.args(options));
    assert!(said.ends_with("exit status: 0\n"), "{said}");
    (out, said)
}

fn interpreters_outside_of_bin_are_found(system: &dyn System) {
    an_interpreter_of_an_earlier_package_is_not_found(system);
    let shard = shard(&[
        ["tool", "bin/own", "/opt/rocm-7.1/libexec/own"],
        ["tool", "libexec/own", "/opt/rocm-7.1/libexec/other"],
        ["other", "libexec/other", "/bin/sh"],
    ]);
    let (out, _) = build(system, shard.path(), "1", &[]);
    system.offer(&[&out, support::bases::rpm()]);
    run(&mut system.install(&["rocm-tool"]));
    assert!(system.names().contains("rocm-other"));
    system.assert_whole();
}

/// R113 says that clients do not find the interpreter of a package that this run leaves out.
fn an_interpreter_of_an_earlier_package_is_not_found(system: &dyn System) {
    let first = shard(&[["tool", "bin/own", "/bin/sh"], ["other", "libexec/other", "/bin/sh"]]);
    let (first, _) = build(system, first.path(), "1", &[]);
    let second = shard(&[
        ["tool", "bin/own", "/opt/rocm-7.1/libexec/other"],
        ["other", "libexec/other", "/bin/sh"],
    ]);
    let receipt = first.join("packages.json");
    let options = ["--since", receipt.to_str().unwrap(), "--only", "tool"];
    let (second, said) = build(system, second.path(), "2", &options);
    let path = "/opt/rocm-7.1/libexec/other";
    assert!(said.contains("R113") && said.contains(&format!("needs {path}, which no")), "{said}");
    system.offer(&[&first, &second, support::bases::rpm()]);
    let said = told(&mut system.install_versions(&[("rocm-tool", "7.1.0-2")]));
    assert!(said.contains("nothing provides") && said.contains(path), "{said}");
}

/// R138 says what zypper does, and names the option that helps.
fn a_changed_vendor_holds_an_update_back(system: &dyn System) {
    let shard = shard(&[["tool", "bin/own", "/bin/sh"]]);
    let (first, _) = build(system, shard.path(), "1", &[]);
    let config = shard.path().join("config.toml");
    fs::write(&config, "vendor = 'Example'\n").unwrap();
    let receipt = first.join("packages.json");
    let options = ["--config", config.to_str().unwrap(), "--since", receipt.to_str().unwrap()];
    let (second, said) = build(system, shard.path(), "2", &options);
    assert!(said.contains("R138 vendor-changed"), "{said}");
    system.offer(&[&first, support::bases::rpm()]);
    run(&mut system.install(&["rocm-tool"]));
    system.offer(&[&second, support::bases::rpm()]);
    let said = told(&mut system.upgrade());
    assert!(said.contains("will NOT be installed") && said.ends_with("exit status: 0\n"), "{said}");
    assert_eq!(system.installed()["rocm-tool"], "7.1.0-1");
    run(system.upgrade().arg("--allow-vendor-change"));
    assert_eq!(system.installed()["rocm-tool"], "7.1.0-2");
}
