//! Programs as alternatives, during updates to other series.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use support::tools;

use crate::install::sets::Recipe;
use crate::install::system::{System, assert_same};

const PROGRAM: &str = "exblas-bench";

/// Another vendor's program of that name.
const OTHER: &str = "/opt/of-another/bench";

fn alternatives(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("chroot");
    command.arg(root).arg("/usr/bin/env").env_clear().env("PATH", "/usr/sbin:/usr/bin");
    command.arg("update-alternatives").args(arguments);
    command
}

/// The target of the program's link.
fn chosen(root: &Path) -> Option<String> {
    let link = root.join("usr/bin").join(PROGRAM);
    fs::symlink_metadata(&link).ok()?;
    let chosen = fs::read_link(root.join("etc/alternatives").join(PROGRAM)).unwrap();
    Some(chosen.to_str().unwrap().to_owned())
}

/// The alternatives to choose from.
fn known(root: &Path) -> Vec<String> {
    // The tool's own list: `--list` omits missing alternatives.
    let file = root.join("var/lib/dpkg/alternatives").join(PROGRAM);
    let text = fs::read_to_string(file).unwrap_or_default();
    let paths = text.lines().skip(3).filter(|line| line.starts_with('/'));
    paths.map(str::to_owned).collect()
}

/// Each series has its own prefix. An alternative continues in the next series' prefix, and disappears with
/// the last program, whatever the administrator chose in between.
pub fn an_alternative_goes_with_its_program(system: &dyn System) {
    let [first, next] = ["7.1.0", "7.2.0"].map(|version| recipe(version).build());
    let last = recipe("7.3.0").without(&["bin/exblas-bench"]).build();
    let root = system.root();
    fs::create_dir_all(root.join("opt/of-another")).unwrap();
    fs::write(root.join(OTHER.trim_start_matches('/')), "").unwrap();
    let before = system.snapshot();
    system.offer(&[&first.out()]);
    tools::run(&mut system.install(&["rocm-blas"]));
    assert_eq!(chosen(root).unwrap(), "/opt/rocm-7.1/bin/exblas-bench");
    let link = format!("/usr/bin/{PROGRAM}");
    tools::run(&mut alternatives(root, &["--install", &link, PROGRAM, OTHER, "1"]));
    tools::run(&mut alternatives(root, &["--set", PROGRAM, OTHER]));

    system.offer(&[&first.out(), &next.out()]);
    tools::run(&mut system.update());
    assert_eq!(chosen(root).unwrap(), OTHER, "what the administrator chose");
    assert_eq!(known(root), [OTHER, "/opt/rocm-7.2/bin/exblas-bench"]);
    tools::run(&mut alternatives(root, &["--auto", PROGRAM]));
    assert_eq!(chosen(root).unwrap(), "/opt/rocm-7.2/bin/exblas-bench");

    system.offer(&[&next.out(), &last.out()]);
    tools::run(&mut system.update());
    assert_eq!(known(root), [OTHER]);
    assert_eq!(chosen(root).unwrap(), OTHER);
    tools::run(&mut alternatives(root, &["--remove", PROGRAM, OTHER]));
    assert_eq!(chosen(root), None);
    system.purge_all();
    assert_same(&before, &system.snapshot());

    // Nothing is left if no one else has such a program.
    system.offer(&[&first.out()]);
    tools::run(&mut system.install(&["rocm-blas"]));
    system.offer(&[&last.out()]);
    tools::run(&mut system.update());
    assert_eq!((chosen(root), known(root)), (None, Vec::new()));
    system.purge_all();
    assert_same(&before, &system.snapshot());
}

fn recipe(version: &'static str) -> Recipe {
    Recipe::new(version).keys(json!({ "alternatives": "programs" }))
}
