//! The names of components, and paths that look like them.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use support::example::{GROUPS, VERSION, contents, names, rockpack, shards};
use support::program::rockpack_path;
use support::tools;
use support::trees::{Trees, assert_same, library, named, text};

use crate::refusals::{USAGE, refused};
use crate::trees::expected;

#[test]
fn a_name_is_that_of_everything_in_the_tree() {
    let trees = Trees::default();
    let tree = trees.tree("rocm", 0);
    let own = ["own_dbg", "own_dev", "own_doc", "own_lib", "own_test"];
    for (name, components) in [("own", &own[..]), ("own_dev", &own[1..2])] {
        let mut discover = rockpack();
        let found = tools::succeed(discover.args(["discover", "--json"]).arg(named(name, &tree)));
        let found: Value = serde_json::from_str(&found).unwrap();
        let artifacts = found["shards"][0]["artifacts"].as_array().unwrap().iter();
        let artifacts = artifacts.map(|artifact| crate::text(&artifact["name"]));
        let expected = components.iter().map(|component| format!("{component}_generic"));
        assert!(artifacts.collect::<BTreeSet<_>>().into_iter().eq(expected), "{found}");
    }
    trees.packages(&[named("own", &tree)], &[]);
    assert!(trees.findings("R155").is_empty(), "a name is known");
    trees.packages(&[tree], &[]);
    assert_eq!(trees.findings("R155")[0]["files"], json!(["lib/mine/data.txt", "share/mine"]));
}

#[test]
fn what_is_no_name_is_refused() {
    for input in ["=x", "own=", "own_dev_x=x", "own_kind=x", "own_=x"] {
        let output = rockpack().args(["discover", input]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(USAGE), "{said}");
        let expected = format!("`{input}` does not begin with the name of a component");
        assert!(said.contains(&expected) && said.contains("write ./ before"), "{said}");
    }
    for input in [shards(), GROUPS[1].folder(&shards())] {
        let mut discover = rockpack();
        discover.arg("discover").arg(named("own", &input));
        refused(&mut discover, USAGE, &["has artifacts", "without NAME="]);
    }
}

/// The note's command has the same inputs, quoted for a shell.
#[test]
fn paths_with_spaces_and_signs_are_paths() {
    let trees = Trees::default();
    for path in ["a=b/rocm", "with space/rocm tree"] {
        trees.tree(path, 0);
        let mut build = trees.build(&[format!("./{path}")], &[]);
        let output = tools::run(build.current_dir(trees.path("")));
        let mut packages = contents(&trees.out());
        packages.remove("packages.json");
        assert_same(&packages, expected(), path);
        let said = String::from_utf8(output.stderr).unwrap();
        let note = said.lines().find(|line| line.contains("no configuration:")).unwrap();
        run_in_shell(&trees, note.split('`').nth(1).unwrap());
        let proposed = fs::read_to_string(trees.path("packaging.toml")).unwrap();
        assert!(proposed.contains("gfx1100"), "{proposed}");
        fs::remove_file(trees.path("packaging.toml")).unwrap();
    }
}

fn run_in_shell(trees: &Trees, command: &str) {
    let words = command.strip_prefix("rockpack ").unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("\"$0\" {words}")]).arg(rockpack_path());
    tools::run(shell.current_dir(trees.path("")));
}

#[test]
fn a_tree_of_no_known_component_is_asked_for_its_name() {
    let trees = Trees::default();
    trees.put("own tree/lib/libown.so", library());
    trees.put("own tree/share/notes", text("notes"));
    for input in ["own tree", "own tree/lib/libown.so"] {
        let expected = [input, "has no files of a component that rockpack knows by name"];
        let mut build = trees.build(&[input], &[]);
        build.current_dir(trees.path(""));
        refused(&mut build, USAGE, &expected);
        let said = String::from_utf8(build.output().unwrap().stderr).unwrap();
        let shown = said.split('`').nth(1).unwrap();
        run_in_shell(&trees, &format!("{shown} --version {VERSION}"));
        let made = names(&trees.path("packages"));
        assert!(made.contains("rocm-hello_7.1.0-1_amd64.deb"), "{made:?}");
        fs::remove_dir_all(trees.path("packages")).unwrap();
    }
}
