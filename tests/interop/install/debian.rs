//! Debian roots made by mmdebstrap, offline except for a local repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::bases::{copy, debian, sid};
use support::tools;
use tempfile::TempDir;

use crate::install::foreign::Foreign;
use crate::install::system::{System, gather};

/// The repository's path inside the root.
const REPOSITORY: &str = "srv/repository";

/// apt's preferences for versions.
const PREFERENCES: &str = "etc/apt/preferences.d/versions";

pub struct Debian {
    root: PathBuf,
    base: BTreeMap<String, String>,
    _folder: TempDir,
}

/// Runs a scenario in a fresh root of a release.
pub fn with_root(suite: &str, scenario: fn(&dyn System)) {
    tools::need(&["mmdebstrap", "apt-ftparchive", "chroot"]);
    tools::need_root();
    let base = if suite == "sid" { sid() } else { debian(suite) };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    copy(&base, &root);
    // dpkg removes /opt with the last package below it if /opt is then empty.
    fs::create_dir(root.join("opt/of-the-administrator")).unwrap();
    let mut system = Debian { root, base: BTreeMap::new(), _folder: folder };
    system.base = system.listed();
    scenario(&system);
}

impl Debian {
    fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("chroot");
        command.arg(&self.root).arg(program).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    fn apt(&self, arguments: &[&str]) -> Command {
        let mut command = self.inside("apt-get");
        command.args(["-y", "-q", "-o", "APT::Sandbox::User=root"]).args(arguments);
        command
    }

    fn listed(&self) -> BTreeMap<String, String> {
        let mut query = self.inside("dpkg-query");
        query.args(["-W", "-f", "${db:Status-Status} ${Package} ${Version}\n"]);
        let text = tools::succeed(&mut query);
        let installed = text.lines().filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            // Every state counts in which dpkg still knows the package.
            (words[0] != "not-installed").then(|| (words[1].to_owned(), words[2].to_owned()))
        });
        installed.collect()
    }
}

impl System for Debian {
    fn format(&self) -> &'static str {
        "deb"
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn offer(&self, folders: &[&Path]) {
        let place = self.root.join(REPOSITORY);
        gather(folders, "deb", &place);
        let mut scan = Command::new("apt-ftparchive");
        let index = tools::succeed(scan.args(["packages", "."]).current_dir(&place));
        fs::write(place.join("Packages"), index).unwrap();
        let sources = self.root.join("etc/apt/sources.list");
        fs::write(sources, format!("deb [trusted=yes] file:/{REPOSITORY} ./\n")).unwrap();
        tools::run(&mut self.apt(&["update"]));
    }

    fn install(&self, packages: &[&str]) -> Command {
        self.apt(&[&["install"], packages].concat())
    }

    fn unpack(&self, file_name: &str) -> Option<Command> {
        let mut command = self.inside("dpkg");
        command.args(["--auto-deconfigure", "--unpack"]);
        command.arg(format!("/{REPOSITORY}/{file_name}"));
        Some(command)
    }

    fn repair(&self) -> Command {
        self.apt(&["--fix-broken", "install"])
    }

    fn update(&self) -> Command {
        self.apt(&["dist-upgrade"])
    }

    fn upgrade(&self) -> Command {
        self.apt(&["upgrade", "--allow-downgrades"])
    }

    fn signs_of_trouble(&self) -> &'static [&'static str] {
        &["have been kept back", "will be REMOVED", "NEW packages will be installed"]
    }

    fn install_versions(&self, packages: &[(&str, &str)]) -> Command {
        let packages: Vec<String> =
            packages.iter().map(|(name, version)| format!("{name}={version}")).collect();
        let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
        self.apt(&[&["install", "--allow-downgrades"], &packages[..]].concat())
    }

    fn pin(&self, packages: &[&str], version: &str, _: &str) {
        let packages = packages.join(" ");
        let text = format!("Package: {packages}\nPin: version {version}\nPin-Priority: 1001\n");
        fs::write(self.root.join(PREFERENCES), text).unwrap();
    }

    fn unpin(&self, _: &[&str], _: &str) {
        fs::remove_file(self.root.join(PREFERENCES)).unwrap();
    }

    fn autoremove(&self) -> Command {
        self.apt(&["autoremove", "--purge"])
    }

    fn remove(&self, packages: &[&str]) -> Command {
        self.apt(&[&["remove"], packages].concat())
    }

    fn purge(&self, packages: &[&str]) -> Command {
        self.apt(&[&["purge"], packages].concat())
    }

    fn installed(&self) -> BTreeMap<String, String> {
        let all = self.listed().into_iter();
        all.filter(|(name, _)| !self.base.contains_key(name)).collect()
    }

    fn altered(&self, packages: &[&str]) -> Command {
        let mut command = self.inside("dpkg");
        command.arg("--verify").args(packages);
        command
    }

    fn make(&self, package: &Foreign, folder: &Path) {
        let tree = tempfile::tempdir().unwrap();
        package.plant(tree.path());
        let control = tree.path().join("DEBIAN");
        fs::create_dir(&control).unwrap();
        let Foreign { name, version, needs, .. } = package;
        let needs = needs.map(|(name, least)| format!("Depends: {name} (>= {least})\n"));
        let text = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: all\n\
             Maintainer: Somebody <somebody@example.org>\n{}Description: Of another vendor\n",
            needs.unwrap_or_default()
        );
        fs::write(control.join("control"), text).unwrap();
        tools::run(
            Command::new("dpkg-deb")
                .args(["--root-owner-group", "-b"])
                .arg(tree.path())
                .arg(folder),
        );
    }

    fn own_paths(&self) -> &'static [&'static str] {
        &[
            "var/lib/dpkg",
            "var/lib/apt",
            "var/cache",
            "var/log",
            "etc/ld.so.cache",
            "srv",
            "etc/apt",
        ]
    }
}
