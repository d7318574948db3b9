//! Groups install side by side and leave nothing behind, by dpkg and by rpm.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::example::{Entry, GROUPS, PREFIX, Set, kernels, tree};
use crate::tools::{self, is_root};

/// A root for a package manager.
trait Manager {
    fn root(&self) -> &Path;
    /// The command that installs packages.
    fn install(&self, set: &Set, packages: &[&str]) -> Command;
    fn remove(&self, packages: &[&str]) -> Command;
    /// Says nothing where all installed files are as their packages say.
    fn verify(&self, packages: &[&str]) -> Command;

    /// What is installed, without the database and the shell.
    fn installed(&self) -> BTreeMap<String, Entry> {
        let installed = |path: &String| path.starts_with("opt") || path.starts_with("usr/share");
        tree(self.root()).into_iter().filter(|(path, _)| installed(path)).collect()
    }
}

/// dpkg with an empty database. `--force-script-chrootless` runs maintainer scripts with the shell
/// of this machine and DPKG_ROOT, because the root has none.
struct Dpkg(PathBuf);

impl Dpkg {
    fn new(root: PathBuf) -> Self {
        for folder in ["info", "updates", "triggers"] {
            fs::create_dir_all(root.join("var/lib/dpkg").join(folder)).unwrap();
        }
        fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
        Self(root)
    }

    fn command(&self) -> Command {
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

/// rpm with a database of its own. Scripts run inside the root, and packages ask for `/bin/sh`: a
/// package that provides it is installed first, and a shell with its libraries is put in place.
struct Rpm(PathBuf);

const SHELL: &str = "Name: shell\nVersion: 1\nRelease: 1\nSummary: A shell\nLicense: MIT\nBuildArch: noarch\n\
                     Provides: /bin/sh\n%description\nStands for the shell of a system.\n%files\n";

impl Rpm {
    fn new(root: PathBuf) -> Self {
        fs::create_dir_all(root.join("opt")).unwrap();
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

    fn command(&self) -> Command {
        let mut command = Command::new("rpm");
        command.arg("--root").arg(&self.0).args(["--dbpath", "/var/lib/rpm"]);
        command
    }
}

/// A shell and the libraries it needs.
fn put_shell(root: &Path) {
    let libraries = tools::succeed(Command::new("ldd").arg("/bin/sh"));
    let libraries = libraries.split_whitespace().filter(|word| word.starts_with('/'));
    for file in libraries.chain(["/bin/sh"]) {
        let place = root.join(file.trim_start_matches('/'));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(file, place).unwrap();
    }
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

fn has(manager: &dyn Manager, path: &str) -> bool {
    manager.root().join(PREFIX).join(path).is_file()
}

/// Installs host and one group, another group beside them, and removes group by group.
fn installs_side_by_side(manager: &dyn Manager, set: &Set) {
    let [first, _, second] = &GROUPS;
    let (first, second) = (kernels(first), kernels(second));
    let before = manager.installed();
    tools::run(&mut manager.install(set, &["rocm-blas", &first]));
    let one_group = manager.installed();
    assert!(has(manager, "lib/.kpack/blas_lib_gfx1100.kpack") && has(manager, "bin/exblas-bench"));
    assert!(!has(manager, "lib/.kpack/blas_lib_gfx1200.kpack"));

    tools::run(&mut manager.install(set, &[&second]));
    let both = manager.installed();
    assert!(one_group.iter().all(|(path, entry)| both.get(path) == Some(entry)));
    assert!(has(manager, "lib/.kpack/blas_lib_gfx1200.kpack"));
    assert_eq!(tools::succeed(&mut manager.verify(&["rocm-blas", &first, &second])), "");

    tools::run(&mut manager.remove(&[&second]));
    assert_eq!(manager.installed(), one_group, "removing one group leaves the other whole");
    let refused = tools::told(&mut manager.remove(&["rocm-blas"]));
    assert!(refused.contains(&first) && !refused.contains("status: 0"), "{refused}");
    tools::run(&mut manager.remove(&[&first, "rocm-blas"]));
    assert_eq!(manager.installed(), before, "nothing is left behind");
}

/// A kernel package does not go without its host.
fn needs_the_host(manager: &dyn Manager, set: &Set) {
    let told = tools::told(&mut manager.install(set, &[&kernels(&GROUPS[0])]));
    assert!(
        told.contains("rocm-blas (= 7.1.0-1)") || told.contains("rocm-blas = 7.1.0-1"),
        "{told}"
    );
    assert!(!told.contains("status: 0"), "{told}");
}

/// A prefix that is a link is refused before anything is written through it.
fn refuses_a_link_as_prefix(manager: &dyn Manager, set: &Set) {
    let foreign = manager.root().join("opt/foreign");
    fs::create_dir_all(&foreign).unwrap();
    std::os::unix::fs::symlink("foreign", manager.root().join(PREFIX)).unwrap();
    let told = tools::told(&mut manager.install(set, &["rocm-blas"]));
    assert!(
        told.contains("is a symbolic link, but the prefix has to be a real directory"),
        "{told}"
    );
    assert!(!told.contains("status: 0"), "{told}");
    assert_eq!(fs::read_dir(foreign).unwrap().count(), 0);
}

#[test]
fn dpkg_installs_groups_side_by_side() {
    if !tools::have(&["dpkg"]) || !is_root() {
        return;
    }
    let set = Set::build();
    let root = |name: &str| Dpkg::new(set.scratch(name));
    installs_side_by_side(&root("groups"), &set);
    needs_the_host(&root("host"), &set);
    refuses_a_link_as_prefix(&root("link"), &set);
}

#[test]
fn rpm_installs_groups_side_by_side() {
    if !tools::have(&["rpm", "rpmbuild", "ldd"]) || !is_root() {
        return;
    }
    let set = Set::build();
    let root = |name: &str| Rpm::new(set.scratch(name));
    installs_side_by_side(&root("groups"), &set);
    needs_the_host(&root("host"), &set);
    refuses_a_link_as_prefix(&root("link"), &set);
}
