//! lintian and rpmlint find no error outside of the committed lists, whose lines are all needed.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::example::{configuration, rockpack, shards};
use crate::tools;

const TOOLS: [&str; 3] = ["lintian", "rpmlint", "python3"];

fn lint() -> Command {
    let mut command = Command::new("python3");
    command.arg(tools::repository(".ci/lint"));
    command
}

#[test]
fn the_example_set_is_free_of_errors() {
    if !tools::have(&TOOLS) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut config: Value = serde_json::from_slice(&fs::read(configuration()).unwrap()).unwrap();
    config["license"] = "MIT".into();
    config["homepage"] = "https://example.org/".into();
    config["maintainer"] = "Packager <packager@example.org>".into();
    // What a packager says of the system's own libraries.
    for package in ["rocm-blas", "rocm-host-suite-sparse"] {
        config["relations"][package]["deb"]["depends"] = Value::from(vec!["libc6"]);
    }
    let file = path("config.json");
    fs::write(&file, config.to_string()).unwrap();
    let out = path("out");
    let mut build = rockpack();
    build.arg("build").arg("--artifacts").arg(shards()).arg("--config").arg(&file);
    build.args(["--version", "7.1.0"]).arg("--out").arg(&out);
    tools::run(&mut build);
    let told = tools::told(lint().arg("--unused").arg(&out));
    assert_eq!(told, "exit status: 0\n");

    // Without the lists there is something to tell, so that the judge is known to look.
    let empty = path("lists");
    fs::create_dir(&empty).unwrap();
    for tool in ["lintian", "rpmlint"] {
        fs::write(empty.join(tool), "").unwrap();
    }
    let told = tools::told(lint().arg(&out).arg(&empty));
    assert!(told.contains("lintian: rocm-blas: dir-or-file-in-opt"), "{told}");
    assert!(told.contains("rpmlint: rocm-blas: dir-or-file-in-opt"), "{told}");
    assert!(told.ends_with("exit status: 1\n"), "{told}");
}
