//! Roots for dpkg and rpm to install into.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{bases, tools};
use crate::example::{Entry, Set, tree};
use crate::queries::deb_field;
pub use crate::tools::need_root;

/// A root for a package manager.
pub trait Manager {
    fn root(&self) -> &Path;
    /// The command that installs packages.
    fn install(&self, set: &Set, packages: &[&str]) -> Command;
    fn remove(&self, packages: &[&str]) -> Command;
    /// The command that compares installed files with their packages; it prints nothing if they match.
    fn verify(&self, packages: &[&str]) -> Command;

    /// All installed entries, without the database and the shell.
    fn installed(&self) -> BTreeMap<String, Entry> {
        let installed = |path: &String| {
            ["opt", "etc/ld.so.conf.d", "usr/share"].iter().any(|top| path.starts_with(top))
        };
        tree(self.root()).into_iter().filter(|(path, _)| installed(path)).collect()
    }
}

/// dpkg with an empty database. The root has no shell, so `--force-script-chrootless` runs maintainer scripts
/// with this machine's shell and DPKG_ROOT.
pub struct Dpkg(PathBuf);

/// A stub for the libraries of a system.
const LIBC: &str = "Package: libc6\nVersion: 2.36-9\nArchitecture: amd64\n\
                    Maintainer: Nobody <nobody@example.org>\nDescription: stub\n";

impl Dpkg {
    pub fn new(root: PathBuf) -> Self {
        dpkg_database(&root, "");
        let stub = root.join("var/libc6");
        fs::create_dir_all(stub.join("DEBIAN")).unwrap();
        fs::write(stub.join("DEBIAN/control"), LIBC).unwrap();
        let package = root.join("var/libc6.deb");
        tools::run(
            Command::new("dpkg-deb").args(["-b", "--root-owner-group"]).args([&stub, &package]),
        );
        let manager = Self(root);
        tools::run(manager.command().arg("-i").arg(package));
        manager
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", self.0.display())).arg("--force-script-chrootless");
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }
}

/// Makes a dpkg database in a root, with these paragraphs of installed packages.
pub fn dpkg_database(root: &Path, status: &str) {
    let database = root.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(database.join(folder)).unwrap();
    }
    fs::write(database.join("status"), status).unwrap();
    fs::write(database.join("available"), "").unwrap();
}

/// Installed stubs for all dependencies that are not among `debs`.
pub fn stubs(debs: &[PathBuf]) -> String {
    let own: BTreeSet<String> = debs.iter().map(|deb| deb_field(deb, "Package")).collect();
    let mut needed = BTreeSet::new();
    for text in debs.iter().flat_map(|deb| ["Depends", "Pre-Depends"].map(|f| deb_field(deb, f))) {
        let names = text.split(',').filter_map(|one| one.split(['(', '|']).next());
        needed.extend(names.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()));
    }
    let stub = |name: &String| {
        format!(
            "Package: {name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: 99\n\
             Maintainer: a <a@example.org>\nDescription: a\n\n"
        )
    };
    needed.difference(&own).map(stub).collect()
}

/// dpkg in a root without a shell.
pub fn dpkg(root: &Path) -> Command {
    let mut dpkg = Command::new("dpkg");
    dpkg.args(["--force-not-root", "--force-script-chrootless", "--log=/dev/null", "--root"]);
    dpkg.arg(root);
    dpkg
}

impl Manager for Dpkg {
    fn root(&self) -> &Path {
        &self.0
    }

    fn install(&self, set: &Set, packages: &[&str]) -> Command {
        let mut command = self.command();
        command.arg("-i").args(packages.iter().map(|package| set.deb(package)));
        command
    }

    fn remove(&self, packages: &[&str]) -> Command {
        let mut command = self.command();
        command.arg("-P").args(packages);
        command
    }

    fn verify(&self, packages: &[&str]) -> Command {
        let mut command = self.command();
        command.arg("--verify").args(packages);
        command
    }
}

/// rpm with its own database and a base system.
pub struct Rpm(PathBuf);

impl Rpm {
    pub fn new(root: PathBuf) -> Self {
        let base = bases::rpm();
        let manager = Self::empty(root);
        let packages = crate::example::names(base).into_iter().map(|name| base.join(name));
        tools::run(manager.command().arg("-i").args(packages));
        manager
    }

    /// rpm with nothing but its database: there is no program.
    pub fn empty(root: PathBuf) -> Self {
        fs::create_dir_all(&root).unwrap();
        let manager = Self(root);
        tools::run(manager.command().arg("--initdb"));
        manager
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new("rpm");
        command.arg("--root").arg(&self.0).args(["--dbpath", "/var/lib/rpm"]);
        command
    }
}

/// Copies a program of this machine, with its libraries, to the same paths in a root.
pub fn put_program(root: &Path, program: &str) {
    let libraries = tools::succeed(Command::new("ldd").arg(program));
    let libraries = libraries.split_whitespace().filter(|word| word.starts_with('/'));
    for file in libraries.chain([program]) {
        put(root, file);
    }
}

fn put(root: &Path, file: &str) {
    let place = root.join(file.trim_start_matches('/'));
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::copy(file, place).unwrap();
}

impl Manager for Rpm {
    fn root(&self) -> &Path {
        &self.0
    }

    fn install(&self, set: &Set, packages: &[&str]) -> Command {
        let mut command = self.command();
        command.arg("-i").args(packages.iter().map(|package| set.rpm(package)));
        command
    }

    fn remove(&self, packages: &[&str]) -> Command {
        let mut command = self.command();
        command.arg("-e").args(packages);
        command
    }

    fn verify(&self, packages: &[&str]) -> Command {
        let mut command = self.command();
        command.arg("-V").args(packages);
        command
    }
}
