//! Packages of rockpack itself, as `.ci/packages` makes them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use support::program::{repository, rockpack_path};
use support::tools;
use tempfile::TempDir;

use crate::install::system::System;

/// What follows the program in README's first command begins behind this.
const BY_CARGO: &str = "cargo run --locked --release -- ";

fn packages() -> &'static Path {
    static MADE: OnceLock<TempDir> = OnceLock::new();
    let make = || {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(repository(".ci/packages"));
        tools::run(command.arg(rockpack_path()).arg(folder.path()).env("LEVEL", "0"));
        folder
    };
    MADE.get_or_init(make).path()
}

/// What README calls first, by a program that is installed, beside the example that came with it.
fn first_command() -> String {
    let readme = fs::read_to_string(repository("README.md")).unwrap();
    let command = readme.lines().find_map(|line| line.trim().strip_prefix(BY_CARGO)).unwrap();
    let command = command.replace("target/packages", "/var/tmp/packages");
    format!("cd /usr/lib/rockpack && rockpack {command} && rockpack verify /var/tmp/packages")
}

fn shell(root: &Path, script: &str) -> String {
    let mut command = Command::new("chroot");
    command
        .arg(root)
        .args(["/bin/sh", "-c", script])
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/bin");
    tools::succeed(&mut command)
}

/// The program of the package does README's first command with the example of the package; the package
/// has manual pages and completions, and leaves nothing behind.
pub fn rockpack_itself_is_installed_and_works(system: &dyn System) {
    tools::need(&["rpmbuild", "strip", "git"]);
    system.offer(&[packages()]);
    tools::run(&mut system.install(&["rockpack"]));
    system.assert_whole();
    let root = system.root();
    for path in [
        "man/man1/rockpack-build.1.gz",
        "bash-completion/completions/rockpack",
        "doc/rockpack/README.md",
    ] {
        assert!(root.join("usr/share").join(path).exists(), "{path}");
    }
    assert!(shell(root, "rockpack --version").starts_with("rockpack "));
    let said = shell(root, &first_command());
    assert!(said.contains("24 packages") && said.contains("all checks passed"), "{said}");
    system.purge_all();
    assert!(
        !root.join("usr/lib/rockpack").exists() && !root.join("usr/share/doc/rockpack").exists()
    );
}

/// A library that no system has to have, and a C library that is too new, are named.
#[test]
fn a_program_says_which_c_library_it_needs() {
    tools::need(&["readelf", "gcc", "git"]);
    let check = |version: &str, file: &Path| {
        let mut command = Command::new(repository(".ci/glibc"));
        command.arg(version).arg(file).output().unwrap()
    };
    assert!(check("99.0", rockpack_path()).status.success());
    let old = check("2.4", rockpack_path());
    let said = String::from_utf8(old.stderr).unwrap();
    assert!(!old.status.success() && said.contains("has to run with glibc 2.4 alone"), "{said}");
    let git = check("99.0", &tools::find("git").unwrap());
    let said = String::from_utf8(git.stderr).unwrap();
    assert!(!git.status.success() && said.contains("and libpcre2-8.so.0"), "{said}");
}

/// The linters of both distributions have nothing against the packages that matters for a package
/// which no distribution has: signatures, groups and who made it are those of a distribution.
#[test]
fn linters_have_nothing_against_rockpacks_own_packages() {
    tools::need(&["rpmbuild", "strip", "git", "lintian"]);
    for entry in fs::read_dir(packages()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            let said = tools::told(Command::new("lintian").args(["--fail-on", "none"]).arg(&path));
            let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("E:")).collect();
            assert!(errors.is_empty(), "{errors:#?}");
        }
    }
}
