//! Every command and file that SECURITY.md names exists, and every promise has a command. The tests that
//! CONTRIBUTING.md runs exist, too.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use support::program::{rockpack, rust_files, source_folders};
use support::tools;

const DOCUMENT: &str = "SECURITY.md";

fn document() -> String {
    fs::read_to_string(tools::repository(DOCUMENT)).unwrap()
}

/// The texts between backquotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The names of the tests below `path`, as the test program prints them: `module::function`.
fn tests_in(path: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in rust_files(path) {
        let relative = file.strip_prefix(path).unwrap().with_extension("");
        let parts = relative.iter().map(|part| part.to_str().unwrap());
        let module: Vec<&str> = parts.filter(|part| !["mod", "main"].contains(part)).collect();
        let text = fs::read_to_string(&file).unwrap();
        let inner = if text.contains("mod tests {") { vec!["tests"] } else { Vec::new() };
        for piece in text.split("#[test]").skip(1) {
            let function = piece.split("fn ").nth(1).unwrap().split('(').next().unwrap();
            names.insert([&module[..], &inner, &[function]].concat().join("::"));
        }
    }
    names
}

/// The words of a command after its environment variables.
fn command_in(text: &str) -> Vec<&str> {
    text.split_whitespace().skip_while(|word| word.contains('=')).collect()
}

/// The reason why a `cargo test` command would run nothing, if any.
fn fault(command: &str) -> Option<String> {
    let words: Vec<&str> =
        command_in(command).into_iter().skip(2).filter(|word| *word != "--release").collect();
    let (folders, filter) = match words.as_slice() {
        ["--lib", filter] => (source_folders(), *filter),
        ["-p", "rocm-kpack", "--test", "runtime", filter] => {
            (vec![tools::repository("runtime/tests")], *filter)
        }
        ["--test", program, rest @ ..] if rest.len() < 2 => {
            let folder = tools::repository(&format!("tests/{program}"));
            (vec![folder], rest.first().copied().unwrap_or_default())
        }
        _ => return Some("is no command that this test knows".to_owned()),
    };
    if let Some(missing) = folders.iter().find(|folder| !folder.exists()) {
        return Some(format!("there is no {}", missing.display()));
    }
    let tests: BTreeSet<_> = folders.iter().flat_map(|folder| tests_in(folder)).collect();
    if tests.iter().any(|name| name.contains(filter)) {
        None
    } else {
        Some(format!("no test is called {filter}; there are {tests:?}"))
    }
}

#[test]
fn every_command_runs_something() {
    let guide = fs::read_to_string(tools::repository("CONTRIBUTING.md")).unwrap();
    let document = document();
    let commands: Vec<&str> = [quoted(&document), quoted(&guide)]
        .into_iter()
        .flatten()
        .filter(|text| command_in(text).first() == Some(&"cargo"))
        .collect();
    assert!(commands.len() > 30, "{commands:?}");
    for command in commands {
        assert_eq!(fault(command), None, "{command}");
    }
    // This test can fail.
    for wrong in [
        "cargo test --test nothing",
        "A=b cargo test --release --test nothing",
        "cargo test --test tree promises::never",
        "cargo bench",
    ] {
        assert!(fault(wrong).is_some(), "{wrong}");
    }
}

#[test]
fn every_promise_has_a_command() {
    let document = document();
    let mut promises = 0;
    let mut in_table = false;
    for line in document.lines() {
        in_table = line.starts_with("| promise | test |") || (in_table && line.starts_with('|'));
        let Some((_, tests)) = line.trim_end_matches('|').rsplit_once('|').filter(|_| in_table)
        else {
            continue;
        };
        if line.starts_with("|---") || line.starts_with("| promise") {
            continue;
        }
        let commands = quoted(tests);
        let runs = |text: &&str| {
            ["cargo test ", ".ci/", "fuzz/"].iter().any(|start| text.starts_with(start))
        };
        assert!(commands.iter().any(runs), "{line}");
        promises += 1;
    }
    assert!(promises > 20, "{promises}");
}

#[test]
fn every_file_and_option_that_is_named_is_there() {
    let document = document();
    let is_path = |text: &&str| {
        let first = text.split('/').next().unwrap_or_default();
        text.contains('/')
            && [".ci", "benches", "crates", "examples", "fuzz", "src", "tests"].contains(&first)
    };
    let mut files: Vec<&str> = quoted(&document).into_iter().filter(is_path).collect();
    files.extend(document.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()));
    assert!(files.len() > 4, "{files:?}");
    for file in files {
        let path = file.split_whitespace().next().unwrap();
        assert!(tools::repository(path).exists(), "{file}");
    }
    let mut help = String::new();
    for command in ["build", "split", "discover", "verify", "repo"] {
        help += &tools::succeed(rockpack().args([command, "--help"]));
    }
    for option in quoted(&document).into_iter().filter(|text| text.starts_with("--")) {
        let option = option.split_whitespace().next().unwrap();
        assert!(help.contains(option), "{option}");
    }
}
