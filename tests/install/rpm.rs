//! A root for rpm. One package has the shell and the C libraries of this machine and provides what
//! rpmbuild's own generator finds in them; nothing is installed with `--nodeps`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::foreign::Foreign;
use crate::system::{System, gather, is_root, kept};
use crate::tools;

/// What a system has before anything is installed. Maintainer scripts run with it.
const BASE: &str = "\
Name: base-system
Version: 1
Release: 1
Summary: The base of a system
License: MIT
# The style of hash tables that rpmbuild's generator asks glibc for.
Provides: rtld(GNU_HASH)
# What the packages of a HIP runtime would provide.
Provides: libamdhip64.so.7()(64bit) libamdhip64.so.7(hip_4.2)(64bit)
%description
A shell and the libraries of C and C++.
%install
mkdir -p %{buildroot}
cd %{buildroot}
mkdir -p opt var etc/ld.so.conf.d usr/share/doc usr/share/licenses
echo 'include /etc/ld.so.conf.d/*.conf' > %{buildroot}/etc/ld.so.conf
libraries=$(ldd /bin/sh /bin/rm | grep -o '/[^ ]*\\.so[^ ]*')
gcc=$(ldconfig -p | grep -o '/.*/lib\\(stdc++\\|gcc_s\\|m\\)\\.so\\.[0-9]*$' | grep -v 32)
for file in /bin/sh /bin/rm /sbin/ldconfig $libraries $gcc; do
  mkdir -p %{buildroot}$(dirname $file)
  cp -Lf $file %{buildroot}$file
done
%files
/*
";

/// The repository that dnf is told of.
const REPOSITORY: &str = "srv/repository";

pub struct Rpm {
    root: PathBuf,
    _folder: TempDir,
}

/// Runs a scenario in a fresh root.
pub fn with_root(scenario: fn(&dyn System)) {
    if !tools::have(&["dnf", "createrepo_c", "rpm", "rpmbuild", "ldd", "ldconfig"]) || !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let system = Rpm { root: folder.path().join("root"), _folder: folder };
    fs::create_dir_all(&system.root).unwrap();
    system.offer(&[&base()]);
    tools::run(&mut system.install(&["base-system"]));
    scenario(&system);
}

/// The folder of the base package, which is made once in a run.
fn base() -> PathBuf {
    static MADE: OnceLock<()> = OnceLock::new();
    let folder = kept("rpm-base");
    MADE.get_or_init(|| {
        let _ = fs::remove_dir_all(&folder);
        build(BASE, &folder);
    });
    folder
}

/// The binary packages of a spec.
fn build(spec: &str, folder: &Path) {
    let work = tempfile::tempdir().unwrap();
    let file = work.path().join("package.spec");
    fs::write(&file, spec).unwrap();
    let mut command = Command::new("rpmbuild");
    let defines = [
        format!("_topdir {}", work.path().display()),
        format!("_rpmdir {}", folder.display()),
        "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm".to_owned(),
        "_build_id_links none".to_owned(),
        "__os_install_post %{nil}".to_owned(),
        "_binary_payload w3.zstdio".to_owned(),
    ];
    for define in defines {
        command.arg("--define").arg(define);
    }
    tools::run(command.args(["-bb", "--quiet"]).arg(&file));
}

impl Rpm {
    fn dnf(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("dnf");
        let repository = self.root.join(REPOSITORY);
        command.arg(format!("--installroot={}", self.root.display()));
        command.arg(format!("--repofrompath=set,{}", repository.display()));
        command.args(["--releasever=1", "--disablerepo=*", "--enablerepo=set", "--nogpgcheck"]);
        command.args(["--setopt=metadata_expire=0", "--refresh", "-y"]).args(arguments);
        command.env("LC_ALL", "C");
        command
    }

    fn rpm(&self) -> Command {
        let mut command = Command::new("rpm");
        command.arg(format!("--root={}", self.root.display()));
        command
    }
}

impl System for Rpm {
    fn format(&self) -> &'static str {
        "rpm"
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn offer(&self, folders: &[&Path]) {
        let place = self.root.join(REPOSITORY);
        gather(folders, "rpm", &place);
        tools::run(Command::new("createrepo_c").arg("--quiet").arg(&place));
    }

    fn install(&self, packages: &[&str]) -> Command {
        self.dnf(&[&["install"], packages].concat())
    }

    fn unpack(&self, _: &str) -> Option<Command> {
        None
    }

    fn repair(&self) -> Command {
        self.dnf(&["check"])
    }

    fn update(&self) -> Command {
        self.dnf(&["upgrade"])
    }

    fn remove(&self, packages: &[&str]) -> Command {
        self.dnf(&[&["remove"], packages].concat())
    }

    /// rpm keeps no configuration of removed packages but under another name.
    fn purge(&self, packages: &[&str]) -> Command {
        self.remove(packages)
    }

    fn installed(&self) -> BTreeMap<String, String> {
        let mut query = self.rpm();
        let text = tools::succeed(query.args(["-qa", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\\n"]));
        let all = text.lines().filter_map(|line| line.split_once(' '));
        let added = all.filter(|(name, _)| *name != "base-system");
        added.map(|(name, version)| (name.to_owned(), version.to_owned())).collect()
    }

    fn altered(&self, packages: &[&str]) -> Command {
        let mut command = self.rpm();
        command.arg("-V").args(packages);
        command
    }

    fn make(&self, package: &Foreign, folder: &Path) {
        let tree = tempfile::tempdir().unwrap();
        package.plant(tree.path());
        let Foreign { name, version, needs, .. } = package;
        let needs = needs.map(|(name, least)| format!("Requires: {name} >= {least}\n"));
        let spec = format!(
            "Name: {name}\nVersion: {version}\nRelease: 1\nSummary: Of another vendor\n\
             License: MIT\nBuildArch: noarch\n{}%description\nOf another vendor.\n%install\n\
             cp -a {}/. %{{buildroot}}\n%files\n{}",
            needs.unwrap_or_default(),
            tree.path().display(),
            package.folders.iter().map(|path| format!("/{path}\n")).collect::<String>()
        );
        build(&spec, folder);
    }

    fn own_paths(&self) -> &'static [&'static str] {
        &["root", "var", "srv", "etc/ld.so.cache", "etc/dnf", "etc/yum.repos.d"]
    }
}
