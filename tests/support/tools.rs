//! Foreign tools that tests use as judges.

use std::env;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// Skips the test that calls it unless every tool is installed.
pub fn need(tools: &[&str]) {
    if let Some(missing) = missing(tools) {
        skip(&missing);
    }
}

/// Whether the tools for a part of a test are installed. Without them, the test is reported as
/// skipped in part.
pub fn have(tools: &[&str]) -> bool {
    let missing = missing(tools);
    if let Some(missing) = &missing {
        skip_part(missing);
    }
    missing.is_none()
}

/// `needs rpm, dpkg-deb`
fn missing(tools: &[&str]) -> Option<String> {
    let missing: Vec<&str> = tools.iter().copied().filter(|tool| find(tool).is_none()).collect();
    (!missing.is_empty()).then(|| format!("needs {}", missing.join(", ")))
}

/// Skips the test that calls it unless this process may install into a root of its own: package
/// managers change the owner of what they install.
pub fn need_root() {
    if succeed(Command::new("id").arg("-u")).trim() != "0" {
        skip("needs root");
    }
}

/// The path of a tool.
pub fn find(tool: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")])
        .map(|folder| folder.join(tool))
        .find(|file| file.is_file())
}

/// Runs a command that has to succeed.
pub fn run(command: &mut Command) -> Output {
    let output = output(command);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Unpacks a package of either format into a folder, by dpkg-deb, or by rpm2cpio and cpio.
pub fn unpack(package: &Path, root: &Path) {
    std::fs::create_dir_all(root).unwrap();
    if package.extension().is_some_and(|extension| extension == "deb") {
        run(Command::new("dpkg-deb").arg("-x").arg(package).arg(root));
        return;
    }
    need(&["rpm2cpio", "cpio"]);
    let script = "rpm2cpio \"$0\" | cpio -idm --quiet --no-absolute-filenames";
    let package = std::path::absolute(package).unwrap();
    run(Command::new("sh").args(["-c", script]).arg(package).current_dir(root));
}

pub use crate::harness::{skip, skip_part};
pub use crate::program::repository;

/// What a command that must succeed writes to its standard output.
pub fn succeed(command: &mut Command) -> String {
    String::from_utf8_lossy(&run(command).stdout).into_owned()
}

/// What a command that must succeed writes to both streams: what was found and the result.
pub fn said(command: &mut Command) -> String {
    let Output { stdout, stderr, .. } = run(command);
    String::from_utf8_lossy(&[stderr, stdout].concat()).into_owned()
}

/// What a command writes to both streams, with its exit status.
pub fn told(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = output(command);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}{status}\n", text(&stdout), text(&stderr))
}

/// What a command gives. One that is not installed skips the test: a test that asks for all its tools
/// before it begins says more of them at once.
///
/// A program that was just written is busy while another test's child, forked in between, still
/// holds the descriptor that it was written through: until that child becomes its own program.
fn output(command: &mut Command) -> Output {
    for _ in 0..100 {
        match command.output() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let program = command.get_program().to_string_lossy();
                need(&[&program]);
                panic!("{command:?}: {error}");
            }
            other => return other.unwrap_or_else(|error| panic!("{command:?}: {error}")),
        }
    }
    panic!("{command:?}: the program stays busy")
}

/// What `eu-elflint --gnu-ld` says about a file, without the numbers that a tool may change.
pub fn lint(file: &Path) -> Vec<String> {
    let text = told(Command::new("eu-elflint").arg("--gnu-ld").arg(file));
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with("exit status") && *line != "No errors")
        .map(|line| line.chars().filter(|c| !c.is_ascii_digit() && *c != ' ').collect())
        .collect();
    lines.sort();
    lines
}
