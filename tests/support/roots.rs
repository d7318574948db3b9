//! Roots that dpkg and rpm install into.
//!
//! A test file that uses them declares `support/example.rs` and `support/tools.rs` first.

#![allow(dead_code, reason = "every test program uses a part of it")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::example::{Entry, Set, tree};
use super::tools;
pub use super::tools::is_root;

/// A root for a package manager.
pub trait Manager {
    fn root(&self) -> &Path;
    /// The command that installs packages.
    fn install(&self, set: &Set, packages: &[&str]) -> Command;
    fn remove(&self, packages: &[&str]) -> Command;
    /// Says nothing where all installed files are as their packages say.
    fn verify(&self, packages: &[&str]) -> Command;

    /// What is installed, without the database and the shell.
    fn installed(&self) -> BTreeMap<String, Entry> {
        let installed = |path: &String| {
            ["opt", "etc/ld.so.conf.d", "usr/share"].iter().any(|top| path.starts_with(top))
        };
        tree(self.root()).into_iter().filter(|(path, _)| installed(path)).collect()
    }
}

/// dpkg with an empty database. `--force-script-chrootless` runs maintainer scripts with the shell
/// of this machine and DPKG_ROOT, because the root has none.
pub struct Dpkg(PathBuf);

/// Stands for the libraries of a system.
const LIBC: &str = "Package: libc6\nVersion: 2.36-9\nArchitecture: amd64\n\
                    Maintainer: Nobody <nobody@example.org>\nDescription: stub\n";

impl Dpkg {
    pub fn new(root: PathBuf) -> Self {
        for folder in ["info", "updates", "triggers"] {
            fs::create_dir_all(root.join("var/lib/dpkg").join(folder)).unwrap();
        }
        fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
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

/// rpm with a database of its own. Scripts run inside the root, and packages ask for `/bin/sh` and
/// libraries: a package that provides them is installed first, and a shell with its libraries is
/// put in place.
pub struct Rpm(PathBuf);

const SHELL: &str = "\
Name: shell
Version: 1
Release: 1
Summary: A shell
License: MIT
BuildArch: noarch
Provides: /bin/sh, /sbin/ldconfig, /usr/sbin/update-alternatives
Provides: libc.so.6()(64bit), libc.so.6(GLIBC_2.2.5)(64bit), libc.so.6(GLIBC_2.34)(64bit)
Provides: rtld(GNU_HASH)
Provides: libamdhip64.so.7()(64bit), libamdhip64.so.7(hip_4.2)(64bit)
%description
Stands for the shell and the libraries of a system.
%files
";

impl Rpm {
    pub fn new(root: PathBuf) -> Self {
        // Folders that a distribution's own packages bring.
        for folder in ["opt", "etc/ld.so.conf.d", "usr/share/licenses"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        put_shell(&root);
        let spec = root.join("var/shell.spec");
        fs::create_dir_all(root.join("var")).unwrap();
        fs::write(&spec, SHELL).unwrap();
        let build = root.join("var/build");
        tools::run(
            Command::new("rpmbuild")
                .args(["-bb", "--quiet", "--define"])
                .arg(format!("_topdir {}", build.display()))
                .arg(&spec),
        );
        let manager = Self(root);
        tools::run(manager.command().arg("--initdb"));
        tools::run(manager.command().arg("-i").arg(build.join("RPMS/noarch/shell-1-1.noarch.rpm")));
        manager
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new("rpm");
        command.arg("--root").arg(&self.0).args(["--dbpath", "/var/lib/rpm"]);
        command
    }
}

/// A shell, ldconfig, and the libraries they need.
pub fn put_shell(root: &Path) {
    put_program(root, "/bin/sh");
    // It is linked statically.
    put(root, "/sbin/ldconfig");
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::write(root.join("etc/ld.so.conf"), "include /etc/ld.so.conf.d/*.conf\n").unwrap();
}

/// A program of this machine with the libraries it needs, where it has them here.
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
