//! Foreign tools that judge in tests.

use std::env;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// Skips the calling test unless every tool is installed.
pub fn need(tools: &[&str]) {
    if let Some(missing) = missing(tools) {
        skip(&missing);
    }
}

/// Tells whether the tools for a part of a test are installed. If not, the test is reported as partly
/// skipped.
pub fn have(tools: &[&str]) -> bool {
    let missing = missing(tools);
    if let Some(missing) = &missing {
        skip_part(missing);
    }
    missing.is_none()
}

/// The reason for a skip: `needs rpm, dpkg-deb`.
fn missing(tools: &[&str]) -> Option<String> {
    let missing: Vec<&str> = tools.iter().copied().filter(|tool| find(tool).is_none()).collect();
    (!missing.is_empty()).then(|| format!("needs {}", missing.join(", ")))
}

/// Skips the calling test unless this process may install into its own root: package managers change file
/// owners.
pub fn need_root() {
    if succeed(Command::new("id").arg("-u")).trim() != "0" {
        skip("needs root");
    }
}

/// Runs `command` as a user who owns nothing.
pub fn by_nobody(command: &Command) -> Command {
    let program = command.get_program();
    if !as_nobody().arg(program).arg("--version").output().unwrap().status.success() {
        skip("needs the program to lie where everybody may run it");
    }
    let mut nobody = as_nobody();
    nobody.arg(program).args(command.get_args());
    nobody
}

fn as_nobody() -> Command {
    let mut nobody = Command::new("setpriv");
    nobody.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    nobody
}

/// The path of a tool; absent if it is not installed.
pub fn find(tool: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")])
        .map(|folder| folder.join(tool))
        .find(|file| file.is_file())
}

/// Runs a command that must succeed.
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

/// Unpacks a package of either format into a folder, with dpkg-deb, or with rpm2cpio and cpio.
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

/// The stdout of a command that must succeed.
pub fn succeed(command: &mut Command) -> String {
    String::from_utf8_lossy(&run(command).stdout).into_owned()
}

/// The stderr and stdout of a command that must succeed: findings and result.
pub fn said(command: &mut Command) -> String {
    let Output { stdout, stderr, .. } = run(command);
    String::from_utf8_lossy(&[stderr, stdout].concat()).into_owned()
}

/// The stderr and stdout of a command, with its exit status.
pub fn told(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = output(command);
    let [stdout, stderr] = [&stdout, &stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{stdout}{stderr}{status}\n")
}

/// The output of a command. If the command is not installed, the test is skipped. Tests should ask for all
/// their tools first, so that the reason names all of them.
///
/// A newly written program is busy while another test's child, forked during the write, still holds the
/// descriptor, until that child executes its own program.
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

/// The report of `eu-elflint --gnu-ld` on a file, without numbers that a tool may change.
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
