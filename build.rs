//! Names the commit of a git clone in `ROCKPACK_COMMIT`, unless that variable is set.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=ROCKPACK_COMMIT");
    // In a source without `.git`, git would take the commit of a repository that surrounds it.
    if std::env::var_os("ROCKPACK_COMMIT").is_some() || !Path::new(".git").exists() {
        return;
    }
    let Some(commit) = git(&["rev-parse", "HEAD"]) else { return };
    println!("cargo::rustc-env=ROCKPACK_COMMIT={commit}");
    // The reflog changes with every commit and reset. Cargo would run this again for a path that does not exist.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name]);
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// The output of git; `None` if it fails or is not installed.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
