//! Packages of rockpack itself, made by `.ci/packages` and `.ci/wheel`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use support::example::names;
use support::program::{repository, rockpack_path};
use support::tools;
use tempfile::TempDir;

use crate::install::system::System;

/// The start of README's first command, before the program's arguments.
const BY_CARGO: &str = "cargo run --locked --release -- ";

/// The folder of the packages, which are made once in a run.
pub fn packages() -> &'static Path {
    static MADE: OnceLock<TempDir> = OnceLock::new();
    MADE.get_or_init(|| made_by(".ci/packages")).path()
}

/// The wheel, which is made once in a run.
pub fn wheel() -> &'static Path {
    static MADE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let make = || {
        let folder = made_by(".ci/wheel");
        let name = names(folder.path()).into_iter().next().unwrap();
        let wheel = folder.path().join(name);
        (folder, wheel)
    };
    &MADE.get_or_init(make).1
}

/// What a script makes of the program under test.
pub fn made_by(script: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    // Cargo puts it beside the tests.
    let shim = std::env::current_exe().unwrap().with_file_name("librocm_kpack_shim.so");
    let mut command = Command::new(repository(script));
    tools::run(command.arg(rockpack_path()).arg(shim).arg(folder.path()).env("LEVEL", "0"));
    folder
}

/// README's first command, run by an installed program on the example of its package.
fn first_command() -> String {
    let readme = fs::read_to_string(repository("README.md")).unwrap();
    let command = readme
        .lines()
        .find_map(|line| line.trim().strip_prefix(BY_CARGO))
        .unwrap()
        .replace("target/packages", "/var/tmp/packages");
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

/// The installed program runs README's first command on the package's example. The package has manual pages
/// and completions, and leaves nothing behind.
pub fn rockpack_itself_is_installed_and_works(system: &dyn System) {
    tools::need(&["rpmbuild", "strip", "git"]);
    system.offer(&[packages()]);
    tools::run(&mut system.install(&["rockpack"]));
    system.assert_whole();
    let root = system.root();
    for path in [
        "man/man1/rockpack-build.1.gz",
        "bash-completion/completions/rockpack",
        "cmake/rockpack/rockpackConfigVersion.cmake",
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

/// `cargo binstall` finds the program in the archive by the templates of Cargo.toml.
#[test]
fn the_archive_is_as_its_templates_say() {
    tools::need(&["rpmbuild", "strip", "git", "xz"]);
    let text = fs::read_to_string(repository("Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&text).unwrap();
    let version = manifest["workspace"]["package"]["version"].as_str().unwrap();
    let templates =
        &manifest["package"]["metadata"]["binstall"]["overrides"]["x86_64-unknown-linux-gnu"];
    let values = [("name", "rockpack"), ("bin", "rockpack"), ("version", version)];
    let [url, program] = ["pkg-url", "bin-dir"].map(|key| {
        let template = templates[key].as_str().unwrap().replace("{ binary-ext }", "");
        let fill = |text: String, (name, value)| text.replace(&format!("{{ {name} }}"), value);
        values.into_iter().fold(template, fill)
    });
    let release = format!("{{ repo }}/releases/download/v{version}/");
    let archive = packages().join(url.strip_prefix(&release).unwrap());
    assert_eq!(templates["pkg-fmt"].as_str(), Some("txz"));
    let folder = tempfile::tempdir().unwrap();
    tools::run(Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(folder.path()));
    let program = folder.path().join(program);
    let said = tools::succeed(Command::new(&program).arg("--version"));
    assert!(said.starts_with(&format!("rockpack {version}")), "{said}");
    assert!(program.with_file_name("librocm_kpack_shim.so").is_file());
}

/// The error names a library that systems may lack, and a C library that is too new.
#[test]
fn a_program_says_which_c_library_it_needs() {
    tools::need(&["readelf", "gcc", "git"]);
    assert!(checked("99.0", rockpack_path()).status.success());
    let old = checked("2.4", rockpack_path());
    let said = String::from_utf8(old.stderr).unwrap();
    assert!(!old.status.success() && said.contains("has to run with glibc 2.4 alone"), "{said}");
    let git = checked("99.0", &tools::find("git").unwrap());
    let said = String::from_utf8(git.stderr).unwrap();
    assert!(!git.status.success() && said.contains("and libpcre2-8.so.0"), "{said}");
}

/// The result of the check that `file` runs with this version of glibc.
fn checked(version: &str, file: &Path) -> Output {
    let mut command = Command::new(repository(".ci/glibc"));
    command.arg(version).arg(file).output().unwrap()
}

/// The linters of both distributions report nothing that matters for a package outside of a distribution:
/// signatures, groups and vendors are a distribution's own.
#[test]
#[ignore = "takes twenty seconds, nearly all in lintian"]
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
