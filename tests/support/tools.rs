//! Running foreign tools: a missing one skips the test, or fails it under `ROCKPACK_INTEROP=1`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// Whether every tool of `names` is there. Says so where one is not, and fails where it must be.
pub fn have(names: &[&str]) -> bool {
    let missing: Vec<_> = names.iter().filter(|name| find(name).is_none()).collect();
    if missing.is_empty() {
        return true;
    }
    let required = std::env::var_os("ROCKPACK_INTEROP").is_some_and(|value| value == "1");
    assert!(!required, "missing tools: {missing:?}");
    eprintln!("skipped: missing tools: {missing:?}");
    false
}

/// The path of a tool.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut candidates = std::env::split_paths(&path).map(|folder| folder.join(name));
    candidates.find(|candidate| candidate.is_file())
}

/// Runs a command and returns what it wrote to both streams, with its exit status.
pub fn run(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = output(command);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}{status}\n", text(&stdout), text(&stderr))
}

/// Runs a command that must succeed.
pub fn succeed(command: &mut Command) -> String {
    let output = output(command);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}{errors}");
    text
}

/// A program that was just written is busy while another test's child, forked in between, still
/// holds the descriptor that it was written through: until that child becomes its own program.
fn output(command: &mut Command) -> Output {
    for _ in 0..100 {
        match command.output() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other.unwrap_or_else(|error| panic!("{command:?}: {error}")),
        }
    }
    panic!("{command:?}: the program stays busy")
}

/// What `eu-elflint --gnu-ld` says about a file, without the numbers that a tool may change.
pub fn lint(file: &Path) -> Vec<String> {
    let text = run(Command::new("eu-elflint").arg("--gnu-ld").arg(file));
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with("exit status") && *line != "No errors")
        .map(|line| {
            line.chars()
                .filter(|c| !c.is_ascii_digit() && *c != ' ')
                .collect()
        })
        .collect();
    lines.sort();
    lines
}
