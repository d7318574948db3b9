//! Foreign tools that tests use as judges.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Whether every tool is installed. Says which one is missing, and fails instead of returning
/// `false` where `ROCKPACK_INTEROP=1` promises that all are there.
pub fn have(tools: &[&str]) -> bool {
    let missing: Vec<&str> = tools
        .iter()
        .copied()
        .filter(|tool| find(tool).is_none())
        .collect();
    if !missing.is_empty() {
        skip(&format!("needs {}", missing.join(", ")));
    }
    missing.is_empty()
}

/// Says why a test does not run, and fails where `ROCKPACK_INTEROP=1`.
pub fn skip(reason: &str) {
    assert_ne!(env::var("ROCKPACK_INTEROP").as_deref(), Ok("1"), "{reason}");
    eprintln!("skipped: {reason}");
}

fn find(tool: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")])
        .map(|folder| folder.join(tool))
        .find(|file| file.is_file())
}

/// Runs a command that has to succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// A path of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
